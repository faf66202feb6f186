"""The ring of transitions, and the arrays that batches are gathered into."""

from __future__ import annotations

from typing import Any

import numpy as np

from hotloop.core.errors import CheckpointError
from hotloop.core.types import Array, Batch, Obs
from hotloop.replay.layout import HEAD_BYTES, RowLayout
from hotloop.replay.storage_kernels import gather_rows

ALIGNMENT = 64  # bytes: each gathered array starts on a cache line of its own


class BatchArrays:
    """Preallocated arrays for k batches of B rows, and the `Batch` that shows them."""

    def __init__(self, layout: RowLayout, k: int, batch_size: int) -> None:
        shape = (k, batch_size)
        self.sections, slab_bytes = _sections(layout, k * batch_size)
        self.slab = np.zeros(slab_bytes, dtype=np.uint8)
        self.mask = np.zeros((*shape, layout.num_actions), dtype=np.bool_)
        half = len(layout.parts)
        self.batch = Batch(
            obs=self._views(layout, shape, self.sections[:half]),
            action=np.zeros(shape, dtype=np.int64),
            reward=np.zeros(shape, dtype=np.float32),
            discount=np.zeros(shape, dtype=np.float32),
            next_obs=self._views(layout, shape, self.sections[half:]),
            weight=np.ones(shape, dtype=np.float32),
            index=np.zeros(shape, dtype=np.int64),
            next_action_mask=self.mask if layout.num_actions else None,
        )

    def _views(self, layout: RowLayout, shape: tuple[int, int], sections: Array) -> Obs:
        views = {}
        for part, (_, width, start) in zip(layout.parts, sections, strict=True):
            flat = self.slab[start : start + shape[0] * shape[1] * width]
            views[part.name] = flat.view(part.spec.dtype).reshape(*shape, *part.spec.shape)
        return views if layout.is_dict else views[""]


def _sections(layout: RowLayout, rows: int) -> tuple[Array, int]:
    """Where each part of obs, then of next_obs, lies in a row and in the slab, in bytes; and the slab's size."""
    sections, end = [], 0
    for base in (HEAD_BYTES, HEAD_BYTES + layout.obs_bytes):
        for part in layout.parts:
            width = part.spec.num_bytes
            sections.append((base + part.start * layout.unit.itemsize, width, end))
            end += -(-width * rows // ALIGNMENT) * ALIGNMENT
    return np.array(sections, dtype=np.int64), end


class Ring:
    """`capacity` rows; `num_added` counts every row ever stored, so position and size follow from it."""

    def __init__(self, layout: RowLayout, capacity: int) -> None:
        self.layout = layout
        self.capacity = capacity
        self.row_bytes = layout.row_bytes
        # Zeros rather than empty: the system maps them lazily all the same, and padding must not vary between runs.
        self.memory = np.zeros(capacity * self.row_bytes // layout.unit.itemsize, dtype=layout.unit)
        self.num_added = 0

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
            arrays.sections,
            arrays.slab,
            batch.action,
            batch.reward,
            batch.discount,
            arrays.mask,
        )

    def state(self) -> dict[str, Any]:
        """The filled rows as a view, not a copy: write them out before the next `add`."""
        return {"rows": self._rows()[: self.size], "num_added": self.num_added}

    def load_state(self, state: dict[str, Any]) -> None:
        rows, num_added = np.asarray(state["rows"]), int(state["num_added"])
        expected = (min(num_added, self.capacity), self.row_bytes)
        if rows.shape != expected or rows.dtype != np.uint8:
            raise CheckpointError(
                f"saved replay rows are {rows.dtype} {rows.shape}, expected uint8 {expected}",
                "resume with the capacity and the env that the run was started with",
            )
        self._rows()[: len(rows)] = rows
        self.num_added = num_added

    def _rows(self) -> Array:
        return self.memory.view(np.uint8).reshape(self.capacity, self.row_bytes)
