"""Replay is the largest thing a run allocates: its size is known beforehand, and refused where it cannot fit."""

from __future__ import annotations

import shutil
from pathlib import Path

import psutil

from hotloop.core.errors import SettingsError
from hotloop.presets.replay_settings import ReplaySettings
from hotloop.replay.layout import RowLayout
from hotloop.replay.n_step import Returns, window_bytes
from hotloop.replay.samplers import tree_bytes
from hotloop.replay.storage import require_folder

USABLE_SHARE = 0.8


def available_bytes() -> int:
    return int(psutil.virtual_memory().available)


def free_disk_bytes(folder: Path) -> int:
    return shutil.disk_usage(folder).free


def estimate_bytes(settings: ReplaySettings, layout: RowLayout, num_envs: int, returns: Returns) -> int:
    """Bytes of a full replay with its tree and n-step windows; gathered batches are extra."""
    tree = tree_bytes(settings.buffer_size) if settings.prioritized else 0
    return settings.buffer_size * layout.row_bytes + tree + window_bytes(layout, num_envs, returns)


def require_room(settings: ReplaySettings, layout: RowLayout, num_envs: int, returns: Returns) -> None:
    """Refuse a replay above 80 % of what is free now, naming a capacity that fits. With rows on a disk that is asked
    of the disk for the rows, and of the memory for the rest."""
    rows = settings.buffer_size * layout.row_bytes
    needed = estimate_bytes(settings, layout, num_envs, returns)
    window = window_bytes(layout, num_envs, returns)
    if settings.memory == "disk":
        place = require_folder(settings.folder)
        _require(settings.buffer_size, rows, 0, free_disk_bytes(place), f"space that is free on the disk of {place}")
        needed -= rows
    _require(settings.buffer_size, needed, window, available_bytes(), "memory that is free")


def _require(capacity: int, needed: int, fixed: int, free: int, what: str) -> None:
    """`fixed` of the bytes needed do not depend on the capacity."""
    limit = int(USABLE_SHARE * free)
    if needed <= limit:
        return
    fitting = _round_down(int((limit - fixed) * capacity / max(needed - fixed, 1)))
    raise SettingsError(
        f"a replay of {capacity:,} transitions needs {_gib(needed)}; {_gib(limit)} may be used (80 % of the {what})",
        f"replay.buffer_size={fitting} fits" if fitting >= 1 else f"free some {what.split()[0]}: hardly anything fits",
    )


def _round_down(count: int) -> int:
    """To two significant digits: a number one would type, with a little room."""
    if count < 100:
        return max(count - 1, 0)
    unit = 10 ** (len(str(count)) - 2)
    return count // unit * unit


def _gib(count: int) -> str:
    return f"{count / 2**30:,.2f} GiB"
