"""Machine code of the n-step window."""

from __future__ import annotations

from typing import Any

from hotloop.core.kernels import inline_kernel, kernel
from hotloop.replay.storage_kernels import copy_bytes, same_length


@inline_kernel
def plan_env(
    env: int, num_envs: int, window: Any, rewards: Any, ending: Any, gamma: float, plan: Any, values: Any, planned: int
) -> int:
    """Plan the rows of `env` that leave now, oldest first; how many rows are planned in all.

    From the newest pending step back, R = r + gamma R and the discount gains one gamma: each row's own horizon.
    """
    n_step = rewards.shape[0]
    oldest, pending = window[env, 0], window[env, 1]
    ended, terminal = ending
    leaving = pending if ended else (1 if pending == n_step else 0)
    value, discount = 0.0, 0.0 if terminal else 1.0
    for age in range(pending - 1, -1, -1):
        step = (oldest + age) % n_step
        value = rewards[step, env] + gamma * value
        discount *= gamma
        if age < leaving:
            plan[planned + age, 0] = step * num_envs + env
            plan[planned + age, 1] = env
            values[planned + age, 0] = value
            values[planned + age, 1] = discount
    window[env, 0] = (oldest + leaving) % n_step
    window[env, 1] = pending - leaving
    return planned + leaving


@kernel
def push_step(
    window: Any,
    window_obs: Any,
    window_actions: Any,
    rewards: Any,
    plan: Any,
    values: Any,
    obs: Any,
    action: Any,
    reward: Any,
    terminated: Any,
    truncated: Any,
    valid: Any,
    gamma: float,
    timeouts_are_terminal: bool,
) -> int:
    """Take in one step of N envs; how many rows of `plan` and `values` leave the window, or -1 for a wrong length.

    `window` [N, 2] oldest step and steps pending; `window_obs` [n*N, units]; `window_actions`, `rewards` [n, N].
    """
    n_step, num_envs = rewards.shape
    if not same_length(num_envs, action, reward, terminated, truncated, valid):
        return -1
    width = obs.shape[1] * obs.itemsize
    planned = 0
    for env in range(num_envs):
        if not valid[env]:
            continue
        step = (window[env, 0] + window[env, 1]) % n_step
        copy_bytes(window_obs, (step * num_envs + env) * width, obs, env * width, width)
        window_actions[step, env] = action[env]
        rewards[step, env] = reward[env]
        window[env, 1] += 1
        terminal = terminated[env] or (timeouts_are_terminal and truncated[env])
        ending = (terminated[env] or truncated[env], terminal)
        first = planned
        planned = plan_env(env, num_envs, window, rewards, ending, gamma, plan, values, first)
        for row in range(first, planned):
            plan[row, 2] = window_actions[plan[row, 0] // num_envs, env]
    return planned
