"""Observations on which an exported network is held against its agent: random ones, and ones met in play."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from hotloop.core.types import Array, ArraySpec, ObsSpec, VecEnv, map_obs
from hotloop.loop.actor_agent import ActorAgent
from hotloop.loop.agent import Agent

SIZES = (1, 7, 64)
PLAYED_STEPS = 64


class Seen(NamedTuple):
    """A batch of observations, and which actions are allowed there (None: all)."""

    obs: Any
    action_mask: Array | None


def random_batches(obs_spec: ObsSpec, mask_width: int, seed: int = 0) -> Iterator[Seen]:
    """Batches of several sizes; with a mask where `mask_width` is above 0, at least one action of each allowed."""
    generator = np.random.default_rng(seed)
    for size in SIZES:
        obs: Any = (
            {name: _draw(generator, spec, size) for name, spec in obs_spec.items()}
            if isinstance(obs_spec, dict)
            else _draw(generator, obs_spec, size)
        )
        mask = None
        if mask_width:
            mask = generator.random((size, mask_width)) < 0.7
            mask[:, 0] |= ~mask.any(axis=1)
        yield Seen(obs, mask)


def _draw(generator: np.random.Generator, spec: ArraySpec, size: int) -> Array:
    shape = (size, *spec.shape)
    if spec.dtype.kind == "f":
        return (2.0 * generator.standard_normal(shape)).astype(spec.dtype)
    if spec.dtype.kind == "b":
        return generator.random(shape) < 0.5
    largest = 256 if spec.dtype == np.uint8 else 100
    return generator.integers(0, largest, shape).astype(spec.dtype)


def played_batches(agent: Agent | ActorAgent, envs: VecEnv, steps: int = PLAYED_STEPS) -> Iterator[Seen]:
    """What the agent meets while it plays."""
    policy = agent.as_policy()
    obs, action_mask = envs.reset()
    for _ in range(steps):
        yield Seen(map_obs(np.array, obs), None if action_mask is None else action_mask.copy())
        step = envs.step(policy.act(obs, action_mask))
        obs, action_mask = step.obs, step.action_mask
