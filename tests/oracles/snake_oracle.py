"""Snake played slowly: one game, a list of (x, y) cells with the head first, breadth-first search for every fill.

Food comes from a tape: `draw(bound)` answers a number in 0 .. bound-1, and the food lies on that empty cell in
reading order. Two games fed the same tape and the same actions must agree in everything.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

UP, RIGHT, DOWN, LEFT = range(4)
STEPS = {UP: (0, -1), RIGHT: (1, 0), DOWN: (0, 1), LEFT: (-1, 0)}
Cell = tuple[int, int]


def neighbors(cell: Cell) -> Iterator[Cell]:
    for dx, dy in STEPS.values():
        yield cell[0] + dx, cell[1] + dy


def reachable(size: int, blocked: set[Cell], start: Cell) -> set[Cell]:
    """All cells with a path from `start` through cells that are not blocked; `start` counts whatever it is."""
    seen, queue = {start}, deque([start])
    while queue:
        for x, y in neighbors(queue.popleft()):
            if 0 <= x < size and 0 <= y < size and (x, y) not in blocked and (x, y) not in seen:
                seen.add((x, y))
                queue.append((x, y))
    return seen


def reachable_many(blocked: np.ndarray, start: np.ndarray) -> np.ndarray:
    """`reachable` for boards [M, size, size] from cells [M, 2]: grow by one cell a round until nothing changes."""
    count = len(blocked)
    seen = np.zeros_like(blocked)
    seen[np.arange(count), start[:, 1], start[:, 0]] = True
    while True:
        grown = seen.copy()
        grown[:, 1:] |= seen[:, :-1]
        grown[:, :-1] |= seen[:, 1:]
        grown[:, :, 1:] |= seen[:, :, :-1]
        grown[:, :, :-1] |= seen[:, :, 1:]
        grown = (grown & ~blocked) | seen
        if np.array_equal(grown, seen):
            return seen
        seen = grown


def splitmix_tape(seed: int) -> Callable[[int], int]:
    """The food draws of an env with this seed: SplitMix64's top 53 bits as a fraction of the bound."""
    state = seed

    def draw(bound: int) -> int:
        nonlocal state
        state = (state + 0x9E3779B97F4A7C15) % 2**64
        z = state
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
        return int(((z ^ (z >> 31)) >> 11) / 2**53 * bound)

    return draw


class SnakeOracle:
    def __init__(
        self,
        draw: Callable[[int], int],
        *,
        board_size: int = 10,
        observation: str = "basic",
        actions: str = "auto",
        max_steps: int = 1000,
        max_steps_without_food: int = 0,
        free_tail: bool = False,
        start_length: int = 3,
        food_reward: float = 10.0,
        death_reward: float = -10.0,
        step_reward: float = -0.01,
        distance_reward: float = 0.5,
        timeout_reward: float = -5.0,
    ) -> None:
        self.draw, self.size, self.observation = draw, board_size, observation
        self.absolute = actions == "absolute" or (actions == "auto" and observation == "grid")
        self.max_steps, self.max_hungry = max_steps, max_steps_without_food
        self.free_tail, self.start_length = free_tail, start_length
        self.food_reward, self.death_reward, self.timeout_reward = food_reward, death_reward, timeout_reward
        self.step_reward, self.distance_reward = step_reward, distance_reward
        self.restart()

    def restart(self) -> None:
        middle = self.size // 2
        self.body = [(middle - i, middle) for i in range(self.start_length)]
        self.direction = RIGHT
        self.steps = self.hungry = 0
        self.place_food()

    def place_food(self) -> None:
        empty = [(x, y) for y in range(self.size) for x in range(self.size) if (x, y) not in self.body]
        self.food: Cell | None = empty[self.draw(len(empty))] if empty else None

    def next_cell(self, direction: int) -> Cell:
        dx, dy = STEPS[direction]
        return self.body[0][0] + dx, self.body[0][1] + dy

    def in_wall(self, cell: Cell) -> bool:
        return not (0 <= cell[0] < self.size and 0 <= cell[1] < self.size)

    def kills(self, cell: Cell) -> bool:
        deadly = self.body[:-1] if self.free_tail else self.body
        return self.in_wall(cell) or cell in deadly

    def turn(self, action: int) -> int:
        if self.absolute:
            return self.direction if action == (self.direction + 2) % 4 else action
        return (self.direction + {0: 0, 1: -1, 2: 1}[action]) % 4

    def step(self, action: int) -> tuple[float, bool, bool, dict[str, Any]]:
        """Reward, terminated, truncated, and how the episode stands; the game is not restarted."""
        direction = self.turn(action)
        cell = self.next_cell(direction)
        self.steps += 1
        self.hungry += 1
        died = self.kills(cell)
        reward = self.death_reward if died else self.advance(cell, direction)  # a dead snake stays as it was
        won = len(self.body) == self.size**2
        late = (0 < self.max_steps <= self.steps) or (0 < self.max_hungry <= self.hungry)
        timeout = late and not died and not won
        stats = {
            "score": len(self.body) - self.start_length,
            "win": won,
            "death_wall": died and self.in_wall(cell),
            "death_body": died and not self.in_wall(cell),
            "timeout": timeout,
        }
        return reward + (self.timeout_reward if timeout else 0.0), died or won, late, stats

    def advance(self, cell: Cell, direction: int) -> float:
        """Move the living snake to `cell`: the reward of food, or of a step."""
        self.direction = direction
        before = self.distance(self.body[0], self.food)
        self.body.insert(0, cell)
        if cell == self.food:
            self.hungry = 0
            self.place_food()
            return self.food_reward
        self.body.pop()
        return self.step_reward + self.distance_reward * (before - self.distance(cell, self.food)) / self.size

    @staticmethod
    def distance(one: Cell, other: Cell) -> int:
        return abs(one[0] - other[0]) + abs(one[1] - other[1])

    def observe(self) -> np.ndarray:
        if self.observation == "grid":
            return self.grid()
        ahead, left, right = self.direction, (self.direction - 1) % 4, (self.direction + 1) % 4
        back = [] if self.observation == "basic10" else [(self.direction + 2) % 4]
        features = [float(self.kills(self.next_cell(way))) for way in [ahead, left, right, *back]]
        features += self.side_of(self.food)
        features += [float(self.direction == way) for way in (UP, RIGHT, DOWN)]
        cells = [self.next_cell(way) for way in (ahead, right, left)]
        if self.observation in ("flood_fill", "selective", "enhanced", "foresight"):
            features += [self.room(cell) for cell in cells]
        if self.observation in ("enhanced", "foresight"):
            features += [self.escapes(cell) for cell in cells]
        if self.observation in ("selective", "enhanced", "foresight"):
            features += [*self.side_of(self.body[-1]), self.tail_reachable()]
        if self.observation in ("enhanced", "foresight"):
            features += [self.distance(self.body[0], self.body[-1]) / (2 * (self.size - 1))]
            features += [len(self.body) / self.size**2]
        if self.observation == "foresight":
            features += [self.tail_follows(cell) for cell in cells]
            ways = [self.way_to_food(cell) for cell in cells]
            features += [float(way is not None and way == min(w for w in ways if w is not None)) for way in ways]
            features += [self.hungry / (self.hungry + self.size**2)]
        return np.array(features, np.float32)

    def side_of(self, cell: Cell | None) -> list[float]:
        """Whether `cell` lies up, right, down, left of the head (strictly)."""
        if cell is None:
            return [0.0, 0.0, 0.0, 0.0]
        (x, y), (head_x, head_y) = cell, self.body[0]
        return [float(y < head_y), float(x > head_x), float(y > head_y), float(x < head_x)]

    def room(self, cell: Cell) -> float:
        if self.kills(cell):
            return 0.0
        count = len(reachable(self.size, set(self.body), cell))
        free = self.size**2 - len(self.body)
        return min(1.0, count / free) if free else 1.0

    def escapes(self, cell: Cell) -> float:
        if self.kills(cell):
            return 0.0
        return sum(not self.in_wall(near) and near not in self.body for near in neighbors(cell)) / 4

    def tail_reachable(self) -> float:
        return float(self.body[-1] in reachable(self.size, set(self.body[:-1]), self.body[0]))

    def tail_follows(self, cell: Cell) -> float:
        """Whether, after a step to `cell`, there is a way through free cells to one beside the tail."""
        if self.kills(cell):
            return 0.0
        body = [cell, *self.body] if cell == self.food else [cell, *self.body[:-1]]
        on = reachable(self.size, set(body), cell) - {cell}
        beside = any(near in on for near in neighbors(body[-1]))
        return float(beside or (self.free_tail and self.distance(cell, body[-1]) == 1))

    def way_to_food(self, cell: Cell) -> int | None:
        """Steps from `cell` to the food round the body without its tail; None where there is no way."""
        if self.kills(cell) or self.food is None:
            return None
        blocked, seen, queue = set(self.body[:-1]), {cell: 0}, deque([cell])
        while queue:
            here = queue.popleft()
            for near in neighbors(here):
                if near not in seen and near not in blocked and not self.in_wall(near):
                    seen[near] = seen[here] + 1
                    queue.append(near)
        return seen.get(self.food)

    def grid(self) -> np.ndarray:
        """Rows, columns, then head, rest of the body, food; 255 where it is."""
        planes = np.zeros((self.size, self.size, 3), np.uint8)
        head, *rest = self.body
        for plane, cells in enumerate(([head], rest, [self.food] if self.food else [])):
            for x, y in cells:
                planes[y, x, plane] = 255
        return planes
