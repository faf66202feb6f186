"""Stable-Baselines3's DQN on CartPole."""

import gymnasium
import torch
from stable_baselines3 import DQN

torch.set_num_threads(1)
env = gymnasium.make("CartPole-v1")
model = DQN("MlpPolicy", env, seed=1, learning_starts=100, train_freq=1, batch_size=64, target_update_interval=50)
model.learn(600)
