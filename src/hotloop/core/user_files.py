"""Code in a file of the user's own, named `path/to/file.py:Name`: an env, or the torso of a network.

Only what runs the file runs code; whoever calls it has asked for `--trust` first.
"""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType


def is_file(text: str) -> bool:
    return text.rpartition(":")[0].endswith(".py")


def split_file(text: str) -> tuple[Path, str]:
    """The file, whole, and the name in it."""
    path, _, name = text.rpartition(":")
    return Path(path).expanduser().resolve(), name


def whole_path(text: str) -> str:
    """The same file from any folder, however it was typed; anything else as it is."""
    return ":".join(map(str, split_file(text))) if is_file(text) else text


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
    sys.path.insert(0, str(path.parent))  # as when the file is run: it may import its neighbours
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    finally:
        sys.path.remove(str(path.parent))
    return module
