"""One step of service-chain provisioning in each of several networks, observation and action mask included.

Compared from the first observation on, with the same draws and the same actions, in networks of each size under random
play, some of it invalid; and then on the very stretch that is timed. Timed: both play that stretch, recorded once the
second round of requests has come, again and again from the same state. The plain program finds a shortest path by
listing all there are, as the program does that it is written after; `sfc-paths` times that alone.
"""

from __future__ import annotations

import itertools
from functools import partial

from hotloop.prove.case import Built, Call, Case, Growth
from hotloop.prove.cases.sfc_play import (
    compare_start,
    compare_step,
    env_seeds,
    make_ours,
    make_plain,
    plain_from,
    record,
)
from hotloop.prove.equivalence import Equality, worst

CENTRES = (2, 4, 6, 8)
NUM_ENVS = 8
SKIPPED = 500
"""Steps before the stretch that is timed."""
STRETCH = 64
CHECKED_STEPS = {2: 3_000, 4: 1_500, 6: 300, 8: 60}
"""Data centres -> steps compared; listing all paths takes its time."""
GROWTH = (1, 128)


def sfc_step_cases(small: bool) -> list[Case]:
    return [
        Case(
            family="sfc-step",
            size=str(centres),
            build=partial(_build, centres, small),
            is_default=centres in (2, 8),
        )
        for centres in ((2, 4) if small else CENTRES)
    ]


class Stretch:
    """Recorded play: the state it starts from and its actions."""

    def __init__(self, centres: int, num_envs: int, length: int = STRETCH) -> None:
        self.centres, self.num_envs = centres, num_envs
        self.start, self.actions = record(centres, num_envs, length, skipped=SKIPPED)

    def fast(self) -> Call:
        env = make_ours(self.centres, self.num_envs)
        steps = itertools.cycle(enumerate(self.actions))

        def step() -> object:
            place, action = next(steps)
            if place == 0:
                env.set_state(self.start)
            return env.step(action)

        return step

    def plain(self) -> Call:
        steps = itertools.cycle(enumerate(self.actions))
        envs = [plain_from(self.start, env) for env in range(self.num_envs)]

        def step() -> object:
            nonlocal envs
            place, action = next(steps)
            if place == 0:
                envs = [plain_from(self.start, env) for env in range(self.num_envs)]
            return [(env.step(int(act)), env.action_mask()) for env, act in zip(envs, action, strict=True)]

        return step


def _build(centres: int, small: bool) -> Built:
    stretch = Stretch(centres, 2 if small else NUM_ENVS)

    def growth() -> Growth:
        one, many = (Stretch(centres, count).fast() for count in GROWTH)
        return Growth(one, many, GROWTH[1] / GROWTH[0], f"{GROWTH[0]} env", f"{GROWTH[1]}")

    return Built(
        check=partial(_check, stretch, 40 if small else CHECKED_STEPS[centres]),
        reference=stretch.plain(),
        fast=stretch.fast(),
        growth=growth,
    )


def _check(stretch: Stretch, num_steps: int) -> Equality:
    return worst([check_play(stretch.centres, 1, num_steps), _check_stretch(stretch, min(4, num_steps))])


def check_play(centres: int, num_envs: int, num_steps: int) -> Equality:
    """From the first observation through all that random play leads to."""
    _, actions = record(centres, num_envs, num_steps, wrong=0.05)
    ours = make_ours(centres, num_envs)
    plains = [make_plain(centres, int(seed)) for seed in env_seeds(num_envs)]
    obs, mask = ours.reset()
    for plain in plains:
        plain.reset()
    first = compare_start(obs, mask, plains, "at the start")
    return worst([first, *(compare_step(ours, plains, act, f"at step {j}") for j, act in enumerate(actions, 1))])


def _check_stretch(stretch: Stretch, num_steps: int) -> Equality:
    ours = make_ours(stretch.centres, stretch.num_envs)
    plains = [plain_from(stretch.start, env) for env in range(stretch.num_envs)]
    ours.set_state(stretch.start)
    steps = enumerate(stretch.actions[:num_steps], 1)
    return worst(compare_step(ours, plains, act, f"at step {j} of the timed stretch") for j, act in steps)
