"""PPO on eight CartPoles, each in a process of its own."""

import sys

from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv  # noqa: F401

if __name__ == "__main__":
    vec_env = make_vec_env("CartPole-v1", n_envs=8, vec_env_cls=SubprocVecEnv)
    model = PPO("MlpPolicy", vec_env, verbose=1)
    model.learn(total_timesteps=int(sys.argv[1]))
    vec_env.close()
