"""sb3-contrib's QR-DQN on CartPole, as its documentation's example, with the zoo's settings and a Monitor."""

import sys

from sb3_contrib import QRDQN
from stable_baselines3.common.env_util import make_vec_env

policy_kwargs = dict(n_quantiles=10, net_arch=[256, 256])
env = make_vec_env("CartPole-v1", n_envs=1, seed=0)
model = QRDQN(
    "MlpPolicy",
    env,
    policy_kwargs=policy_kwargs,
    learning_rate=2.3e-3,
    batch_size=64,
    buffer_size=100000,
    learning_starts=1000,
    gamma=0.99,
    target_update_interval=10,
    train_freq=256,
    gradient_steps=128,
    exploration_fraction=0.16,
    exploration_final_eps=0.04,
    verbose=1,
)
model.learn(total_timesteps=int(sys.argv[1]), log_interval=4)
model.save("qrdqn_cartpole")
