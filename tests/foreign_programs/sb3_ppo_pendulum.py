"""PPO on Pendulum with observations and rewards normalised by running means."""

import sys

from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecNormalize

env = make_vec_env("Pendulum-v1", n_envs=4)
env = VecNormalize(env, norm_obs=True, norm_reward=True, clip_obs=10.0)

model = PPO("MlpPolicy", env, gamma=0.9, use_sde=False, verbose=1)
model.learn(total_timesteps=int(sys.argv[1]))

model.save("ppo_pendulum")
env.save("vec_normalize.pkl")
