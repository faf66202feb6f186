"""sb3-contrib's RecurrentPPO on CartPole without velocities, evaluated at the end."""

import sys

import gymnasium as gym
import numpy as np
from sb3_contrib import RecurrentPPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy


class NoVelocity(gym.ObservationWrapper):
    def __init__(self, env):
        super().__init__(env)
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, (2,), dtype=np.float32)

    def observation(self, obs):
        return obs[[0, 2]]


vec_env = make_vec_env("CartPole-v1", n_envs=8, wrapper_class=NoVelocity)
model = RecurrentPPO(
    "MlpLstmPolicy",
    vec_env,
    n_steps=32,
    batch_size=256,
    n_epochs=10,
    policy_kwargs=dict(lstm_hidden_size=64, net_arch=[64]),
    verbose=1,
)
model.learn(int(sys.argv[1]))
model.save("ppo_recurrent")
mean_reward, std_reward = evaluate_policy(model, model.get_env(), n_eval_episodes=2, warn=False)
print(f"{mean_reward:.1f} +- {std_reward:.1f}")
