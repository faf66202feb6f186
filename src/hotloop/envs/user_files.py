"""Envs in a file of the user's own: `path/to/file.py:Class`, or `path/to/file.py:function` that makes one."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Any

from hotloop.core.errors import EnvError
from hotloop.core.user_files import run_file, split_file
from hotloop.envs.foreign import env_code


def load_maker(env_id: str) -> Callable[..., Any]:
    """The class or function named by `path/to/file.py:Name`, called for an env; runs the file."""
    path_text = env_id.rpartition(":")[0]
    path, name = split_file(env_id)
    if not path.is_file():
        raise EnvError(f"there is no file `{path_text}`", "give the path from the folder you are in")
    with env_code(env_id, "cannot be loaded", f"run `python {path}`"):
        module = run_file(path)
    found = getattr(module, name, None)
    if not callable(found):
        own = [key for key, value in vars(module).items() if callable(value) and not key.startswith("_")]
        near = difflib.get_close_matches(name, own, n=3, cutoff=0.4) or own
        raise EnvError(
            f"`{path_text}` has no class or function `{name}`", f"it has {', '.join(near) or 'neither at all'}"
        )
    return found
