"""SAC on Pendulum."""

import sys

import gymnasium as gym
from stable_baselines3 import SAC

env = gym.make("Pendulum-v1")

model = SAC("MlpPolicy", env, verbose=1)
model.learn(total_timesteps=int(sys.argv[1]), log_interval=4)
model.save("sac_pendulum")
