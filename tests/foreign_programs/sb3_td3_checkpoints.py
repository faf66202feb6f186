"""TD3 on Pendulum with exploration noise, and a checkpoint of everything every hundred steps."""

import sys

import gymnasium as gym
import numpy as np
from stable_baselines3 import TD3
from stable_baselines3.common.callbacks import CheckpointCallback
from stable_baselines3.common.noise import NormalActionNoise

checkpoint_callback = CheckpointCallback(
    save_freq=100,
    save_path="./checkpoints/",
    name_prefix="td3",
    save_replay_buffer=True,
)

env = gym.make("Pendulum-v1")
n_actions = env.action_space.shape[-1]
action_noise = NormalActionNoise(mean=np.zeros(n_actions), sigma=0.1 * np.ones(n_actions))

model = TD3("MlpPolicy", env, action_noise=action_noise, verbose=1)
model.learn(total_timesteps=int(sys.argv[1]), callback=checkpoint_callback, log_interval=10)
