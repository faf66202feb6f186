"""A2C on four CartPoles."""

import sys

from stable_baselines3 import A2C
from stable_baselines3.common.env_util import make_vec_env

vec_env = make_vec_env("CartPole-v1", n_envs=4)

model = A2C("MlpPolicy", vec_env, verbose=1)
model.learn(total_timesteps=int(sys.argv[1]))
model.save("a2c_cartpole")
