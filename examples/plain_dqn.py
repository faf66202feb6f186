"""DQN on CartPole in plain PyTorch: the program that most people begin with. `faster_dqn.py` is the same, made fast.

python plain_dqn.py --seed 1 --env-steps 20000
"""

import argparse
import random
import time
from collections import deque

import gymnasium
import numpy as np
import torch
from torch import nn
from torch.nn import functional


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


class Replay:
    def __init__(self, capacity: int) -> None:
        self.rows: deque = deque(maxlen=capacity)

    def __len__(self) -> int:
        return len(self.rows)

    def add(self, obs, action, reward, next_obs, terminated, truncated) -> None:
        self.rows.append((obs, action, reward, next_obs, terminated))

    def sample(self, batch_size: int) -> tuple[torch.Tensor, ...]:
        columns = zip(*random.sample(self.rows, batch_size), strict=True)
        obs, action, reward, next_obs, terminated = (np.array(column) for column in columns)
        return (
            torch.from_numpy(obs),
            torch.from_numpy(action),
            torch.from_numpy(reward).float(),
            torch.from_numpy(next_obs),
            torch.from_numpy(terminated).float(),
        )


class Learner:
    def __init__(self, network: QNetwork, target: QNetwork, lr: float, gamma: float, target_every: int) -> None:
        self.network, self.target = network, target
        self.target.load_state_dict(network.state_dict())
        self.optimizer = torch.optim.Adam(network.parameters(), lr=lr)
        self.gamma, self.target_every, self.updates = gamma, target_every, 0

    @torch.no_grad()
    def act(self, obs: np.ndarray, epsilon: float) -> int:
        if random.random() < epsilon:
            return random.randrange(2)
        return int(self.network(torch.from_numpy(obs)).argmax())

    def update(self, batch: tuple[torch.Tensor, ...]) -> None:
        obs, action, reward, next_obs, terminated = batch
        with torch.no_grad():
            best = self.target(next_obs).max(dim=1).values
            target = reward + self.gamma * (1 - terminated) * best
        q = self.network(obs).gather(1, action[:, None])[:, 0]
        loss = functional.smooth_l1_loss(q, target)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.updates += 1
        if self.updates % self.target_every == 0:
            self.target.load_state_dict(self.network.state_dict())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--env-steps", type=int, default=20_000)
    parser.add_argument("--lr", type=float, default=5e-4)
    arguments = parser.parse_args()
    random.seed(arguments.seed)
    torch.manual_seed(arguments.seed)
    torch.set_num_threads(1)

    env = gymnasium.make("CartPole-v1")
    replay = Replay(50_000)
    learner = Learner(QNetwork(4, 2), QNetwork(4, 2), lr=arguments.lr, gamma=0.99, target_every=500)
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
