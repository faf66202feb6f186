"""pfrl's double DQN on CartPole, as its quickstart goes: an explorer, a replay, and its own training loop."""

import logging
import sys

import gymnasium
import numpy as np
import pfrl
import torch


class OldStep(gymnasium.Wrapper):
    """pfrl expects the four values that envs returned before Gymnasium."""

    def reset(self):
        return self.env.reset()[0]

    def step(self, action):
        obs, reward, terminated, truncated, info = self.env.step(action)
        return obs, reward, terminated, {**info, "needs_reset": truncated}


logging.basicConfig(level=logging.INFO, stream=sys.stdout, format="")

pfrl.utils.set_random_seed(0)
env = OldStep(gymnasium.make("CartPole-v1"))
q_function = torch.nn.Sequential(
    torch.nn.Linear(4, 50),
    torch.nn.ReLU(),
    torch.nn.Linear(50, 50),
    torch.nn.ReLU(),
    torch.nn.Linear(50, 2),
    pfrl.q_functions.DiscreteActionValueHead(),
)
optimizer = torch.optim.Adam(q_function.parameters(), eps=1e-2)

explorer = pfrl.explorers.ConstantEpsilonGreedy(epsilon=0.3, random_action_func=env.action_space.sample)
agent = pfrl.agents.DoubleDQN(
    q_function,
    optimizer,
    pfrl.replay_buffers.ReplayBuffer(capacity=10**6),
    gamma=0.9,
    explorer=explorer,
    replay_start_size=500,
    update_interval=1,
    target_update_interval=100,
    phi=lambda obs: obs.astype(np.float32, copy=False),
    gpu=-1,
)

pfrl.experiments.train_agent_with_evaluation(
    agent,
    env,
    steps=int(sys.argv[1]),
    eval_n_steps=None,
    eval_n_episodes=10,
    train_max_episode_len=200,
    eval_interval=1000,
    outdir="result",
)
