"""One look at every number that is handed in: in numpy it costs several times the storing of a small row."""

from __future__ import annotations

from typing import Any

from hotloop.core.kernels import kernel


@kernel
def count_outside(values: Any, low: Any, high: Any) -> int:
    """How many of `values` [n] are not within `low` .. `high`; NaN is not."""
    count = 0
    for index in range(values.shape[0]):
        if not low <= values[index] <= high:
            count += 1
    return count
