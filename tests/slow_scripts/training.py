"""A small training loop without a known fault. Each script beside this file changes one thing in it."""

import argparse
import importlib
import sys
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(0)

OUTCOME = {}
"""What a program computed, by name: the same with `--healthy` wherever the remedy is exact."""


def arguments(env_calls):
    """`--healthy`: the same program after the remedy."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--healthy", action="store_true")
    parser.add_argument("--env-calls", type=int, default=env_calls)
    return parser.parse_args()


def stand_in(name):
    """The package where it is installed; otherwise a small one with the same names and shapes."""
    try:
        return importlib.import_module(name)
    except ImportError:
        sys.path.append(str(Path(__file__).parent / "stand_ins" / "site-packages"))
        return importlib.import_module(name)


class Drift:
    """`count` points that drift; an action pushes each. Stepped together, on arrays."""

    def __init__(self, count=64, seed=0):
        self.count = count
        self.rng = np.random.default_rng(seed)

    def reset(self):
        self.state = self.rng.normal(size=(self.count, 4)).astype(np.float32)
        return self.state, {}

    def step(self, action):
        state = self.state * 0.98
        state[:, 0] += 0.1 * (action - 0.5)
        state[:, 1:] += 0.1 * self.rng.random((self.count, 3), dtype=np.float32)
        reward = -np.abs(state[:, 0])
        terminated = state[:, 1] > 3.0
        truncated = np.zeros(self.count, bool)
        state[terminated] = 0.0
        self.state = state
        return state, reward, terminated, truncated, {}


class Ring:
    """Transitions in arrays; the oldest give way."""

    def __init__(self, capacity=20_000):
        self.capacity, self.added = capacity, 0
        self.obs, self.next_obs = np.zeros((2, capacity, 4), np.float32)
        self.action, self.reward = np.zeros(capacity, np.int64), np.zeros(capacity, np.float32)
        self.rng = np.random.default_rng(1)

    def add(self, obs, action, reward, next_obs):
        rows = (self.added + np.arange(len(reward))) % self.capacity
        self.obs[rows], self.action[rows], self.reward[rows], self.next_obs[rows] = obs, action, reward, next_obs
        self.added += len(reward)

    def sample(self, size):
        rows = self.rng.integers(min(self.added, self.capacity), size=size)
        fields = self.obs[rows], self.action[rows], self.reward[rows], self.next_obs[rows]
        return tuple(torch.from_numpy(field) for field in fields)


def network(width=64):
    return nn.Sequential(nn.Linear(4, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 2))


class Learner:
    """Semi-gradient Q-learning with one forward over states and next states."""

    def __init__(self, net=None, optimiser=None):
        self.net = net or network()
        self.optimiser = optimiser or torch.optim.Adam(self.net.parameters(), lr=1e-3, fused=True)

    def update(self, batch):
        loss = self.loss(*batch)
        self.optimiser.zero_grad()
        loss.backward()
        self.optimiser.step()

    def loss(self, obs, action, reward, next_obs):
        q, next_q = self.net(torch.cat([obs, next_obs])).chunk(2)
        target = reward + 0.9 * next_q.detach().max(dim=1)[0]
        return ((q.gather(1, action[:, None])[:, 0] - target) ** 2).mean()

    def act(self, obs):
        with torch.inference_mode():
            return self.net(torch.from_numpy(obs)).argmax(dim=1).numpy()

    def warm_up(self):
        """The first calls of PyTorch are slow: they belong to the start, not to the loop."""
        batch = torch.zeros(32, 4), torch.zeros(32, dtype=torch.int64), torch.zeros(32), torch.zeros(32, 4)
        self.update(batch)
        self.act(np.zeros((1, 4), np.float32))


def train(env_calls, *, env=None, ring=None, learner=None, updates_every=8, batch_size=64, after=None):
    """Act, step, store, now and then learn; `after` is called with the number of env calls made. Prints the rate."""
    env, ring, learner = env or Drift(), ring or Ring(), learner or Learner()
    learner.warm_up()
    obs, _ = env.reset()
    env_steps, watch = 0, Stopwatch()
    for call in range(1, env_calls + 1):
        action = learner.act(obs)
        next_obs, reward, terminated, truncated, _ = env.step(action)
        ring.add(obs, action, reward, next_obs)
        obs = next_obs
        env_steps += np.size(reward)
        if call % updates_every == 0:
            learner.update(ring.sample(batch_size))
        if after is not None:
            after(call)
    watch.say(env_steps)
    OUTCOME.update(obs=obs, reward=reward, parameters=parameters_of(learner.net))


def parameters_of(net):
    return torch.cat([parameter.detach().reshape(-1) for parameter in net.parameters()]).numpy().copy()


class Stopwatch:
    """Wall-clock and processor time: other programs on the machine slow the first only."""

    def __init__(self):
        self.start = time.perf_counter(), time.process_time()

    def say(self, env_steps):
        wall, processor = time.perf_counter() - self.start[0], time.process_time() - self.start[1]
        print(
            f"microseconds per env step: {1e6 * wall / env_steps:.3f} wall, {1e6 * processor / env_steps:.3f} processor"
        )
