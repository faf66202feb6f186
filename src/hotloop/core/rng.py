"""One seed, many independent streams, each named after its use.

A stream depends on the run's seed and its own name only, so adding a stream never shifts another one.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np

from hotloop.core.types import Array


def derive_seed(seed: int, *path: str | int) -> int:
    """A 64-bit seed for the stream `path` of a run, e.g. `derive_seed(7, "env", 3)`."""
    text = json.dumps([seed, *path]).encode()
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "little")


def derive_seeds(seed: int, count: int, *path: str | int) -> Array:
    """One seed per env: env i's does not depend on how many there are."""
    return np.array([derive_seed(seed, *path, index) for index in range(count)], dtype=np.uint64)


def stream(seed: int, *path: str | int) -> np.random.Generator:
    """A numpy generator for Python-side draws."""
    return np.random.Generator(np.random.PCG64(derive_seed(seed, *path)))


def generator_state(generator: np.random.Generator) -> dict[str, Any]:
    """The exact state as JSON-safe data (PCG64's 128-bit integers as text)."""
    state = generator.bit_generator.state
    return {
        "state": str(state["state"]["state"]),
        "inc": str(state["state"]["inc"]),
        "has_uint32": state["has_uint32"],
        "uinteger": state["uinteger"],
    }


def restore_generator(generator: np.random.Generator, saved: dict[str, Any]) -> None:
    generator.bit_generator.state = {
        "bit_generator": "PCG64",
        "state": {"state": int(saved["state"]), "inc": int(saved["inc"])},
        "has_uint32": saved["has_uint32"],
        "uinteger": saved["uinteger"],
    }
