"""Envs and networks that are Python objects: a run's settings name them, and whoever continues it gives them again."""

from __future__ import annotations

from typing import Any

from hotloop.core.errors import RunError

PREFIX = "given:"
"""A name that begins so stands for an object of this process; no file holds it."""
_objects: dict[tuple[str, str], Any] = {}


def give(kind: str, thing: Any, name: str = "") -> str:
    """The name under which settings refer to `thing` from now on: that of a run which is continued, or a new one.

    `kind` is the argument that it was given as.
    """
    if not name:
        named = thing if hasattr(thing, "__qualname__") else type(thing)
        name = first = PREFIX + named.__qualname__.rpartition(".")[2].strip("<>")
        count = 1
        while _objects.get((kind, name), thing) is not thing:  # two lambdas have one name
            count += 1
            name = f"{first}-{count}"
    _objects[kind, name] = thing
    return name


def is_given(name: str) -> bool:
    return name.startswith(PREFIX)


def require_given(kind: str, name: str) -> None:
    """Refuse a name that stands for an object which this process was not given."""
    if is_given(name) and (kind, name) not in _objects:
        raise RunError(
            f"the {kind} `{name.removeprefix(PREFIX)}` was given as a Python object, which no file holds",
            f"give it again, as `{kind}=...` of the same function; a run that needs none names a file: `file.py:Name`",
        )


def given(kind: str, name: str) -> Any:
    require_given(kind, name)
    return _objects[kind, name]
