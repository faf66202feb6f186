"""Loading an env class from a file of the user's own: `path/to/file.py:Class`."""

from __future__ import annotations

import ast
import difflib
import hashlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from hotloop.core.errors import EnvError
from hotloop.envs.foreign import env_code


def require_class(env_id: str) -> None:
    """Refuse a file without a class, and name those it has; reads the file, runs nothing."""
    if not env_id.endswith(".py") or ":" in env_id:
        return
    try:
        tree = ast.parse(Path(env_id).expanduser().read_text())
    except (OSError, ValueError, SyntaxError) as error:
        raise EnvError(f"`{env_id}` cannot be read: {error}", f"an env of your own is `{env_id}:Class`") from None
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    likely = [node for node in classes if "step" in {getattr(part, "name", "") for part in node.body}] or classes
    names = " or ".join(f"`{env_id}:{node.name}`" for node in likely)
    raise EnvError(
        f"`{env_id}` is a file; which class of it is the env?",
        f"give {names}" if names else f"it has no class at its top level; an env of your own is `{env_id}:Class`",
    )


def load_class(env_id: str) -> type:
    """The class named by `path/to/file.py:Class`; runs the file."""
    path_text, _, name = env_id.rpartition(":")
    path = Path(path_text).expanduser().resolve()
    if not path.is_file():
        raise EnvError(f"there is no file `{path_text}`", "give the path from the folder you are in")
    module = _load_module(env_id, path)
    found = getattr(module, name, None)
    if not isinstance(found, type):
        classes = [key for key, value in vars(module).items() if isinstance(value, type)]
        near = difflib.get_close_matches(name, classes, n=3, cutoff=0.4) or classes
        raise EnvError(f"`{path_text}` has no class `{name}`", f"it has {', '.join(near) or 'no classes at all'}")
    return found


def _load_module(env_id: str, path: Path) -> ModuleType:
    """Run the file once per process: an edit during a run must not change the envs made for its evaluations."""
    name = f"{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.path.insert(0, str(path.parent))  # as when the file is run: it may import its neighbours
    try:
        with env_code(env_id, "cannot be loaded", f"run `python {path}`"):
            spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    finally:
        sys.path.remove(str(path.parent))
    return module
