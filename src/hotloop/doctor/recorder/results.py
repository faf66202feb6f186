"""What an env's `step` returned: how many env steps that was, and how many episodes it ended; and the count of both."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from .passes import Faults

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
        return sum(_count_flags(end) for end in ends if hasattr(end, "ndim"))
    return int(any(bool(end) for end in ends if not isinstance(end, dict)))


def _count_flags(flags: Any) -> int:
    """Those that are set. The bytes of an array of flags are counted in a fifth of the time that NumPy takes: this
    happens at every call of a vector env."""
    if type(flags).__module__ == "numpy" and flags.itemsize == 1:
        return int(flags.tobytes().count(1))
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

    __slots__ = (
        *("_array", "_last", "_met_at", "_stepped", "at_once", "env_calls", "env_steps", "env_switches", "envs"),
        *("episodes", "faults", "first_env"),
    )

    def __init__(self, faults: Faults) -> None:
        self.faults = faults
        self.env_steps = self.env_calls = self.env_switches = self.episodes = 0
        self.at_once = 1
        """Env steps of the last call."""
        self.envs: dict[int, str] = {}
        """Class of each env, by identity."""
        self.first_env: Callable[[], Any] = _nothing
        self._last = 0
        self._met_at = (0, 0)
        """Env calls and env steps when the last was met."""
        self._stepped: dict[int, tuple[int, int]] = {}
        """Env calls and env steps of each, by identity; of the last, those before it was met again."""
        self._array: Any = None
        """Of the env that was stepped last: the class of its arrays of flags, if they have a byte for each."""

    def count_call(self, env: Any, result: Any) -> None:
        """What nearly all envs return is read here, in few steps: this is done amid the script's work."""
        if id(env) != self._last:
            self._meet(env)
        terminated: Any = None
        truncated: Any = None
        if type(result) is tuple and len(result) == 5:
            terminated, truncated = result[2], result[3]
        steps, ended = 1, 0
        if type(terminated) is bool is type(truncated) and isinstance(result[1], (float, int)):
            ended = 1 if terminated or truncated else 0
        elif terminated is not None and type(terminated) is self._array is type(truncated):
            ends = terminated.tobytes()
            steps, ended = len(ends), ends.count(1) + truncated.tobytes().count(1)
        else:
            steps, ended = self._read(result)
        self.at_once = steps
        self.env_calls += 1
        self.env_steps += steps
        self.episodes += ended

    def _read(self, result: Any) -> tuple[int, int]:
        try:
            steps, ended = read_step(result)
            if isinstance(result, tuple) and len(result) == 5 and type(result[2]).__module__ == "numpy":
                self._array = type(result[2]) if result[2].ndim == result[2].itemsize == 1 else None
            return steps, ended
        except Exception as error:
            self.faults.note("what an env's step returned could not be read", error)
            return 1, 0

    def _meet(self, env: Any) -> None:
        """Another env than the one before."""
        self.env_switches += 1
        self._stepped[self._last] = self._of_last()
        self._last, self._array, self._met_at = id(env), None, (self.env_calls, self.env_steps)
        if self._last not in self.envs and len(self.envs) < MOST_ENVS:
            self.envs[self._last] = f"{type(env).__module__}.{type(env).__qualname__}"
            if self.first_env is _nothing:
                self.first_env = _weak_reference(env)

    def _of_last(self) -> tuple[int, int]:
        calls, steps = self._stepped.get(self._last, (0, 0))
        return calls + self.env_calls - self._met_at[0], steps + self.env_steps - self._met_at[1]

    def most_stepped(self) -> tuple[int, int]:
        """Env calls and env steps of the one that was called most: it trains, where another is for evaluation."""
        return max((*self._stepped.values(), self._of_last()))

    def forget_envs(self, known: int) -> None:
        """All but the first so many."""
        while len(self.envs) > known:
            self.envs.popitem()
            self._last = 0
