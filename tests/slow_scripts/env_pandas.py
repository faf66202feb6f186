"""Prices are read from a data frame in every env step. Remedy: from an array made once."""

import numpy as np
from training import Drift, arguments, stand_in, train

pd = stand_in("pandas")
options = arguments(env_calls=2500)
DAYS = 1000
rng = np.random.default_rng(5)
prices = pd.DataFrame({name: 10.0 + rng.normal(size=DAYS) for name in ("open", "close", "volume")})


class Market(Drift):
    def __init__(self):
        super().__init__(8)
        self.day = 0
        self.table = prices[["open", "close"]].to_numpy()

    def step(self, action):
        self.day = (self.day + 1) % DAYS
        state, reward, terminated, truncated, info = super().step(action)
        gain = sum(self.gain(self.day - back) for back in range(10))
        return state, reward + np.float32(0.01 * gain), terminated, truncated, info

    def gain(self, day):
        if options.healthy:
            return self.table[day, 1] - self.table[day, 0]
        today = prices.iloc[day]
        return today["close"] - today["open"]


train(options.env_calls, env=Market())
