"""DQN on 256 games of snake at once: a deque of transitions, several updates per vector step. Run it as it stands."""

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
    num_games: int = 256
    updates_per_step: int = 8
    learning_starts: int = 1_000
    buffer_size: int = 100_000
    batch_size: int = 64
    hidden: tuple = (128, 128)
    lr: float = 1e-3
    gamma: float = 0.99
    epsilon_start: float = 1.0
    epsilon_end: float = 0.01
    epsilon_decay: float = 0.995
    target_every: int = 32_000
    max_grad_norm: float = 1.0
    device: str = "cpu"


class QNetwork(nn.Module):
    def __init__(self, num_features, num_actions, hidden):
        super().__init__()
        layers, size = [], num_features
        for width in hidden:
            layers += [nn.Linear(size, width), nn.ReLU()]
            size = width
        self.layers = nn.Sequential(*layers, nn.Linear(size, num_actions))

    def forward(self, states):
        return self.layers(states)


class ReplayBuffer:
    def __init__(self, capacity):
        self.buffer: deque = deque(maxlen=capacity)

    def push(self, state, action, reward, next_state, done):
        self.buffer.append((state, action, reward, next_state, done))

    def sample(self, batch_size, device, rng=random):
        states, actions, rewards, next_states, dones = zip(*rng.sample(self.buffer, batch_size), strict=True)
        return (
            torch.tensor(np.array(states), device=device),
            torch.tensor(actions, device=device),
            torch.tensor(rewards, dtype=torch.float32, device=device),
            torch.tensor(np.array(next_states), device=device),
            torch.tensor(dones, dtype=torch.float32, device=device),
        )

    def __len__(self):
        return len(self.buffer)


def push_one_by_one(buffer, states, actions, rewards, next_states, dones):
    for i in range(len(actions)):
        buffer.push(
            states[i].cpu().numpy(),
            actions[i].item(),
            rewards[i].item(),
            next_states[i].cpu().numpy(),
            dones[i].item(),
        )


def push_batch(buffer, states, actions, rewards, next_states, dones):
    """The first remedy: every tensor leaves the device once."""
    states, next_states = states.cpu().numpy(), next_states.cpu().numpy()
    actions, rewards, dones = actions.tolist(), rewards.tolist(), dones.tolist()
    for i in range(len(actions)):
        buffer.push(states[i], actions[i], rewards[i], next_states[i], dones[i])


class DQN:
    def __init__(self, config, network, rng=random):
        self.config, self.rng = config, rng
        self.online = network.to(config.device)
        self.target = copy.deepcopy(self.online)
        self.optimizer = torch.optim.Adam(self.online.parameters(), lr=config.lr)
        self.epsilon = config.epsilon_start
        self.env_steps = self.updates = self.episodes = 0

    def select_actions(self, states, num_actions):
        with torch.no_grad():
            actions = self.online(states).argmax(dim=1).cpu().numpy()
        for i in range(len(actions)):
            if self.rng.random() < self.epsilon:
                actions[i] = self.rng.randrange(num_actions)
        return actions

    def count(self, dones):
        self.env_steps += len(dones)
        for done in dones:
            if done:
                self.episodes += 1
                self.epsilon = max(self.config.epsilon_end, self.epsilon * self.config.epsilon_decay)

    def learn(self, buffer):
        config = self.config
        states, actions, rewards, next_states, dones = buffer.sample(config.batch_size, config.device, self.rng)
        with torch.no_grad():
            next_q = self.target(next_states).max(dim=1)[0]
            target = rewards + config.gamma * next_q * (1 - dones)
        q = self.online(states).gather(1, actions.unsqueeze(1)).squeeze(1)
        loss = F.smooth_l1_loss(q, target)
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.online.parameters(), config.max_grad_norm)
        self.optimizer.step()
        self.updates += 1
        return loss.item()


def vector_step(agent, env, buffer, states):
    """Act in every game, store what came of it, learn; returns the next states and the scores of finished games."""
    config, device = agent.config, agent.config.device
    actions = agent.select_actions(states, num_actions=3)
    obs, rewards, terminated, truncated, final_obs, scores = env.step(actions)
    dones = terminated | truncated
    push_one_by_one(
        buffer,
        states,
        torch.tensor(actions, device=device),
        torch.tensor(rewards, device=device),
        torch.tensor(final_obs, device=device),
        torch.tensor(dones, device=device),
    )
    before = agent.env_steps
    agent.count(dones)
    if agent.env_steps > config.learning_starts:
        for _ in range(config.updates_per_step):
            agent.learn(buffer)
    if agent.env_steps // config.target_every > before // config.target_every:
        agent.target.load_state_dict(agent.online.state_dict())
    return torch.tensor(obs, device=device), scores[dones]


def train(config, env, vector_steps, network=None, rng=random):
    """Train for so many vector steps; returns the agent, its replay buffer and the score of every finished game."""
    states = torch.tensor(env.reset(), device=config.device)
    if network is None:
        network = QNetwork(states.shape[1], 3, config.hidden)
    agent, buffer = DQN(config, network, rng), ReplayBuffer(config.buffer_size)
    scores: list = []
    for _ in range(vector_steps):
        states, finished = vector_step(agent, env, buffer, states)
        scores.extend(finished)
    return agent, buffer, scores


def main():
    from snake_env import SnakeGames  # type: ignore[import-not-found]  # the file beside this one

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vector-steps", type=int, default=400)
    parser.add_argument("--updates-per-step", type=int, default=8)
    parser.add_argument("--flood-fill", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    random.seed(arguments.seed)
    torch.manual_seed(arguments.seed)
    config = Config(updates_per_step=arguments.updates_per_step)
    env = SnakeGames(config.num_games, lambda game, count: random.randrange(count), use_flood_fill=arguments.flood_fill)
    start = time.time()
    agent, _, scores = train(config, env, arguments.vector_steps)
    seconds = time.time() - start
    print(f"{len(scores)} games, the last 100 scored {np.mean(scores[-100:]):.2f} on average")
    print(f"{agent.env_steps / seconds:.0f} steps and {agent.updates / seconds:.0f} updates per second")


if __name__ == "__main__":
    main()
