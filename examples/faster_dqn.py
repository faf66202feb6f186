"""`plain_dqn.py` with hotloop's replay and learner in the place of its own: same env, same network, same loop.

python faster_dqn.py --seed 1 --env-steps 20000
"""

import argparse
import time

import gymnasium
import numpy as np
import torch
from torch import nn
from torch.nn import functional

import hotloop


class QNetwork(nn.Module):
    def __init__(self, num_obs: int, num_actions: int) -> None:
        super().__init__()
        self.hidden_1 = nn.Linear(num_obs, 64)
        self.hidden_2 = nn.Linear(64, 64)
        self.q = nn.Linear(64, num_actions)

    def forward(self, obs: torch.Tensor) -> torch.Tensor:
        hidden = functional.relu(self.hidden_1(obs))
        hidden = functional.relu(self.hidden_2(hidden))
        return self.q(hidden)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--env-steps", type=int, default=20_000)
    parser.add_argument("--lr", type=float, default=5e-4)
    arguments = parser.parse_args()
    torch.manual_seed(arguments.seed)
    torch.set_num_threads(1)

    env = gymnasium.make("CartPole-v1")
    replay = hotloop.Replay(50_000, obs=(4,), seed=arguments.seed)
    learner = hotloop.QLearner(
        QNetwork(4, 2), learning_rate=arguments.lr, target_every=500, obs=(4,), seed=arguments.seed
    )
    obs, _ = env.reset(seed=arguments.seed)
    returns, total, started = [], 0.0, time.process_time()
    for step in range(arguments.env_steps):
        action = learner.act(obs, epsilon=max(0.05, 1 - step / 5_000))
        next_obs, reward, terminated, truncated, _ = env.step(action)
        replay.add(obs, action, reward, next_obs, terminated, truncated)
        obs, total = next_obs, total + float(reward)
        if terminated or truncated:
            returns.append(total)
            obs, total = env.reset()[0], 0.0
        if len(replay) >= 1_000:
            learner.update(replay.sample(32))
    seconds = time.process_time() - started
    print(f"mean return of the last 20 episodes: {np.mean(returns[-20:]):.1f}")
    print(f"{arguments.env_steps / seconds:,.0f} env steps per second of processor time")


if __name__ == "__main__":
    main()
