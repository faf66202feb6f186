"""The ring of transitions, in memory or in a file mapped into it, and the arrays that batches are gathered into."""

from __future__ import annotations

import mmap
import os
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from hotloop.core.errors import CheckpointError, SettingsError
from hotloop.core.types import Array, ArraySpec, Batch, Obs
from hotloop.presets.replay_settings import ReplaySettings
from hotloop.replay.layout import HEAD_BYTES, RowLayout
from hotloop.replay.segments import RowVersions
from hotloop.replay.storage_kernels import gather_rows


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
            "name a folder on another disk with `replay.folder`, or lower `replay.buffer_size`",
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


ALIGNMENT = 64  # bytes: each gathered array starts on a cache line of its own


View = tuple[tuple[int, ...], np.dtype, int]
"""Shape, dtype, and byte of the slab at which it begins."""


class BatchPlan:
    """Where obs, action (unless it is one choice) and next_obs of k batches of B rows lie in one slab: worked out once
    for all batches of that size."""

    def __init__(self, layout: RowLayout, k: int, batch_size: int) -> None:
        self.shape = (k, batch_size)
        self.mask_shape = (k, batch_size, layout.num_actions)
        self.is_dict = layout.is_dict
        self._sections: list[tuple[int, int, int]] = []
        self.slab_bytes = 0
        self.obs = self._views_of_obs(layout, HEAD_BYTES)
        behind = HEAD_BYTES + layout.obs_bytes
        self.action = None if layout.action is None else self._add(layout.action, behind)
        self.next_obs = self._views_of_obs(layout, behind + layout.action_bytes)
        self.sections = np.array(self._sections, dtype=np.int64)

    def _views_of_obs(self, layout: RowLayout, base: int) -> dict[str, View]:
        return {part.name: self._add(part.spec, base + part.start * layout.unit.itemsize) for part in layout.parts}

    def _add(self, spec: ArraySpec, row_byte: int) -> View:
        start, rows = self.slab_bytes, self.shape[0] * self.shape[1]
        self._sections.append((row_byte, spec.num_bytes, start))
        self.slab_bytes += -(-spec.num_bytes * rows // ALIGNMENT) * ALIGNMENT
        return (*self.shape, *spec.shape), spec.dtype, start


class BatchArrays:
    """Arrays for k batches of B rows, and the `Batch` that shows them."""

    __slots__ = ("batch", "choice", "mask", "plan", "slab")

    def __init__(self, plan: BatchPlan) -> None:
        shape = plan.shape
        self.plan = plan
        self.slab = np.empty(plan.slab_bytes, np.uint8)
        self.mask = np.empty(plan.mask_shape, np.bool_)
        self.choice, weight = np.empty(shape, np.int64), np.empty(shape, np.float32)
        weight.fill(1.0)  # `np.ones` takes three times as long
        self.batch = Batch(
            self._obs(plan.obs),
            self.choice if plan.action is None else self._view(*plan.action),
            np.empty(shape, np.float32),
            np.empty(shape, np.float32),
            self._obs(plan.next_obs),
            weight,
            np.empty(shape, np.int64),
            self.mask if plan.mask_shape[2] else None,
        )

    def _obs(self, views: dict[str, View]) -> Obs:
        if not self.plan.is_dict:
            return self._view(*views[""])
        return {name: self._view(*view) for name, view in views.items()}

    def _view(self, shape: tuple[int, ...], dtype: np.dtype, start: int) -> Array:
        return np.ndarray(shape, dtype, self.slab, start)


class Ring:
    """`capacity` rows; `num_added` counts every row ever stored, so position and size follow from it."""

    def __init__(self, layout: RowLayout, capacity: int, disk_folder: str | None = None) -> None:
        self.layout = layout
        self.capacity = capacity
        self.row_bytes = layout.row_bytes
        num_bytes = capacity * self.row_bytes
        if disk_folder is not None:
            self.memory = map_rows(num_bytes, self.row_bytes, disk_folder).view(layout.unit)
        else:  # zeros rather than empty: mapped lazily all the same, and padding must not vary between runs
            self.memory = np.zeros(num_bytes // layout.unit.itemsize, dtype=layout.unit)
        self.num_added = 0
        self._versions = RowVersions(capacity, self.row_bytes)

    @property
    def newest(self) -> int:
        return (self.num_added - 1) % self.capacity

    @property
    def size(self) -> int:
        return min(self.num_added, self.capacity)

    @property
    def num_bytes(self) -> int:
        return self.memory.nbytes

    def gather(self, arrays: BatchArrays) -> None:
        """Fill `arrays` with the rows its batch's index names."""
        batch = arrays.batch
        gather_rows(
            self.memory,
            self.row_bytes,
            batch.index,
            arrays.plan.sections,
            arrays.slab,
            arrays.choice,
            batch.reward,
            batch.discount,
            arrays.mask,
        )

    def state(self) -> dict[str, Any]:
        """The filled rows in segments, as views, not copies: write them out before the next `add`."""
        return {"rows": self._versions.cut(self._rows()[: self.size], self.num_added), "num_added": self.num_added}

    def load_state(self, state: dict[str, Any], num_actions: int | None = None) -> None:
        """`rows` in pieces with versions; or one array, as checkpoints held them once."""
        saved, num_added = state["rows"], int(state["num_added"])
        in_pieces = hasattr(saved, "pieces")
        pieces, versions = (saved.pieces, saved.versions) if in_pieces else ([np.asarray(saved)], [object()])
        if num_added < 0:
            raise CheckpointError(f"the saved replay counts {num_added} rows")
        size = min(num_added, self.capacity)
        target = self._rows()[:size]
        lengths: list[int] = []
        for piece in pieces:  # one at a time: they may be read from a disk, and be more than fits into memory
            stretch = target[sum(lengths) :][: piece.shape[0] if piece.ndim else 0]
            if piece.shape != stretch.shape or piece.dtype != np.uint8:
                raise self._not_ours(piece, size)
            actions = np.ascontiguousarray(piece[:, :8]).view(np.int64)  # the first field of a row
            if num_actions is not None and ((actions < 0) | (actions >= num_actions)).any():
                raise CheckpointError(f"a saved transition holds an action that is none of {num_actions}")
            stretch[:] = piece
            lengths.append(len(piece))
        if sum(lengths) != size:
            raise self._not_ours(target[: sum(lengths)], size)
        self.num_added = num_added
        self._versions.adopt(lengths, versions, num_added)

    def _not_ours(self, found: Array, size: int) -> CheckpointError:
        return CheckpointError(
            f"saved replay rows are {found.dtype} {found.shape}, expected uint8 {(size, self.row_bytes)} in all",
            "resume with the `replay.buffer_size` and the env that the run was started with",
        )

    def _rows(self) -> Array:
        return self.memory.view(np.uint8).reshape(self.capacity, self.row_bytes)
