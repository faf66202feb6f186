"""What one env call did, env by env: a vector env's call is as many rows, so that single and batched envs compare.

Restarts are rows of their own, however they come about: by a call of `reset`, within the step that ended the episode
(the end's own observation is then in `info`), or in the place of the next step, whose action is ignored.
"""

from __future__ import annotations

from typing import Any

from .fingerprints import NOTHING, fingerprint, row_of

FIELDS = ("observation", "action", "terminated", "truncated", "reward", "action_mask")
"""Of a row, in the order in which they are written down."""


class EnvRows:
    """One object whose outermost `step` is called, and the numbers of the envs that it steps."""

    def __init__(self, env: Any, first: int, rows: int, batched: bool) -> None:
        self.env, self.first, self.batched = env, first, batched
        """The object itself, so that no other gets its id; the number of its first env; whether it takes and gives
        arrays of rows, be it of one."""
        self.steps = [0] * rows
        self.resets = [0] * rows
        """Since the last env step."""
        self.restarts = [False] * rows
        """Whether the next call is a restart."""

    def copy(self) -> EnvRows:
        one = EnvRows(self.env, self.first, 0, self.batched)
        one.steps, one.resets, one.restarts = self.steps[:], self.resets[:], self.restarts[:]
        return one

    def key_of_reset(self, place: int) -> str:
        ordinal = self.resets[place]
        self.resets[place] += 1
        return f"R {self.first + place} {self.steps[place]} {ordinal}"

    def key_of_step(self, place: int) -> str:
        self.steps[place] += 1
        self.resets[place] = 0
        return f"E {self.first + place} {self.steps[place]}"


def number_of_envs(env: Any, reward: Any = None) -> tuple[int, bool]:
    """And whether it is a batch. A `__getattr__`, which may warn or answer for another, is not asked."""
    for found in (getattr(env, "__dict__", {}).get("num_envs"), getattr(type(env), "num_envs", None)):
        if isinstance(found, property):
            found = found.__get__(env)
        if isinstance(found, int) and found > 0:
            return found, True
    shape = getattr(reward, "shape", None)
    if shape is None and isinstance(reward, (list, tuple)) and reward:
        shape = (len(reward),)
    return (int(shape[0]), True) if shape else (1, False)


def observation_of_reset(result: Any) -> Any:
    """Of gym's and Gymnasium's `reset`."""
    pair = isinstance(result, tuple) and len(result) == 2 and isinstance(result[1], (dict, list))
    return result[0] if pair else result


class Answer:
    """The parts of what `step` returned."""

    def __init__(self, result: Any) -> None:
        self.observation = self.info = None
        self.terminated: Any = False
        self.truncated: Any = None
        """None where the env has one flag for both."""
        size = len(result) if isinstance(result, (tuple, list)) else 0
        if size >= 5:
            self.observation, self.reward, self.terminated, self.truncated, self.info = result[:5]
        elif size == 4:
            self.observation, self.reward, self.terminated, self.info = result
        elif size == 3 and isinstance(result[1], bool):  # the (reward, done, score) of many a tutorial
            self.reward, self.terminated = result[:2]
        elif size == 3:
            self.observation, self.reward, self.terminated = result
        else:
            for name in ("observation", "obs", "state"):
                if self.observation is None:
                    self.observation = getattr(result, name, None)
            self.reward = getattr(result, "reward", None)
            self.terminated = getattr(result, "terminated", getattr(result, "done", False))
            self.truncated = getattr(result, "truncated", None)
            self.info = getattr(result, "info", None)

    def told(self, name: str, place: int, rows: int) -> Any:
        """From `info`: that of one env."""
        if isinstance(self.info, (list, tuple)):
            one = self.info[place] if place < len(self.info) else None
            return one.get(name) if isinstance(one, dict) else None
        if not isinstance(self.info, dict) or name not in self.info:
            return None
        value = self.info[name]
        return row_of(value, place, rows) if rows > 1 or name.startswith("final") else value

    def flags(self, place: int, rows: int) -> tuple[bool, bool]:
        """(terminated, truncated); one flag for both is taken apart by what gym's and Stable-Baselines3's envs tell."""
        ended = bool(row_of(self.terminated, place, rows))
        if self.truncated is not None:
            return ended, bool(row_of(self.truncated, place, rows))
        cut = ended and bool(self.told("TimeLimit.truncated", place, rows))
        return ended and not cut, cut

    def final_observation(self, place: int, rows: int) -> Any:
        """Where the env restarts within the step."""
        for name in ("final_obs", "final_observation", "terminal_observation"):
            found = self.told(name, place, rows)
            if found is not None:
                return found
        return None


def rows_of_step(seen: EnvRows, action: Any, result: Any, near: bool) -> list[tuple[str, list[str]]]:
    """(key, fingerprints) of all that this call did."""
    answer, rows = Answer(result), len(seen.steps)
    found = []
    for place in range(rows):
        observation = answer.observation if not seen.batched else row_of(answer.observation, place, rows)
        if seen.restarts[place]:
            seen.restarts[place] = False
            found.append((seen.key_of_reset(place), [fingerprint(observation, near)]))
            continue
        ends = answer.flags(place, rows)
        final = answer.final_observation(place, rows) if seen.batched and any(ends) else None
        mask = answer.told("action_mask", place, rows)
        words = [
            fingerprint(observation if final is None else final, near),
            fingerprint(row_of(action, place, rows) if seen.batched else action, near),
            *(str(int(end)) for end in ends),
            _as_float(row_of(answer.reward, place, rows) if seen.batched else answer.reward, near),
            NOTHING if mask is None else fingerprint(mask),
        ]
        found.append((seen.key_of_step(place), words))
        if final is not None:
            found.append((seen.key_of_reset(place), [fingerprint(observation, near)]))
        elif seen.batched and any(ends):
            seen.restarts[place] = True
    return found


def value_of_step(seen: EnvRows, field: str, args: tuple[Any, ...], result: Any, place: int) -> Any:
    """One field of one row itself."""
    answer, rows = Answer(result), len(seen.steps)
    if field == "observation":
        final = answer.final_observation(place, rows) if seen.batched and any(answer.flags(place, rows)) else None
        if final is not None:
            return final
    value = {"observation": answer.observation, "reward": answer.reward}.get(field)
    if field == "action":
        value = args[1] if len(args) > 1 else None
    return row_of(value, place, rows) if seen.batched else value


def _as_float(reward: Any, near: bool) -> str:
    """1 and 1.0 are one reward."""
    word = fingerprint(reward, near)
    return repr(float(word)) if word.lstrip("-").isdigit() else word
