"""Frames of bytes are kept as float64, each of them twice. Remedy: as bytes, once."""

import numpy as np
import torch
from torch import nn
from training import Learner, arguments, train

options = arguments(env_calls=3000)
SIDE, CAPACITY = 84, 500


class Pictures:
    """One env whose observation is a picture: noise, and a bright column that an action moves."""

    def __init__(self):
        self.rng = np.random.default_rng(0)
        self.noise = self.rng.integers(0, 200, (64, SIDE, SIDE), dtype=np.uint8)

    def reset(self):
        self.column = SIDE // 2
        return self.seen(), {}

    def seen(self):
        picture = self.noise[self.rng.integers(64)].copy()
        picture[:, self.column] = 255
        return picture[None]

    def step(self, action):
        self.column = int(np.clip(self.column + 2 * action[0] - 1, 0, SIDE - 1))
        reward = np.array([-abs(self.column - SIDE / 2) / SIDE], np.float32)
        return self.seen(), reward, np.zeros(1, bool), np.zeros(1, bool), {}


class Frames:
    def __init__(self):
        self.frames = np.zeros((CAPACITY, SIDE, SIDE), np.uint8 if options.healthy else np.float64)
        if not options.healthy:
            self.next_frames = np.zeros((CAPACITY, SIDE, SIDE), np.float64)
        self.action, self.reward = np.zeros(CAPACITY, np.int64), np.zeros(CAPACITY, np.float32)
        self.added, self.rng = 0, np.random.default_rng(1)

    def add(self, obs, action, reward, next_obs):
        row = self.added % CAPACITY
        self.frames[row], self.action[row], self.reward[row] = obs[0], action[0], reward[0]
        if not options.healthy:
            self.next_frames[row] = next_obs[0]
        self.added += 1

    def sample(self, size):
        """Not the newest, whose next frame is still to come."""
        held = min(self.added, CAPACITY)
        rows = (self.added - held + self.rng.integers(held - 1, size=size)) % CAPACITY
        following = self.frames[(rows + 1) % CAPACITY] if options.healthy else self.next_frames[rows]
        obs, next_obs = (torch.from_numpy(part).float() for part in (self.frames[rows], following))
        return obs, torch.from_numpy(self.action[rows]), torch.from_numpy(self.reward[rows]), next_obs


class Coarse(nn.Module):
    """Looks at every twelfth pixel only: a cheap network, so that the frames are what costs."""

    def __init__(self):
        super().__init__()
        self.head = nn.Linear(49, 2)

    def forward(self, frames):
        return self.head(frames[..., ::12, ::12].reshape(-1, 49) / 255)


class Watching(Learner):
    def act(self, obs):
        with torch.inference_mode():
            return self.net(torch.from_numpy(obs).float()).argmax(dim=1).numpy()

    def warm_up(self):
        frames = torch.zeros(32, SIDE, SIDE)
        self.update((frames, torch.zeros(32, dtype=torch.int64), torch.zeros(32), frames))


train(options.env_calls, env=Pictures(), ring=Frames(), learner=Watching(Coarse()))
