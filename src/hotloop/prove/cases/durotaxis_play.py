"""Colonies of ours and plain ones in the same state, and the numbers that both draw."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from hotloop.core.kernels import next_uniform
from hotloop.core.rng import derive_seeds
from hotloop.core.types import Array, EnvStep, NodeAction
from hotloop.envs.durotaxis.env import Durotaxis
from hotloop.envs.durotaxis.reward_kernels import ENTRIES
from hotloop.envs.durotaxis.snapshot import snapshot
from hotloop.maths.action_kernels import next_normal, shuffle
from hotloop.prove.equivalence import Equality, compare, worst
from hotloop.prove.reference.durotaxis_env import MILESTONES, Colony
from hotloop.prove.reference.durotaxis_ppo import Draws as PlainDraws

SEED = 3
HELD = 0.5
"""The delete ratio at which an even number of nodes stays what it is."""


class Draws:
    """The numbers our kernels draw, behind the methods that the plain program asks for."""

    def __init__(self, policy_seed: int, shuffle_seed: int, epochs: int) -> None:
        self._policy, self._shuffle = (np.array([seed], np.uint64) for seed in (policy_seed, shuffle_seed))
        self._epochs, self._orders = epochs, []  # type: ignore[var-annotated]

    def normal(self, count: int) -> Array:
        return np.array([next_normal(self._policy) for _ in range(count)])

    def uniform(self, count: int) -> Array:
        return np.array([next_uniform(self._policy, 0) for _ in range(count)])

    def permutation(self, count: int) -> Array:
        """Ours draws the orders of all epochs at once."""
        if not self._orders:
            orders = np.empty((self._epochs, count), np.int64)
            shuffle(self._shuffle, orders)
            self._orders = list(orders)
        return self._orders.pop(0)

    def end(self) -> None:
        """From now on the plain program's own draws, at their cost."""
        own: Any = PlainDraws()
        self.normal, self.uniform, self.permutation = own.normal, own.uniform, own.permutation  # type: ignore[method-assign]


def make_ours(num_envs: int, **options: Any) -> Durotaxis:
    return Durotaxis(num_envs, derive_seeds(SEED, num_envs, "durotaxis"), **options)


def make_plain(num_envs: int, **options: Any) -> list[Colony]:
    """At the start of their first episodes, drawn as ours are."""
    colonies = [Colony(options) for _ in range(num_envs)]
    for colony, seed in zip(colonies, derive_seeds(SEED, num_envs, "durotaxis"), strict=True):
        colony.reset(partial(next_uniform, np.array([seed], np.uint64), 0))
    return colonies


def plain_from(state: Mapping[str, Array], index: int, **options: Any) -> Colony:
    """A plain colony where colony `index` of a saved state of ours stands, with the random numbers still to come."""
    colony, now = Colony(options), snapshot(state, index)
    counters: dict[str, Any] = {name: state[name][index] for name in ("drift", "recoveries", "total_steps")}
    counters["milestones"] = [place < state["milestones"][index] for place in range(len(MILESTONES))]
    counters["reward_sums"] = dict(zip(ENTRIES, state["reward_sums"][index].tolist(), strict=True))
    substrate = (now["substrate"], now["m"], now["b"])
    colony.load(now["positions"], now["edges"], now["ages"], substrate, step=now["step"], **counters)
    colony.uniform = partial(next_uniform, state["generator"][index].copy(), 0)
    return colony


def random_actions(draw: np.random.Generator, env: Durotaxis, ratio: float | None = None) -> Any:
    """For every colony; a `ratio` for all of them, or each its own."""
    spec: Any = env.action_spec
    box = getattr(spec, "numbers", spec)
    low, high = np.array(box.low), np.array(box.high)
    numbers = (low + (high - low) * draw.random((env.num_envs, len(low)))).astype(np.float32)
    if box is not spec:
        return NodeAction(numbers, draw.integers(0, 2, int(env.get_state()["num_nodes"].sum())))
    if ratio is not None:
        numbers[:, 0] = ratio
    return numbers


def grow(env: Durotaxis, nodes: int) -> None:
    """Double the colonies until they have `nodes`, which is 5 doubled some times."""
    env.reset()
    action = np.tile(np.array([0.0, 5.0, 2.0, 0.5, 0.0], np.float32), (env.num_envs, 1))
    while env.get_state()["num_nodes"][0] < nodes:
        env.step(action)


def compare_step(env: Durotaxis, plains: list[Colony], action: Any, when: str) -> Equality:
    """One step of both; where an episode ends, both begin the next."""
    offsets = np.cumsum([0, *(len(colony.nodes) for colony in plains)])
    step = env.step(action)
    answers = [colony.step(_one(action, index, offsets)) for index, colony in enumerate(plains)]
    next_episodes = [
        found
        for index, (_, _, terminated, truncated, _) in enumerate(answers)
        if terminated or truncated
        for found in compare_observation(step.obs, plains[index].reset(), index, f"in the next episode {when}")
    ]
    return worst([compare_answers(env, step, answers, when), compare(next_episodes)])


def compare_answers(env: Durotaxis, step: EnvStep, answers: list[Any], when: str = "of the timed stretch") -> Equality:
    """Observation, rewards by name, flags, and what an episode was like where one ends."""
    record = env.record
    found: list[tuple[str, Any, Any]] = []
    for index, (observation, rewards, terminated, truncated, info) in enumerate(answers):
        flags = [step.terminated[index], step.truncated[index]]
        found.append((f"flags {when}", flags, [terminated, truncated]))
        found += [(f"{name} {when}", record[name][index], value) for name, value in rewards.items()]
        found += compare_observation(step.final_obs, observation, index, when)
        if terminated or truncated:
            stats = {name: values[index] for name, values in step.episode_stats.items()}
            found += [(f"{name} {when}", stats[name], info[name]) for name in stats]
    return compare(found)


def compare_observation(graphs: Any, plain: Mapping[str, Array], index: int, when: str) -> list[tuple[str, Any, Any]]:
    mine = graphs.take(np.array([index])).arrays()
    return [
        (f"{name} {when}", mine[name], np.asarray(plain[name], np.float32).reshape(mine[name].shape))
        if np.size(plain[name]) == mine[name].size
        else (f"{name} {when}", mine[name], plain[name])
        for name in ("nodes", "edges", "edge_features", "graph")
    ]


def _one(action: Any, index: int, offsets: Array) -> Any:
    if not isinstance(action, NodeAction):
        return action[index]
    return action.numbers[index], action.choices[offsets[index] : offsets[index + 1]].tolist()
