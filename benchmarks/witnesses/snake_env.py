"""Snake for many games as one writes it first: Python loops over games, lists of cells, breadth-first search.

Food is drawn by `draw(game, count)`, a number in 0 .. count-1 that picks an empty cell in reading order, so that the
games can be replayed from a tape.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

UP, RIGHT, DOWN, LEFT = 0, 1, 2, 3
MOVES = [(0, -1), (1, 0), (0, 1), (-1, 0)]
STRAIGHT, TURN_LEFT, TURN_RIGHT = 0, 1, 2


class SnakeGames:
    """`step` answers (obs, rewards, terminated, truncated, final_obs, scores); finished games start anew at once."""

    def __init__(
        self,
        num_games: int,
        draw: Callable[[int, int], int],
        grid_size: int = 10,
        use_flood_fill: bool = False,
        use_enhanced: bool = False,
        max_steps: int = 1000,
    ) -> None:
        self.num_games = num_games
        self.draw = draw
        self.grid_size = grid_size
        self.use_flood_fill = use_flood_fill or use_enhanced
        self.use_enhanced = use_enhanced
        self.max_steps = max_steps
        self.snakes: list[list[tuple[int, int]]] = [[] for _ in range(num_games)]
        self.directions = np.zeros(num_games, dtype=np.int64)
        self.foods: list[Any] = [None] * num_games
        self.steps = np.zeros(num_games, dtype=np.int64)
        self.scores = np.zeros(num_games, dtype=np.int64)

    def reset(self) -> np.ndarray:
        for game in range(self.num_games):
            self.reset_game(game)
        return self.get_observations()

    def reset_game(self, game: int) -> None:
        center = self.grid_size // 2
        self.snakes[game] = [(center, center), (center - 1, center), (center - 2, center)]
        self.directions[game] = RIGHT
        self.steps[game] = 0
        self.scores[game] = 0
        self.spawn_food(game)

    def spawn_food(self, game: int) -> None:
        occupied = set(self.snakes[game])
        empty = []
        for y in range(self.grid_size):
            for x in range(self.grid_size):
                if (x, y) not in occupied:
                    empty.append((x, y))
        self.foods[game] = empty[self.draw(game, len(empty))] if empty else None

    def step(
        self, actions: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        rewards = np.zeros(self.num_games, dtype=np.float32)
        terminated = np.zeros(self.num_games, dtype=bool)
        truncated = np.zeros(self.num_games, dtype=bool)
        for game in range(self.num_games):
            reward, terminated[game] = self.move(game, int(actions[game]))
            self.steps[game] += 1
            truncated[game] = self.steps[game] >= self.max_steps
            if truncated[game] and not terminated[game]:
                reward += -5.0
            rewards[game] = reward
        final_obs = obs = self.get_observations()
        scores = self.scores.copy()
        done = terminated | truncated
        if done.any():
            obs = final_obs.copy()
            for game in range(self.num_games):
                if done[game]:
                    self.reset_game(game)
                    obs[game] = self.get_observation(game)
        return obs, rewards, terminated, truncated, final_obs, scores

    def move(self, game: int, action: int) -> tuple[float, bool]:
        snake, food = self.snakes[game], self.foods[game]
        direction = int(self.directions[game])
        if action == TURN_LEFT:
            direction = (direction - 1) % 4
        elif action == TURN_RIGHT:
            direction = (direction + 1) % 4
        head = snake[0]
        new_head = (head[0] + MOVES[direction][0], head[1] + MOVES[direction][1])
        if self.is_collision(game, new_head):
            return -10.0, True
        self.directions[game] = direction
        snake.insert(0, new_head)
        if new_head == food:
            self.scores[game] += 1
            self.spawn_food(game)
            return 10.0, self.foods[game] is None
        snake.pop()
        old_distance = abs(head[0] - food[0]) + abs(head[1] - food[1])
        new_distance = abs(new_head[0] - food[0]) + abs(new_head[1] - food[1])
        return -0.01 + 0.5 * (old_distance - new_distance) / self.grid_size, False

    def is_collision(self, game: int, position: tuple[int, int]) -> bool:
        x, y = position
        if x < 0 or x >= self.grid_size or y < 0 or y >= self.grid_size:
            return True
        return position in self.snakes[game]

    def next_position(self, game: int, direction: int) -> tuple[int, int]:
        x, y = self.snakes[game][0]
        dx, dy = MOVES[direction % 4]
        return x + dx, y + dy

    def get_observations(self) -> np.ndarray:
        return np.stack([self.get_observation(game) for game in range(self.num_games)])

    def get_observation(self, game: int) -> np.ndarray:
        direction = int(self.directions[game])
        head_x, head_y = self.snakes[game][0]
        features = []
        for turn in (0, -1, 1, 2):  # straight, left, right, back
            features.append(float(self.is_collision(game, self.next_position(game, direction + turn))))
        features += self.direction_to(game, self.foods[game])
        features += [float(direction == UP), float(direction == RIGHT), float(direction == DOWN)]
        if self.use_flood_fill:
            ways = [self.next_position(game, direction + turn) for turn in (0, 1, -1)]  # straight, right, left
            features += [self.free_space(game, position) for position in ways]
        if self.use_enhanced:
            features += [self.escape_routes(game, position) for position in ways]
            tail_x, tail_y = tail = self.snakes[game][-1]
            features += self.direction_to(game, tail)
            features.append(float(tail in self.flood_fill(set(self.snakes[game][:-1]), (head_x, head_y))))
            features.append((abs(head_x - tail_x) + abs(head_y - tail_y)) / (2 * (self.grid_size - 1)))
            features.append(len(self.snakes[game]) / self.grid_size**2)
        return np.array(features, dtype=np.float32)

    def direction_to(self, game: int, position: tuple[int, int] | None) -> list[float]:
        if position is None:
            return [0.0, 0.0, 0.0, 0.0]
        head_x, head_y = self.snakes[game][0]
        x, y = position
        return [float(y < head_y), float(x > head_x), float(y > head_y), float(x < head_x)]

    def free_space(self, game: int, position: tuple[int, int]) -> float:
        if self.is_collision(game, position):
            return 0.0
        reachable = self.flood_fill(set(self.snakes[game]), position)
        return min(1.0, len(reachable) / (self.grid_size**2 - len(self.snakes[game])))

    def flood_fill(self, blocked: set[tuple[int, int]], start: tuple[int, int]) -> set[tuple[int, int]]:
        """Breadth-first search over the cells that are not blocked."""
        visited = {start}
        queue = deque([start])
        while queue:
            x, y = queue.popleft()
            for dx, dy in MOVES:
                cell = (x + dx, y + dy)
                if (
                    0 <= cell[0] < self.grid_size
                    and 0 <= cell[1] < self.grid_size
                    and cell not in blocked
                    and cell not in visited
                ):
                    visited.add(cell)
                    queue.append(cell)
        return visited

    def escape_routes(self, game: int, position: tuple[int, int]) -> float:
        if self.is_collision(game, position):
            return 0.0
        count = 0
        for dx, dy in MOVES:
            if not self.is_collision(game, (position[0] + dx, position[1] + dy)):
                count += 1
        return count / 4
