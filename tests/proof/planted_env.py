"""A small env as text, and what may go wrong in a rewrite of it: old text, new text, the field that then differs first.

A ferry on a row of cells fetches parcels; it starts at random, parcels appear at random, and it tells the nearest of
two stations, the left one where both are as near.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

PLAIN = """
class Env(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-50.0, 50.0, (6,), np.float32)
    action_space = gymnasium.spaces.Discrete(3)

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.steps, self.fuel, self.carried, self.last = 0, 9, 0, 0.0
        self.x = int(self.np_random.integers(2, 5))
        self.place_parcel()
        return self.observe(), self.inform()

    def place_parcel(self):
        self.parcel = int(self.np_random.integers(7))
        self.distance = [abs(cell - self.parcel) for cell in range(7)]

    def step(self, action):
        self.steps += 1
        before = self.distance[self.x]
        self.x = min(max(self.x + action - 1, 0), 6)
        self.fuel -= 1 if action != 1 else 0
        self.last = 0.5 * self.last + action - 1
        reward = -0.01 + 0.1 * (before - self.distance[self.x])
        if self.x == self.parcel:
            reward += 1.0
            self.carried += 1
            self.fuel = min(self.fuel + 2, 9)
            self.place_parcel()
        terminated = self.fuel <= 0
        truncated = self.steps >= 25 and not terminated
        if terminated:
            reward -= 2.0
        return self.observe(), reward, terminated, truncated, self.inform()

    def nearest(self):
        return min((abs(station - self.x), station) for station in (0, 6))[1]

    def observe(self):
        return np.array([self.x, self.parcel, self.fuel, self.carried, self.nearest(), self.last], np.float32)

    def inform(self):
        return {"action_mask": np.array([self.x > 0, True, self.x < 6])}
"""

OBS, REWARD, TERMINATED, TRUNCATED, MASK = "observation", "reward", "terminated", "truncated", "action_mask"
MUTANTS: list[tuple[str, str, str]] = [
    # off by one
    ("self.x + action - 1, 0), 6)", "self.x + action - 1, 0), 5)", OBS),
    ("self.x + action - 1, 0), 6)", "self.x + action - 1, 1), 6)", OBS),
    ("self.x + action - 1", "self.x + action", OBS),
    ("self.x + action - 1", "self.x - action + 1", OBS),
    ("self.steps >= 25", "self.steps > 25", TRUNCATED),
    ("self.steps >= 25", "self.steps >= 24", TRUNCATED),
    ("self.fuel <= 0", "self.fuel < 0", TERMINATED),
    ("self.fuel <= 0", "self.fuel <= 1", TERMINATED),
    ("self.fuel, self.carried, self.last = 0, 9,", "self.fuel, self.carried, self.last = 1, 9,", TRUNCATED),
    ("self.last = 0, 9, 0, 0.0", "self.last = 0, 10, 0, 0.0", OBS),
    ("self.last = 0, 9, 0, 0.0", "self.last = 0, 9, 1, 0.0", OBS),
    ("self.fuel + 2, 9)", "self.fuel + 1, 9)", OBS),
    ("self.fuel + 2, 9)", "self.fuel + 2, 8)", OBS),
    ("self.carried += 1", "self.carried += 2", OBS),
    ("self.steps += 1\n", "self.steps += 2\n", TRUNCATED),
    # swapped or merged flags
    ("reward, terminated, truncated,", "reward, truncated, terminated,", TERMINATED),
    ("reward, terminated, truncated,", "reward, terminated or truncated, False,", TERMINATED),
    ("reward, terminated, truncated,", "reward, False, terminated or truncated,", TERMINATED),
    ("terminated, truncated, self.inform()", "terminated, False, self.inform()", TRUNCATED),
    ("truncated = self.steps >= 25 and not terminated", "truncated = self.steps >= 25 or terminated", TRUNCATED),
    # reward
    ("-0.01 + 0.1", "0.01 + 0.1", REWARD),
    ("-0.01 + 0.1", "-0.01 + 0.11", REWARD),
    ("before - self.distance[self.x]", "self.distance[self.x] - before", REWARD),
    ("reward += 1.0", "reward = 1.0", REWARD),
    ("reward += 1.0", "reward += 0.999", REWARD),
    ("reward -= 2.0", "reward += 2.0", REWARD),
    ("if terminated:\n            reward", "if terminated or truncated:\n            reward", REWARD),
    ("reward -= 2.0", "reward = -2.0", REWARD),
    ("before = self.distance[self.x]\n", "before = abs(self.x - self.parcel) + (self.x == 6)\n", REWARD),
    # a wrong tie
    ("for station in (0, 6))[1]", "for station in (0, 6))[1] if self.x != 3 else 6", OBS),
    ("min((abs(station - self.x), station) for", "min((abs(station - self.x), -station) for", OBS),
    ("return min((abs", "return max((abs", OBS),
    # a stale cache
    (
        "        self.distance = [abs(cell - self.parcel) for cell in range(7)]\n",
        "        if self.steps == 0:\n            self.distance = [abs(cell - self.parcel) for cell in range(7)]\n",
        REWARD,
    ),
    (
        "        self.distance = [abs(cell - self.parcel) for cell in range(7)]\n",
        "        if not hasattr(self, 'distance'):\n"
        "            self.distance = [abs(cell - self.parcel) for cell in range(7)]\n",
        REWARD,
    ),
    ("self.carried, self.last = 0, 9, 0, 0.0", "self.carried, self.last = 0, 9, 0, getattr(self, 'last', 0.0)", OBS),
    ("self.carried, self.last = 0, 9, 0, 0.0", "self.carried, self.last = 0, 9, getattr(self, 'carried', 0), 0.0", OBS),
    ("self.steps, self.fuel,", "self.steps, self.spare,", "step"),
    # state
    ("0.5 * self.last", "0.49 * self.last", OBS),
    ("0.5 * self.last + action - 1", "0.5 * (self.last + action - 1)", OBS),
    ("1 if action != 1 else 0", "1", OBS),
    ("1 if action != 1 else 0", "action != 0", OBS),
    ("if self.x == self.parcel:", "if abs(self.x - self.parcel) <= 1:", OBS),
    # dtype, shape and spaces
    ("self.last], np.float32)", "self.last], np.float64)", OBS),
    ("self.last], np.float32)", "self.last], np.float16).astype(np.float32)", OBS),
    ("return self.observe(), reward,", "return self.observe(), np.float32(reward),", REWARD),
    ("terminated = self.fuel <= 0", "terminated = int(self.fuel <= 0)", TERMINATED),
    ("np.float32)\n    action", "np.float64)\n    action", "observation_space"),
    ("Discrete(3)", "Discrete(4)", "action_space"),
    # masks
    ("self.x > 0, True", "self.x >= 0, True", MASK),
    ("[self.x > 0, True, self.x < 6]", "[self.x < 6, True, self.x > 0]", MASK),
    ("self.x < 6])}", "self.x < 6], np.int8)}", MASK),
    ('{"action_mask": np.array([self.x > 0, True, self.x < 6])}', "{}", MASK),
]
REWRITES: list[tuple[str, str]] = [
    ("min(max(self.x + action - 1, 0), 6)", "int(np.clip(self.x + action - 1, 0, 6))"),
    ("[abs(cell - self.parcel) for cell in range(7)]", "np.abs(np.arange(7) - self.parcel)"),
    ("return min((abs(station - self.x), station) for station in (0, 6))[1]", "return 0 if self.x <= 3 else 6"),
    ("self.fuel -= 1 if action != 1 else 0", "self.fuel -= abs(int(action) - 1)"),
    ("-0.01 + 0.1 * (before - self.distance[self.x])", "0.1 * before - 0.1 * self.distance[self.x] - 0.01"),
    ("0.5 * self.last + action - 1", "action + self.last / 2 - 1"),
    ("np.array([self.x > 0, True, self.x < 6])", "np.array([True, True, True]) & [self.x != 0, True, self.x != 6]"),
    ("reward -= 2.0", "reward = reward - 2"),
    ("before = self.distance[self.x]", "before = abs(self.x - self.parcel)"),
    ("truncated = self.steps >= 25 and not terminated", "truncated = (not terminated) and self.steps > 24"),
]


def made(old: str = "", new: str = "") -> Any:
    """The env's class, with the first `old` of its text replaced."""
    assert old in PLAIN, old
    names: dict[str, Any] = {"gymnasium": gymnasium, "np": np, "__name__": "planted"}
    exec(PLAIN.replace(old, new, 1) if old else PLAIN, names)
    return names["Env"]
