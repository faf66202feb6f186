"""Epsilon-greedy acting of one env and of many."""

from __future__ import annotations

from functools import partial

import numpy as np
import torch

from hotloop.algos.policies import EpsilonGreedy
from hotloop.core.schedules import Counters, Schedule
from hotloop.core.types import Array
from hotloop.lanes.spec import LANES
from hotloop.prove.case import Built, Case, Growth
from hotloop.prove.cases.learners import NUM_ACTIONS, OBS_SIZE, SMALL, Size, make_agent, make_learner
from hotloop.prove.cases.tape import Tape
from hotloop.prove.equivalence import Equality, compare, compare_sequences
from hotloop.prove.reference.epsilon import act, act_many

EPSILON = 0.1
SEED = 11
NUM_ENVS = (1, 256)
CALLS = 20
"""Compared: some of them explore."""


def epsilon_cases(small: bool) -> list[Case]:
    size = SMALL if small else Size((64, 64), 32)
    return [
        Case(
            family="epsilon-act",
            lane=lane,
            size=f"{'x'.join(map(str, size.hidden))}-n{num_envs}",
            build=partial(_build, lane, size, num_envs),
            is_default=True,
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


def _build(lane: str, size: Size, num_envs: int) -> Built:
    policy, network = _policy(lane, size)
    obs = _observations(num_envs, 0)
    single, tape = obs[0], Tape(SEED)

    def reference() -> object:
        if num_envs == 1:
            return act(network, single, EPSILON, NUM_ACTIONS, tape)
        return act_many(network, obs, EPSILON, NUM_ACTIONS, tape)

    def growth() -> Growth:
        few, many = _observations(1, 0), _observations(256, 0)
        return Growth(lambda: policy.act(few, None), lambda: policy.act(many, None), 256.0, "N 1", "256")

    return Built(
        reference=reference,
        fast=lambda: policy.act(obs, None),
        compare=lambda fast, plain: compare([("action", fast, np.atleast_1d(plain))]),
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

    return compare_sequences(lambda j: {"action": policy.act(_observations(num_envs, j), None)}, plain)
