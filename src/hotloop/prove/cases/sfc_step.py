"""One step of service-chain provisioning in each of several networks, observation and action mask included.

Compared from the first observation on, with the same draws and the same actions, in networks of each size under random
play, some of it invalid; and then on the very stretch that is timed. Timed: both play that stretch, recorded once the
second round of requests has come, again and again from the same state. The plain program keeps its shortest paths for
the episode; that of `sfc-step-all-paths` lists all paths each time, as the program once did that it is written after.
"""

from __future__ import annotations

import itertools
from functools import partial

from hotloop.core.types import EnvStep
from hotloop.prove.case import Built, Call, Case, Growth
from hotloop.prove.cases.sfc_play import (
    compare_answers,
    compare_start,
    compare_step,
    env_seeds,
    make_ours,
    make_plain,
    plain_from,
    record,
)
from hotloop.prove.equivalence import Equality, worst
from hotloop.prove.reference.sfc_env import AllPathsSfcEnv, SfcEnv

CENTRES = (2, 4, 6, 8)
NUM_ENVS = 8
SKIPPED = 500
"""Steps before the stretch that is timed."""
STRETCH = 256
CHECKED_STEPS = 1_500
CHECKED_STEPS_ALL_PATHS = {4: 1_500, 8: 60}
"""Data centres -> steps compared; listing all paths takes its time."""
GROWTH = (1, 128)


def sfc_step_cases(small: bool) -> list[Case]:
    checked = 40 if small else CHECKED_STEPS
    return [
        Case("sfc-step", str(centres), partial(_build, SfcEnv, centres, checked, small), is_default=centres in (2, 8))
        for centres in ((2, 4) if small else CENTRES)
    ]


def sfc_step_all_paths_cases(small: bool) -> list[Case]:
    steps = {4: 40} if small else CHECKED_STEPS_ALL_PATHS
    return [
        Case(
            family="sfc-step-all-paths",
            size=str(centres),
            build=partial(_build, AllPathsSfcEnv, centres, checked, small),
            is_default=centres == 8,
        )
        for centres, checked in steps.items()
    ]


class Stretch:
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


def _build(make: type[SfcEnv], centres: int, checked: int, small: bool) -> Built:
    stretch = Stretch(centres, 2 if small else NUM_ENVS)

    def growth() -> Growth:
        one, many = (Stretch(centres, count).fast() for count in GROWTH)
        return Growth(one, many, GROWTH[1] / GROWTH[0], f"{GROWTH[0]} env", f"{GROWTH[1]}")

    return Built(
        reference=stretch.plain(make),
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
