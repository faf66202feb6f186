"""PPO on CartPole, evaluated while it learns; the best model is kept."""

import sys

import gymnasium as gym
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import EvalCallback
from stable_baselines3.common.monitor import Monitor

eval_env = Monitor(gym.make("CartPole-v1"))
eval_callback = EvalCallback(
    eval_env,
    best_model_save_path="./logs/",
    log_path="./logs/",
    eval_freq=200,
    deterministic=True,
    render=False,
)

model = PPO("MlpPolicy", "CartPole-v1")
model.learn(int(sys.argv[1]), callback=eval_callback)
