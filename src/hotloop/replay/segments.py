"""The ring in segments, for checkpoints: which stretches of rows have changed since they were saved.

Rows are only ever written one after another, so that nothing need be noted when a row is added: the counts of rows at
two moments say which segments differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hotloop.core.types import Array

SEGMENT_BYTES = 16 * 2**20
"""Small enough that one row more costs little to save, large enough that a terabyte is no more than 65,536 files."""


@dataclass(frozen=True, slots=True)
class SegmentedRows:
    """Pieces of the rows, and their versions: where two versions are one object, so are the bytes of their pieces."""

    pieces: list[Array]
    versions: list[object]


class RowVersions:
    """A version for each segment of `capacity` rows, renewed where rows were written."""

    def __init__(self, capacity: int, row_bytes: int) -> None:
        self.segment_rows = max(1, SEGMENT_BYTES // row_bytes)
        self._capacity = capacity
        self._versions: list[object] = [object() for _ in range(-(-capacity // self.segment_rows))]
        self._num_added = 0

    def cut(self, rows: Array, num_added: int) -> SegmentedRows:
        """The filled `rows` when `num_added` were ever added: views, not copies."""
        for segment in self._changed(num_added):
            self._versions[segment] = object()
        self._num_added = num_added
        starts = range(0, max(len(rows), 1), self.segment_rows)
        pieces = [rows[start : start + self.segment_rows] for start in starts]
        return SegmentedRows(pieces, self._versions[: len(pieces)])

    def adopt(self, lengths: Sequence[int], versions: Sequence[object], num_added: int) -> None:
        """The rows were loaded from pieces so long and of these versions; cut in another way, they are all new."""
        same_cut = [*lengths[:-1]] == [self.segment_rows] * (len(lengths) - 1) and lengths[-1] <= self.segment_rows
        fresh: list[object] = [object() for _ in self._versions]
        self._versions = [*versions, *fresh[len(versions) :]] if same_cut else fresh
        self._num_added = num_added

    def _changed(self, num_added: int) -> Iterator[int]:
        count, first = min(num_added - self._num_added, self._capacity), self._num_added % self._capacity
        stop = min(first + count, self._capacity)
        for start, end in ((first, stop), (0, first + count - stop)):
            if end > start:
                yield from range(start // self.segment_rows, (end - 1) // self.segment_rows + 1)
