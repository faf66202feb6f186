"""Where compiled kernels are kept between processes, by content.

Numba's own cache notices an edit in a kernel's file but not in a file it calls, is keyed by the path of the
installation, and lets two processes that compile the same function for different types overwrite each other's entries.
Here the folder's name is a hash over the kernel's file and every file of ours that it imports, directly or not, and
each signature has files of its own: an edit recompiles what depends on it, a second installation of the same version
nothing, and processes side by side write the same bytes, or each its own. Numba's settings stay as the user has them.
"""

from __future__ import annotations

import hashlib
import re
import sys
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite
import numba
import numpy as np
from numba.core import sigutils
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile

from hotloop.core.own_folders import NoFolder, cache_base, own_folder, unsafe
from hotloop.core.terminal import say

PACKAGE = Path(__file__).parents[1]
HINT = "set NUMBA_CACHE_DIR to a folder that only you can write"
IMPORT = re.compile(r"^\s*(?:from\s+(hotloop[\w.]*)\s+import\s+(\([^)]*\)|[^\n]+)|import\s+(hotloop[\w.]*))", re.M)
WITHOUT_CODE = {"hotloop.core.types", "hotloop.core.kernel_cache"}
"""What kernels import from these is not compiled: annotations, and this file."""


def kernels_folder() -> Path:
    """The folder of all kernels: the one that numba was told (`NUMBA_CACHE_DIR`), or in the user's cache."""
    named = numba.config.CACHE_DIR  # type: ignore[attr-defined]
    return own_folder(Path(named) / "hotloop-kernels" if named else cache_base() / "hotloop" / "kernels")


@cache
def folder_of(module: str, file: str) -> Path | None:
    """Where the kernels of one file lie; None, and it is said, where there is no folder that could be trusted."""
    try:
        return own_folder(kernels_folder() / f"{module}-{source_hash(Path(file))}")
    except NoFolder as problem:
        say_not_kept(str(problem))
        return None


_said: list[str] = []


def say_not_kept(problem: str) -> None:
    """One sentence per process."""
    if not _said:
        _said.append(problem)
        say(f"machine-code kernels are compiled every time: {problem}; {HINT}")


def kernels_are_kept() -> bool:
    """Whether all that was compiled so far will be there the next time."""
    return not _said


def imported_files(path: Path) -> set[Path]:
    """Every file of ours that a file imports, directly or not, with itself."""
    found, waiting = set(), [path]
    while waiting:
        one = waiting.pop()
        if one not in found:
            found.add(one)
            waiting += _direct_imports(one)
    return found


@cache
def _direct_imports(path: Path) -> tuple[Path, ...]:
    modules = []
    for module, names, plain in IMPORT.findall(path.read_text()):
        modules += [module or plain, *(f"{module}.{name}" for name in re.findall(r"\w+", names))]
    files = [PACKAGE.joinpath(*name.split(".")[1:]) for name in modules if name not in WITHOUT_CODE]
    places = [place for file in files for place in (file.with_suffix(".py"), file / "__init__.py")]
    return tuple(place for place in places if place.is_file() and place != PACKAGE / "__init__.py")


@cache
def source_hash(path: Path) -> str:
    """Of all sources that a file's kernels are compiled from, and of the compilers."""
    digest = hashlib.sha256(" ".join(library.__version__ for library in (numba, llvmlite, np)).encode())
    for source in sorted(imported_files(path)):
        place = source.relative_to(PACKAGE).as_posix() if source.is_relative_to(PACKAGE) else source.name
        digest.update(place.encode() + b"\0" + _contents_hash(source))
    return digest.hexdigest()[:16]


@cache
def _contents_hash(path: Path) -> bytes:
    return hashlib.sha256(path.read_bytes()).digest()


class _CompiledCode(CompileResultCacheImpl):
    """How numba writes and reads a compiled function; its own constructor would look for a folder."""

    def __init__(self, function: Any) -> None:
        self._lineno = function.__code__.co_firstlineno
        self._locator = self  # asked for the file by a warning
        self._py_file = function.__code__.co_filename


class KernelCache(FunctionCache):
    """What a kernel asks before it compiles. Nothing is looked at before the first question."""

    def __init__(self, function: Any) -> None:
        self._py_func = function
        self._name = repr(function)
        self._impl = _CompiledCode(function)
        self.enable()

    @property
    def cache_path(self) -> str | None:
        folder = self._folder()
        return None if folder is None else str(folder)

    def _folder(self) -> Path | None:
        return folder_of(self._py_func.__module__, self._py_func.__code__.co_filename) if self._enabled else None

    def _file(self, folder: Path, key: Any) -> Any:
        """The index and the code of one signature; the hash in their names is of all that decides about the code."""
        decided = hashlib.sha256(repr(key).encode()).hexdigest()[:16]
        name = f"{self._py_func.__name__}-{decided}.py{sys.version_info[0]}{sys.version_info[1]}"
        return IndexDataCacheFile(str(folder), name, source_stamp="")

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        target_context.refresh()
        folder = self._folder()
        if folder is None:
            return None
        signature = sigutils.normalize_signature(sig)
        key = self._index_key(signature, target_context.codegen())
        file = self._file(folder, key)
        try:
            if any(unsafe(folder / name) for name in (file._index_name, file._data_name(1))):
                return None
            data = file.load(key)
            found = None if data is None else self._impl.rebuild(target_context, data)
        except Exception:  # missing, or damaged in any way that reading a pickle can meet: compiled again, and replaced
            return None
        return found if found is not None and tuple(found.signature.args) == tuple(signature[0]) else None

    def save_overload(self, sig: Any, data: Any) -> None:
        folder = self._folder()
        if folder is None or not self._impl.check_cachable(data):
            return
        key = self._index_key(sigutils.normalize_signature(sig), data.codegen)
        file = self._file(folder, key)
        try:  # the code first, then the index that names it; each appears whole or not at all
            file._save_data(file._data_name(1), self._impl.reduce(data))
            file._save_index({key: file._data_name(1)})
        except OSError as error:  # a full disk, or a folder to read from only
            say_not_kept(f"{folder} cannot be written ({error.strerror})")

    def flush(self) -> None:
        """Nothing: an entry is replaced when its kernel is compiled again."""
