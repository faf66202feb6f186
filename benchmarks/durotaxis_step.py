"""One step of 32 colonies; and two of the ideas it was once slow for, alone: the left-most nodes, the reward record.

Compared from the first observation on, with the same draws and the same random actions, over whole episodes: both
action modes, every reward mode, recovery and curriculum. Timed on colonies held at a size, from the same state again
and again.

Colonies of ours and plain ones in the same state, and the numbers that both draw.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

import hotloop
from benchmarks.witnesses.durotaxis_env import MILESTONES, Colony
from benchmarks.witnesses.durotaxis_ppo import Draws as PlainDraws
from hotloop.core.kernels import next_uniform
from hotloop.core.rng import derive_seeds
from hotloop.core.types import Array, EnvStep, NodeAction
from hotloop.maths.action_kernels import next_normal, shuffle
from hotloop.proof.case import Call, Case, Programs, TwoSizes
from hotloop.proof.equivalence import Equality, compare, worst
from hotloop.workloads.durotaxis.baselines import leftmost
from hotloop.workloads.durotaxis.draw import snapshot
from hotloop.workloads.durotaxis.env import Durotaxis
from hotloop.workloads.durotaxis.reward_kernels import ENTRIES

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


SIZES = (10, 40, 160)
NUM_ENVS = 32
STRETCH = 16
TOLERANCE = 1e-6
"""Sums in another order, against float64 rounded to float32."""
VARIANTS: dict[str, dict[str, Any]] = {
    "as it stands": {"max_nodes": 100},
    "full reward": {"reward": "full", "substrate": "exponential", "max_nodes": 100},
    "delete reward": {"reward": "simple_delete_only", "substrate": "random", "max_nodes": 60},
    "a choice for each node": {"action": "per_node", "recovery": True, "substrate": "random", "max_nodes": 60},
    "curriculum": {"curriculum_steps": 20, "max_nodes": 100, "max_steps": 15},
}
CHECKED_STEPS = 150
LEFTMOST_SIZES = (20, 100, 1_000, 10_000)


SORTS: dict[str, tuple[Callable[[Array], Any], Callable[[Any, int], Any]]] = {
    "python-sort": (np.ndarray.tolist, lambda x, k: sorted(range(len(x)), key=x.__getitem__)[:k]),
    "numpy-sort": (np.asarray, lambda x, k: np.argsort(x, kind="stable")[:k]),
}
"""What people write -> the positions as it takes them, and how it finds the k left-most of them."""


@hotloop.cases("the third of N nodes that lies left-most, against sorting all")
def leftmost_cases(small: bool = False) -> list[Case]:
    """`leftmost`, which is what a program calls. An env marks them inside its own step: up to 128 nodes it counts for
    each how many lie left of it, which is quicker still (`mark_leftmost`)."""
    return _leftmost_cases("leftmost", leftmost, False, small)


@hotloop.cases("the same by numpy's partial selection, which takes any of equal ones")
def leftmost_argpartition_cases(small: bool = False) -> list[Case]:
    """numpy's partial selection: as quick, but of nodes that lie equally far left it takes any."""
    return _leftmost_cases("leftmost-argpartition", _by_argpartition, True, small)


def _by_argpartition(x: Array, k: int) -> Array:
    return np.argpartition(x, k - 1)[:k]


def _leftmost_cases(family: str, select: Callable[[Array, int], Array], changes: bool, small: bool) -> list[Case]:
    return [
        Case(
            family,
            f"n{size}",
            partial(_build_leftmost, select, sort, size),
            variant=sort,
            changes_learning=changes,
            quick=size >= 100,
        )
        for sort in SORTS
        for size in ((20, 100) if small else LEFTMOST_SIZES)
    ]


@hotloop.cases("one step of 32 colonies of N nodes, with what is seen")
def durotaxis_step_cases(small: bool = False) -> list[Case]:
    return [
        Case("durotaxis-step", f"n{size}", partial(_build_step, size, small), tolerance=TOLERANCE, quick=True)
        for size in ((10,) if small else SIZES)
    ]


@hotloop.cases("a step's rewards as a dictionary, against our whole step")
def reward_record_cases(small: bool = False) -> list[Case]:
    return [
        Case("reward-record", f"n{size}", partial(_build_record, size, small), tolerance=TOLERANCE, quick=True)
        for size in ((10,) if small else SIZES)
    ]


def _build_leftmost(select: Callable[[Array, int], Array], sort: str, size: int) -> Programs:
    draw = np.random.default_rng(0)
    x, larger, k = draw.random(size) * 600.0, draw.random(8 * size) * 600.0, size // 3
    convert, first = SORTS[sort]
    given = convert(x)
    return Programs(
        plain=lambda: first(given, k),
        fast=lambda: select(x, k),
        compare=lambda fast, plain: compare([(f"{k} of {size}", np.sort(fast), np.sort(plain))]),
        further=partial(_check_leftmost, select, sort),
        growth=lambda: TwoSizes(
            lambda: select(x, k), lambda: select(larger, 8 * k), 8.0, f"{size} nodes", str(8 * size)
        ),
    )


def _check_leftmost(select: Callable[[Array, int], Array], sort: str) -> Equality:
    """Random positions, many of which are equal."""
    draw, found = np.random.default_rng(1), []
    convert, first = SORTS[sort]
    for size in (1, 2, 7, 48, 128, 129, 500):
        for values in (3, 1_000_000):
            x = draw.integers(0, values, size).astype(np.float64)
            for k in {1, (size + 2) // 3, (size + 1) // 2, size}:
                found.append((f"{k} of {size}", np.sort(select(x, k)), np.sort(first(convert(x), k))))
    return compare(found)


class RecordedPlay:
    """Colonies held at a size: the state it starts from, and the actions."""

    def __init__(self, nodes: int, num_envs: int, length: int = STRETCH, **options: Any) -> None:
        self.num_envs, self.options = num_envs, options
        env, draw = make_ours(num_envs, **options), np.random.default_rng(0)
        grow(env, nodes)
        self.start = env.get_state()
        self.actions = [random_actions(draw, env, HELD) for _ in range(length)]

    def fast(self, env: Durotaxis) -> Call:
        steps = itertools.cycle(enumerate(self.actions))

        def step() -> EnvStep:
            place, action = next(steps)
            if place == 0:
                env.set_state(self.start)
            return env.step(action)

        return step

    def plain(self) -> Call:
        steps = itertools.cycle(enumerate(self.actions))
        colonies = self.plain_colonies()

        def step() -> object:
            nonlocal colonies
            place, action = next(steps)
            if place == 0:
                colonies = self.plain_colonies()
            return [colony.step(one) for colony, one in zip(colonies, action, strict=True)]

        return step

    def plain_colonies(self) -> list[Any]:
        return [plain_from(self.start, index, **self.options) for index in range(self.num_envs)]


def _build_step(nodes: int, small: bool) -> Programs:
    stretch = RecordedPlay(nodes, 2 if small else NUM_ENVS)

    def growth() -> TwoSizes:
        one, many = (RecordedPlay(nodes, count).fast(make_ours(count)) for count in (1, 128))
        return TwoSizes(one, many, 128.0, "1 colony", "128")

    env = make_ours(stretch.num_envs)
    return Programs(
        plain=stretch.plain(),
        fast=stretch.fast(env),
        compare=partial(compare_answers, env),
        calls=4,
        further=partial(_check_steps, 30 if small else CHECKED_STEPS),
        growth=growth,
    )


def _check_steps(num_steps: int) -> Equality:
    return worst(check_play(2, num_steps, **options) for options in VARIANTS.values())


def check_play(num_envs: int, num_steps: int, **options: Any) -> Equality:
    """From the first observation through all that random play leads to."""
    ours, plains, draw = make_ours(num_envs, **options), make_plain(num_envs, **options), np.random.default_rng(2)
    obs, _ = ours.reset()
    rows = enumerate(plain.observe() for plain in plains)
    found = [compare(found for index, row in rows for found in compare_observation(obs, row, index, "at the start"))]
    for step in range(1, num_steps + 1):
        ratio = None if step % 3 else 0.65  # small colonies live longer
        found.append(compare_step(ours, plains, random_actions(draw, ours, ratio), f"at step {step}"))
    return worst(found)


def _build_record(nodes: int, small: bool) -> Programs:
    """All fourteen entries of a step's rewards as a dictionary made anew, against our whole step, of which they are a
    part."""
    stretch = RecordedPlay(nodes, 2 if small else NUM_ENVS, reward="full")
    situations = []
    for colony, action in zip(stretch.plain_colonies(), stretch.actions[0], strict=True):
        chosen, numbers = colony.read_action(action)
        before, marked = colony.centroid()[0], colony.marked_nodes()
        births = colony.grow(chosen, numbers)
        colony.measure_hull()
        situations.append((colony, births, chosen, marked, colony.centroid()[0] - before, None, False))

    def plain() -> list[dict[str, Any]]:
        return [colony.calculate_rewards(*rest) for colony, *rest in situations]

    env = make_ours(stretch.num_envs, **stretch.options)

    def compare_rewards(_: EnvStep, rewards: list[dict[str, Any]]) -> Equality:
        ours = env.record
        return compare(
            (name, ours[name][index], value) for index, record in enumerate(rewards) for name, value in record.items()
        )

    further = partial(_check_steps, 30 if small else CHECKED_STEPS)
    return Programs(plain, stretch.fast(env), compare_rewards, further=further)
