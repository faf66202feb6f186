"""An exported network against the agent it came from.

Observations on which an exported network is held against its agent: random ones, and ones met in play.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from hotloop.core.types import Array, ArraySpec, BoxActions, DiscreteActions, HybridActions, ObsSpec, VecEnv, map_obs
from hotloop.loop.agents import ActorAgent, Agent
from hotloop.loop.sac_agent import SACAgent

SIZES = (1, 7, 64)
PLAYED_STEPS = 64


class ParityInputs(NamedTuple):
    """A batch of observations, and which actions are allowed there (None: all)."""

    obs: Any
    action_mask: Array | None


def random_batches(obs_spec: ObsSpec, mask_width: int, seed: int = 0) -> Iterator[ParityInputs]:
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
        yield ParityInputs(obs, mask)


def _draw(generator: np.random.Generator, spec: ArraySpec, size: int) -> Array:
    shape = (size, *spec.shape)
    if spec.dtype.kind == "f":
        return (2.0 * generator.standard_normal(shape)).astype(spec.dtype)
    if spec.dtype.kind == "b":
        return generator.random(shape) < 0.5
    largest = 256 if spec.dtype == np.uint8 else 100
    return generator.integers(0, largest, shape).astype(spec.dtype)


def played_batches(agent: Agent | ActorAgent, envs: VecEnv, steps: int = PLAYED_STEPS) -> Iterator[ParityInputs]:
    """What the agent meets while it plays."""
    policy = agent.as_policy()
    obs, action_mask = envs.reset()
    for _ in range(steps):
        yield ParityInputs(map_obs(np.array, obs), None if action_mask is None else action_mask.copy())
        step = envs.step(policy.act(obs, action_mask))
        obs, action_mask = step.obs, step.action_mask


TOLERANCE = 1e-4
Compute = Callable[[ParityInputs], dict[str, Array]]
"""The exported network: its outputs by name."""


@dataclass
class Parity:
    """The largest difference found in each output, and on how many observations.

    Differences of numbers beyond 1 are relative to them: a float32 has 7 digits. Where another action is chosen, the
    difference is how much worse its score is to the agent: between equals either choice is right.
    """

    observations: int
    differences: dict[str, float]

    @property
    def largest(self) -> float:
        return max(self.differences.values(), default=0.0)

    @property
    def holds(self) -> bool:
        return self.largest <= TOLERANCE  # a NaN fails, too


def check(agent: Agent | ActorAgent, compute: Compute, batches: Iterable[ParityInputs]) -> Parity:
    parity = Parity(0, {})
    for seen in batches:
        expected, found = _expected(agent, seen), compute(seen)
        parity.observations += len(expected["action"])
        for name, value in expected.items():
            if name == "action":
                difference = _action_difference(agent, value, found[name], expected, seen.action_mask)
            else:
                difference = _difference(value, found[name])
            worst = parity.differences.get(name, 0.0)
            parity.differences[name] = difference if np.isnan(difference) else max(worst, difference)
    return parity


def _expected(agent: Agent | ActorAgent, seen: ParityInputs) -> dict[str, Array]:
    action = agent.act(seen.obs, seen.action_mask)
    if isinstance(agent, Agent):
        return {"q_values": agent.q_values(seen.obs), "action": action}
    if isinstance(agent, SACAgent):
        return {"outputs": agent.outputs(seen.obs), "action": action}
    outputs, values = agent.outputs_and_values(seen.obs)
    return {"outputs": outputs, "value": values, "action": action}


def _difference(expected: Array, found: Array) -> float:
    if expected.shape != found.shape:
        return float("inf")
    scale = np.maximum(1.0, np.abs(expected))
    return float(np.max(np.abs(expected - found) / scale, initial=0.0))


def _action_difference(
    agent: Agent | ActorAgent, expected: Array, found: Array, scores: dict[str, Array], mask: Array | None
) -> float:
    if expected.shape != found.shape:
        return float("inf")
    if isinstance(agent, Agent):
        return _shortfall(scores["q_values"], expected - agent.first_action, found - agent.first_action, mask)
    spec: Any = agent.action_spec
    if isinstance(spec, BoxActions):
        return _difference(expected, found)
    counts = agent.actions.layout.counts
    columns = [_column(array, len(counts), spec) for array in (expected, found)]
    worst, start = 0.0, 0
    for place, count in enumerate(counts):
        part = slice(start, start + count)
        allowed = None if mask is None else mask[:, part]
        right, chosen = (column[:, place].astype(np.int64) for column in columns)
        worst = max(worst, _shortfall(scores["outputs"][:, part], right, chosen, allowed))
        start += count
    if isinstance(spec, HybridActions):
        worst = max(worst, _difference(expected[:, len(counts) :], found[:, len(counts) :]))
    return worst


def _column(action: Array, count: int, spec: Any) -> Array:
    """Choices [N, count] numbered from 0."""
    if isinstance(spec, DiscreteActions):
        return action[:, None] - spec.first
    first = (spec.choices if isinstance(spec, HybridActions) else spec).first
    return action[:, :count] - (np.array(first) if first else 0)


def _shortfall(scores: Array, right: Array, chosen: Array, mask: Array | None) -> float:
    if ((chosen < 0) | (chosen >= scores.shape[1])).any():
        return float("inf")
    rows = np.arange(len(scores))
    differs = right != chosen
    if mask is not None and not mask[rows, chosen][differs].all():
        return float("inf")
    lost = np.abs(scores[rows, right] - scores[rows, chosen]) / np.maximum(1.0, np.abs(scores[rows, right]))
    return float(np.max(lost[differs], initial=0.0))
