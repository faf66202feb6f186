"""One step of service-chain provisioning in each of several networks, observation and action mask included.

Compared from the first observation on, with the same draws and the same actions, in networks of each size under random
play, some of it invalid; and then on the very stretch that is timed. Timed: both play that stretch, recorded once the
second round of requests has come, again and again from the same state. The plain program keeps its shortest paths for
the episode; that of `sfc-step-all-paths` lists all paths each time, as the program once did that it is written after.

The same networks and requests in both programs: same draws, same actions, and a way to go on from any state.

The random numbers our kernels draw, played back to a plain program behind the methods of Python's `random`.

With the same tape both programs explore, sample and reset alike, so that they can be compared step by step.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

import hotloop
from benchmarks.witnesses.sfc_env import SFCS, VNFS, AllPathsSfcEnv, SfcEnv
from hotloop.core.kernels import next_below, next_uniform
from hotloop.core.rng import derive_seeds
from hotloop.core.types import Array, EnvStep
from hotloop.proof.case import Call, Case, Programs, TwoSizes
from hotloop.proof.equivalence import Equality, compare_snapshots, worst
from hotloop.workloads.sfc.env import Sfc
from hotloop.workloads.sfc.layout_kernels import RUNS, WAITS
from hotloop.workloads.sfc.tables_kernels import FIRST_SLOT, NUM_SERVICES, ROUND_EVERY, SLOTS_PER_ROUND

ENV_SEED = 3
ROUNDS = 5
WEIGHTS = np.array([1.0] * 6 + [0.1] * 6 + [0.05])
"""How readily each action is taken at random: mostly allocations, so that chains get somewhere."""


class DrawTape:
    """Our env's draws, played back to the plain program: called as its `draw(count)`."""

    def __init__(self, seed: int) -> None:
        self.generator = np.array([seed], np.uint64)

    def __call__(self, count: int) -> int:
        return next_below(self.generator, 0, count)


def env_seeds(num_envs: int) -> Array:
    return derive_seeds(ENV_SEED, num_envs, "env")


def make_ours(centres: int, num_envs: int) -> Sfc:
    fixed: dict[str, Any] = {"min_data_centres": centres, "max_data_centres": centres}
    return Sfc(num_envs, env_seeds(num_envs), min_request_count=ROUNDS, max_request_count=ROUNDS, **fixed)


def make_plain(centres: int, seed: int, make: type[SfcEnv] = SfcEnv) -> SfcEnv:
    return make(DrawTape(seed), dcs=(centres, centres), request_counts=(ROUNDS, ROUNDS))


def at_random(mask: Array, rng: np.random.Generator, wrong: float) -> Array:
    """Allowed actions, but for a share of `wrong` ones."""
    return (rng.random(mask.shape) * WEIGHTS * (mask | (rng.random(mask.shape) < wrong))).argmax(axis=1)


def record(
    centres: int, num_envs: int, num_steps: int, skipped: int = 0, wrong: float = 0.01
) -> tuple[dict[str, Array], list[Array]]:
    """The state of our envs after `skipped` vector steps of random play, and its next actions."""
    env, rng = make_ours(centres, num_envs), np.random.default_rng(ENV_SEED)
    (_, mask), actions, start = env.reset(), [], {}
    for played in range(skipped + num_steps):
        if played == skipped:
            start = env.get_state()
        actions.append(at_random(mask, rng, wrong))
        mask = env.step(actions[-1]).action_mask  # type: ignore[assignment]
    return start, actions[skipped:]


def plain_from(state: dict[str, Array], env: int, make: type[SfcEnv] = SfcEnv) -> SfcEnv:
    """The plain program where our env number `env` stood when it gave `state`."""
    own = {name: values[env] for name, values in state.items()}
    count = int(own["num_centres"])
    plain = make_plain(count, int(own["generator"][0]), make)
    plain.time, plain.num_dcs, plain.request_count = int(own["now"]), count, int(own["rounds"])
    plain.rounds = int(own["arrived"])
    plain.satisfied, plain.dropped = int(own["satisfied"].sum()), int(own["dropped"].sum())
    plain.dcs = [_centre(own, place) for place in range(count)]
    pairs = [(one, other) for one in range(count) for other in range(count) if one != other]
    plain.distance = {pair: int(own["length"][pair]) for pair in pairs}
    plain.bandwidth = {pair: int(own["free_rate"][pair]) for pair in pairs}
    plain.order = own["order"][own["turn"] + 1 : count].tolist()
    plain.current_dc = int(own["visited"])
    plain.requests = _requests(own)
    return plain


def _centre(own: dict[str, Array], place: int) -> dict[str, Any]:
    """Idle instances first: which one is taken changes nothing."""
    busy: dict[str, list[int]] = {vnf: [] for vnf in VNFS}
    for row in np.flatnonzero(own["ends"]):
        if own["runs_at"][row] == place:
            busy[VNFS[own["runs_vnf"][row]]].append(int(own["ends"][row]))
    return {
        "cpu": int(own["cpu"][place]),
        "free_cpu": int(own["free_cpu"][place]),
        "ram": int(own["free_ram"][place]),
        "storage": int(own["free_storage"][place]),
        "vnfs": {vnf: [0] * int(own["idle"][place, index]) + busy[vnf] for index, vnf in enumerate(VNFS)},
    }


def _requests(own: dict[str, Array]) -> list[dict[str, Any]]:
    ends = {int(own["runs_slot"][row]): int(own["ends"][row]) for row in np.flatnonzero(own["ends"])}
    requests = []
    for bundle in range(own["arrived"] * NUM_SERVICES):
        name = list(SFCS)[bundle % NUM_SERVICES]
        first = bundle // NUM_SERVICES * SLOTS_PER_ROUND + int(FIRST_SLOT[bundle % NUM_SERVICES])
        shared = {"type": name, "chain": SFCS[name]["chain"], "limit": SFCS[name]["limit"]}
        shared |= {"kbps": int(own["rate"][bundle]), "arrival": bundle // NUM_SERVICES * ROUND_EVERY}
        shared |= {"source": int(own["source"][bundle]), "destination": int(own["destination"][bundle])}
        for slot in range(first, first + int(own["size"][bundle])):
            if own["state"][slot] in (WAITS, RUNS):
                placed = own["where"][slot, : own["placed"][slot]].tolist()
                requests.append(shared | {"placed": placed, "busy_until": ends.get(slot, 0)})
    return requests


def compare_start(obs: Any, mask: Array, plains: list[SfcEnv], when: str) -> Equality:
    states = [plain.get_state() for plain in plains]
    theirs = {name: np.stack([state[index] for state in states]) for index, name in enumerate(obs)}
    masks = np.stack([plain.action_mask() for plain in plains])
    return compare_snapshots({**obs, "mask": mask}, {**theirs, "mask": masks}, when)


def compare_step(ours: Sfc, plains: list[SfcEnv], action: Array, when: str) -> Equality:
    """One step in every env of both programs; finished episodes start anew."""
    step = ours.step(action)
    answers = [(plain.step(int(act)), plain.action_mask()) for plain, act in zip(plains, action, strict=True)]
    told = compare_answers(step, answers, when)
    if told.max_error > 0:
        return told
    for index in np.flatnonzero(step.terminated):
        plains[index].reset()
    return compare_start(step.obs, step.action_mask, plains, when)  # type: ignore[arg-type]


def compare_answers(step: EnvStep, answers: list[Any], when: str) -> Equality:
    """What each plain env said to its action, and the mask it then gave."""
    states, rewards, dones = zip(*(answer for answer, _ in answers), strict=True)
    final: Any = step.final_obs
    fast = {**final, "mask": step.final_action_mask, "reward": step.reward, "done": step.terminated}
    theirs = {name: np.stack([state[index] for state in states]) for index, name in enumerate(final)}
    masks = np.stack([mask for _, mask in answers])
    return compare_snapshots(fast, {**theirs, "mask": masks, "reward": rewards, "done": dones}, when)


CENTRES = (2, 4, 6, 8)
NUM_ENVS = 8
SKIPPED = 500
"""Steps before the stretch that is timed."""
STRETCH = 256
CHECKED_STEPS = 1_500
CHECKED_STEPS_ALL_PATHS = {4: 1_500, 8: 60}
"""Data centres -> steps compared; listing all paths takes its time."""
GROWTH = (1, 128)


@hotloop.cases("one step of service chains in 8 networks of D data centres")
def sfc_step_cases(small: bool = False) -> list[Case]:
    checked = 40 if small else CHECKED_STEPS
    return [
        Case("sfc-step", str(centres), partial(_build, SfcEnv, centres, checked, small), quick=centres in (2, 8))
        for centres in ((2, 4) if small else CENTRES)
    ]


@hotloop.cases("the same against listing all paths each time")
def sfc_step_all_paths_cases(small: bool = False) -> list[Case]:
    steps = {4: 40} if small else CHECKED_STEPS_ALL_PATHS
    return [
        Case(
            family="sfc-step-all-paths",
            size=str(centres),
            build=partial(_build, AllPathsSfcEnv, centres, checked, small),
            quick=centres == 8,
        )
        for centres, checked in steps.items()
    ]


class RecordedPlay:
    """Recorded play: the state it starts from and its actions."""

    def __init__(self, centres: int, num_envs: int, length: int = STRETCH) -> None:
        self.centres, self.num_envs = centres, num_envs
        self.start, self.actions = record(centres, num_envs, length, skipped=SKIPPED)

    def fast(self) -> Call:
        env = make_ours(self.centres, self.num_envs)
        steps = itertools.cycle(enumerate(self.actions))

        def step() -> EnvStep:
            place, action = next(steps)
            if place == 0:
                env.set_state(self.start)
            return env.step(action)

        return step

    def plain(self, make: type[SfcEnv]) -> Call:
        steps = itertools.cycle(enumerate(self.actions))
        envs = [plain_from(self.start, env, make) for env in range(self.num_envs)]

        def step() -> object:
            nonlocal envs
            place, action = next(steps)
            if place == 0:
                paths = [env.paths for env in envs]  # the episode is the same one: they were found before
                envs = [plain_from(self.start, env, make) for env in range(self.num_envs)]
                for env, found in zip(envs, paths, strict=True):
                    env.paths = found
            return [(env.step(int(act)), env.action_mask()) for env, act in zip(envs, action, strict=True)]

        return step


def _build(make: type[SfcEnv], centres: int, checked: int, small: bool) -> Programs:
    stretch = RecordedPlay(centres, 2 if small else NUM_ENVS)

    def growth() -> TwoSizes:
        one, many = (RecordedPlay(centres, count).fast() for count in GROWTH)
        return TwoSizes(one, many, GROWTH[1] / GROWTH[0], f"{GROWTH[0]} env", f"{GROWTH[1]}")

    return Programs(
        plain=stretch.plain(make),
        fast=stretch.fast(),
        compare=lambda step, answers: compare_answers(step, answers, "of the timed stretch"),
        calls=4,
        further=partial(check_play, centres, 1, checked, make),
        growth=growth,
    )


def check_play(centres: int, num_envs: int, num_steps: int, make: type[SfcEnv] = SfcEnv) -> Equality:
    """From the first observation through all that random play leads to."""
    _, actions = record(centres, num_envs, num_steps, wrong=0.05)
    ours = make_ours(centres, num_envs)
    plains = [make_plain(centres, int(seed), make) for seed in env_seeds(num_envs)]
    obs, mask = ours.reset()
    for plain in plains:
        plain.reset()
    first = compare_start(obs, mask, plains, "at the start")
    return worst([first, *(compare_step(ours, plains, act, f"at step {j}") for j, act in enumerate(actions, 1))])


class Tape:
    """A stand-in for `random`: coins and actions from one stream, rows of the replay from another.

    `oldest` says in which row of a full ring the oldest transition lies, which is the first of the plain deque.
    """

    def __init__(self, seed: int, sample_seed: int | None = None, oldest: Callable[[], int] | None = None) -> None:
        self._draws = np.array([seed % 2**64], dtype=np.uint64)
        self._samples = np.array([(seed if sample_seed is None else sample_seed) % 2**64], dtype=np.uint64)
        self._oldest = oldest

    def random(self) -> float:
        return next_uniform(self._draws, 0)

    def randrange(self, bound: int) -> int:
        return next_below(self._draws, 0, bound)

    def sample(self, population: Sequence[Any], count: int) -> list[Any]:
        """With replacement, as our replay draws."""
        size, oldest = len(population), 0 if self._oldest is None else self._oldest()
        return [population[(next_below(self._samples, 0, size) - oldest) % size] for _ in range(count)]

    def end(self) -> None:
        """From now on it is Python's `random`, at its cost: what a plain program is timed with."""
        self.random, self.randrange, self.sample = random.random, random.randrange, random.sample  # type: ignore[method-assign,assignment]
