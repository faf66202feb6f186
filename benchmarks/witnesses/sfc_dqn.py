"""DQN for service chains as the original trains it: one network, one state at a time, an update after every action.

Run it as it stands.
"""

import argparse
import copy
import random
import time
from collections import deque
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Config:
    learning_starts: int = 1_000
    buffer_size: int = 10_000
    batch_size: int = 32
    train_every: int = 1
    lr: float = 1e-4
    gamma: float = 0.99
    epsilon_start: float = 1.0
    epsilon_end: float = 0.01
    epsilon_steps: int = 150_000
    target_every: int = 10


class ThreeBranchNetwork(nn.Module):
    def __init__(self, num_actions=13):
        super().__init__()
        self.branch1_dense1, self.branch1_dense2 = nn.Linear(14, 128), nn.Linear(128, 64)
        self.branch2_rows, self.branch2_dense = nn.Linear(13, 64), nn.Linear(6 * 64, 64)
        self.branch3_rows, self.branch3_dense = nn.Linear(10, 64), nn.Linear(6 * 64, 64)
        self.attention_w, self.attention_v = nn.Linear(64, 128), nn.Linear(128, 1)
        self.dense1, self.dense2, self.dense3 = nn.Linear(4 * 64, 256), nn.Linear(256, 128), nn.Linear(128, 64)
        self.output = nn.Linear(64, num_actions)

    def forward(self, dc, placed, requests):
        x1 = F.relu(self.branch1_dense2(F.relu(self.branch1_dense1(dc))))
        x2 = F.relu(self.branch2_dense(F.relu(self.branch2_rows(placed)).flatten(1)))
        x3 = F.relu(self.branch3_dense(F.relu(self.branch3_rows(requests)).flatten(1)))
        scores = [self.attention_v(torch.tanh(self.attention_w(x))) for x in (x1, x2, x3)]
        weights = torch.softmax(torch.cat(scores, dim=1), dim=1)
        context = weights[:, 0:1] * x1 + weights[:, 1:2] * x2 + weights[:, 2:3] * x3
        x = torch.cat([x1, x2, x3, context], dim=1)
        x = F.relu(self.dense1(x))
        x = F.relu(self.dense2(x))
        x = F.relu(self.dense3(x))
        return self.output(x)


class ReplayBuffer:
    def __init__(self, capacity):
        self.buffer: deque = deque(maxlen=capacity)

    def push(self, state, action, reward, next_state, done, next_mask):
        self.buffer.append((state, action, reward, next_state, done, next_mask))

    def sample(self, batch_size, rng=random):
        states, actions, rewards, next_states, dones, masks = zip(*rng.sample(self.buffer, batch_size), strict=True)
        return (
            [torch.tensor(np.array(part)) for part in zip(*states, strict=True)],
            torch.tensor(actions),
            torch.tensor(rewards, dtype=torch.float32),
            [torch.tensor(np.array(part)) for part in zip(*next_states, strict=True)],
            torch.tensor(dones, dtype=torch.float32),
            torch.tensor(np.array(masks)),
        )

    def __len__(self):
        return len(self.buffer)


class DQN:
    def __init__(self, config, network, rng=random):
        self.config, self.rng = config, rng
        self.online = network
        self.target = copy.deepcopy(network)
        self.optimizer = torch.optim.Adam(self.online.parameters(), lr=config.lr)
        self.env_steps = self.updates = 0

    @property
    def epsilon(self):
        config = self.config
        share = min(1.0, self.env_steps / config.epsilon_steps)
        return config.epsilon_start + (config.epsilon_end - config.epsilon_start) * share

    def select_action(self, state, mask):
        if self.rng.random() < self.epsilon:
            allowed = [action for action in range(len(mask)) if mask[action]]
            return allowed[self.rng.randrange(len(allowed))]
        with torch.no_grad():
            q = self.online(*(torch.tensor(part).unsqueeze(0) for part in state))[0]
        q[~torch.tensor(mask)] = -float("inf")
        return q.argmax().item()

    def learn(self, buffer):
        config = self.config
        states, actions, rewards, next_states, dones, masks = buffer.sample(config.batch_size, self.rng)
        with torch.no_grad():
            next_q = self.target(*next_states).masked_fill(~masks, -float("inf")).max(dim=1)[0]
            target = rewards + config.gamma * next_q * (1 - dones)
        q = self.online(*states).gather(1, actions.unsqueeze(1)).squeeze(1)
        loss = F.mse_loss(q, target)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.updates += 1
        if self.updates % config.target_every == 0:
            self.target.load_state_dict(self.online.state_dict())
        return loss.item()


def env_step(agent, env, buffer, state, mask):
    """Act, store what came of it, learn; returns the next state and its mask."""
    action = agent.select_action(state, mask)
    next_state, reward, done = env.step(action)
    next_mask = env.action_mask()
    buffer.push(state, action, reward, next_state, done, next_mask)
    agent.env_steps += 1
    if agent.env_steps > agent.config.learning_starts and agent.env_steps % agent.config.train_every == 0:
        agent.learn(buffer)
    if done:
        next_state, next_mask = env.reset(), env.action_mask()
    return next_state, next_mask


def train(config, env, env_steps, network=None, rng=random):
    """Train for so many actions; returns the agent and its replay buffer."""
    agent = DQN(config, ThreeBranchNetwork() if network is None else network, rng)
    buffer = ReplayBuffer(config.buffer_size)
    state, mask = env.reset(), env.action_mask()
    for _ in range(env_steps):
        state, mask = env_step(agent, env, buffer, state, mask)
    return agent, buffer


def main():
    from sfc_env import SfcEnv  # type: ignore[import-not-found]  # the file beside this one

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--env-steps", type=int, default=1_500)
    parser.add_argument("--dcs", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    random.seed(arguments.seed)
    torch.manual_seed(arguments.seed)
    env = SfcEnv(random.randrange, dcs=(arguments.dcs, arguments.dcs))
    start = time.time()
    agent, _ = train(Config(learning_starts=500), env, arguments.env_steps)
    seconds = time.time() - start
    print(f"{env.satisfied} requests satisfied and {env.dropped} dropped in the last episode so far")
    print(f"{50 * seconds / agent.env_steps:.2f} s per 50 actions, {agent.updates / seconds:.0f} updates per second")


if __name__ == "__main__":
    main()
