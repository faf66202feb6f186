"""Six wrappers lie around a tiny env. Remedy: one that does their work."""

import numpy as np
from training import arguments, train


class Tiny:
    def reset(self):
        self.state = np.linspace(1, 30, 4, dtype=np.float32)[None]
        return self.state, {}

    def step(self, action):
        self.state = self.state * np.float32(0.9)
        return self.state, np.ones(1, np.float32), np.zeros(1, bool), np.zeros(1, bool), {}


class Wrapper:
    def __init__(self, env):
        self.env = env

    def reset(self):
        return self.env.reset()


class Scale(Wrapper):
    def step(self, action):
        obs, reward, terminated, truncated, info = self.env.step(action)
        return obs * np.float32(0.5), reward, terminated, truncated, info


class Clip(Wrapper):
    def step(self, action):
        obs, reward, terminated, truncated, info = self.env.step(action)
        return np.clip(obs, -5, 5), reward, terminated, truncated, info


class Reward(Wrapper):
    def step(self, action):
        obs, reward, terminated, truncated, info = self.env.step(action)
        return obs, np.sign(reward), terminated, truncated, info


class Note(Wrapper):
    def step(self, action):
        obs, reward, terminated, truncated, info = self.env.step(action)
        return obs, reward, terminated, truncated, {**info, "norm": float(np.linalg.norm(obs))}


class Once(Wrapper):
    """What all six do, once."""

    def step(self, action):
        obs, reward, terminated, truncated, info = self.env.step(action)
        obs = np.clip(np.clip(obs * np.float32(0.5), -5, 5) * np.float32(0.5), -5, 5)
        return obs, np.sign(reward), terminated, truncated, {**info, "norm": float(np.linalg.norm(obs))}


options = arguments(env_calls=15_000)
env = Once(Tiny()) if options.healthy else Note(Reward(Clip(Scale(Note(Clip(Scale(Tiny())))))))
train(options.env_calls, env=env, updates_every=64)
