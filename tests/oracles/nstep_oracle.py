"""n-step transitions the slow way: keep whole episodes, look forward from every step."""

from __future__ import annotations

from typing import NamedTuple


class Row(NamedTuple):
    obs: float
    action: int
    value: float
    discount: float
    next_obs: float


class NStepOracle:
    """One env; `push` answers with the rows that are complete after this step, oldest first."""

    def __init__(self, n_step: int, gamma: float, timeouts_are_terminal: bool = False) -> None:
        self.n_step = n_step
        self.gamma = gamma
        self.timeouts_are_terminal = timeouts_are_terminal
        self.pending: list[tuple[float, int, float]] = []

    def push(
        self, obs: float, action: int, reward: float, terminated: bool, truncated: bool, final_obs: float
    ) -> list[Row]:
        self.pending.append((obs, action, reward))
        terminal = terminated or (truncated and self.timeouts_are_terminal)
        rows = []
        while self.pending and (terminated or truncated or len(self.pending) == self.n_step):
            horizon = len(self.pending)
            value = sum(self.gamma**i * step[2] for i, step in enumerate(self.pending))
            discount = 0.0 if terminal else self.gamma**horizon
            rows.append(Row(self.pending[0][0], self.pending[0][1], value, discount, final_obs))
            self.pending.pop(0)
        return rows
