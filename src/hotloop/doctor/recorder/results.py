"""What an env's `step` returned: how many env steps that was, and how many episodes it ended."""

from __future__ import annotations

import sys
from typing import Any


def looks_like_a_step(result: Any) -> bool:
    """Whether it has the form of a step's answer: some observation, a reward and an end."""
    if isinstance(result, (tuple, list)) and 3 <= len(result) <= 7:
        return _is_number(result[1]) or _is_number(result[0])
    return hasattr(result, "reward")


def read_step(result: Any) -> tuple[int, int]:
    """(env steps, episodes ended); (1, 0) where the result says nothing."""
    if isinstance(result, tuple):
        size = len(result)
        if size == 5:
            if isinstance(result[1], (float, int)):
                return 1, 1 if result[2] or result[3] else 0
            return _size(result[1]), _ended(result[2], result[3])
        if hasattr(result, "step_type"):
            return 1, int(int(result.step_type) == 2)
        if size == 4:
            return _size(result[1]), _ended(result[2])
        if size == 3:
            return _read_three(result)
        return (_size(result[1]), 0) if size > 5 else (1, 0)
    reward = getattr(result, "reward", None)
    if reward is None:
        return 1, 0
    ends = [getattr(result, name) for name in ("terminated", "truncated", "done") if hasattr(result, name)]
    return _size(reward), _ended(*ends[:2])


def _read_three(result: tuple[Any, ...]) -> tuple[int, int]:
    """(obs, reward, done), or the (reward, done, score) of many a tutorial."""
    if isinstance(result[1], bool):
        return 1, int(result[1])
    return _size(result[1]), _ended(result[2])


def _is_number(value: Any) -> bool:
    if isinstance(value, (int, float, dict)):
        return True
    if isinstance(value, (list, tuple)):
        return bool(value) and isinstance(value[0], (int, float))
    return hasattr(value, "shape") and hasattr(value, "dtype")


def _size(reward: Any) -> int:
    if isinstance(reward, float):
        return 1
    shape = getattr(reward, "shape", None)
    if shape is None:
        return max(1, len(reward)) if isinstance(reward, (list, tuple)) else 1
    size = 1
    for length in shape:
        size *= int(length)
    return size


def _ended(*ends: Any) -> int:
    """Episodes that ended, by one flag or by terminated and truncated."""
    if not ends:
        return 0
    first = ends[0]
    if isinstance(first, bool):
        return int(any(bool(end) for end in ends))
    if isinstance(first, dict):
        return int(any(bool(end) and all(end.values()) for end in ends))
    if isinstance(first, (list, tuple)):
        return sum(bool(one) for one in first)
    if getattr(first, "ndim", 0):
        count = sys.modules["numpy"].count_nonzero if type(first).__module__ == "numpy" else _count_true
        return sum(int(count(end)) for end in ends if hasattr(end, "ndim"))
    return int(any(bool(end) for end in ends if not isinstance(end, dict)))


def _count_true(flags: Any) -> int:
    return int(flags.sum())
