"""Rows on a disk, for a replay larger than memory: a file mapped into memory, which the kernels see as an array."""

from __future__ import annotations

import mmap
import os
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np

from hotloop.core.errors import SettingsError
from hotloop.core.types import Array
from hotloop.replay.settings import ReplaySettings


def map_rows(num_bytes: int, row_bytes: int, folder: str) -> Array:
    """Zeros, `num_bytes` of uint8, in a file without a name in `folder`.

    It has no name so that nothing is left behind however the process ends: checkpoints hold what must last. Its space
    is reserved at once, since a disk that fills up later kills a process that writes through a map, without a word.
    """
    place = Path(folder).expanduser()
    try:
        with tempfile.TemporaryFile(dir=place, buffering=0) as file:
            os.posix_fallocate(file.fileno(), 0, num_bytes)
            mapped = mmap.mmap(file.fileno(), num_bytes)  # keeps the file when it is closed
    except OSError as error:
        raise SettingsError(
            f"`replay.memory` is disk, but {num_bytes:,} bytes cannot be mapped in {place}: {error.strerror}",
            "name a folder on another disk with `replay.folder`, or lower `replay.capacity`",
        ) from error
    if row_bytes <= mmap.PAGESIZE:
        # A drawn row is one page or two. By default much more is read around it: 3,000 rows out of 1 GB that was not
        # in memory read all of it and took 320 us each, with this advice 14 MB and 70 to 140 us.
        mapped.madvise(mmap.MADV_RANDOM)
    return np.frombuffer(mapped, dtype=np.uint8)


def placed(settings: ReplaySettings, run_dir: str) -> ReplaySettings:
    """With `folder` on the disk of the run where none is named: the run's own directory may not be there yet."""
    if settings.memory != "disk" or settings.folder:
        return settings
    path = Path(run_dir).absolute()
    return replace(settings, folder=str(next(place for place in (path, *path.parents) if place.is_dir())))


def require_folder(folder: str) -> Path:
    path = Path(folder).expanduser()
    if not path.is_dir():
        raise SettingsError(
            f"`replay.folder` is {folder}, which is not a folder", "name one that exists, on a disk with room"
        )
    return path
