"""Machine code without reference counts.

Numba counts references to every array that a function takes, by atomic instructions; between many small functions
that was two fifths of a step with flood fills (77 against 46 microseconds for 256 games). Kernels that allocate
nothing and keep no array can be compiled without; one that allocates is refused by the compiler.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba.core.options import DefaultOptions

from hotloop.core.kernels import compiled

# Numba's own name for it has an underscore: a version that drops it compiles the same code, with counts.
_WITHOUT_COUNTS: dict[str, Any] = {"_nrt": False} if hasattr(DefaultOptions, "_nrt") else {}


def lean_kernel(function: Callable[..., Any]) -> Any:
    """As `hotloop.core.kernels.kernel`, for functions that allocate nothing."""
    return compiled(function, **_WITHOUT_COUNTS)
