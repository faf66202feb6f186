"""A DQN on 84x84 frames of a catching game: a small CNN, four frames stacked, a list of transitions as replay."""

import random
import sys
from collections import deque

import gymnasium as gym
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class Catch(gym.Env):
    """A ball falls, a paddle catches it; observations are grey frames of bytes."""

    def __init__(self):
        self.observation_space = gym.spaces.Box(0, 255, (84, 84), np.uint8)
        self.action_space = gym.spaces.Discrete(3)

    def _frame(self):
        frame = np.zeros((84, 84), np.uint8)
        frame[self.y : self.y + 4, self.x : self.x + 4] = 255
        frame[80:, self.paddle : self.paddle + 12] = 128
        return frame

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x, self.y, self.paddle = int(self.np_random.integers(80)), 0, 36
        self.drift = int(self.np_random.integers(-2, 3))
        return self._frame(), {}

    def step(self, action):
        self.paddle = min(max(self.paddle + 4 * (int(action) - 1), 0), 72)
        self.y += 4
        self.x = min(max(self.x + self.drift, 0), 80)
        done = self.y >= 80
        reward = float(self.paddle - 4 < self.x < self.paddle + 12) if done else 0.0
        return self._frame(), reward, done, False, {}


class FrameStack(gym.Wrapper):
    def __init__(self, env, k):
        super().__init__(env)
        self.k = k
        self.frames = deque([], maxlen=k)

    def reset(self, **kwargs):
        frame, info = self.env.reset(**kwargs)
        for _ in range(self.k):
            self.frames.append(frame)
        return self._obs(), info

    def step(self, action):
        frame, reward, terminated, truncated, info = self.env.step(action)
        self.frames.append(frame)
        return self._obs(), reward, terminated, truncated, info

    def _obs(self):
        return np.stack(self.frames).astype(np.float32) / 255.0


class ReplayBuffer:
    def __init__(self, capacity):
        self.capacity = capacity
        self.buffer = []
        self.position = 0

    def push(self, state, action, reward, next_state, done):
        if len(self.buffer) < self.capacity:
            self.buffer.append(None)
        self.buffer[self.position] = (state, action, reward, next_state, done)
        self.position = (self.position + 1) % self.capacity

    def sample(self, batch_size):
        batch = random.sample(self.buffer, batch_size)
        state, action, reward, next_state, done = zip(*batch)
        return np.stack(state), np.array(action), np.array(reward), np.stack(next_state), np.array(done)


class CnnDQN(nn.Module):
    def __init__(self, num_actions):
        super().__init__()
        self.conv1 = nn.Conv2d(4, 16, kernel_size=8, stride=4)
        self.conv2 = nn.Conv2d(16, 32, kernel_size=4, stride=2)
        self.fc1 = nn.Linear(32 * 9 * 9, 128)
        self.fc2 = nn.Linear(128, num_actions)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.relu(self.conv2(x))
        x = F.relu(self.fc1(x.flatten(1)))
        return self.fc2(x)


env = FrameStack(Catch(), 4)
model, target = CnnDQN(3), CnnDQN(3)
target.load_state_dict(model.state_dict())
optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
memory = ReplayBuffer(2000)
batch_size, gamma, learn_start = 32, 0.99, 200
rewards, episode = [], 0.0

state, _ = env.reset(seed=0)
for frame_idx in range(1, int(sys.argv[1]) + 1):
    epsilon = 0.05 + 0.95 * np.exp(-frame_idx / 3000)
    if random.random() > epsilon:
        with torch.no_grad():
            action = model(torch.from_numpy(state).unsqueeze(0)).argmax(1).item()
    else:
        action = env.action_space.sample()
    next_state, reward, done, _, _ = env.step(action)
    memory.push(state, action, reward, next_state, done)
    state = next_state
    episode += reward
    if done:
        state, _ = env.reset()
        rewards.append(episode)
        episode = 0.0
    if len(memory.buffer) > learn_start and frame_idx % 4 == 0:
        s, a, r, s2, d = memory.sample(batch_size)
        s, s2 = torch.FloatTensor(s), torch.FloatTensor(s2)
        a, r, d = torch.LongTensor(a), torch.FloatTensor(r), torch.FloatTensor(d)
        q = model(s).gather(1, a.unsqueeze(1)).squeeze(1)
        with torch.no_grad():
            expected = r + gamma * target(s2).max(1)[0] * (1 - d)
        loss = F.smooth_l1_loss(q, expected)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if frame_idx % 500 == 0:
        target.load_state_dict(model.state_dict())
        print(f"frame {frame_idx}, caught {np.mean(rewards[-50:]):.2f}")
