"""CartPole's dynamics for N envs in one call (Barto, Sutton and Anderson 1983; Gymnasium's constants)."""

from __future__ import annotations

import math

from hotloop.core.kernels import inline_kernel, kernel, next_uniform
from hotloop.core.types import Array

GRAVITY = 9.8
POLE_MASS = 0.1
TOTAL_MASS = 1.1
HALF_LENGTH = 0.5
POLE_MASS_LENGTH = POLE_MASS * HALF_LENGTH
FORCE = 10.0
SECONDS = 0.02
POSITION_LIMIT = 2.4
ANGLE_LIMIT = 12 * 2 * math.pi / 360
START_RANGE = 0.05


@inline_kernel
def start_episode(body: Array, elapsed: Array, generator: Array, obs: Array, env: int) -> None:
    for part in range(4):
        body[env, part] = -START_RANGE + 2.0 * START_RANGE * next_uniform(generator, env)
        obs[env, part] = body[env, part]
    elapsed[env] = 0


@inline_kernel
def move(body: Array, env: int, force: float) -> bool:
    """One Euler step of env `env`, in Gymnasium's order of operations; True where the pole fell or the cart left."""
    x, x_dot, theta, theta_dot = body[env, 0], body[env, 1], body[env, 2], body[env, 3]
    cosine, sine = math.cos(theta), math.sin(theta)
    push = (force + POLE_MASS_LENGTH * (theta_dot * theta_dot) * sine) / TOTAL_MASS
    angular = (GRAVITY * sine - cosine * push) / (
        HALF_LENGTH * (4.0 / 3.0 - POLE_MASS * (cosine * cosine) / TOTAL_MASS)
    )
    linear = push - POLE_MASS_LENGTH * angular * cosine / TOTAL_MASS
    x += SECONDS * x_dot
    theta += SECONDS * theta_dot
    body[env, 0], body[env, 1] = x, x_dot + SECONDS * linear
    body[env, 2], body[env, 3] = theta, theta_dot + SECONDS * angular
    return x < -POSITION_LIMIT or x > POSITION_LIMIT or theta < -ANGLE_LIMIT or theta > ANGLE_LIMIT


@kernel
def reset_all(body: Array, elapsed: Array, generator: Array, obs: Array) -> None:
    for env in range(body.shape[0]):
        start_episode(body, elapsed, generator, obs, env)


@kernel
def step_all(
    body: Array,  # [N, 4] float64: position, velocity, angle, angular velocity
    elapsed: Array,  # [N] int64, steps of the running episode
    generator: Array,  # [N] uint64
    action: Array,  # [N] int64
    constants: tuple[int, float, float],  # time limit, reward while upright, reward of the fall
    obs: Array,  # [N, 4] float32, and so on down: written
    reward: Array,
    flags: Array,  # [2, N] bool: terminated, truncated
    final_obs: Array,
) -> bool:
    """Step every env and restart the finished ones; True where any finished (only then does `final_obs` differ)."""
    limit, reward_upright, reward_fallen = constants
    any_done = False
    for env in range(body.shape[0]):
        fallen = move(body, env, FORCE if action[env] == 1 else -FORCE)
        elapsed[env] += 1
        late = elapsed[env] >= limit
        reward[env] = reward_fallen if fallen else reward_upright
        flags[0, env] = fallen
        flags[1, env] = late
        for part in range(4):
            obs[env, part] = body[env, part]
            final_obs[env, part] = body[env, part]
        if fallen or late:
            any_done = True
            start_episode(body, elapsed, generator, obs, env)
    return any_done
