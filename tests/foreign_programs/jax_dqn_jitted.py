"""A DQN with JAX, Flax and Optax with the choice of an action and the update compiled."""

import random
import sys
from collections import deque

import flax.linen as nn
import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import optax


class QNetwork(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.relu(nn.Dense(64)(x))
        x = nn.relu(nn.Dense(64)(x))
        return nn.Dense(2)(x)


network = QNetwork()
params = network.init(jax.random.PRNGKey(0), jnp.zeros((1, 4)))
target_params = params
optimizer = optax.adam(1e-3)
opt_state = optimizer.init(params)


def loss_fn(params, target_params, obs, action, reward, next_obs, done):
    q = network.apply(params, obs)
    q = jnp.take_along_axis(q, action[:, None], axis=1)[:, 0]
    next_q = network.apply(target_params, next_obs).max(axis=1)
    target = reward + 0.99 * (1 - done) * next_q
    return jnp.mean((q - target) ** 2)


@jax.jit
def update(params, target_params, opt_state, batch):
    loss, grads = jax.value_and_grad(loss_fn)(params, target_params, *batch)
    updates, opt_state = optimizer.update(grads, opt_state)
    params = optax.apply_updates(params, updates)
    return params, opt_state, loss


@jax.jit
def greedy(params, obs):
    return jnp.argmax(network.apply(params, obs[None]))


env = gym.make("CartPole-v1")
buffer = deque(maxlen=10_000)
dtypes = np.float32, np.int32, np.float32, np.float32, np.float32
obs, _ = env.reset(seed=0)
episode_return, returns = 0.0, []
for step in range(int(sys.argv[1])):
    epsilon = max(0.05, 1.0 - step / 2000)
    if random.random() < epsilon:
        action = env.action_space.sample()
    else:
        action = int(greedy(params, obs))
    next_obs, reward, terminated, truncated, _ = env.step(action)
    buffer.append((obs, action, reward, next_obs, terminated))
    obs = next_obs
    episode_return += reward
    if terminated or truncated:
        returns.append(episode_return)
        episode_return = 0.0
        obs, _ = env.reset()

    if len(buffer) >= 100:
        rows = random.sample(buffer, 64)
        batch = [np.array(field, dtype) for field, dtype in zip(zip(*rows), dtypes)]
        params, opt_state, loss = update(params, target_params, opt_state, batch)
    if step % 200 == 0:
        target_params = params
        print(f"step {step}, mean return {np.mean(returns[-20:] or [0]):.1f}")
