"""The same games of snake in both programs: same food, same actions, and a way to go on from any state of ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hotloop.core.kernels import next_below
from hotloop.core.rng import derive_seeds
from hotloop.core.types import Array, EnvStep
from hotloop.envs.snake.env import Snake
from hotloop.envs.snake.layout_kernels import DIRECTION, FOOD, HEAD, LENGTH, STEPS
from hotloop.prove.equivalence import Equality, compare_snapshots
from hotloop.prove.reference.snake_env import SnakeGames

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
