"""Durable writes and guarded reads.

A rename is atomic but not durable, and neither orders the data before the name: a file is fsynced before it is
renamed and its folder after, or a power cut may leave a good name on empty content.

JSON and TOML in, JSON out: strict about types on the way out; about size, depth and numbers on the way in, since
anybody may have written the file.

The version of everything a run writes; raised when an older reader would misunderstand a newer file.
"""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import re
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hotloop.core.errors import RunError
from hotloop.core.settings import DEEPEST, require_shallow

TEMPORARY = ".tmp-"
"""Names that start so are never read."""
_TEMPORARY_NAME = re.compile(r"\.tmp-[A-Za-z0-9_][A-Za-z0-9_.-]{0,200}-[0-9]{1,10}-[0-9a-f]{8}")
_OUR_FILE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,63}(\.json|\.safetensors|\.[0-9]{6,}\.segment)")


_HINTS = {
    errno.ENOSPC: "free some space on that disk; what was saved before is untouched",
    errno.EDQUOT: "free some of your quota on that disk; what was saved before is untouched",
    errno.EFBIG: "raise the file size limit (`ulimit -f`); what was saved before is untouched",
    errno.EROFS: "the file system is read-only; choose a run directory that can be written",
    errno.EACCES: "check the permissions, or choose a run directory that can be written",
    errno.EPERM: "check the permissions, or choose a run directory that can be written",
    errno.EIO: "the disk reports a fault; look at the system log before writing to it again",
}


@dataclass(frozen=True, slots=True)
class FileRecord:
    size: int
    sha256: str


@contextmanager
def explained(action: str, path: Path) -> Iterator[None]:
    """Turn an OSError into a RunError that names the file and what to do."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        hint = _HINTS.get(error.errno or 0, "check that the path exists and can be used")
        raise RunError(f"cannot {action} {path}: {reason}", hint) from error


def temporary_beside(path: Path) -> Path:
    return path.with_name(f"{TEMPORARY}{path.name}-{os.getpid()}-{os.urandom(4).hex()}")


def is_temporary(name: str) -> bool:
    """Whether `temporary_beside` can have made it: such a thing is removed where a stopped write left it."""
    return _TEMPORARY_NAME.fullmatch(name) is not None


def is_real_folder(path: Path) -> bool:
    """Not a symbolic link to one, which may lead out of the run."""
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False


def is_plain_file(path: Path) -> bool:
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except OSError:
        return False


def require_real_folder(path: Path) -> None:
    """Refuse a folder of a run that is there and is something else: what is in it would be somebody else's."""
    if os.path.lexists(path) and not is_real_folder(path):
        what = "a symbolic link" if path.is_symlink() else "not a folder"
        raise RunError(
            f"{path} is {what}; the folders of a run must be real ones",
            "nothing was read, written or removed there; put the folder itself in its place",
        )


def fsync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folder(folder: Path) -> None:
    """Create `folder` and its parents, each entry durable."""
    with explained("create", folder):
        missing = [path for path in [folder, *folder.parents] if not path.exists()]
        folder.mkdir(parents=True, exist_ok=True)
        for path in reversed(missing):
            fsync_folder(path.parent)


def write_all(descriptor: int, data: bytes | memoryview) -> None:
    """`os.write` may write less than it was given (Linux stops at 2 GiB)."""
    view = memoryview(data)
    while len(view) > 0:
        view = view[os.write(descriptor, view) :]


def write_chunks(path: Path, chunks: Iterable[bytes | memoryview]) -> FileRecord:
    """Write a new file, fsynced, hashing as it goes; a failed one is removed. Raises OSError."""
    digest, size = hashlib.sha256(), 0
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        for chunk in chunks:
            write_all(descriptor, chunk)
            digest.update(chunk)
            size += len(chunk)
        os.fsync(descriptor)
    except BaseException:
        with suppress(OSError):
            path.unlink()
        raise
    finally:
        os.close(descriptor)
    return FileRecord(size, digest.hexdigest())


def write_file(path: Path, data: bytes) -> None:
    """Replace `path` by `data`: after a crash it holds the old content or the new, never a mixture."""
    temporary = temporary_beside(path)
    with explained("write", path):
        try:
            write_chunks(temporary, [data])
            os.replace(temporary, path)
            fsync_folder(path.parent)
        except BaseException:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise


@contextmanager
def opened(path: Path) -> Iterator[tuple[int, int]]:
    """Descriptor and size of a regular file. Links are refused (they may lead out of the run), and so are pipes,
    which would block for ever. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        yield descriptor, status.st_size
    finally:
        os.close(descriptor)


def read_file(path: Path, limit: int) -> bytes:
    """The whole of a regular file of at most `limit` bytes."""
    with explained("read", path), opened(path) as (descriptor, size):
        if size > limit:
            raise RunError(f"{path} is {size} bytes, more than the {limit} such a file may have")
        return read_exactly(descriptor, size)


def read_exactly(descriptor: int, size: int) -> bytes:
    """Up to `size` bytes: fewer only where the file ends early (a bare `os.read` stops at 2 GiB)."""
    with os.fdopen(os.dup(descriptor), "rb") as stream:
        return stream.read(size)


def foreign_names(folder: Path) -> list[str]:
    """What is in a checkpoint's folder that we cannot have put there."""
    with explained("read", folder), os.scandir(folder) as entries:
        return sorted(
            entry.name
            for entry in entries
            if not (entry.is_file(follow_symlinks=False) and _OUR_FILE.fullmatch(entry.name))
        )


def remove_folder(folder: Path) -> None:
    """Remove a checkpoint's folder so that no crash leaves a half-removed one under its own name; one that holds
    anything else is left as it is, with a RunError."""
    require_real_folder(folder)
    if foreign := foreign_names(folder):
        raise RunError(f"{folder} holds {', '.join(foreign[:3])}, which hotloop did not put there: it is left as it is")
    doomed = folder if folder.name.startswith(TEMPORARY) else temporary_beside(folder)
    with explained("remove", folder):
        if doomed != folder:
            os.rename(folder, doomed)
        shutil.rmtree(doomed)


MAX_JSON_BYTES = 64 * 2**20
_MOST_DIGITS = 20


def canonical_json(data: Any) -> bytes:
    """One spelling per value: sorted keys, no spaces, floats by repr (NaN and infinities in Python's spelling)."""
    return json.dumps(data, sort_keys=True, separators=(",", ":")).encode()


def json_safe(value: Any, where: str) -> Any:
    """A JSON-safe copy of `value`: numpy scalars become Python's, anything that would not come back is refused."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [json_safe(item, where) for item in value]
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {key: json_safe(item, f"{where}/{key}") for key, item in value.items()}
    raise RunError(
        f"state `{where}` holds a {type(value).__name__}, which cannot be saved",
        "save numpy arrays, numbers, strings, None, or lists and dicts (with string keys) of them",
    )


def finite_or_null(value: Any) -> Any:
    """Strict JSON has no NaN or infinity: other tools read what we write, so they become null."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: finite_or_null(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite_or_null(item) for item in value]
    return value


def parse_strict(data: bytes) -> Any:
    """What we write ourselves outside checkpoints. As there, a number that is not finite is null, and so is one of more
    than 20 digits. Raises ValueError, also for what is nested beyond 16 levels and for text that cannot be written."""
    value = _STRICT.decode(data.decode())
    if data.count(b"[") + data.count(b"{") > DEEPEST:
        require_shallow(value)
    if b"\\ud" in data or b"\\uD" in data:
        json.dumps(value, ensure_ascii=False).encode()  # halves of surrogate pairs, which no terminal and no file takes
    return value


def _whole(text: str) -> int | None:
    return int(text) if len(text) <= _MOST_DIGITS else None


def _finite(text: str) -> float | None:
    value = float(text)
    return value if math.isfinite(value) else None


_STRICT = json.JSONDecoder(parse_int=_whole, parse_float=_finite, parse_constant=lambda name: None)


def parse_json(data: bytes, path: Path) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise RunError(f"{path} is not valid JSON: {error}") from error


def read_json_table(path: Path, limit: int = MAX_JSON_BYTES) -> dict[str, Any]:
    try:
        data = parse_strict(read_file(path, limit))
    except (ValueError, RecursionError) as error:
        raise RunError(f"{path} is not valid JSON: {error}") from error
    if not isinstance(data, dict):
        raise RunError(f"{path} holds a JSON {type(data).__name__} where an object was expected")
    return data


SCHEMA = 1


CHECKPOINT_SCHEMA = 2
"""Of a checkpoint's manifest. 2: the replay lies in segments that checkpoints share (1: in one file of its own)."""
READABLE_CHECKPOINTS = (1, 2)
