"""sb3-contrib's MaskablePPO on a small card-placing puzzle of one's own: `action_masks` and `ActionMasker`."""

import sys

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from sb3_contrib import MaskablePPO
from sb3_contrib.common.wrappers import ActionMasker

SIZE = 7
PIECES = [
    [(0, 0)],
    [(0, 0), (0, 1)],
    [(0, 0), (1, 0)],
    [(0, 0), (0, 1), (0, 2)],
    [(0, 0), (1, 0), (2, 0)],
    [(0, 0), (0, 1), (1, 0), (1, 1)],
    [(0, 0), (1, 0), (1, 1)],
]


class BlockEnv(gym.Env):
    """Place the drawn piece anywhere it fits; full rows and columns vanish."""

    def __init__(self):
        super().__init__()
        self.observation_space = spaces.Box(0, 1, (2 * SIZE * SIZE,), dtype=np.float32)
        self.action_space = spaces.Discrete(SIZE * SIZE)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.board = np.zeros((SIZE, SIZE), dtype=np.int8)
        self.piece = PIECES[self.np_random.integers(len(PIECES))]
        return self._obs(), {}

    def _obs(self):
        shape = np.zeros((SIZE, SIZE), dtype=np.float32)
        for row, column in self.piece:
            shape[row, column] = 1
        return np.concatenate([self.board.flatten(), shape.flatten()]).astype(np.float32)

    def _fits(self, row, column):
        for dr, dc in self.piece:
            r, c = row + dr, column + dc
            if r >= SIZE or c >= SIZE or self.board[r, c]:
                return False
        return True

    def valid_action_mask(self):
        mask = np.zeros(SIZE * SIZE, dtype=bool)
        for action in range(SIZE * SIZE):
            mask[action] = self._fits(action // SIZE, action % SIZE)
        return mask

    def step(self, action):
        row, column = divmod(int(action), SIZE)
        if not self._fits(row, column):
            return self._obs(), -1.0, True, False, {}
        for dr, dc in self.piece:
            self.board[row + dr, column + dc] = 1
        rows = [r for r in range(SIZE) if self.board[r].all()]
        columns = [c for c in range(SIZE) if self.board[:, c].all()]
        self.board[rows] = 0
        self.board[:, columns] = 0
        reward = 0.1 * len(self.piece) + 1.0 * (len(rows) + len(columns))
        self.piece = PIECES[self.np_random.integers(len(PIECES))]
        done = not any(self._fits(a // SIZE, a % SIZE) for a in range(SIZE * SIZE))
        return self._obs(), reward, done, False, {}


def mask_fn(env):
    return env.unwrapped.valid_action_mask()


env = ActionMasker(BlockEnv(), mask_fn)
model = MaskablePPO("MlpPolicy", env, gamma=0.9, n_steps=512, batch_size=64, n_epochs=4, seed=32, verbose=1)
model.learn(int(sys.argv[1]))
model.save("ppo_mask")
