"""What was recorded of one training loop, as plain data: the recorders write it, rules and reports only read it.

Shares of phases and rates of calls that rules have in common are methods here; `views/summary.py` makes rows of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from hotloop.doctor.recorder.order import ACT as ACT
from hotloop.doctor.recorder.order import CHECKPOINT as CHECKPOINT
from hotloop.doctor.recorder.order import ENV as ENV
from hotloop.doctor.recorder.order import EVALUATE as EVALUATE
from hotloop.doctor.recorder.order import LOG as LOG
from hotloop.doctor.recorder.order import OTHER as OTHER
from hotloop.doctor.recorder.order import OUTSIDE as OUTSIDE
from hotloop.doctor.recorder.order import PHASES as PHASES
from hotloop.doctor.recorder.order import QUEUED as QUEUED
from hotloop.doctor.recorder.order import RECORDING as RECORDING
from hotloop.doctor.recorder.order import SAMPLE as SAMPLE
from hotloop.doctor.recorder.order import START_UP as START_UP
from hotloop.doctor.recorder.order import STORE as STORE
from hotloop.doctor.recorder.order import STORE_AND_SAMPLE as STORE_AND_SAMPLE
from hotloop.doctor.recorder.order import UPDATE as UPDATE
from hotloop.doctor.recorder.order import UPDATE_PARTS as UPDATE_PARTS
from hotloop.doctor.recorder.order import UPDATES_OF_A_ROLLOUT as UPDATES_OF_A_ROLLOUT
from hotloop.doctor.recorder.order import WAIT as WAIT

SCHEMA = 1
LEAST_ENV_STEPS, LEAST_UPDATES = 200, 50
"""Of a script: with fewer there is no all-clear."""
MOSTLY = 0.9
WALL, PROCESSOR = "wall", "processor"
"""Clocks. On a machine that is busy with other programs the second tells what a loop costs, and the first how long it
was kept from running."""


@dataclass(frozen=True, kw_only=True)
class Subject:
    """What was diagnosed, and how it ended."""

    kind: str
    """`script` or `preset`."""
    name: str
    arguments: tuple[str, ...] = ()
    ending: str = "finished"
    """`finished`, `limit` (the doctor's own bound), `interrupted`, `crashed` or `exited`."""
    exit_code: int | None = None
    """The script's own; None where the doctor stopped it."""
    error: str = ""


@dataclass(frozen=True, kw_only=True)
class Counts:
    """What happened in the loop, counted rather than assumed; start-up is left out."""

    env_steps: int = 0
    env_calls: int = 0
    """Calls of the outermost `step`: `env_steps / env_calls` environments are stepped at once."""
    envs: int = 0
    """Distinct objects whose outermost `step` was called."""
    env_switches: int = 0
    """Env calls that stepped another object than the one before: nearly all, where single envs take turns."""
    episodes: int = 0
    updates: int = 0
    """Rounds of optimiser steps in which no optimiser steps twice: those of a critic, an actor and a temperature are
    one update; with one optimiser, its steps."""
    optimiser_steps: int = 0
    optimisers: int = 0
    """Distinct ones that stepped in the loop."""
    act_forwards: int = 0
    """Of networks: a module without parameters (a loss, an activation) makes none, and a network whose `forward` is
    called directly makes one, not one for each layer."""
    act_rows: int = 0
    """Rows of all forwards that chose actions."""
    act_forwards_with_grad: int = 0
    update_forwards: int = 0
    unneeded_grad_forwards: int = 0
    """Forwards in the update that recorded gradients for a module no optimiser ever changes (a target network)."""
    backwards: int = 0
    parameter_tensors: int = 0
    parameters: int = 0
    double_parameters: int = 0
    """Parameters held in float64."""
    denormal_values: int = 0
    """Optimiser state too small for ordinary floats, counted when the loop ended."""
    optimiser: str = ""
    """Class name, with `fused` or `foreach` where it says so."""
    batch_size: int = 0
    """Rows of the last forward of a network before a backward."""
    update_bursts: int = 0
    """Times that one update or more came between two env calls: `updates / update_bursts` are done at once."""
    waiting_seconds: float = 0.0
    """Loop time in which the loop only waited for another process or thread, by samples."""
    worker_seconds: float = 0.0
    """Processor time of the script's child processes while the loop ran."""
    queued_seconds: float = 0.0
    """Loop time in which the loop's thread was ready to run and other threads or programs had the cores."""
    own_threads_seconds: float = 0.0
    """Processor time of all threads of the script while the loop ran."""
    gc_seconds: float = 0.0
    """Loop time spent in Python's garbage collector."""
    gc_collections: int = 0
    late_seconds: float = 0.0
    """How long the script was watched after the window, by samples of its stack alone."""
    diagonal_covariances: int = 0
    """Multivariate normals with a diagonal covariance, of the first that were made in the counting pass."""
    major_faults: int = 0
    """Pages that had to be read from disk while the loop ran."""
    minor_faults: int = 0
    resident_growth: int = 0
    """Bytes of memory at the end of the loop less those at its beginning."""
    live_graphs: int = 0
    """Tensors at the end that hold the graph they were computed by."""
    asleep_seconds: float = 0.0
    """Loop time in which the loop's thread neither computed nor was ready to: it waited for something."""
    computed_seconds: float = 0.0
    """Processor time of the script's own process while the loop ran."""
    page_seconds: float = 0.0
    """Processor time of a page of memory that the process has not had before."""
    graph_holder: str = ""
    """Name of a list or deque that holds them."""
    device: str = ""
    """Where most of the parameters lie: `cpu`, `cuda`, `mps`."""
    workers: int = 0
    """Child processes that computed while the loop ran."""
    compilations: int = 0
    """Graphs that `torch.compile` compiled while the loop ran."""
    update_operations: float = 0.0
    """Floating-point operations of the matrix products of one update, forwards and backwards; of the counting pass."""
    matrix_speed: float = 0.0
    """Such operations per second of processor time that one core makes; of the counting pass."""
    skipped_env_steps: int = 0
    """Env steps made before the recording began: the warm-up, the first updates, and what `--after` skips."""


@dataclass(frozen=True, kw_only=True)
class Setup:
    """What the program works with, as far as it could be seen: snippets of remedies are filled with it. A field that
    was not seen is empty or zero."""

    env_id: str = ""
    """Of a Gymnasium env."""
    env_class: str = ""
    """Qualified name of the outermost env's class."""
    obs_shape: tuple[int, ...] = ()
    num_actions: int = 0
    """Of a discrete action space."""
    layers: tuple[int, ...] = ()
    """Of a multilayer network, sizes from input to output; empty where the network is anything else."""
    activation: str = ""
    lr: float = 0.0
    gamma: float = 0.0
    target_every: int = 0
    """Updates between two copies into a target network."""
    replay_capacity: int = 0
    library: str = ""
    """Whose loop runs, where the user's own code only calls it: `stable_baselines3`; or what made the optimiser."""
    algorithm: str = ""
    """The class that it calls: `SAC`."""
    accelerates: bool = False
    """Whether it is a model of Stable-Baselines3's that our adapter makes fast in place."""
    eval_freq: int = 0
    n_eval_episodes: int = 0
    save_freq: int = 0
    """Of the library's callbacks that evaluate and save, in calls of the envs."""


@dataclass(frozen=True, kw_only=True)
class CallCount:
    """How often one function was called from one line, seen by the counting pass."""

    name: str
    """Qualified: `Tensor.item`, `list.insert`, `deque.append`, `torch.tensor`, `networkx.all_simple_paths`, `print`."""
    where: str
    """`file.py:line` of the user's own line that led to it."""
    phase: str
    count: int
    largest: int = 0
    """Greatest size of the container it worked on, where it has one."""


@dataclass(frozen=True, kw_only=True)
class Mention:
    """A line of the user's own that sets something up: `set_detect_anomaly`, `torch.compile`, `SyncVectorEnv`."""

    name: str
    where: str


@dataclass(frozen=True, kw_only=True)
class StoredArray:
    """A large array that an object of the script held when the loop ended."""

    name: str
    """`Class.attribute`."""
    dtype: str
    shape: tuple[int, ...]
    bytes: int
    fits: str = ""
    """A smaller type that holds the same numbers, as far as they were looked at."""
    where: str = ""
    """Where it is made."""
    twin: str = ""
    """An attribute that holds the same rows, one later."""


@dataclass(frozen=True, kw_only=True)
class LineCost:
    """Time charged to one line of the user's own source by stack sampling: itself and all it called."""

    where: str
    function: str
    source: str
    phase: str
    seconds: float
    features: tuple[str, ...] = ()
    """What the line's syntax shows: `f-string`, `string-key`, `for-loop`, `comprehension`, `item`, `insert-front`."""
    part: str = ""
    """Of the update: one of UPDATE_PARTS; `forward` where one chooses an action."""


@dataclass(frozen=True, kw_only=True)
class StackCost:
    phase: str
    frames: tuple[str, ...]
    """`function (file.py:line)`, outermost first."""
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Slice:
    """One stretch of the loop; all slices together are the timeline and show what grows."""

    start_seconds: float
    """Since the loop began: start-up lies before it."""
    seconds: float
    env_steps: int
    episodes: int
    updates: int
    phases: dict[str, float] = field(default_factory=dict)
    processor: dict[str, float] = field(default_factory=dict)
    """Processor seconds by phase, where they were measured."""


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """The same loop with one thing changed, run interleaved with the unchanged one."""

    name: str
    what: str
    kind: str
    """`exact` or `changes-learning`."""
    ratio: float
    """Time per env step as it is, over time per env step with the change: above 1, the change is faster."""
    low: float
    high: float
    processor: tuple[float, ...] = ()
    """The same by processor time: ratio, low and high; empty where it was not measured."""
    pairs: int = 0
    """Pairs of stretches that it was measured by; 0 where that was not noted."""


@dataclass(frozen=True, kw_only=True)
class Untried:
    """An experiment that does not apply to the program, or could not be made."""

    name: str
    what: str
    kind: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class OperatorCost:
    """One PyTorch operator, seen by its own profiler in a separate pass."""

    name: str
    calls: int
    seconds: float
    """In the operator itself, without the operators it calls."""
    share: float
    """Of all operators' time."""


@dataclass(frozen=True, kw_only=True)
class Growth:
    """Does it get slower? `ratio` is the cost at the end of the range over the cost at its beginning."""

    over: str
    """`run`, `replay fill` or `num_envs`."""
    what: str
    """`env step`, `env step without the update`, a phase, `sample, per update` or `env steps per episode`."""
    points: tuple[tuple[float, float], ...]
    """Place on the axis, cost in microseconds (or in the unit `what` says)."""
    ratio: float


@dataclass(frozen=True, kw_only=True)
class Trace:
    subject: Subject
    machine: dict[str, Any]
    seconds: float
    """Wall-clock, from the subject's first line to its end; the phases sum to it."""
    phases: dict[str, float]
    update_parts: dict[str, float] = field(default_factory=dict)
    """How the phase `update` splits into forward, backward, optimiser and the rest."""
    processor: dict[str, float] = field(default_factory=dict)
    """Processor seconds of the loop's thread by phase, and by part of the update, where they were measured."""
    clock: str = WALL
    """Of phases, lines and stacks: wall-clock, or processor time where the machine was busy with other programs."""
    setup: Setup = field(default_factory=Setup)
    counts: Counts = field(default_factory=Counts)
    calls: tuple[CallCount, ...] = ()
    counted: Counts = field(default_factory=Counts)
    """Env steps and updates of the counting pass, which `calls` are to be divided by."""
    lines: tuple[LineCost, ...] = ()
    beneath: tuple[LineCost, ...] = ()
    """Lines of the library that the user's own line only calls (`model.learn(...)`), where there is one."""
    loops: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Of the user's own lines that were seen in stacks, by `file.py:line`: each `for` and `while` around it in its
    function, the outermost first, and the line itself where it holds a comprehension."""
    made: dict[str, str] = field(default_factory=dict)
    """The user's own line where an `optimiser`, an `algorithm`, a `vector env`, an `evaluation` or a `checkpoint` (what
    saves them) was made."""
    makers: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Of what a library made on behalf of that line: the library, and its own `file.py:line`."""
    sources: dict[str, str] = field(default_factory=dict)
    """What stands on the lines of `loops`, `made` and `makers`."""
    stacks: tuple[StackCost, ...] = ()
    late: tuple[StackCost, ...] = ()
    """Stacks seen after the window, where that was asked for: what comes late, evaluation and checkpoints."""
    timeline: tuple[Slice, ...] = ()
    warm_up: tuple[Slice, ...] = ()
    """What came before: recording begins when the first updates are over."""
    growth: tuple[Growth, ...] = ()
    experiments: tuple[Experiment, ...] = ()
    untried: tuple[Untried, ...] = ()
    """Experiments that were asked for and do not apply, each with its reason."""
    operators: tuple[OperatorCost, ...] = ()
    """The dearest first, where they were asked for."""
    mentions: tuple[Mention, ...] = ()
    stored: tuple[StoredArray, ...] = ()
    notes: tuple[str, ...] = ()
    """What the reader should know about the recording itself: overhead, sampler, what could not be seen."""
    schema: int = SCHEMA

    @property
    def loop_seconds(self) -> float:
        """Everything but start-up and recording: what findings are measured against."""
        return self.seconds - sum(self.phases.get(name, 0.0) for name in OUTSIDE)

    def share(self, *phases: str) -> float:
        """The part of loop time that these phases took together."""
        return sum(self.phases.get(phase, 0.0) for phase in phases) / self.loop_seconds if self.loop_seconds else 0.0

    def part_share(self, part: str) -> float:
        """The part of loop time that one part of the update took."""
        return self.update_parts.get(part, 0.0) / self.loop_seconds if self.loop_seconds else 0.0

    def share_of(self, lines: Iterable[LineCost]) -> float:
        """The part of loop time sampled on these lines."""
        return sum(line.seconds for line in lines) / self.loop_seconds if self.loop_seconds else 0.0

    def calls_named(self, *names: str) -> tuple[CallCount, ...]:
        """Most frequent first."""
        return tuple(sorted((call for call in self.calls if call.name in names), key=lambda call: -call.count))

    def per_env_step(self, calls: Iterable[CallCount]) -> float:
        return sum(call.count for call in calls) / max(1, self.counted.env_steps)

    def per_update(self, calls: Iterable[CallCount]) -> float:
        return sum(call.count for call in calls) / max(1, self.counted.updates)

    @property
    def too_little(self) -> bool:
        """Whether too little of a script was seen for an all-clear: fewer than 200 env steps, or 50 updates where it
        has an optimiser."""
        counts = self.counts
        learns = bool(counts.updates or counts.optimiser)
        few = counts.env_steps < LEAST_ENV_STEPS or (learns and counts.updates < LEAST_UPDATES)
        return self.subject.kind == "script" and few

    @property
    def learns_from_rollouts(self) -> bool:
        """Whether updates come many at once after many env calls, as PPO makes them; replay gives a few each time."""
        bursts = self.counts.update_bursts
        return 0 < UPDATES_OF_A_ROLLOUT * bursts <= min(self.counts.updates, self.counts.env_calls)

    @property
    def envs_at_once(self) -> float:
        return self.counts.env_steps / max(1, self.counts.env_calls)

    @property
    def envs_in_turn(self) -> int:
        """How many single envs the program itself steps one after another; 1 where it does not."""
        counts = self.counts
        turns = self.envs_at_once < 2 and counts.env_switches >= MOSTLY * max(1, counts.env_calls)
        return counts.envs if turns else 1


def write_trace(trace: Trace, path: Path) -> None:
    """Atomically: a half-written trace is never seen under its name."""
    partial = path.with_name(path.name + ".partial")
    partial.write_text(json.dumps(asdict(trace), indent=1))
    partial.replace(path)


def read_trace(text: str) -> Trace:
    """The trace that `write_trace` wrote."""
    data = json.loads(text)
    rows = {"calls": CallCount, "lines": LineCost, "stacks": StackCost, "timeline": Slice, "experiments": Experiment}
    rows |= {"operators": OperatorCost, "beneath": LineCost, "warm_up": Slice, "late": StackCost}
    rows |= {"operators": OperatorCost, "beneath": LineCost, "warm_up": Slice}
    rows |= {"mentions": Mention, "stored": StoredArray, "untried": Untried}
    for name, kind in rows.items():
        data[name] = tuple(kind(**_tuples(row)) for row in data.get(name, ()))
    data["growth"] = tuple(Growth(**row | {"points": tuple(map(tuple, row["points"]))}) for row in data["growth"])
    data["subject"] = Subject(**_tuples(data["subject"]))
    data["loops"] = {where: tuple(heads) for where, heads in data.get("loops", {}).items()}
    data["makers"] = {what: tuple(maker) for what, maker in data.get("makers", {}).items()}
    data["setup"] = Setup(**_tuples(data.get("setup", {})))
    data["counts"], data["counted"] = Counts(**data["counts"]), Counts(**data["counted"])
    return Trace(**data | {"notes": tuple(data["notes"])})


def _tuples(row: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in row.items()}
