"""The rules of service-chain provisioning that can be chosen, as `env.options`."""

from __future__ import annotations

import math
from dataclasses import dataclass

from hotloop.core.errors import SettingsError
from hotloop.workloads.sfc.tables_kernels import MOST_CENTRES, MOST_ROUNDS


@dataclass(frozen=True, kw_only=True)
class SfcSettings:
    min_data_centres: int = 2
    """Fewest data centres of an episode, 2 to 16; each episode draws how many it has."""

    max_data_centres: int = 4
    """Most data centres of an episode, `min_data_centres` to 16."""

    min_request_count: int = 1
    """Fewest rounds of requests of an episode, 1 to 10; one comes every 4 ms, with one bundle of every service."""

    max_request_count: int = 5
    """Most rounds of requests of an episode, `min_request_count` to 10."""

    satisfied_reward: float = 2.0
    """For every request satisfied during the step."""

    dropped_reward: float = -1.5
    """For every request dropped during the step."""

    invalid_reward: float = -1.0
    """For an action that cannot be carried out."""

    uninstall_needed_reward: float = -0.5
    """For uninstalling a VNF that some pending request still needs."""

    def __post_init__(self) -> None:
        for name, fewest, most in (("data_centres", 2, MOST_CENTRES), ("request_count", 1, MOST_ROUNDS)):
            low, high = getattr(self, f"min_{name}"), getattr(self, f"max_{name}")
            if not fewest <= low <= most:
                raise _bad(f"min_{name}", low, f"{fewest} to {most}", "set the least and the most alike to fix it")
            if not low <= high <= most:
                raise _bad(f"max_{name}", high, f"`min_{name}` ({low}) to {most}", f"also set `min_{name}`")
        for name in ("satisfied_reward", "dropped_reward", "invalid_reward", "uninstall_needed_reward"):
            if not math.isfinite(getattr(self, name)):
                raise _bad(name, getattr(self, name), "a finite number", "leave it out for the usual reward")


def _bad(name: str, value: object, expected: str, hint: str) -> SettingsError:
    return SettingsError(f"`{name}` is {value!r}; expected {expected}", hint)
