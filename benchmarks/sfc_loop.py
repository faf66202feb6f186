"""The whole training loop on service chains with one update per action, at equal settings.

Both train on one env. Compared from the start of a run: the plain program gets our initial weights and a tape of our
draws; both must have stored the same transitions and end with the same parameters. Timed in its midst: 16 actions with
an update after each, from the same state of env, weights and replay, the first call of which is compared as well.
`sfc-loop-all-paths`: the plain env lists all paths. `sfc-loop-16-envs`: ours steps 16 envs together and then makes 16
updates, which is another order of acting and learning, and so learns something else.

Shortest paths between all pairs of data centres, once an episode: against Dijkstra's, and against listing every path
there is (`sfc-all-paths`).

Compared path by path in random networks, half of which have so few different lengths that many paths are equally long.
"""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any

import numpy as np

import hotloop
from benchmarks.learners import copy_parameters, flat, lane_problem
from benchmarks.replay import all_rows
from benchmarks.sfc_step import ROUNDS, Tape, make_plain, plain_from
from benchmarks.snake_loop import NEVER, Ours, tape_of
from benchmarks.witnesses import sfc_dqn
from benchmarks.witnesses.sfc_env import AllPathsSfcEnv, SfcEnv
from hotloop.core.rng import derive_seed, derive_seeds
from hotloop.core.schedules import Schedule
from hotloop.core.types import Array
from hotloop.lanes.spec import LANES
from hotloop.loop.session import Session
from hotloop.presets.dqn_settings import (
    CheckpointSettings,
    DQNSettings,
    EvaluationSettings,
    LearnerSettings,
    OptimizerSettings,
    TargetSettings,
)
from hotloop.presets.env_settings import EnvSettings
from hotloop.presets.network_settings import NetworkSettings
from hotloop.presets.replay_settings import ReplaySettings
from hotloop.proof.case import Case, Programs, TwoSizes
from hotloop.proof.equivalence import Equality, compare, worst
from hotloop.replay.buffer import ReplayMemory as Replay
from hotloop.workloads.sfc.layout_kernels import empty_worlds
from hotloop.workloads.sfc.network_kernels import find_all_paths

CENTRES = (2, 4, 6, 8)
MANY_ENVS = 16
ACTIONS = 16
"""Of one timed call, each with its update."""
TOLERANCE = 1e-3
"""Of the parameters, after updates whose batches come from their own actions; transitions must agree throughout."""
WARM_UP = 50
CHECKED_STEPS, CHECKED_STEPS_ALL_PATHS = 250, 70
"""Actions of the run that is compared."""
MOST_FUSED = 100
"""On the compiled and native lanes, which sum in another order: Adam makes a step of full length out of the
rounding of a gradient that all but vanishes, and some hundred updates later two actions of nearly equal value change
places."""
SKIPPED = 500
"""Steps of each env before timing: the second round of requests has come."""


@hotloop.cases("the whole training loop on service chains, an update per action")
def sfc_loop_cases(small: bool = False) -> list[Case]:
    return [
        Case(
            family="sfc-loop",
            lane=lane,
            unavailable=lane_problem(lane),
            size=str(centres),
            build=partial(_build, SfcEnv, centres, lane, small),
            tolerance=TOLERANCE,
            quick=lane == "native" and centres in (4, 8),
        )
        for lane in LANES
        for centres in ((2,) if small else CENTRES)
    ]


@hotloop.cases("the same against listing all paths each time")
def sfc_loop_all_paths_cases(small: bool = False) -> list[Case]:
    centres = 3 if small else 8
    build = partial(_build, AllPathsSfcEnv, centres, "native", small)
    return [Case("sfc-loop-all-paths", str(centres), build, lane="native", tolerance=TOLERANCE, quick=True)]


@hotloop.cases("the same with 16 envs stepped together, then 16 updates: another order, so not the same learning")
def sfc_loop_16_envs_cases(small: bool = False) -> list[Case]:
    return [
        Case(
            family="sfc-loop-16-envs",
            lane="native",
            size=str(centres),
            build=partial(_build_many, centres, small),
            changes_learning=True,
            quick=True,
        )
        for centres in ((2,) if small else (4, 8))
    ]


def make_settings(centres: int, lane: str, num_envs: int, warmup: int, explored: int) -> DQNSettings:
    """Random play gives way to the agent's own over `explored` env steps."""
    fixed: dict[str, Any] = {"min_data_centres": centres, "max_data_centres": centres}
    rounds = {"min_request_count": ROUNDS, "max_request_count": ROUNDS}
    return DQNSettings(
        total_env_steps=NEVER,
        updates_per_env_step=1,
        learning_starts=warmup,
        batch_size=32,
        loss="mse",
        log_every=NEVER,
        env=EnvSettings(id="sfc", num_envs=num_envs, dict_obs="keep", options=fixed | rounds),
        network=NetworkSettings(torso="branch_attention", hidden=(256, 128, 64)),
        replay=ReplaySettings(buffer_size=10_000),
        exploration=Schedule(kind="linear", start=1.0, end=0.01, over=explored),
        optimizer=OptimizerSettings(learning_rate=1e-4, max_grad_norm=0.0),
        target=TargetSettings(every=10),
        learner=LearnerSettings(lane=lane),  # type: ignore[arg-type]
        evaluation=EvaluationSettings(every=NEVER),
        checkpoint=CheckpointSettings(every=NEVER),
    )


def make_config(settings: DQNSettings) -> sfc_dqn.Config:
    return sfc_dqn.Config(
        learning_starts=settings.learning_starts,
        buffer_size=settings.replay.buffer_size,
        batch_size=settings.batch_size,
        lr=settings.optimizer.learning_rate,
        gamma=settings.gamma,
        epsilon_start=settings.exploration.start,
        epsilon_end=settings.exploration.end,
        epsilon_steps=int(settings.exploration.over),
        target_every=settings.target.every,
    )


class PlainRun:
    """The plain program from where the first env of our session stands, its replay filled from ours, and with the draws
    that ours will make next on a tape. No update has been made yet."""

    def __init__(self, session: Session, settings: DQNSettings, make: type[SfcEnv] = SfcEnv) -> None:
        network, self.tape = sfc_dqn.ThreeBranchNetwork(), tape_of(session)
        copy_parameters(session.learner.lane.parameters(), network)
        self.agent = sfc_dqn.DQN(make_config(settings), network, self.tape)
        self.agent.env_steps = session.counters.env_steps
        self._env = plain_from(session.collector.envs.get_state(), 0, make)
        self._state, self._mask = self._env.get_state(), self._env.action_mask()
        self.buffer = sfc_dqn.ReplayBuffer(settings.replay.buffer_size)
        self._fill(session.replay)

    def _fill(self, replay: Replay) -> None:
        batch = all_rows(replay)
        parts = [[np.array(part[0]) for part in obs.values()] for obs in (batch.obs, batch.next_obs)]  # type: ignore[union-attr]
        masks, dones = np.array(batch.next_action_mask[0]), batch.discount[0] == 0  # type: ignore[index]
        for row in range(replay.size):
            states = [tuple(part[row] for part in kind) for kind in parts]
            action, reward = int(batch.action[0, row]), float(batch.reward[0, row])
            self.buffer.push(states[0], action, reward, states[1], bool(dones[row]), masks[row])

    def advance(self, num_steps: int) -> None:
        for _ in range(num_steps):
            self._state, self._mask = sfc_dqn.env_step(self.agent, self._env, self.buffer, self._state, self._mask)


def _prepare(centres: int, lane: str, num_envs: int, small: bool) -> tuple[Ours, DQNSettings]:
    """Our session when its warm-up is over."""
    warmup = (40 if small else SKIPPED) * num_envs
    settings = make_settings(centres, lane, num_envs, warmup=warmup, explored=warmup)
    ours = Ours(settings)
    ours.run_to(warmup)
    return ours, settings


def _build(make: type[SfcEnv], centres: int, lane: str, small: bool) -> Programs:
    ours, settings = _prepare(centres, lane, 1, small)
    plain = PlainRun(ours.session, settings, make)
    return Programs(
        plain=partial(plain.advance, ACTIONS),
        fast=partial(_advance, ours),
        compare=lambda session, _: _compare(session, plain.agent, plain.buffer),
        further=partial(_check, make, centres, lane, 80 if small else _checked_steps(make, lane)),
        tape=plain.tape,
        brief=(partial(plain.advance, 1), partial(_advance, ours)),
    )


def _build_many(centres: int, small: bool) -> Programs:
    ours, settings = _prepare(centres, "native", MANY_ENVS, small)
    plain = PlainRun(ours.session, settings)

    def compare_parameters(session: Session, _: None) -> Equality:
        return compare([("parameters", session.learner.lane.parameters(), flat(plain.agent.online.parameters()))])

    return Programs(
        plain=partial(plain.advance, ACTIONS),
        fast=partial(_advance, ours),
        compare=compare_parameters,
        tape=plain.tape,
        brief=(partial(plain.advance, 1), partial(_advance, ours)),
    )


def _advance(ours: Ours) -> Session:
    return ours.run_to(ours.session.counters.env_steps + ACTIONS)


def _checked_steps(make: type[SfcEnv], lane: str) -> int:
    if make is AllPathsSfcEnv:
        return CHECKED_STEPS_ALL_PATHS
    return CHECKED_STEPS if lane == "eager" else MOST_FUSED


def _check(make: type[SfcEnv], centres: int, lane: str, steps: int) -> Equality:
    settings = make_settings(centres, lane, num_envs=1, warmup=WARM_UP, explored=2 * steps)
    ours, network = Ours(settings), sfc_dqn.ThreeBranchNetwork()
    copy_parameters(ours.session.learner.lane.parameters(), network)
    tape = Tape(derive_seed(settings.seed, "policy"), derive_seed(settings.seed, "replay"))
    env = make_plain(centres, int(derive_seeds(settings.seed, 1, "env", 0)[0]), make)
    agent, buffer = sfc_dqn.train(make_config(settings), env, steps, network, tape)
    return _compare(ours.run_to(steps), agent, buffer)


def _compare(session: Session, agent: sfc_dqn.DQN, buffer: sfc_dqn.ReplayBuffer) -> Equality:
    counts = (session.counters.updates, session.replay.size), (agent.updates, len(buffer))
    if counts[0] != counts[1]:
        return Equality(float("inf"), f"updates and transitions {counts[0]} against {counts[1]}")
    transitions = compare_rows(session.replay, buffer)
    if transitions.max_error > 0:  # one other action and the two go separate ways
        return Equality(float("inf"), f"{transitions.where} of the transitions stored")
    return compare([("parameters", session.learner.lane.parameters(), flat(agent.online.parameters()))])


def compare_rows(replay: Replay, buffer: sfc_dqn.ReplayBuffer) -> Equality:
    """All of them, from the oldest to the newest."""
    batch = all_rows(replay)
    assert isinstance(batch.obs, dict)
    assert isinstance(batch.next_obs, dict)
    states, actions, rewards, next_states, dones, masks = zip(*buffer.buffer, strict=True)
    found: list[tuple[str, Any, Any]] = [("action", batch.action[0], actions), ("reward", batch.reward[0], rewards)]
    found += [("mask", batch.next_action_mask[0], masks)]  # type: ignore[index]
    found += [("done", batch.discount[0] == 0, dones)]
    for index, name in enumerate(batch.obs):
        found.append((f"obs {name}", batch.obs[name][0], [state[index] for state in states]))
        found.append((f"next_obs {name}", batch.next_obs[name][0], [state[index] for state in next_states]))
    return compare(found)


CHECKED = 200
CHECKED_ALL_PATHS = {4: 500, 8: 2}
"""Data centres -> networks compared."""
SEED = 5


@hotloop.cases("shortest paths between all pairs of D data centres, against Dijkstra's")
def sfc_paths_cases(small: bool = False) -> list[Case]:
    checked = 4 if small else CHECKED
    return [
        Case("sfc-paths", str(centres), partial(_build_paths, SfcEnv, centres, checked), quick=centres == 8)
        for centres in ((2, 5) if small else CENTRES)
    ]


@hotloop.cases("the same against listing all paths")
def sfc_all_paths_cases(small: bool = False) -> list[Case]:
    networks = {5: 4} if small else CHECKED_ALL_PATHS
    return [
        Case(
            "sfc-all-paths",
            str(centres),
            partial(_build_paths, AllPathsSfcEnv, centres, checked),
            quick=centres == 8,
        )
        for centres, checked in networks.items()
    ]


def _build_paths(make: type[SfcEnv], centres: int, num_checked: int) -> Programs:
    worlds = networks(centres, 1, np.random.default_rng(SEED))
    plain = plain_network(worlds[0], make)
    pairs = list(itertools.permutations(range(centres), 2))

    def reference() -> list[list[int]]:
        plain.paths.clear()  # a new episode
        return [plain.shortest_path(*pair) for pair in pairs]

    def fast() -> Array:
        find_all_paths(worlds)
        return worlds[0]

    def growth() -> TwoSizes:
        few, many = (networks(count, 64, np.random.default_rng(SEED)) for count in (4, 16))
        pairs_of = {count: count * (count - 1) for count in (4, 16)}
        units = pairs_of[16] / pairs_of[4]
        return TwoSizes(partial(find_all_paths, few), partial(find_all_paths, many), units, "4 centres", "16, per pair")

    return Programs(
        plain=reference,
        fast=fast,
        compare=lambda world, paths: compare_paths(world, plain, paths),
        further=partial(_check_paths, make, centres, num_checked),
        growth=growth if centres == CENTRES[-1] else None,
    )


def networks(centres: int, count: int, rng: np.random.Generator) -> Array:
    """Every other one with lengths of 100, 200 or 300 km, in which ties abound."""
    worlds = empty_worlds(count, np.zeros(count, np.uint64))
    worlds["num_centres"] = centres
    for index in range(count):
        for one, other in itertools.combinations(range(centres), 2):
            length = rng.integers(100, 1_001) if index % 2 == 0 else 100 * rng.integers(1, 4)
            worlds["length"][index, one, other] = worlds["length"][index, other, one] = length
    return worlds


def plain_network(world: Array, make: type[SfcEnv] = SfcEnv) -> SfcEnv:
    env = make(lambda count: 0)
    env.num_dcs = int(world["num_centres"])
    env.distance = {pair: int(world["length"][pair]) for pair in itertools.permutations(range(env.num_dcs), 2)}
    return env


def path_of(world: Array, start: int, goal: int) -> list[int]:
    stops = [start]
    while stops[-1] != goal:
        stops.append(int(world["hop"][stops[-1], goal]))
    return stops


def _check_paths(make: type[SfcEnv], centres: int, count: int) -> Equality:
    worlds = networks(centres, count, np.random.default_rng(SEED + 1))
    find_all_paths(worlds)
    pairs, found = list(itertools.permutations(range(centres), 2)), []
    for world in worlds:
        plain = plain_network(world, make)
        found.append(compare_paths(world, plain, [plain.shortest_path(*pair) for pair in pairs]))
    return worst(found)


def compare_paths(world: Array, plain: SfcEnv, paths: list[list[int]]) -> Equality:
    found: list[tuple[str, Any, Any]] = []
    for pair, path in zip(itertools.permutations(range(plain.num_dcs), 2), paths, strict=True):
        found.append((f"the path {pair}", path_of(world, *pair), path))
        found.append((f"the length of the path {pair}", world["shortest"][pair], plain.path_length(path)))
    return compare(found)
