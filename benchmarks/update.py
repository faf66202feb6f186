"""The update: every variant on every lane, k updates per call, and the target's soft move."""

from __future__ import annotations

import itertools
from functools import partial

import numpy as np
from torch import Tensor

import hotloop
from benchmarks.learners import (
    SMALL,
    PlainBatch,
    Size,
    Variant,
    copy_parameters,
    flat,
    lane_problem,
    make_agent,
    make_batches,
    make_learner,
)
from benchmarks.witnesses.dqn_parts import soft_update
from benchmarks.witnesses.dqn_update import DQNAgent
from hotloop.core.types import Batch, UpdateStats
from hotloop.lanes.spec import LANES
from hotloop.proof.case import Call, Case, Programs, TwoSizes
from hotloop.proof.equivalence import SEQUENCE, Equality, Snapshot, compare, compare_sequences, compare_snapshots

VARIANTS: tuple[Variant, ...] = Variant.__args__  # type: ignore[attr-defined]
SIZES = (Size((64, 64), 32), Size((64, 64), 128), Size((256, 256), 32), Size((256, 256), 256))
BATCHES_IN_ONE_CALL = (2, 4, 8)
TOLERANCE = 1e-4
"""Per update, in float32."""
GROWTH = 8
"""Times as many rows."""
DIFFERENT_BATCHES = 8
TAU = 0.005


@hotloop.cases("loss, gradient, clipping, Adam and target")
def dqn_update_cases(small: bool = False) -> list[Case]:
    sizes = (SMALL,) if small else SIZES
    return [
        Case(
            family="dqn-update",
            variant=variant,
            lane=lane,
            unavailable=lane_problem(lane),
            size=size.name,
            build=partial(_build, lane, variant, size, 1),
            tolerance=TOLERANCE,
            quick=_is_quick(variant, lane, size),
        )
        for variant in VARIANTS
        for lane in LANES
        for size in sizes
    ]


def _is_quick(variant: str, lane: str, size: Size) -> bool:
    if variant == "dqn":
        return size in (SIZES[0], SIZES[-1])
    return size == SIZES[0] and (lane == "native" or variant == "double")


@hotloop.cases("k sequential updates in one call")
def multi_batch_cases(small: bool = False) -> list[Case]:
    size = SMALL if small else SIZES[0]
    return [
        Case(
            family="multi-batch",
            variant=f"k{k}",
            lane=lane,
            unavailable=lane_problem(lane),
            size=size.name,
            build=partial(_build, lane, "dqn", size, k),
            tolerance=TOLERANCE,
            quick=k == 8 or lane == "native",
        )
        for k in BATCHES_IN_ONE_CALL
        for lane in LANES
    ]


def _build(lane: str, variant: str, size: Size, k: int) -> Programs:
    pair = _Pair(lane, variant, size, k)
    plain, fast = pair.calls()
    grow = (_k_growth if k > 1 else _batch_growth) if lane != "compiled" else None  # another size: another compilation
    return Programs(
        plain=plain,
        fast=fast,
        compare=pair.compare,
        further=partial(_check, lane, variant, size, k),
        growth=grow and partial(grow, lane, variant, size, k),
    )


class _Pair:
    """A learner and the plain agent from the same start, on the same batches."""

    def __init__(self, lane: str, variant: str, size: Size, k: int) -> None:
        self.learner = make_learner(lane, variant, size)
        self.agent = make_agent(self.learner, variant)
        self.k = k
        self._batches = [make_batches(variant, size.batch, k, seed) for seed in range(DIFFERENT_BATCHES)]

    def calls(self) -> tuple[Call, Call]:
        """k plain updates, and one call that makes k."""
        plain_batches = itertools.cycle([plain for _, plain in self._batches])
        fast_batches = itertools.cycle([fast for fast, _ in self._batches])
        return lambda: self._plain(next(plain_batches)), lambda: self._fast(next(fast_batches))

    def _fast(self, batches: Batch) -> UpdateStats:
        return self.learner.update(batches)

    def _plain(self, batches: list[PlainBatch]) -> list[tuple[float, Tensor]]:
        return [self.agent.update(**batch) for batch in batches]

    def compare(self, stats: UpdateStats, results: list[tuple[float, Tensor]]) -> Equality:
        return compare_snapshots(self._fast_state(1, stats), self._plain_state(1, results), "after a timed call")

    def fast_step(self, j: int) -> Snapshot:
        return self._fast_state(j, self._fast(self._batches[j % DIFFERENT_BATCHES][0]))

    def plain_step(self, j: int) -> Snapshot:
        return self._plain_state(j, self._plain(self._batches[j % DIFFERENT_BATCHES][1]))

    def _fast_state(self, j: int, stats: UpdateStats) -> Snapshot:
        values = {"loss": np.asarray(stats.scalars[0]), "td_error": np.asarray(stats.td_error)}
        return {**values, **_state(j, self.learner.state())}

    def _plain_state(self, j: int, results: list[tuple[float, Tensor]]) -> Snapshot:
        losses, td_errors = zip(*results, strict=True)
        values = {"loss": np.array(losses, np.float32), "td_error": np.stack(td_errors)}
        return {**values, **_state(j, _plain_state(self.agent))}


def _state(j: int, state: Snapshot) -> Snapshot:
    """Parameters always; after the first call Adam's running means too, which are then nothing but gradients."""
    names = ("online", "target", "mean", "square") if j == 1 else ("online", "target")
    return {name: state[name] for name in names}


def _plain_state(agent: DQNAgent) -> Snapshot:
    moments = [agent.optimizer.state[parameter] for parameter in agent.online.parameters()]
    return {
        "online": flat(agent.online.parameters()),
        "target": flat(agent.target.parameters()),
        "mean": flat(part["exp_avg"] for part in moments),
        "square": flat(part["exp_avg_sq"] for part in moments),
    }


def _check(lane: str, variant: str, size: Size, k: int) -> Equality:
    pair = _Pair(lane, variant, size, k)
    return compare_sequences(pair.fast_step, pair.plain_step, SEQUENCE // k)


def _batch_growth(lane: str, variant: str, size: Size, k: int) -> TwoSizes:
    """Per row of a larger batch: below 1 where an update has a fixed cost."""
    larger = size.with_batch(GROWTH * size.batch)
    small, large = _Pair(lane, variant, size, k).calls()[1], _Pair(lane, variant, larger, k).calls()[1]
    return TwoSizes(small, large, float(GROWTH), f"B {size.batch}", f"{larger.batch}")


def _k_growth(lane: str, variant: str, size: Size, k: int) -> TwoSizes:
    """Per update, against one update per call."""
    small, large = _Pair(lane, variant, size, 1).calls()[1], _Pair(lane, variant, size, k).calls()[1]
    return TwoSizes(small, large, float(k), "k 1", str(k))


@hotloop.cases("the target moves a little towards the online network")
def polyak_cases(small: bool = False) -> list[Case]:
    sizes = (SMALL,) if small else (SIZES[0], SIZES[-1])
    return [
        Case(
            family="target-polyak",
            lane=lane,
            unavailable=lane_problem(lane),
            size="x".join(map(str, size.hidden)),
            build=partial(_build_polyak, lane, size),
            tolerance=1e-5,
            quick=size == SIZES[0],
        )
        for lane in LANES
        for size in sizes
    ]


def _polyak_pair(lane: str, size: Size) -> _Pair:
    """Online and target apart from each other, as after some training."""
    pair = _Pair(lane, "dqn", size, 1)
    moved = pair.learner.lane.parameters() + np.float32(0.1)
    pair.learner.lane.load_parameters(moved)
    copy_parameters(moved, pair.agent.online)
    return pair


def _build_polyak(lane: str, size: Size) -> Programs:
    pair = _polyak_pair(lane, size)
    agent, learner = pair.agent, pair.learner

    def growth() -> TwoSizes:
        widths = [(64, 64), (512, 512)]
        small, large = (_polyak_pair(lane, Size(hidden, 1)).learner.lane for hidden in widths)
        units = len(large.parameters()) / len(small.parameters())
        return TwoSizes(lambda: small.move_target(TAU), lambda: large.move_target(TAU), units, "64x64", "512x512")

    return Programs(
        plain=lambda: soft_update(agent.target, agent.online, TAU),
        fast=lambda: learner.lane.move_target(TAU),
        compare=lambda fast, plain: compare([("target", learner.state()["target"], flat(agent.target.parameters()))]),
        further=partial(_check_polyak, lane, size),
        growth=growth,
    )


def _check_polyak(lane: str, size: Size) -> Equality:
    pair = _polyak_pair(lane, size)

    def fast(j: int) -> Snapshot:
        pair.learner.lane.move_target(TAU)
        return {"target": pair.learner.state()["target"]}

    def plain(j: int) -> Snapshot:
        soft_update(pair.agent.target, pair.agent.online, TAU)
        return {"target": flat(pair.agent.target.parameters())}

    return compare_sequences(fast, plain)
