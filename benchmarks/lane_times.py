"""The table behind `lane = auto`: what an update costs on each lane, and whether the rule chooses well.

Lanes are timed in pairs, interleaved, each against eager. A lane's price for a run of n updates is its compile time
plus n times its update; the rule agrees with the measurement where its choice costs at most a tenth more than the
cheapest lane.

What the lanes' times mean for a run of so many updates: plain data, and the table a person reads.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from math import ceil
from typing import Any

import numpy as np
import torch
from rich.table import Table

from hotloop.core import program
from hotloop.core.arithmetic import arithmetic_on
from hotloop.core.errors import LaneError, SettingsError
from hotloop.core.temporary import TemporaryFolder
from hotloop.core.types import ArraySpec, Batch
from hotloop.lanes.compiling import compile_function, require_compiler
from hotloop.lanes.spec import LANES
from hotloop.learners.dqn import DQNLearner
from hotloop.presets.dqn_settings import DQNSettings, LearnerSettings
from hotloop.presets.network_settings import NetworkSettings
from hotloop.proof import speed
from hotloop.render.tables import as_rich

NEAR_ENOUGH = 1.1
"""The rule's choice may cost so much more than the cheapest lane."""


@dataclass(frozen=True)
class LaneTime:
    microseconds: float  # per update
    ratio: float  # of eager's time to this
    low: float
    high: float


@dataclass(frozen=True)
class Verdict:
    """What `auto` chooses for a run of so many updates, and what would have been cheapest."""

    updates: int
    chosen: str
    reason: str
    cheapest: str
    cost: float | None  # of the choice, as a multiple of the cheapest; None where it cannot run at all
    agrees: bool


@dataclass(frozen=True)
class LaneRow:
    work: str
    k: int
    times: dict[str, LaneTime]
    refused: dict[str, str]  # lane -> why
    compile_seconds: float | None
    verdicts: list[Verdict]

    @property
    def break_even_updates(self) -> int | None:
        """Updates that repay compiling, against the best other lane; None where they never do."""
        return break_even(self.times, self.compile_seconds)

    def as_data(self) -> dict[str, Any]:
        return {**asdict(self), "break_even_updates": self.break_even_updates}


def break_even(times: Mapping[str, LaneTime], compile_seconds: float | None) -> int | None:
    if "compiled" not in times or compile_seconds is None:
        return None
    others = min(entry.microseconds for lane, entry in times.items() if lane != "compiled")
    saved = others - times["compiled"].microseconds
    return ceil(compile_seconds * 1e6 / saved) if saved > 0 else None


def judge(updates: int, chosen: str, reason: str, times: Mapping[str, LaneTime], compile_seconds: float) -> Verdict:
    """Compile time counts for the compiled lane alone: the native lane's machine code is kept between all runs."""
    prices = {
        lane: entry.microseconds * updates + (compile_seconds * 1e6 if lane == "compiled" else 0.0)
        for lane, entry in times.items()
    }
    cheapest = min(prices, key=lambda lane: prices[lane])
    cost = prices[chosen] / prices[cheapest] if chosen in prices else None
    return Verdict(updates, chosen, reason, cheapest, cost, cost is not None and cost <= NEAR_ENOUGH)


HEADINGS = ["work", "k", "eager µs", "compiled µs", "native µs", "compile s", "repaid after", "auto"]


def draw_lanes(rows: Sequence[LaneRow]) -> Table:
    """For a terminal; in red where the rule would choose badly."""
    wrong = [number for number, row in enumerate(rows) if not all(verdict.agrees for verdict in row.verdicts)]
    return as_rich([HEADINGS, *map(_cells, rows)], left=("auto",), red=wrong)


def remarks(rows: Sequence[LaneRow]) -> list[str]:
    """Which lanes refuse what, and how often the rule agrees with the measurement."""
    refused = {pair for row in rows for pair in row.refused.items()}
    verdicts = [verdict for row in rows for verdict in row.verdicts]
    agreed = f"`auto` agrees with {sum(verdict.agrees for verdict in verdicts)} of {len(verdicts)} measurements"
    agreed += f"; load average {program.load_average()}"
    return [*[f"{lane} refuses: {reason}" for lane, reason in refused], agreed]


def _cells(row: LaneRow) -> list[str]:
    return [
        row.work,
        str(row.k),
        *(_time(row, lane) for lane in ("eager", "compiled", "native")),
        "-" if row.compile_seconds is None else f"{row.compile_seconds:.1f}",
        "never" if row.break_even_updates is None else f"{row.break_even_updates:,}",
        "; ".join(map(_words, row.verdicts)),
    ]


def _time(row: LaneRow, lane: str) -> str:
    entry = row.times.get(lane)
    if entry is None:
        return "refuses" if lane in row.refused else "-"
    return f"{entry.microseconds:,.1f}" + ("" if lane == "eager" else f" ({entry.ratio:.1f}x)")


def _words(verdict: Verdict) -> str:
    choice = f"{verdict.updates:,}: {verdict.chosen}"
    if verdict.agrees:
        return choice
    if verdict.cost is None:
        return f"{choice}, which cannot run"
    return f"{choice}, but {verdict.cheapest} is {verdict.cost:.1f}x cheaper"


NUM_ACTIONS = 2
DIFFERENT_BATCHES = 8
BATCHES_PER_CALL = (1, 8)
RUN_LENGTHS = (10_000, 100_000, 1_000_000)
"""Updates of a short, a middling and a long run, for which the rule is asked."""


@dataclass(frozen=True)
class LaneWork:
    """A network, and the batch it learns from."""

    name: str
    network: NetworkSettings
    obs: ArraySpec
    batch: int


def _mlp(width: int, batch: int, noisy: bool = False) -> LaneWork:
    name = f"{'noisy-' if noisy else ''}{width}x{width}-b{batch}"
    return LaneWork(name, NetworkSettings(hidden=(width, width), noisy=noisy), ArraySpec((4,)), batch)


WORK = (
    _mlp(64, 32),
    _mlp(64, 128),
    _mlp(256, 32),
    _mlp(256, 256),
    _mlp(64, 32, noisy=True),
    LaneWork("cnn-10x10x3-b64", NetworkSettings(hidden=(128,)), ArraySpec((10, 10, 3)), 64),
)


def make_learner(work: LaneWork, lane: str, planned_updates: int = 10_000) -> DQNLearner:
    settings = DQNSettings(
        batch_size=work.batch,
        total_env_steps=planned_updates,
        network=work.network,
        learner=LearnerSettings(lane=lane),  # type: ignore[arg-type]
    )
    return DQNLearner(settings, work.obs, NUM_ACTIONS)


def make_batches(work: LaneWork, k: int, seed: int = 0) -> Batch:
    rng, shape = np.random.default_rng(seed), (k, work.batch)
    obs, next_obs = rng.normal(size=(2, *shape, *work.obs.shape)).astype(np.float32)
    return Batch(
        obs=obs,
        action=rng.integers(NUM_ACTIONS, size=shape),
        reward=rng.normal(size=shape).astype(np.float32),
        discount=np.full(shape, 0.99, np.float32),
        next_obs=next_obs,
        weight=np.ones(shape, np.float32),
        index=np.zeros(shape, np.int64),
    )


def update_call(learner: DQNLearner, work: LaneWork, k: int) -> Callable[[], Any]:
    """k updates on batches that take turns."""
    batches = itertools.cycle([make_batches(work, k, seed) for seed in range(DIFFERENT_BATCHES)])

    def call() -> None:
        learner.update(next(batches))

    return call


def load_compiler() -> float:
    """Seconds that every process pays before it compiles anything: loading the compiler, and a first trivial use."""
    with _empty_cache():
        start = _processor_seconds()
        with suppress(LaneError):  # without a compiler the lane refuses, and the table says so
            require_compiler(torch.device("cpu"))
            compile_function(lambda values: (values + 1.0,), [torch.zeros(2)])
        return _processor_seconds() - start


def choose(names: Sequence[str]) -> list[tuple[LaneWork, int]]:
    """What is measured: work by name, or all of it, with so many batches per call."""
    known = [work.name for work in WORK]
    if unknown := set(names) - set(known):
        raise SettingsError(f"there is no work `{min(unknown)}` for the lanes", f"one of {', '.join(known)}")
    return [(work, k) for work in WORK if not names or work.name in names for k in BATCHES_PER_CALL]


def measure_lanes(chosen: Sequence[tuple[LaneWork, int]], seconds: float) -> Iterator[tuple[str, LaneRow]]:
    """What was measured, and what came of it."""
    loading_seconds = load_compiler()
    with arithmetic_on(threads=1):
        for work, k in chosen:
            yield f"{work.name} k {k}", measure_work(work, k, seconds, loading_seconds)


def measure_work(work: LaneWork, k: int, seconds: float, loading_seconds: float) -> LaneRow:
    """Every lane that can do it, and what the rule says. Compile time is what a process that starts afresh pays."""
    times, refused, compile_seconds = {}, {}, None
    eager = update_call(make_learner(work, "eager"), work, k)
    eager()
    for lane in LANES[1:]:
        try:
            learner = make_learner(work, lane)
            call, first_seconds = _first_call(update_call(learner, work, k))
        except LaneError as error:
            refused[lane] = error.message
            continue
        compile_seconds = loading_seconds + first_seconds if lane == "compiled" else compile_seconds
        measured = speed.measure(eager, call, seconds)
        times[lane] = LaneTime(measured.second_seconds * 1e6 / k, measured.ratio, measured.low, measured.high)
        times.setdefault("eager", LaneTime(measured.first_seconds * 1e6 / k, 1.0, 1.0, 1.0))
    if "eager" not in times:
        alone = speed.measure(eager, eager, seconds).first_seconds
        times["eager"] = LaneTime(alone * 1e6 / k, 1.0, 1.0, 1.0)
    verdicts = [_ask_rule(work, updates, times, compile_seconds or 0.0) for updates in RUN_LENGTHS]
    return LaneRow(work.name, k, times, refused, compile_seconds, verdicts)


def _first_call(call: Callable[[], Any]) -> tuple[Callable[[], Any], float]:
    """The call after its first time, which compiles as on a machine that has never seen the work."""
    with _empty_cache():
        start = _processor_seconds()
        call()
        return call, _processor_seconds() - start


def _processor_seconds() -> float:
    """Of this process and of the C++ compilers it has started; on a quiet machine the time on the wall."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


@contextmanager
def _empty_cache() -> Iterator[None]:
    name = "TORCHINDUCTOR_CACHE_DIR"
    before = os.environ.get(name)
    with TemporaryFolder("bench") as folder:
        os.environ[name] = str(folder)
        try:
            yield
        finally:
            del os.environ[name]
            if before is not None:
                os.environ[name] = before


def _ask_rule(work: LaneWork, updates: int, times: dict[str, LaneTime], compile_seconds: float) -> Verdict:
    choice = make_learner(work, "auto", planned_updates=updates).choice
    return judge(updates, choice.name, choice.reason, times, compile_seconds)
