"""One trainer per run directory: an flock, which the kernel drops when its holder dies, however it dies."""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import suppress
from pathlib import Path

from hotloop.core.errors import RunError
from hotloop.runs.files import explained, write_all

_held: set[int] = set()


def _drop_in_child() -> None:
    """A forked worker shares the lock through its copy of the descriptor: were it to outlive a killed trainer, the
    run could not be resumed. Closing the copy leaves the parent's lock in force."""
    for descriptor in _held:
        with suppress(OSError):
            os.close(descriptor)
    _held.clear()


os.register_at_fork(after_in_child=_drop_in_child)


def acquire(path: Path) -> int:
    """Lock the file `path` for this process and write its pid there; RunError where another holds it."""
    with explained("lock", path):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
        try:
            _lock_patiently(descriptor)
            os.ftruncate(descriptor, 0)
            write_all(descriptor, f"{os.getpid()}\n".encode())
        except BlockingIOError:
            holder = os.pread(descriptor, 32, 0).decode(errors="replace").strip() or "unknown"
            os.close(descriptor)
            raise RunError(
                f"run {path.parent} is being trained by another process (pid {holder})",
                "wait until it is done, or stop it; it will save a checkpoint first",
            ) from None
        except BaseException:
            os.close(descriptor)
            raise
    _held.add(descriptor)
    return descriptor


def release(descriptor: int) -> None:
    if descriptor in _held:
        _held.discard(descriptor)
        os.close(descriptor)


def is_held(path: Path) -> bool:
    """Whether somebody trains here now."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return False


def _lock_patiently(descriptor: int) -> None:
    """`is_held` locks for a moment to find out; that must not turn a trainer away."""
    for _ in range(5):
        with suppress(BlockingIOError):
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        time.sleep(0.02)
    return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
