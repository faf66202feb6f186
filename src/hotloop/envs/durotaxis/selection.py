"""Which nodes lie left-most."""

from __future__ import annotations

import numpy as np

from hotloop.core.errors import EnvError
from hotloop.core.types import Array
from hotloop.envs.durotaxis.selection_kernels import select_leftmost


def leftmost(x: Array, k: int) -> Array:
    """The indices of the `k` smallest of `x` [V], ascending; of equal ones the older, that is the smaller index.

    The same nodes as `sorted(range(len(x)), key=lambda i: (x[i], i))[:k]`, in time O(V).
    """
    if not 0 <= k <= len(x):
        raise EnvError(f"`k` is {k} of {len(x)} nodes", f"expected 0 to {len(x)}")
    order = np.empty(len(x), np.int64)
    select_leftmost(np.ascontiguousarray(x, np.float64), len(x), k, order)
    chosen = order[:k]
    chosen.sort()
    return chosen
