"""Cases: exploring actions, advantages and entropy.

Epsilon-greedy acting of one env and of many.

Generalized advantages over [T, N], and closed-form entropy and KL against drawing.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch

import hotloop
from benchmarks.learners import NUM_ACTIONS, OBS_SIZE, SMALL, Size, lane_problem, make_agent, make_learner
from benchmarks.sfc_step import Tape
from benchmarks.witnesses.dqn_parts import act, act_many
from benchmarks.witnesses.ppo_parts import (
    compute_gae,
    compute_gae_inserting,
    compute_gae_on_tensors,
    entropy_and_kl,
    make_policy,
)
from hotloop.core.schedules import Counters, Schedule
from hotloop.core.types import Array
from hotloop.lanes.spec import LANES
from hotloop.learners.dqn import EpsilonGreedy
from hotloop.maths import distributions
from hotloop.maths.distributions import ActionLayout, distribution
from hotloop.maths.gae_kernels import gae_numpy
from hotloop.proof.case import Case, Programs, TwoSizes
from hotloop.proof.equivalence import Equality, compare, compare_sequences, worst

EPSILON = 0.1
SEED = 11
NUM_ENVS = (1, 256)
CALLS = 20
"""Compared: some of them explore."""


@hotloop.cases("exploring and greedy actions")
def epsilon_cases(small: bool = False) -> list[Case]:
    size = SMALL if small else Size((64, 64), 32)
    return [
        Case(
            family="epsilon-act",
            lane=lane,
            unavailable=lane_problem(lane),
            size=f"{'x'.join(map(str, size.hidden))}-n{num_envs}",
            build=partial(_build, lane, size, num_envs),
            quick=True,
        )
        for lane in LANES
        for num_envs in NUM_ENVS
    ]


def _policy(lane: str, size: Size) -> tuple[EpsilonGreedy, torch.nn.Module]:
    learner = make_learner(lane, "dqn", size)
    schedule = Schedule(start=EPSILON)
    policy = EpsilonGreedy(learner.lane, schedule, Counters(), NUM_ACTIONS, SEED)
    return policy, make_agent(learner, "dqn").online


def _observations(num_envs: int, seed: int) -> Array:
    return np.random.default_rng(seed).normal(size=(num_envs, OBS_SIZE)).astype(np.float32)


def _build(lane: str, size: Size, num_envs: int) -> Programs:
    policy, network = _policy(lane, size)
    obs = _observations(num_envs, 0)
    single, tape = obs[0], Tape(SEED)

    def reference() -> object:
        if num_envs == 1:
            return act(network, single, EPSILON, NUM_ACTIONS, tape)
        return act_many(network, obs, EPSILON, NUM_ACTIONS, tape)

    def growth() -> TwoSizes:
        few, many = _observations(1, 0), _observations(256, 0)
        return TwoSizes(lambda: policy.act(few, None), lambda: policy.act(many, None), 256.0, "N 1", "256")

    return Programs(
        plain=reference,
        fast=lambda: policy.act(obs, None),
        compare=lambda fast, plain: compare([("action", fast[0], np.atleast_1d(plain))]),
        calls=CALLS,
        further=partial(_check, lane, size, num_envs),
        tape=tape,
        growth=growth,
    )


def _check(lane: str, size: Size, num_envs: int) -> Equality:
    """The same actions on the same observations, exploring with the same draws."""
    policy, network = _policy(lane, size)
    tape = Tape(SEED)

    def plain(j: int) -> dict[str, object]:
        obs = _observations(num_envs, j)
        if num_envs == 1:
            return {"action": [act(network, obs[0], EPSILON, NUM_ACTIONS, tape)]}
        return {"action": act_many(network, obs, EPSILON, NUM_ACTIONS, tape)}

    return compare_sequences(lambda j: {"action": policy.act(_observations(num_envs, j), None)[0]}, plain)


Compute = Callable[..., Any]


GAMMA, LAMBDA = 0.99, 0.95
SLABS = ((128, 8), (2_048, 1), (2_048, 8))
TOLERANCE = 1e-5
"""Of float32 sums against float64 ones."""
DRAWS = 10_000
STANDARD_ERRORS = 5.0
LAYOUTS = {
    "categorical": ActionLayout((6,)),
    "multi-discrete": ActionLayout((3, 4, 2)),
    "normal": ActionLayout((), 3),
    "squashed": ActionLayout((), 3, squashed=True),
    "hybrid": ActionLayout((4,), 2, squashed=True),
}


@hotloop.cases("generalized advantages of T steps of N envs")
def gae_cases(small: bool = False) -> list[Case]:
    """Against a loop over Python floats."""
    return _gae_cases("gae", compute_gae, small)


@hotloop.cases("the same against a list that grows at its front")
def gae_front_insertion_cases(small: bool = False) -> list[Case]:
    """Against the same loop into a list that grows at its front."""
    return _gae_cases("gae-front-insertion", compute_gae_inserting, small)


@hotloop.cases("the same against a loop over preallocated tensors")
def gae_on_tensors_cases(small: bool = False) -> list[Case]:
    """Against a loop over preallocated tensors, whose every number is a tensor."""
    return _gae_cases("gae-on-tensors", compute_gae_on_tensors, small)


def _gae_cases(family: str, compute: Compute, small: bool) -> list[Case]:
    return [
        Case(
            family, f"T{steps}-N{envs}", partial(_build_gae, compute, steps, envs), tolerance=TOLERANCE,
            quick=True,
        )
        for steps, envs in (((16, 3),) if small else SLABS)
    ]  # fmt: skip


class _Slab:
    def __init__(self, compute: Compute, steps: int, num_envs: int, seed: int) -> None:
        draw = np.random.default_rng(seed)
        self.reward, self.final_value = draw.normal(size=(2, steps, num_envs)).astype(np.float32)
        self.value = draw.normal(size=(steps + 1, num_envs)).astype(np.float32)
        self.terminated, self.truncated = draw.random((2, steps, num_envs)) < 0.01
        self.advantage, self.returns = np.empty_like(self.reward), np.empty_like(self.reward)
        self._compute, on_tensors = compute, compute is compute_gae_on_tensors
        convert: Callable[[Array], Any] = torch.tensor if on_tensors else np.ndarray.tolist  # type: ignore[assignment]
        self._columns = [self._column(n, convert) for n in range(num_envs)]

    def _column(self, n: int, convert: Callable[[Array], Any]) -> list[Any]:
        """What the plain program knows of one env, each as the kind of sequence it computes with."""
        value, last = self.value[:-1, n], self.value[-1, n]
        parts = (self.reward[:, n], value, last, self.final_value[:, n], self.terminated[:, n], self.truncated[:, n])
        return [convert(np.asarray(part)) for part in parts]

    def fast(self) -> tuple[Array, Array]:
        gae_numpy(
            self.reward, self.terminated, self.truncated, self.value, self.final_value, GAMMA, LAMBDA, self.advantage,
            self.returns,
        )  # fmt: skip
        return self.advantage, self.returns

    def plain(self) -> list[Any]:
        return [self._compute(*column, GAMMA, LAMBDA) for column in self._columns]


def _build_gae(compute: Compute, steps: int, num_envs: int) -> Programs:
    make = partial(_Slab, compute)
    slab = make(steps, num_envs, 0)

    def growth() -> TwoSizes:
        return TwoSizes(slab.fast, make(8 * steps, num_envs, 0).fast, 8.0, f"T {steps}", str(8 * steps))

    def further() -> Equality:
        slabs = [make(steps, num_envs, seed) for seed in range(1, 4)]
        return worst(_compare_gae(slab.fast(), slab.plain()) for slab in slabs)

    return Programs(slab.plain, slab.fast, _compare_gae, further=further, growth=growth)


def _compare_gae(fast: tuple[Array, Array], plain: list[Any]) -> Equality:
    advantage, returns = (np.array([np.asarray(column[part]) for column in plain]) for part in range(2))  # [N, T]
    return compare([("advantage", fast[0].T, advantage), ("returns", fast[1].T, returns)])


@hotloop.cases("entropy and KL in closed form, against drawing, within its error")
def entropy_cases(small: bool = False) -> list[Case]:
    rows = 2 if small else 64
    return [
        Case("entropy-kl", f"b{rows}", partial(_build_entropy, name, rows), name, tolerance=1.0, quick=True)
        for name in LAYOUTS
    ]


class _Policies:
    """Two policies in each of some states, as our outputs and as torch's distributions."""

    def __init__(self, layout: ActionLayout, rows: int) -> None:
        draw = torch.Generator().manual_seed(0)
        self.layout = layout
        self.outputs = torch.randn(2, rows, layout.num_outputs, generator=draw)
        self.log_std = 0.3 * torch.randn(2, layout.continuous, generator=draw) - 0.5
        self.plain = [[self._plain(policy, row) for row in range(rows)] for policy in range(2)]

    def _plain(self, policy: int, row: int) -> list[torch.distributions.Distribution]:
        logits, mean = self.outputs[policy, row].split([self.layout.num_logits, self.layout.continuous])
        return make_policy(logits, list(self.layout.counts), mean, self.log_std[policy], self.layout.squashed)

    def fast(self) -> tuple[torch.Tensor, torch.Tensor]:
        old, new = (distribution(self.layout, self.outputs[i], self.log_std[i]) for i in range(2))
        return distributions.action_entropy(old), distributions.action_kl(old, new)

    def drawn(self) -> list[list[tuple[float, float]]]:
        return [entropy_and_kl(old, new, DRAWS) for old, new in zip(*self.plain, strict=True)]


def _build_entropy(name: str, rows: int) -> Programs:
    policies = _Policies(LAYOUTS[name], rows)
    torch.manual_seed(1)
    return Programs(policies.drawn, policies.fast, _compare_entropy)


def _compare_entropy(fast: tuple[torch.Tensor, ...], plain: list[list[tuple[float, float]]]) -> Equality:
    """The distance from what drawing found, in units of five of its standard errors."""
    found = []
    for what, closed, drawn in zip(("entropy", "KL"), fast, zip(*plain, strict=True), strict=True):
        for value, (mean, error) in zip(closed.tolist(), drawn, strict=True):
            found.append(Equality(abs(value - mean) / (STANDARD_ERRORS * error + 1e-5), what))
    return worst(found)
