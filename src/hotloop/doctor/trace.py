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
from hotloop.doctor.records import CallCount as CallCount
from hotloop.doctor.records import Counts as Counts
from hotloop.doctor.records import Experiment as Experiment
from hotloop.doctor.records import Growth as Growth
from hotloop.doctor.records import LineCost as LineCost
from hotloop.doctor.records import Mention as Mention
from hotloop.doctor.records import OperatorCost as OperatorCost
from hotloop.doctor.records import Setup as Setup
from hotloop.doctor.records import Slice as Slice
from hotloop.doctor.records import StackCost as StackCost
from hotloop.doctor.records import StoredArray as StoredArray
from hotloop.doctor.records import Subject as Subject
from hotloop.doctor.records import Untried as Untried

SCHEMA = 1
LEAST_ENV_STEPS, LEAST_UPDATES = 200, 50
"""Of a script: with fewer there is no all-clear."""
MOSTLY = 0.9
ROW_DRAWS = ("random.sample", "random.choices")
"""By which programs draw rows from replay."""
WALL, PROCESSOR = "wall", "processor"
"""Clocks. On a machine that is busy with other programs the second tells what a loop costs, and the first how long it
was kept from running."""


@dataclass(frozen=True, kw_only=True)
class Trace:
    subject: Subject
    machine: dict[str, Any]
    seconds: float
    """Wall-clock, from the subject's first line to its end; the phases sum to it."""
    phases: dict[str, float]
    update_parts: dict[str, float] = field(default_factory=dict)
    """How the phase `update` splits into forward, backward, optimizer and the rest."""
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
    """The user's own line where an `optimizer`, an `algorithm`, a `vector env`, an `evaluation` or a `checkpoint` (what
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
    """The most expensive first, where they were asked for."""
    mentions: tuple[Mention, ...] = ()
    stored: tuple[StoredArray, ...] = ()
    notes: tuple[str, ...] = ()
    """What the reader should know about the recording itself: overhead, sampler, what could not be seen."""
    schema: int = SCHEMA

    @property
    def loop_seconds(self) -> float:
        """Everything but start-up and recording: what findings are measured against."""
        return self.seconds - sum(self.phases.get(name, 0.0) for name in OUTSIDE)

    @property
    def wall_seconds(self) -> float:
        """The same by the wall clock, whatever the clock of the phases: with the queue for a core."""
        return self.loop_seconds + self.phases.get(QUEUED, 0.0)

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
        has an optimizer."""
        counts = self.counts
        learns = bool(counts.updates or counts.optimiser)
        alone = counts.updates > 0 and not counts.env_steps  # rounds of optimizers, without an env
        few = (counts.env_steps < LEAST_ENV_STEPS and not alone) or (learns and counts.updates < LEAST_UPDATES)
        return self.subject.kind == "script" and few

    @property
    def nothing_to_judge(self) -> str:
        """Why no loop of a script can be judged: it failed before enough of one was seen, or never began one; empty
        where one can."""
        if self.subject.kind != "script":
            return ""
        counts, failed = self.counts, self.subject.ending == "crashed"
        if not (counts.env_steps or counts.updates):
            return "the script failed before its loop" if failed else "no loop was seen: no env step and no update"
        return "the script failed before enough of its loop was seen" if failed and self.too_little else ""

    @property
    def learns_from_rollouts(self) -> bool:
        """Whether updates come many at once after many env calls, as PPO makes them; replay gives a few each time, or
        many at an episode's end, but then it moves a target network or draws its rows."""
        bursts = self.counts.update_bursts
        many = 0 < UPDATES_OF_A_ROLLOUT * bursts <= min(self.counts.updates, self.counts.env_calls)
        return many and not self.setup.target_every and self.per_update(self.calls_named(*ROW_DRAWS)) < MOSTLY

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
