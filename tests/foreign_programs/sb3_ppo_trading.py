"""PPO on a trading env of our own: buy, hold or sell one asset whose prices are a pandas frame."""

import sys

import gymnasium as gym
import numpy as np
import pandas as pd
from gymnasium import spaces
from stable_baselines3 import PPO


class TradingEnv(gym.Env):
    def __init__(self, df, window=10):
        self.df, self.window = df, window
        self.action_space = spaces.Discrete(3)
        self.observation_space = spaces.Box(-np.inf, np.inf, (window * 3 + 1,), np.float32)

    def _get_obs(self):
        frame = self.df.iloc[self.day - self.window : self.day]
        features = frame[["return", "volume", "spread"]].to_numpy()
        return np.append(features.flatten(), self.position).astype(np.float32)

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.day, self.position = self.window, 0
        return self._get_obs(), {}

    def step(self, action):
        self.position = int(action) - 1
        reward = self.position * self.df.iloc[self.day]["return"] - 0.0001 * self.df.loc[self.day, "spread"]
        self.day += 1
        done = self.day >= len(self.df) - 1
        return self._get_obs(), float(reward), done, False, {"close": self.df["close"].iloc[self.day]}


rng = np.random.default_rng(0)
df = pd.DataFrame({"close": 100 * np.exp(np.cumsum(rng.normal(0, 0.01, 2000)))})
df["return"] = df["close"].pct_change().fillna(0.0)
df["volume"], df["spread"] = rng.random(2000), rng.random(2000)

env = TradingEnv(df)
model = PPO("MlpPolicy", env, verbose=1)
model.learn(total_timesteps=int(sys.argv[1]))
