"""The three-branch network with attention: acting on 32 states, and an update.

`forward`: the plain program asks its network for one state at a time, as it does while it acts; ours for all at once.
The Q-values are compared. `backward`: loss, gradient and Adam of one batch; what becomes of the parameters over a
sequence of updates is compared.
"""

from __future__ import annotations

from collections import deque
from functools import partial

import numpy as np
import torch

import hotloop
from benchmarks.learners import copy_parameters, flat, lane_problem
from benchmarks.sfc_loop import make_config, make_settings
from benchmarks.witnesses import sfc_dqn
from hotloop.core.types import Array, Batch, UpdateStats
from hotloop.lanes.spec import LANES
from hotloop.learners.dqn import DQNLearner
from hotloop.proof.case import Case, Programs, TwoSizes
from hotloop.proof.equivalence import Equality, Snapshot, compare, compare_sequences, compare_snapshots
from hotloop.workloads.sfc.env import PARTS
from hotloop.workloads.sfc.tables_kernels import NUM_ACTIONS

FORWARD_TOLERANCE, UPDATE_TOLERANCE = 1e-5, 1e-4
ROWS = 32
COMPARED = 12
"""Updates: one target copy comes among them."""


@hotloop.cases("the three-branch attention network: 32 states, an update")
def branch_attention_cases(small: bool = False) -> list[Case]:
    forms = {"forward": (_build_forward, FORWARD_TOLERANCE), "backward": (_build_backward, UPDATE_TOLERANCE)}
    return [
        Case(
            family="branch-attention",
            variant=form,
            lane=lane,
            unavailable=lane_problem(lane),
            size=f"b{ROWS}",
            build=partial(build, lane),
            tolerance=tolerance,
            quick=lane == "native",
        )
        for form, (build, tolerance) in forms.items()
        for lane in LANES
    ]


class _Pair:
    """The same numbers in both networks."""

    def __init__(self, lane: str) -> None:
        settings = make_settings(2, lane, num_envs=ROWS, warmup=0, explored=1)
        self.learner = DQNLearner(settings, dict(PARTS), NUM_ACTIONS)
        network = sfc_dqn.ThreeBranchNetwork(NUM_ACTIONS)
        copy_parameters(self.learner.lane.parameters(), network)
        self.plain = sfc_dqn.DQN(make_config(settings), network)
        self.plain.env_steps = 10**9  # it no longer explores
        self.plain.config.epsilon_end = 0.0

    def fast_snapshot(self, stats: UpdateStats) -> Snapshot:
        return {"parameters": self.learner.lane.parameters(), "loss": np.asarray(stats.scalars)[0, 0]}

    def plain_snapshot(self, loss: float) -> Snapshot:
        return {"parameters": flat(self.plain.online.parameters()), "loss": loss}


def make_obs(rng: np.random.Generator, *shape: int) -> dict[str, Array]:
    return {name: rng.random((*shape, *spec.shape), np.float32) for name, spec in PARTS.items()}


def _build_forward(lane: str) -> Programs:
    pair, rng = _Pair(lane), np.random.default_rng(0)
    obs = make_obs(rng, ROWS)
    mask = rng.random((ROWS, NUM_ACTIONS)) < 0.5
    mask[:, -1] = True
    states = [tuple(part[row] for part in obs.values()) for row in range(ROWS)]

    def plain() -> list[int]:
        return [pair.plain.select_action(state, row) for state, row in zip(states, mask, strict=True)]

    def fast() -> Array:
        return pair.learner.lane.infer(obs, mask)[0]

    def compare_values() -> Equality:
        with torch.no_grad():
            q = pair.learner.network({name: torch.from_numpy(part) for name, part in obs.items()})
            singles = [pair.plain.online(*(torch.tensor(part)[None] for part in state))[0] for state in states]
        return compare([("Q-values", q, torch.stack(singles))])

    def growth() -> TwoSizes:
        large = make_obs(rng, 16 * ROWS)
        infer = pair.learner.lane.infer
        return TwoSizes(fast, partial(infer, large), 16.0, f"{ROWS} states", f"{16 * ROWS}")

    return Programs(
        plain=plain,
        fast=fast,
        compare=lambda fast, plain: compare([("actions", fast, plain)]),
        further=compare_values,
        growth=growth if lane == "eager" else None,
    )


def _build_backward(lane: str) -> Programs:
    pair = _Pair(lane)
    batch, rows = make_batch(0)

    def compare_update(stats: UpdateStats, loss: float) -> Equality:
        return compare_snapshots(pair.fast_snapshot(stats), pair.plain_snapshot(loss), "after the timed update")

    return Programs(
        plain=partial(pair.plain.learn, Rows(rows)),
        fast=partial(pair.learner.update, batch),
        compare=compare_update,
        further=partial(_check_updates, lane),
    )


class Rows(sfc_dqn.ReplayBuffer):
    """A plain buffer whose every batch is all of it."""

    def __init__(self, rows: list[tuple[object, ...]]) -> None:
        super().__init__(len(rows))
        self.buffer = deque(rows)

    def sample(self, batch_size: int, rng: object = None) -> tuple[object, ...]:
        return super().sample(batch_size, _InOrder())


class _InOrder:
    def sample(self, population: deque[tuple[object, ...]], count: int) -> list[tuple[object, ...]]:
        return list(population)[:count]


def make_batch(seed: int) -> tuple[Batch, list[tuple[object, ...]]]:
    """One batch for our learner, and the same rows for the plain one."""
    rng = np.random.default_rng(seed)
    obs, next_obs = make_obs(rng, 1, ROWS), make_obs(rng, 1, ROWS)
    action, reward = rng.integers(0, NUM_ACTIONS, (1, ROWS)), rng.normal(size=(1, ROWS)).astype(np.float32)
    done, mask = rng.random((1, ROWS)) < 0.1, rng.random((1, ROWS, NUM_ACTIONS)) < 0.5
    mask[..., -1] = True
    discount = np.float32(0.99) * (1 - done.astype(np.float32))
    ones, index = np.ones((1, ROWS), np.float32), np.zeros((1, ROWS), np.int64)
    batch = Batch(obs, action, reward, discount, next_obs, ones, index, mask)
    rows: list[tuple[object, ...]] = []
    for row in range(ROWS):
        state, following = (tuple(part[0, row] for part in kind.values()) for kind in (obs, next_obs))
        rows.append((state, int(action[0, row]), float(reward[0, row]), following, bool(done[0, row]), mask[0, row]))
    return batch, rows


def _check_updates(lane: str) -> Equality:
    pair = _Pair(lane)
    data = [make_batch(seed) for seed in range(COMPARED)]

    def fast(j: int) -> Snapshot:
        stats = pair.learner.update(data[j - 1][0])
        return pair.fast_snapshot(stats)

    def plain(j: int) -> Snapshot:
        return pair.plain_snapshot(pair.plain.learn(Rows(data[j - 1][1])))

    return compare_sequences(fast, plain, COMPARED)
