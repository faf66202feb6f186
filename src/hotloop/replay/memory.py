"""Replay is the largest thing a run allocates: its size is known beforehand, and refused where it cannot fit."""

from __future__ import annotations

import psutil

from hotloop.core.errors import SettingsError
from hotloop.core.types import ObsSpec
from hotloop.replay.layout import make_layout
from hotloop.replay.n_step import Returns, window_bytes
from hotloop.replay.settings import ReplaySettings
from hotloop.replay.sum_tree import tree_bytes

USABLE_SHARE = 0.8


def available_bytes() -> int:
    return int(psutil.virtual_memory().available)


def estimate_bytes(
    settings: ReplaySettings, obs_spec: ObsSpec, num_envs: int, returns: Returns, num_actions: int | None = None
) -> int:
    """Bytes of a full replay with its tree and n-step windows; gathered batches are extra."""
    layout = make_layout(obs_spec, num_actions)
    tree = tree_bytes(settings.capacity) if settings.prioritised else 0
    return settings.capacity * layout.row_bytes + tree + window_bytes(layout, num_envs, returns)


def require_memory(
    settings: ReplaySettings, obs_spec: ObsSpec, num_envs: int, returns: Returns, num_actions: int | None = None
) -> None:
    """Refuse a replay above 80 % of the memory that is free now, naming a capacity that fits."""
    needed = estimate_bytes(settings, obs_spec, num_envs, returns, num_actions)
    limit = int(USABLE_SHARE * available_bytes())
    if needed <= limit:
        return
    layout = make_layout(obs_spec, num_actions)
    row = layout.row_bytes + (tree_bytes(settings.capacity) / settings.capacity if settings.prioritised else 0)
    fitting = _round_down(int((limit - window_bytes(layout, num_envs, returns)) / row))
    raise SettingsError(
        f"a replay of {settings.capacity:,} transitions needs {_gib(needed)}; {_gib(limit)} may be used "
        f"(80 % of the memory that is free)",
        f"replay.capacity={fitting} fits" if fitting >= 1 else "free some memory: not even a few transitions fit",
    )


def _round_down(count: int) -> int:
    """To two significant digits: a number one would type, with a little room."""
    if count < 100:
        return max(count - 1, 0)
    unit = 10 ** (len(str(count)) - 2)
    return count // unit * unit


def _gib(count: int) -> str:
    return f"{count / 2**30:,.2f} GiB"
