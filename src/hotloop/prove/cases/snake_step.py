"""One vector step of many games of snake, observations included.

Compared from the first step on, with the same food and the same actions: games of a random policy, games of a careful
one whose snakes grow long, and then the very stretch of play that is timed. Timed: both play that stretch, recorded
from the careful policy once its games are spread over all stages, again and again from the same state.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial

from hotloop.core.types import EnvStep
from hotloop.prove.case import Built, Call, Case, Growth
from hotloop.prove.cases.snake_play import (
    MODES,
    Guide,
    at_random,
    carefully,
    compare_answers,
    compare_step,
    env_seeds,
    make_ours,
    make_plain,
    plain_from,
    record,
)
from hotloop.prove.equivalence import Equality, compare_snapshots, worst

SIZES = (32, 256, 1024)
"""Games."""
DEFAULT = ("flood-fill", 256)
SPREAD = 400
"""Vector steps until the stages of the games are mixed."""
GROWTH = (32, 4096)
STRETCH_GAME_STEPS = 16_384
"""So many different ones that a processor cannot learn their branches by heart."""


def snake_step_cases(small: bool) -> list[Case]:
    return [
        Case(
            family="snake-step",
            variant=mode,
            size=str(num_games),
            build=partial(_build, mode, num_games, small),
            is_default=(mode, num_games) == DEFAULT,
        )
        for mode in MODES
        for num_games in ((4,) if small else SIZES)
    ]


class Stretch:
    """Recorded play: the state it starts from and its actions."""

    def __init__(self, num_games: int) -> None:
        length = max(16, STRETCH_GAME_STEPS // num_games)
        self.start, self.actions = record(num_games, length, carefully, skipped=SPREAD)

    def fast(self, mode: str) -> Callable[[], EnvStep]:
        env = make_ours(mode, len(self.actions[0]))
        steps = itertools.cycle(enumerate(self.actions))

        def step() -> EnvStep:
            place, action = next(steps)
            if place == 0:
                env.set_state(self.start)
            return env.step(action)

        return step

    def plain(self, mode: str) -> Call:
        steps = itertools.cycle(enumerate(self.actions))
        games = plain_from(mode, self.start)

        def step() -> object:
            nonlocal games
            place, action = next(steps)
            if place == 0:
                games = plain_from(mode, self.start)
            return games.step(action)

        return step


def _build(mode: str, num_games: int, small: bool) -> Built:
    stretch = Stretch(num_games)

    def growth() -> Growth:
        few, many = (Stretch(count).fast(mode) for count in GROWTH)
        return Growth(few, many, GROWTH[1] / GROWTH[0], f"{GROWTH[0]} games", f"{GROWTH[1]:,}")

    return Built(
        reference=stretch.plain(mode),
        fast=stretch.fast(mode),
        compare=lambda step, plain: compare_answers(step, plain, "of the timed stretch"),
        calls=4 if small else 8,
        further=partial(_check, mode, small),
        growth=growth,
    )


def _check(mode: str, small: bool) -> Equality:
    num_games, scale = (4, 1) if small else (16, 2)
    guides = {at_random: 50 * scale, carefully: 200 * scale}
    return worst(check_games(mode, num_games, num_steps, guide) for guide, num_steps in guides.items())


def check_games(mode: str, num_games: int, num_steps: int, guide: Guide) -> Equality:
    """From the first observation of new games through all that the guide leads them into."""
    _, actions = record(num_games, num_steps, guide)
    ours, plain = make_ours(mode, num_games), make_plain(mode, env_seeds(num_games))
    first = compare_snapshots({"obs": ours.reset()[0]}, {"obs": plain.reset()}, "at the start")
    return worst([first, *(compare_step(ours, plain, act, f"at step {j}") for j, act in enumerate(actions, 1))])
