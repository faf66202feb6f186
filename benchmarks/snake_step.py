"""One vector step of many games of snake, observations included.

Compared from the first step on, with the same food and the same actions: games of a random policy, games of a careful
one whose snakes grow long, and then the very stretch of play that is timed. Timed: both play that stretch, recorded
from the careful policy once its games are spread over all stages, again and again from the same state.

The same games of snake in both programs: same food, same actions, and a way to go on from any state of ours.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import hotloop
from benchmarks.witnesses.snake_env import SnakeGames
from hotloop.core.kernels import next_below
from hotloop.core.rng import derive_seeds
from hotloop.core.types import Array, EnvStep
from hotloop.proof.case import Call, Case, Programs, TwoSizes
from hotloop.proof.equivalence import Equality, compare_snapshots, worst
from hotloop.workloads.snake.env import Snake
from hotloop.workloads.snake.layout_kernels import DIRECTION, FOOD, HEAD, LENGTH, STEPS

MODES: dict[str, dict[str, bool]] = {
    "basic": {},
    "flood-fill": {"use_flood_fill": True},
    "enhanced": {"use_enhanced": True},
}
"""Name of a variant -> options of the plain program."""
ENV_SEED = 3


Guide = Callable[[Array, np.random.Generator], Array]
"""From observations with flood fill [N, 14] and random numbers to actions [N]."""


def observation_of(mode: str) -> str:
    """What our env calls it."""
    return mode.replace("-", "_")


def env_seeds(num_games: int) -> Array:
    return derive_seeds(ENV_SEED, num_games, "env")


def make_ours(mode: str, num_games: int, **options: Any) -> Snake:
    return Snake(num_games, env_seeds(num_games), observation=observation_of(mode), **options)


class FoodTape:
    """Our env's food draws, played back to the plain program: called as its `draw(game, count)`."""

    def __init__(self, seeds: Array) -> None:
        self.generator = seeds.copy()

    def __call__(self, game: int, count: int) -> int:
        return next_below(self.generator, game, count)


def make_plain(mode: str, generator: Array, **options: Any) -> SnakeGames:
    """Plain games with the food of our envs whose seeds (or generator state) these are; not started yet."""
    return SnakeGames(len(generator), FoodTape(generator), **MODES[mode], **options)


def plain_from(mode: str, state: dict[str, Array], **options: Any) -> SnakeGames:
    """Plain games that stand where ours stood when they gave `state`."""
    games, slots = make_plain(mode, state["generator"], **options), state["body"].shape[1]
    for game, numbers in enumerate(state["game"].tolist()):
        body, head, length = state["body"][game], numbers[HEAD], numbers[LENGTH]
        games.snakes[game] = [_position(int(body[(head - part) % slots])) for part in range(length)]
        games.directions[game], games.steps[game] = numbers[DIRECTION], numbers[STEPS]
        games.foods[game] = _position(numbers[FOOD])
        games.scores[game] = length - 3
    return games


def _position(cell: int) -> tuple[int, int]:
    return cell & 63, cell >> 6


def at_random(obs: Array, rng: np.random.Generator) -> Array:
    return rng.integers(3, size=len(obs))


def carefully(obs: Array, rng: np.random.Generator) -> Array:
    """Not into danger, rather where there is room, then towards the food: lives long and grows long."""
    rows = np.arange(len(obs))
    heading = np.where(obs[:, 8:11].any(axis=1), obs[:, 8:11].argmax(axis=1), 3)
    worth = rng.random((len(obs), 3)) * 0.2
    for action, (turn, room) in enumerate(((0, 11), (-1, 13), (1, 12))):  # straight, left, right
        worth[:, action] += 3.0 * obs[:, room] - 100.0 * obs[:, action] + obs[rows, 4 + (heading + turn) % 4]
    return worth.argmax(axis=1)


def record(num_games: int, num_steps: int, guide: Guide, skipped: int = 0) -> tuple[dict[str, Array], list[Array]]:
    """The state of our games after `skipped` vector steps of the guide's play, and its next actions.

    What happens in a game does not depend on how it is observed, so one recording serves every variant.
    """
    env, rng = make_ours("flood-fill", num_games), np.random.default_rng(ENV_SEED)
    obs, actions, start = env.reset()[0], [], {}
    for played in range(skipped + num_steps):
        if played == skipped:
            start = env.get_state()
        actions.append(guide(obs, rng))
        obs = env.step(actions[-1]).obs
    return start, actions[skipped:]


def compare_step(ours: Snake, plain: SnakeGames, action: Array, when: str) -> Equality:
    """One vector step in both."""
    return compare_answers(ours.step(action), plain.step(action), when)


def compare_answers(step: EnvStep, plain: tuple[Array, ...], when: str) -> Equality:
    """A score counts where its game ended."""
    obs, reward, terminated, truncated, final_obs, score = plain
    done = terminated | truncated
    fast = {
        "obs": step.obs,
        "reward": step.reward,
        "terminated": step.terminated,
        "truncated": step.truncated,
        "final_obs": step.final_obs,
        "score": step.episode_stats["score"] * done,
    }
    theirs = (obs, reward, terminated, truncated, final_obs, score * done)
    return compare_snapshots(fast, dict(zip(fast, theirs, strict=True)), when)


SIZES = (32, 256, 1024)
"""Games."""
DEFAULT = ("flood-fill", 256)
SPREAD = 400
"""Vector steps until the stages of the games are mixed."""
GROWTH = (32, 4096)
STRETCH_GAME_STEPS = 16_384
"""So many different ones that a processor cannot learn their branches by heart."""


@hotloop.cases("one step of N games of snake, with what the policy sees")
def snake_step_cases(small: bool = False) -> list[Case]:
    return [
        Case(
            family="snake-step",
            variant=mode,
            size=str(num_games),
            build=partial(_build, mode, num_games, small),
            quick=(mode, num_games) == DEFAULT,
        )
        for mode in MODES
        for num_games in ((4,) if small else SIZES)
    ]


class RecordedPlay:
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


def _build(mode: str, num_games: int, small: bool) -> Programs:
    stretch = RecordedPlay(num_games)

    def growth() -> TwoSizes:
        few, many = (RecordedPlay(count).fast(mode) for count in GROWTH)
        return TwoSizes(few, many, GROWTH[1] / GROWTH[0], f"{GROWTH[0]} games", f"{GROWTH[1]:,}")

    return Programs(
        plain=stretch.plain(mode),
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
