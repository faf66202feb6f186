"""Blaming the right env: every mistake of an env we did not write becomes one error that names env, index and field."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hotloop.core.errors import EnvError

LARGEST_REWARD = float(np.finfo(np.float32).max)
BOOLEANS: frozenset[Any] = frozenset({bool, np.bool_})


class BadValueError(Exception):
    """What is wrong with one value, before it is known which env it came from."""


@dataclass(slots=True)
class Witness:
    """Knows which env is being stepped and how often it was; turns complaints into errors."""

    env_id: str
    steps: int = 0

    def error(self, index: int | None, complaint: str) -> EnvError:
        who = f"`{self.env_id}` env {index}" if index is not None else f"`{self.env_id}` (all envs)"
        when = f"after {self.steps} steps of each env" if self.steps else "before its first step"
        return EnvError(f"{who} {complaint}, {when}", f"run `hotloop envs check {self.env_id}` for the whole contract")

    def raised(self, index: int | None, method: str, error: Exception) -> EnvError:
        return self.error(index, f"raised {type(error).__name__} in `{method}` ({error})")


def complain_about_step(answer: Any, encoder: Any) -> str:
    """Which of the five values of a refused `step` answer was wrong, and how."""
    expected = "(observation, reward, terminated, truncated, info)"
    if not isinstance(answer, tuple) or len(answer) != 5:
        given = f"{len(answer)} values" if isinstance(answer, tuple) else f"a {type(answer).__name__}"
        return f"returned {given} from `step` where {expected} was expected"
    obs, reward, terminated, truncated, info = answer
    if complaint := complain_about_obs(obs, encoder):
        return complaint
    for name, flag in (("terminated", terminated), ("truncated", truncated)):
        if flag.__class__ not in BOOLEANS:
            return f"returned `{name}` {flag!r} of type {type(flag).__name__} where a bool was expected"
    if not isinstance(info, dict):
        return f"returned `info` of type {type(info).__name__} where a dict was expected"
    return f"returned `reward` {reward!r} where a finite number was expected"


def complain_about_obs(obs: Any, encoder: Any) -> str:
    try:
        encoder.write(encoder.empty(1), 0, obs)
    except Exception as error:
        return f"returned `obs` {error}"
    return ""


def unpack_reset(answer: Any) -> tuple[Any, dict[str, Any]]:
    if not isinstance(answer, tuple) or len(answer) != 2 or not isinstance(answer[1], dict):
        raise BadValueError("returned something other than (observation, info) from `reset`")
    return answer
