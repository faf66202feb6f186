"""Temporal-difference targets and losses as loops over plain numbers."""

from __future__ import annotations


def best_allowed(q: list[float], allowed: list[bool]) -> int:
    """The first of the highest values among those allowed."""
    best = -1
    for action, value in enumerate(q):
        if allowed[action] and (best < 0 or value > q[best]):
            best = action
    return best


def target(reward: float, discount: float, q_eval: list[float], q_select: list[float], allowed: list[bool]) -> float:
    return reward + discount * q_eval[best_allowed(q_select, allowed)]


def huber(error: float) -> float:
    return 0.5 * error**2 if abs(error) <= 1.0 else abs(error) - 0.5
