"""An array that is saved in segments, one file each, so that a checkpoint writes only what has changed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, runtime_checkable

import numpy as np

from hotloop.core.types import Array


@runtime_checkable
class Segmented(Protocol):
    """An array cut along its first axis, at least one piece. Where two versions are one object, so are the bytes of
    their pieces: whoever changes a piece gives it a new version, `object()`."""

    @property
    def pieces(self) -> Iterable[Array]: ...

    @property
    def versions(self) -> Sequence[object]: ...


def dtype_and_shape(array: Segmented) -> tuple[np.dtype, list[int]]:
    """Those of the whole array. Raises ValueError where pieces do not fit together."""
    kinds = [(piece.dtype, piece.shape) for piece in array.pieces]
    dtype, shape = kinds[0]
    if any(other != dtype or each[1:] != shape[1:] for other, each in kinds):
        raise ValueError("the segments of an array differ in dtype or in the shape of a row")
    return dtype, [sum(each[0] for _, each in kinds), *shape[1:]]
