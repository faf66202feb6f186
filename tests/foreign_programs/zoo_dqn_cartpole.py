"""DQN on CartPole with rl_zoo3's tuned hyperparameters, as its command line trains it."""

import sys

from rl_zoo3.train import train

env_steps = sys.argv[1]
sys.argv = ["train", "--algo", "dqn", "--env", "CartPole-v1", "--n-timesteps", env_steps, "--seed", "1"]
train()
