"""`hotloop doctor PRESET`: our own loop, its phases, its growth, and the experiments people make by hand."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import torch

from hotloop.algos.dqn_settings import DQNSettings
from hotloop.algos.registry import RunSettings
from hotloop.core.errors import HotloopError
from hotloop.core.types import Array, EnvStep
from hotloop.doctor.facts import machine_facts, usable_cores
from hotloop.doctor.growth import growth_over_run
from hotloop.doctor.loops import Loop, Ratio, compare_loops, record
from hotloop.doctor.trace import Experiment, Growth, Slice, Subject, Trace
from hotloop.lanes.spec import LANES
from hotloop.loop.experiments import EXACT, TrainingLoop, Variation, training_alone, variations
from hotloop.proof.reference.snake_dqn import ReplayBuffer, push_batch, push_one_by_one

Say = Callable[[str], None]


@dataclass(frozen=True)
class PresetPlan:
    """How long to look, and at what."""

    seconds: float = 10.0
    experiment_seconds: float = 1.5
    experiments: bool = True


def record_preset(settings: RunSettings, name: str, plan: PresetPlan, say: Say) -> Trace:
    """Train for a while as the preset says, then with one thing changed at a time."""
    with tempfile.TemporaryDirectory() as folder:
        say(f"training {name} for {plan.seconds:g} s")
        with contextlib.closing(TrainingLoop(settings, Path(folder) / "run")) as loop:
            timeline = record(loop, plan.seconds)
            trace = _trace(settings, name, loop, timeline)
            lane = loop.session.learner.choice.name
        if plan.experiments:
            experiments, sweep, notes = _experiments(training_alone(settings, lane), lane, plan, Path(folder), say)
            trace = replace(trace, experiments=experiments, growth=(*trace.growth, *sweep), notes=trace.notes + notes)
    return trace


def _trace(settings: RunSettings, name: str, loop: TrainingLoop, timeline: list[Slice]) -> Trace:
    choice, phases = loop.session.learner.choice, {"start-up": loop.start_up_seconds}
    for part in timeline:
        for phase, seconds in part.phases.items():
            phases[phase] = phases.get(phase, 0.0) + seconds
    return Trace(
        subject=Subject(kind="preset", name=name, ending="finished" if loop.session.finished else "limit"),
        machine=machine_facts() | {"torch_threads": settings.threads, "denormals_flushed": True},
        seconds=sum(phases.values()),
        phases=phases,
        counts=loop.counts(),
        timeline=tuple(timeline),
        growth=(*growth_over_run(timeline), *_growth_over_fill(timeline, settings)),
        notes=(f"{choice.name} lane: {choice.reason}",),
    )


def _growth_over_fill(timeline: list[Slice], settings: RunSettings) -> list[Growth]:
    """What a sampled batch costs while the replay fills."""
    if not isinstance(settings, DQNSettings):
        return []
    capacity = settings.replay.capacity
    points, env_steps = [], 0
    for part in timeline:
        env_steps += part.env_steps
        if part.updates and env_steps <= 1.2 * capacity:
            fill = float(min(env_steps, capacity))
            points.append((fill, 1e6 * part.phases.get("sample", 0.0) / part.updates))
    if len(points) < 4:
        return []
    fifth = max(1, len(points) // 5)
    first, last = (sorted(cost for _, cost in ends)[fifth // 2] for ends in (points[:fifth], points[-fifth:]))
    ratio = last / first if first else 1.0
    return [Growth(over="replay fill", what="sample, per update", points=tuple(points), ratio=ratio)]


Answer = tuple[tuple[Experiment, ...], tuple[Growth, ...], tuple[str, ...]]


def _experiments(settings: RunSettings, lane: str, plan: PresetPlan, folder: Path, say: Say) -> Answer:
    notes: list[str] = []
    trials = _Trials(plan.experiment_seconds, folder, say, notes)
    with contextlib.closing(TrainingLoop(settings, folder / "as-it-is")) as as_it_is:
        found = trials.of(_arms(settings, lane), as_it_is)
        pushes_rows = not isinstance(as_it_is.session.collector.envs.obs_spec, dict)
    if isinstance(settings, DQNSettings) and pushes_rows:
        with contextlib.closing(_pushing_loop(settings, push_one_by_one, folder / "plain-push")) as plain:
            found += trials.of(_push_arms(settings), plain)
    made = tuple(_experiment(variation, ratio) for variation, ratio in found)
    return made, _growth_over_envs(settings, found), tuple(notes)


Make = Callable[[Path], Loop]
Arms = Iterator[tuple[Variation, Make]]
Found = list[tuple[Variation, Ratio]]


@dataclass
class _Trials:
    seconds: float
    folder: Path
    say: Say
    notes: list[str]
    count: int = 0

    def of(self, arms: Arms, base: Loop) -> Found:
        """Each arm by turns with `base`; what cannot be tried is noted."""
        found: Found = []
        for variation, make in arms:
            self.count += 1
            self.say(f"experiment: {variation.name} ({variation.what})")
            try:
                with contextlib.closing(make(self.folder / f"arm-{self.count}")) as changed:
                    found.append((variation, compare_loops(base, changed, self.seconds)))
            except HotloopError as error:
                self.notes.append(f"`{variation.name}` was not tried: {str(error).partition(chr(10))[0]}")
        return found


def _arms(settings: RunSettings, lane: str) -> Arms:
    for variation in variations(settings, lane, list(LANES), usable_cores()):
        yield variation, partial(TrainingLoop, variation.settings)


def _push_arms(settings: DQNSettings) -> Arms:
    """What storing gains, against a loop that stores as the plain program does: row by row, a host read per value."""
    against = f"against {settings.env.num_envs} single pushes a vector step"
    batched = Variation("batched push", f"each tensor read once, then row by row; {against}", EXACT, settings)
    yield batched, partial(_pushing_loop, settings, push_batch)
    ours = Variation("one push", f"one call for all rows, as the loop has it; {against}", EXACT, settings)
    yield ours, partial(TrainingLoop, settings)


def _experiment(variation: Variation, found: Ratio) -> Experiment:
    return Experiment(
        name=variation.name,
        what=variation.what,
        kind=variation.kind,
        ratio=found.ratio,
        low=found.low,
        high=found.high,
    )


def _growth_over_envs(settings: RunSettings, found: Found) -> tuple[Growth, ...]:
    costs: dict[float, float] = {}
    for variation, ratio in found:
        if variation.name.startswith("num_envs"):
            costs[float(variation.settings.env.num_envs)] = 1e6 * ratio.second_cost
            costs[float(settings.env.num_envs)] = 1e6 * ratio.first_cost
    points = tuple(sorted(costs.items()))
    if len(points) < 2:
        return ()
    return (Growth(over="num_envs", what="env step", points=points, ratio=points[-1][1] / points[0][1]),)


Push = Callable[..., None]


def _pushing_loop(settings: DQNSettings, push: Push, folder: Path) -> TrainingLoop:
    """The same loop, storing in the plain program's way: into a deque of tuples."""
    loop = TrainingLoop(settings, folder)
    loop.session.replay.add = _PlainStore(loop, push, settings.replay.capacity)
    return loop


class _PlainStore:
    """Our replay, from which batches are still drawn, is filled beside the clock: one store is timed, not two."""

    def __init__(self, loop: TrainingLoop, push: Push, capacity: int) -> None:
        self._not_timed, self._push = loop.not_timed, push
        self._add, self._buffer = loop.session.replay.add, ReplayBuffer(capacity)

    def __call__(self, obs: Array, action: Array, step: EnvStep) -> int:
        with self._not_timed:
            tensors = [torch.from_numpy(array) for array in self._arrays(obs, action, step)]
        self._push(self._buffer, *tensors)
        with self._not_timed:
            return self._add(obs, action, step)

    @staticmethod
    def _arrays(obs: Array, action: Array, step: EnvStep) -> tuple[Array, ...]:
        return obs, action, step.reward, step.final_obs, step.terminated | step.truncated
