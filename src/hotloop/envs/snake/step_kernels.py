"""N games in one call."""

from __future__ import annotations

from hotloop.core.kernels import inline_kernel, kernel
from hotloop.core.types import Array
from hotloop.envs.snake.layout import HUNGRY, LENGTH, STEPS, Games, Rules
from hotloop.envs.snake.observation_kernels import observe
from hotloop.envs.snake.rule_kernels import ALIVE, HIT_BODY, HIT_WALL, WON, move, start_game


@kernel
def reset_all(games: Games, rules: Rules, obs: Array) -> None:
    for env in range(obs.shape[0]):
        start_game(games, rules, env)
        observe(games, rules, env, obs[env])


@kernel
def step_all(
    games: Games,
    rules: Rules,
    action: Array,  # [N] int64
    obs: Array,  # [N, F], and so on down: written
    final_obs: Array,  # [N, F], only where any game ended
    reward: Array,  # [N] float32
    flags: Array,  # [6, N] bool: terminated, truncated, won, death_wall, death_body, timeout
    score: Array,  # [N] int64
) -> bool:
    """Step every game and restart the finished ones; True where any finished."""
    any_done = False
    for env in range(obs.shape[0]):
        if step_one(games, rules, env, action[env], reward, flags, score):
            any_done = True
            observe(games, rules, env, final_obs[env])
            start_game(games, rules, env)
        observe(games, rules, env, obs[env])
    if any_done:
        for env in range(obs.shape[0]):
            if not (flags[0, env] or flags[1, env]):
                final_obs[env] = obs[env]
    return any_done


@inline_kernel
def step_one(games: Games, rules: Rules, env: int, action: int, reward: Array, flags: Array, score: Array) -> bool:
    """Move one game and note how it stands; True where it ended.

    A limit reached sets `truncated` even where the snake died or won in that step, but only a snake that still
    lives has timed out: each episode has exactly one cause.
    """
    outcome, gained = move(games, rules, env, action)
    game = games.game[env]
    late = game[STEPS] >= rules.max_steps or game[HUNGRY] >= rules.max_hungry
    timeout = late and outcome == ALIVE
    reward[env] = gained + rules.timeout_reward if timeout else gained
    score[env] = game[LENGTH] - rules.start_length
    flags[0, env] = outcome != ALIVE
    flags[1, env] = late
    flags[2, env] = outcome == WON
    flags[3, env] = outcome == HIT_WALL
    flags[4, env] = outcome == HIT_BODY
    flags[5, env] = timeout
    return outcome != ALIVE or late
