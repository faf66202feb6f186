"""What an env's `step` returned: how many env steps that was, and how many episodes it ended; and the count of both."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from typing import Any

MOST_ENVS = 4_096


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
            if isinstance(result[1], (float, int)):  # of nearly every single env
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


def _nothing() -> None:
    return None


def _weak_reference(one: Any) -> Callable[[], Any]:
    """Asked for it at the end, where it is still there; it is not kept alive for us."""
    try:
        return weakref.ref(one)
    except TypeError:
        return _nothing


class EnvCalls:
    """What was stepped, and how often: calls of the outermost `step` alone."""

    __slots__ = ("_last", "env_calls", "env_steps", "env_switches", "envs", "episodes", "first_env")

    def __init__(self) -> None:
        self.env_steps = self.env_calls = self.env_switches = self.episodes = 0
        self.envs: dict[int, str] = {}
        """Class of each env, by identity."""
        self.first_env: Callable[[], Any] = _nothing
        self._last = 0

    def count_call(self, env: Any, steps: int, ended: int) -> None:
        self.env_calls += 1
        self.env_steps += steps
        self.episodes += ended
        if id(env) != self._last:
            self._meet(env)

    def _meet(self, env: Any) -> None:
        """Another env than the one before."""
        self.env_switches += 1
        self._last = id(env)
        if self._last not in self.envs and len(self.envs) < MOST_ENVS:
            self.envs[self._last] = f"{type(env).__module__}.{type(env).__qualname__}"
            if self.first_env is _nothing:
                self.first_env = _weak_reference(env)

    def forget_envs(self, known: int) -> None:
        """All but the first so many."""
        while len(self.envs) > known:
            self.envs.popitem()
            self._last = 0
