"""PPO on four CartPoles, as the documentation of Stable-Baselines3 begins."""

import sys

from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env

vec_env = make_vec_env("CartPole-v1", n_envs=4)

model = PPO("MlpPolicy", vec_env, verbose=1)
model.learn(total_timesteps=int(sys.argv[1]))
model.save("ppo_cartpole")

obs = vec_env.reset()
for _ in range(100):
    action, _states = model.predict(obs)
    obs, rewards, dones, info = vec_env.step(action)
