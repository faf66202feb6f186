"""DQN on CartPole."""

import sys

import gymnasium as gym
from stable_baselines3 import DQN

env = gym.make("CartPole-v1")

model = DQN("MlpPolicy", env, verbose=1)
model.learn(total_timesteps=int(sys.argv[1]), log_interval=4)
model.save("dqn_cartpole")
