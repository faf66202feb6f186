"""The process a run trains in: its threads, its treatment of tiny numbers, its devices. Left as it was found."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch

from hotloop.core.errors import SettingsError


@contextmanager
def machine_for(threads: int) -> Iterator[None]:
    """Threads as asked; denormals flushed, since Adam's moments of dead units decay into them and slow everything.

    What lives already (PyTorch's hundred thousand objects) is put out of the garbage collector's sight: looking
    through it again and again was a twentieth of a loop through a Python env.
    """
    threads_before, flushed_before = torch.get_num_threads(), denormals_are_flushed()
    froze = gc.get_freeze_count() == 0  # who froze before us keeps what he has frozen
    if froze:
        gc.freeze()
    torch.set_num_threads(threads)
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        if froze:
            gc.unfreeze()
        torch.set_num_threads(threads_before)
        torch.set_flush_denormal(flushed_before)


def denormals_are_flushed() -> bool:
    """Whether this thread's arithmetic takes numbers below 1e-38 for zero."""
    return bool((np.full(1, 1e-40, np.float32) * np.float32(1.0))[0] == 0.0)


def require_device(device: str) -> None:
    kind = device.split(":")[0]
    if kind not in ("cpu", "cuda"):
        raise SettingsError(f"`device` is `{device}`, expected `cpu`, `cuda` or `cuda:<number>`")
    if kind == "cuda" and not torch.cuda.is_available():
        raise SettingsError(f"`device` is `{device}`, but PyTorch sees no such device here", "use `--device cpu`")
