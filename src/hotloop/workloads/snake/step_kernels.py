"""N games in one call."""

from __future__ import annotations

from typing import Any

from hotloop.core.kernels import lean_inline_kernel, lean_kernel
from hotloop.core.types import Array
from hotloop.workloads.snake.layout_kernels import HUNGRY, LENGTH, STEPS, SnakeRules
from hotloop.workloads.snake.observation_kernels import observe
from hotloop.workloads.snake.rule_kernels import ALIVE, HIT_BODY, HIT_WALL, WON, move, start_game


@lean_kernel
def reset_all(games: tuple[Array, ...], numbers: tuple[Any, ...], obs: Array) -> None:
    rules = SnakeRules(*numbers)
    body, occupied, game, generator, board, reached, room = games
    for env in range(obs.shape[0]):
        start_game(body, occupied, game, generator, board, env, rules)
        observe(body, occupied, game, board, reached, room, env, rules, obs)


@lean_kernel
def step_all(
    games: tuple[Array, ...],  # the fields of `Games` and of `Rules` as plain tuples: a named one costs a
    numbers: tuple[Any, ...],  # microsecond more per call
    action: Array,  # [N] int64
    obs: Array,  # [N, F], and so on down: written
    final_obs: Array,  # [N, F], only where any game ended
    reward: Array,  # [N] float32
    flags: Array,  # [6, N] bool: terminated, truncated, won, death_wall, death_body, timeout
    score: Array,  # [N] int64
) -> bool:
    """Step every game and restart the finished ones; True where any finished."""
    rules = SnakeRules(*numbers)
    body, occupied, game, generator, board, reached, room = games
    any_done = False
    for env in range(obs.shape[0]):
        outcome, gained = move(body, occupied, game, generator, board, env, rules, action[env])
        if note(game, env, rules, outcome, gained, reward, flags, score):
            any_done = True
            observe(body, occupied, game, board, reached, room, env, rules, final_obs)
            if rules.restarts:
                start_game(body, occupied, game, generator, board, env, rules)
        observe(body, occupied, game, board, reached, room, env, rules, obs)
    if any_done:
        copy_running(obs, flags, final_obs)
    return any_done


@lean_kernel
def note(
    game: Array, env: int, rules: SnakeRules, outcome: int, gained: float, reward: Array, flags: Array, score: Array
) -> bool:
    """How one game stands after its move; True where it ended.

    A limit reached sets `truncated` even where the snake died or won in that step, but only a snake that still
    lives has timed out: each episode has exactly one cause.
    """
    late = game[env, STEPS] >= rules.max_steps or game[env, HUNGRY] >= rules.max_hungry
    timeout = late and outcome == ALIVE
    reward[env] = gained + rules.timeout_reward if timeout else gained
    score[env] = game[env, LENGTH] - rules.start_length
    flags[0, env] = outcome != ALIVE
    flags[1, env] = late
    flags[2, env] = outcome == WON
    flags[3, env] = outcome == HIT_WALL
    flags[4, env] = outcome == HIT_BODY
    flags[5, env] = timeout
    return outcome != ALIVE or late


@lean_inline_kernel
def copy_running(obs: Array, flags: Array, final_obs: Array) -> None:
    """`final_obs` of the games that go on is their `obs`."""
    for env in range(obs.shape[0]):
        if not (flags[0, env] or flags[1, env]):
            for index in range(obs.shape[1]):
                final_obs[env, index] = obs[env, index]
