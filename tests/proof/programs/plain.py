"""A small DQN that runs in a moment: masks, ends of both kinds, a target network, two optimizers' worth of traps."""

import random
import sys

import numpy as np
import torch
from torch import nn

SEED = int(sys.argv[1]) if len(sys.argv) > 1 else 0
STEPS, WARM_UP, BATCH, GAMMA, LR = 220, 40, 16, 0.9, 0.01


class Walk:
    """Walk along seven fields to the right end; the last third of the actions is not always allowed."""

    def __init__(self, seed):
        self.draws = random.Random(seed)

    def reset(self):
        self.place, self.time = self.draws.randrange(3), 0
        return self.seen(), {"action_mask": self.mask()}

    def step(self, action):
        self.place = min(max(self.place + (-1, 1, 2)[action], 0), 6)
        self.time += 1
        terminated = self.place == 6
        reward = (1.0 if terminated else -0.05) + 0.01 * self.draws.random()
        return self.seen(), reward, terminated, self.time >= 9, {"action_mask": self.mask()}

    def seen(self):
        return np.array([self.place / 6, self.time / 9, 1.0], np.float32)

    def mask(self):
        return np.array([1, 1, self.place % 2], np.int8)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 16), nn.Tanh())
        self.head = nn.Linear(16, 3)

    def forward(self, obs):
        return self.head(self.body(obs))


def main():
    random.seed(SEED)
    np.random.seed(SEED)
    torch.manual_seed(SEED)
    env, online, target = Walk(SEED), Net(), Net()
    target.load_state_dict(online.state_dict())
    optimizer = torch.optim.Adam(online.parameters(), lr=LR)
    rows, updates = [], 0
    obs, info = env.reset()
    for step in range(STEPS):
        epsilon = max(0.1, 1 - step / 100)
        legal = np.flatnonzero(info["action_mask"])
        if random.random() < epsilon:
            action = int(random.choice(legal))
        else:
            with torch.no_grad():
                q = online(torch.from_numpy(obs)).numpy()
            action = int(legal[q[legal].argmax()])
        next_obs, reward, terminated, truncated, info = env.step(action)
        rows.append((obs, action, reward, next_obs, terminated, info["action_mask"]))
        obs = next_obs
        if terminated or truncated:
            obs, info = env.reset()
        if step < WARM_UP:
            continue
        batch = random.sample(rows, BATCH)
        states = torch.tensor(np.array([row[0] for row in batch]))
        actions = torch.tensor([row[1] for row in batch])
        rewards = torch.tensor([row[2] for row in batch])
        following = torch.tensor(np.array([row[3] for row in batch]))
        ended = torch.tensor([float(row[4]) for row in batch])
        masks = torch.tensor(np.array([row[5] for row in batch]), dtype=torch.bool)
        with torch.no_grad():
            best = target(following).masked_fill(~masks, -1e9).max(dim=1).values
        goal = rewards + GAMMA * (1 - ended) * best
        q = online(states).gather(1, actions[:, None])[:, 0]
        loss = ((q - goal) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        updates += 1
        if updates % 20 == 0:
            target.load_state_dict(online.state_dict())


main()
