"""Folders for code that we will run later: only we, or the machine's administrator, may be able to change them.

Compiled kernels are pickles and shared libraries: who can write them, or swap a folder above them, runs code as us. So
owner and mode are checked of the folder and of everything above it, and an unsafe one is not used.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

WRITABLE_BY_GROUP, WRITABLE_BY_OTHERS = stat.S_IWGRP, stat.S_IWOTH


class NoFolder(Exception):
    """There is no folder that could be used; says why, as the end of a sentence."""


def cache_base() -> Path:
    """Where a user's caches lie: `XDG_CACHE_HOME`, or `.cache` in the home folder."""
    named = os.environ.get("XDG_CACHE_HOME")
    if named:
        return Path(named)
    try:
        return Path.home() / ".cache"
    except RuntimeError:
        raise NoFolder("there is no home folder") from None


def own_folder(folder: Path) -> Path:
    """Make `folder`, for us alone, where it is missing; NoFolder where that fails or others could change it."""
    folder = Path(os.path.abspath(folder))
    missing = [path for path in (folder, *folder.parents) if not os.path.lexists(path)]
    try:
        for path in reversed(missing):
            path.mkdir(mode=0o700, exist_ok=True)
        problem = _problem(folder)
    except OSError as error:
        raise NoFolder(f"{error.filename or folder} cannot be used ({error.strerror})") from None
    if problem:
        raise NoFolder(problem)
    return folder


def _problem(folder: Path) -> str:
    """Why what lies in an existing folder cannot be trusted; empty where it can."""
    if folder.is_symlink():
        return f"{folder} is a symbolic link"
    if not folder.is_dir():
        return f"{folder} is not a folder"
    if os.name == "nt":  # owners and modes mean something else there; profiles are private
        return ""
    real = Path(os.path.realpath(folder))
    above = [*folder.parents, *real.parents]
    return next((text for path in (folder, *above) if (text := unsafe(path, is_above=path != folder))), "")


def unsafe(path: Path, is_above: bool = False) -> str:
    """Who else could change what lies at `path`. In a folder above it, the sticky bit keeps others from our entries."""
    entry = path.lstat()
    if entry.st_uid not in {0, os.geteuid(), os.stat("/").st_uid}:
        return f"{path} belongs to another user"
    if stat.S_ISLNK(entry.st_mode) or (is_above and entry.st_mode & stat.S_ISVTX):
        return ""
    if entry.st_mode & WRITABLE_BY_OTHERS or (entry.st_mode & WRITABLE_BY_GROUP and not _is_private(entry.st_gid)):
        return f"other users may write to {path}"
    return ""


def _is_private(group: int) -> bool:
    """Whether this is the user's own group, which has nobody else in it: where the umask is 002, that is usual."""
    import grp
    import pwd

    try:
        user, members = pwd.getpwuid(os.geteuid()), grp.getgrgid(group)
    except KeyError:
        return False
    return members.gr_name == user.pw_name and group == user.pw_gid and set(members.gr_mem) <= {user.pw_name}
