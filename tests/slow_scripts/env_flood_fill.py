"""The room around every point is flood-filled in Python at every env step. Remedy: a search in machine code."""

from collections import deque

import numpy as np
from training import Drift, arguments, train

from hotloop.core.kernels import kernel

SIZE = 12
WALLS = np.random.default_rng(3).random((SIZE, SIZE)) < 0.25


def room(x, y):
    queue, seen = deque([(x, y)]), {(x, y)}
    while queue:
        x, y = queue.popleft()
        for cell in ((x + 1, y), (x - 1, y), (x, y + 1), (x, y - 1)):
            if 0 <= cell[0] < SIZE and 0 <= cell[1] < SIZE and cell not in seen and not WALLS[cell]:
                seen.add(cell)
                queue.append(cell)
    return len(seen)


@kernel
def room_in_machine_code(x, y, walls):
    size = walls.shape[0]
    seen, queue = np.zeros((size, size), np.bool_), np.empty((size * size, 2), np.int64)
    queue[0, 0], queue[0, 1], seen[x, y] = x, y, True
    first, last = 0, 1
    while first < last:
        for step in range(4):
            x = queue[first, 0] + (1 if step == 0 else -1 if step == 1 else 0)
            y = queue[first, 1] + (1 if step == 2 else -1 if step == 3 else 0)
            if 0 <= x < size and 0 <= y < size and not seen[x, y] and not walls[x, y]:
                seen[x, y] = True
                queue[last, 0], queue[last, 1] = x, y
                last += 1
        first += 1
    return last


@kernel
def rooms_in_machine_code(cells, walls):
    return np.array([room_in_machine_code(cells[i, 0], cells[i, 1], walls) for i in range(len(cells))])


class Rooms(Drift):
    def step(self, action):
        state, reward, terminated, truncated, info = super().step(action)
        cells = np.clip(state[:, :2] * 3 + SIZE // 2, 0, SIZE - 1).astype(int)
        if options.healthy:
            space = rooms_in_machine_code(cells, WALLS)
        else:
            space = np.array([room(x, y) for x, y in cells.tolist()])
        return state, reward + 0.01 * space.astype(np.float32), terminated, truncated, info


options = arguments(env_calls=1000)
rooms_in_machine_code(np.zeros((8, 2), int), WALLS)
train(options.env_calls, env=Rooms(count=8))
