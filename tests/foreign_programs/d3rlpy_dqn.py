"""d3rlpy's DQN trained online on CartPole: a configuration, a FIFO buffer, an explorer, `fit_online`."""

import sys

import d3rlpy
import gymnasium as gym

env = gym.make("CartPole-v1")
eval_env = gym.make("CartPole-v1")
d3rlpy.seed(1)

dqn = d3rlpy.algos.DQNConfig(
    learning_rate=1e-3,
    batch_size=32,
    target_update_interval=100,
).create(device="cpu:0")

buffer = d3rlpy.dataset.create_fifo_replay_buffer(limit=100000, env=env)
explorer = d3rlpy.algos.LinearDecayEpsilonGreedy(start_epsilon=1.0, end_epsilon=0.1, duration=10000)

dqn.fit_online(
    env,
    buffer,
    explorer,
    n_steps=int(sys.argv[1]),
    eval_env=eval_env,
    n_steps_per_epoch=1000,
    update_start_step=1000,
)
