"""Our own loop recorded: its phases, its growth, and the same loop with one thing changed at a time."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from hotloop.core.errors import HotloopError
from hotloop.core.temporary import TemporaryFolder
from hotloop.core.verdicts import IDENTICAL
from hotloop.diagnosis.plain_replay import push_batch, push_one_by_one
from hotloop.diagnosis.training_loop import TrainingLoop
from hotloop.diagnosis.variations import Variation, training_alone, variations
from hotloop.doctor.facts import machine_facts, usable_cores
from hotloop.doctor.growth import with_growth
from hotloop.doctor.loops import Loop, LoopRatio, compare_loops, record
from hotloop.doctor.roofline import matrix_speed
from hotloop.doctor.trace import Counts, Experiment, Slice, Subject, Trace
from hotloop.lanes.spec import LANES
from hotloop.presets.dqn_settings import DQNSettings
from hotloop.presets.registry import RunSettings
from hotloop.presets.run_settings import learns_from_replay

Say = Callable[[str], None]
MOST_TURNS = 4_096
"""Env calls of all envs after which an update must have come for its products to be counted."""


@dataclass(frozen=True)
class PresetPlan:
    """How our own loop is recorded."""

    seconds: float = 10.0
    """Loop time to record, in seconds; above 0."""
    experiment_seconds: float = 1.5
    """Loop time of each experiment, both loops together."""
    experiments: bool = True


def record_preset(settings: RunSettings, name: str, plan: PresetPlan, say: Say) -> Trace:
    """Train for a while as the settings say, then with one thing changed at a time; nothing of it is kept on disk."""
    found: Found = []
    with TemporaryFolder("doctor") as folder:
        say(f"training {name} for {plan.seconds:g} s")
        with contextlib.closing(TrainingLoop(settings, folder / "run")) as loop:
            timeline = record(loop, plan.seconds)
            trace = _trace(settings, name, loop, timeline)
            lane, as_run = loop.session.learner.choice.name, loop.session.settings
        trace = replace(trace, counted=_matrix_work(settings, folder / "counted"))
        if plan.experiments:
            trials = _Trials(plan.experiment_seconds, folder, say)
            found = trials.of_settings(training_alone(settings, lane), lane)
            made = tuple(_experiment(variation, ratio) for variation, ratio in found)
            trace = replace(trace, experiments=made, notes=(*trace.notes, *trials.notes))
    capacity = as_run.replay.buffer_size if learns_from_replay(as_run) else 0
    return with_growth(trace, capacity, _costs_by_envs(settings, found))


def _trace(settings: RunSettings, name: str, loop: TrainingLoop, timeline: list[Slice]) -> Trace:
    choice, phases = loop.session.learner.choice, {"start-up": loop.start_up_seconds}
    for part in timeline:
        for phase, seconds in part.phases.items():
            phases[phase] = phases.get(phase, 0.0) + seconds
    return Trace(
        subject=Subject(kind="preset", name=name, ending="finished" if loop.session.finished else "limit"),
        machine=machine_facts() | {"torch_threads": settings.torch_threads, "denormals_flushed": True},
        seconds=sum(phases.values()),
        phases=phases,
        counts=loop.counts(),
        timeline=tuple(timeline),
        notes=(f"{choice.name} lane: {choice.reason}",),
    )


def _matrix_work(settings: RunSettings, folder: Path) -> Counts:
    """The matrix products of one update, by the first that the same run makes in plain PyTorch, where they can be
    counted; and this core's speed. Nothing where that lane cannot do the job or no update comes soon."""
    try:
        with contextlib.closing(TrainingLoop(training_alone(settings, "eager"), folder)) as loop:
            operations = loop.products_per_update(MOST_TURNS)
    except HotloopError:
        return Counts()
    return Counts(update_operations=operations, matrix_speed=matrix_speed()) if operations else Counts()


Make = Callable[[Path], Loop]
Arms = Iterator[tuple[Variation, Make]]
Found = list[tuple[Variation, LoopRatio]]


@dataclass
class _Trials:
    """Runs each variation interleaved with the loop that it is compared with, in run directories under `folder`."""

    seconds: float
    folder: Path
    say: Say
    notes: list[str] = field(default_factory=list)
    count: int = 0

    def of_settings(self, settings: RunSettings, lane: str) -> Found:
        """Every variation against the loop as it is, and ways of storing against the plain program's."""
        with contextlib.closing(TrainingLoop(settings, self.folder / "as-it-is")) as as_it_is:
            found = self.of(_arms(settings, lane), as_it_is)
            pushes_rows = not isinstance(as_it_is.session.collector.envs.obs_spec, dict)
        if isinstance(settings, DQNSettings) and pushes_rows:
            with contextlib.closing(TrainingLoop(settings, self.folder / "plain-push", push_one_by_one)) as plain:
                found += self.of(_push_arms(settings), plain)
        return found

    def of(self, arms: Arms, base: Loop) -> Found:
        """Each arm interleaved with `base`; what cannot be tried is noted."""
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
    batched = Variation("batched push", f"each tensor read once, then row by row; {against}", IDENTICAL, settings)
    yield batched, partial(TrainingLoop, settings, push=push_batch)
    ours = Variation("one push", f"one call for all rows, as the loop has it; {against}", IDENTICAL, settings)
    yield ours, partial(TrainingLoop, settings)


def _experiment(variation: Variation, found: LoopRatio) -> Experiment:
    return Experiment(
        name=variation.name,
        what=variation.what,
        kind=variation.kind,
        ratio=found.ratio,
        low=found.low,
        high=found.high,
    )


def _costs_by_envs(settings: RunSettings, found: Found) -> dict[int, float]:
    """Seconds of an env step by number of envs, as far as it was varied."""
    costs: dict[int, float] = {}
    for variation, ratio in found:
        if variation.name.startswith("num_envs"):
            costs[variation.settings.env.num_envs] = ratio.second_cost
            costs[settings.env.num_envs] = ratio.first_cost
    return costs
