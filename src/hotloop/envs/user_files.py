"""Which env a name means: whether it names one at all, and those in a file of the user's own, `path/to/file.py:Class`
or `path/to/file.py:function` that makes one."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hotloop.core.errors import EnvError, SettingsError
from hotloop.core.user_files import run_file, split_file
from hotloop.envs.foreign import env_code
from hotloop.envs.settings import ANY_ENV


def require_named(env_id: str) -> None:
    """Refuse settings for any env, and a file without a name, telling those it has; reads the file, runs nothing."""
    if env_id == ANY_ENV:
        raise SettingsError(
            "these settings are for any env, and none is named",
            "name one: `--env.id CartPole-v1`, from Python `env={'id': 'CartPole-v1'}`; `hotloop envs` lists them",
        )
    if not env_id.endswith(".py") or ":" in env_id:
        return
    try:
        tree = ast.parse(Path(env_id).expanduser().read_text())
    except (OSError, ValueError, SyntaxError) as error:
        raise EnvError(f"`{env_id}` cannot be read: {error}", f"an env of your own is `{env_id}:Class`") from None
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    likely = [node for node in classes if "step" in {getattr(part, "name", "") for part in node.body}] or classes
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")]
    names = " or ".join(f"`{env_id}:{node.name}`" for node in likely or functions)
    raise EnvError(
        f"`{env_id}` is a file; which class of it is the env?",
        f"give {names}" if names else f"it has no class at its top level; an env of your own is `{env_id}:Class`",
    )


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
