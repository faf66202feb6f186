"""DQN on a grid world of our own: find the goal between random walls, rewarded for every step nearer to it."""

import sys
from collections import deque

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from stable_baselines3 import DQN
from stable_baselines3.common.env_checker import check_env

SIZE = 10
MOVES = [(-1, 0), (1, 0), (0, -1), (0, 1)]


class GridWorld(gym.Env):
    def __init__(self):
        self.action_space = spaces.Discrete(4)
        self.observation_space = spaces.Box(0.0, 1.0, (SIZE * SIZE + 4,), np.float32)

    def distance(self, start):
        """Steps from a cell to the goal around the walls."""
        queue = deque([(start, 0)])
        seen = {start}
        while queue:
            (row, col), steps = queue.popleft()
            if (row, col) == self.goal:
                return steps
            for d_row, d_col in MOVES:
                cell = (row + d_row, col + d_col)
                if 0 <= cell[0] < SIZE and 0 <= cell[1] < SIZE and cell not in self.walls and cell not in seen:
                    seen.add(cell)
                    queue.append((cell, steps + 1))
        return SIZE * SIZE

    def _get_obs(self):
        grid = np.zeros((SIZE, SIZE), np.float32)
        for cell in self.walls:
            grid[cell] = 1.0
        place = np.array([*self.agent, *self.goal], np.float32) / SIZE
        return np.concatenate([grid.flatten(), place])

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        cells = [(int(i) // SIZE, int(i) % SIZE) for i in self.np_random.permutation(SIZE * SIZE)]
        self.agent, self.goal, self.walls = cells[0], cells[1], set(cells[2:22])
        self.steps = 0
        return self._get_obs(), {}

    def step(self, action):
        before = self.distance(self.agent)
        d_row, d_col = MOVES[int(action)]
        cell = (self.agent[0] + d_row, self.agent[1] + d_col)
        if 0 <= cell[0] < SIZE and 0 <= cell[1] < SIZE and cell not in self.walls:
            self.agent = cell
        after = self.distance(self.agent)
        self.steps += 1
        reached = self.agent == self.goal
        reward = 10.0 if reached else float(before - after) - 0.1
        return self._get_obs(), reward, reached, self.steps >= 200, {}


env = GridWorld()
check_env(env)
model = DQN("MlpPolicy", env, verbose=1)
model.learn(total_timesteps=int(sys.argv[1]))
