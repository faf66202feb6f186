"""Double DQN with a pool of threads that step the envs: `executor.map` over envs, a batched forward, a list replay."""

import argparse
import random
from concurrent.futures import ThreadPoolExecutor

import gymnasium as gym
import numpy as np
import torch
from torch import nn


class Collector:
    def __init__(self, env_id, num_envs, workers):
        self.envs = [gym.make(env_id) for _ in range(num_envs)]
        self.executor = ThreadPoolExecutor(max_workers=workers)
        self.observations = [env.reset(seed=seed)[0] for seed, env in enumerate(self.envs)]
        self.scores = [0.0] * num_envs
        self.finished = []

    def _step_one(self, index, action):
        obs = self.observations[index]
        next_obs, reward, terminated, truncated, _ = self.envs[index].step(int(action))
        self.scores[index] += reward
        transition = (obs, int(action), reward, next_obs, terminated)
        if terminated or truncated:
            self.finished.append(self.scores[index])
            self.scores[index] = 0.0
            next_obs, _ = self.envs[index].reset()
        self.observations[index] = next_obs
        return transition

    def step(self, actions):
        return list(self.executor.map(self._step_one, range(len(self.envs)), actions))

    def close(self):
        self.executor.shutdown()
        for env in self.envs:
            env.close()


class Replay:
    def __init__(self, capacity):
        self.capacity = capacity
        self.rows = []
        self.at = 0

    def extend(self, transitions):
        for transition in transitions:
            if len(self.rows) < self.capacity:
                self.rows.append(transition)
            else:
                self.rows[self.at] = transition
            self.at = (self.at + 1) % self.capacity

    def sample(self, size):
        columns = zip(*random.choices(self.rows, k=size))
        return [torch.as_tensor(np.array(column)) for column in columns]


def network():
    return nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("env_steps", type=int)
    parser.add_argument("--num-envs", type=int, default=16)
    parser.add_argument("--workers", type=int, default=4)
    args = parser.parse_args()
    online, target = network(), network()
    target.load_state_dict(online.state_dict())
    optimizer = torch.optim.Adam(online.parameters(), lr=1e-3)
    collector = Collector("CartPole-v1", args.num_envs, args.workers)
    replay = Replay(50_000)
    for step in range(args.env_steps // args.num_envs):
        epsilon = max(0.05, 1.0 - step / 1000)
        with torch.no_grad():
            greedy = online(torch.as_tensor(np.array(collector.observations))).argmax(1).numpy()
        explore = np.random.rand(args.num_envs) < epsilon
        actions = np.where(explore, np.random.randint(2, size=args.num_envs), greedy)
        replay.extend(collector.step(actions))
        if len(replay.rows) < 1000:
            continue
        obs, action, reward, next_obs, terminated = replay.sample(128)
        with torch.no_grad():
            best = online(next_obs).argmax(1, keepdim=True)
            bootstrap = target(next_obs).gather(1, best).squeeze(1)
            goal = reward.float() + 0.99 * bootstrap * (~terminated)
        value = online(obs).gather(1, action.unsqueeze(1)).squeeze(1)
        loss = nn.functional.smooth_l1_loss(value, goal)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            target.load_state_dict(online.state_dict())
            print(f"step {step}: mean return {np.mean(collector.finished[-100:] or [0]):.1f}")
    collector.close()


if __name__ == "__main__":
    main()
