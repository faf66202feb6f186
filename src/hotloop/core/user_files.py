"""Code in a file of the user's own, named `path/to/file.py:Name`: an env, or the torso of a network.

Only what runs the file runs code; whoever calls it has asked for `--trust` first.

A run that was sent to another machine names the file as its owner does; where the folder was put here stands in the
process's environment, so that settings, checkpoints and digests are the same on both.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import sys
from pathlib import Path
from types import ModuleType


def is_file(text: str) -> bool:
    return text.rpartition(":")[0].endswith(".py")


SENT = "HOTLOOP_SENT_FOLDERS"
"""A JSON object: folder on the machine that a run comes from -> where its content lies here."""


def split_file(text: str) -> tuple[Path, str]:
    """Where the file lies on this machine, and the name in it."""
    path, _, name = whole_path(text).rpartition(":")
    return located(Path(path)), name


def whole_path(text: str) -> str:
    """The same file from any folder, however it was typed; anything else as it is."""
    path, _, name = text.rpartition(":")
    return f"{Path(path).expanduser().resolve()}:{name}" if is_file(text) else text


def located(path: Path) -> Path:
    """Where a file that was sent lies here; any other path as it is."""
    for root, here in json.loads(os.environ.get(SENT, "{}")).items():
        if path.is_relative_to(root):
            return Path(here) / path.relative_to(root)
    return path


def file_digest(text: str) -> str:
    """SHA-256 of the file's content now; empty where there is none."""
    path = split_file(text)[0]
    return hashlib.sha256(path.read_bytes()).hexdigest() if is_file(text) and path.is_file() else ""


def run_digest(text: str) -> str:
    """Of the content that this process has run, whatever became of the file since."""
    return _digests_as_run.get(split_file(text)[0]) or file_digest(text)


_digests_as_run: dict[Path, str] = {}


def run_file(path: Path) -> ModuleType:
    """Run the file once per process: an edit during a run must not change what is made of it later on."""
    name = f"{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    _digests_as_run[path] = hashlib.sha256(path.read_bytes()).hexdigest()
    sys.modules[name] = module
    sys.path.insert(0, str(path.parent))  # as when the file is run: it may import its neighbors
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    finally:
        sys.path.remove(str(path.parent))
    return module
