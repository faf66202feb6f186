"""The table behind `lane = auto`: what an update costs on each lane, and whether the rule chooses well.

Lanes are timed in pairs, interleaved, each against eager. A lane's price for a run of n updates is its compile time
plus n times its update; the rule agrees with the measurement where its choice costs at most a tenth more than the
cheapest lane.
"""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from hotloop.algos.dqn import DQNLearner
from hotloop.algos.dqn_settings import DQNSettings, LearnerSettings
from hotloop.core.errors import LaneError
from hotloop.core.types import ArraySpec, Batch
from hotloop.lanes.compiling import compile_function, require_compiler
from hotloop.nets.settings import NetworkSettings
from hotloop.prove import speed
from hotloop.prove.bench_verdict import LaneRow, LaneTime, Verdict, judge

LANES = ("eager", "compiled", "native")
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
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        os.environ[name] = folder
        try:
            yield
        finally:
            del os.environ[name]
            if before is not None:
                os.environ[name] = before


def _ask_rule(work: LaneWork, updates: int, times: dict[str, LaneTime], compile_seconds: float) -> Verdict:
    choice = make_learner(work, "auto", planned_updates=updates).choice
    return judge(updates, choice.name, choice.reason, times, compile_seconds)
