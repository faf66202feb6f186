"""A replay by definition: whole histories are kept, and every row is worked out from them."""

from __future__ import annotations

from typing import Any, NamedTuple


class Step(NamedTuple):
    obs: float
    action: Any
    reward: float
    next_obs: float
    terminated: bool
    truncated: bool


class Row(NamedTuple):
    obs: float
    action: Any
    reward: float
    discount: float
    next_obs: float


class PlainReplay:
    """`rows`: the last `capacity` in the order in which they became complete, as a list that forgets its first."""

    def __init__(self, capacity: int, num_envs: int, n_step: int, gamma: float) -> None:
        self.capacity, self.n_step, self.gamma = capacity, n_step, gamma
        self.histories: list[list[Step]] = [[] for _ in range(num_envs)]
        self.complete = [0] * num_envs  # steps of each env that have become rows
        self.rows: list[Row] = []

    def add(self, steps: list[Step | None]) -> None:
        """One step of each env; None where it was not valid."""
        for env, step in enumerate(steps):
            if step is not None:
                self.histories[env].append(step)
                self._complete(env)
        self.rows = self.rows[-self.capacity :]

    def _complete(self, env: int) -> None:
        history = self.histories[env]
        while self.complete[env] < len(history):
            window = self._window(history, self.complete[env])
            if window is None:
                return
            self.rows.append(self._row(window))
            self.complete[env] += 1

    def _window(self, history: list[Step], start: int) -> list[Step] | None:
        """The steps that the row from `start` sums up, or None while they are not all there."""
        window: list[Step] = []
        for step in history[start:]:
            window.append(step)
            if step.terminated or step.truncated or len(window) == self.n_step:
                return window
        return None

    def _row(self, window: list[Step]) -> Row:
        first, last = window[0], window[-1]
        total = sum(self.gamma**i * step.reward for i, step in enumerate(window))
        discount = 0.0 if last.terminated else self.gamma ** len(window)
        return Row(first.obs, first.action, total, discount, last.next_obs)
