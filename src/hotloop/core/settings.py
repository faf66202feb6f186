"""One strict loader for TOML presets, command-line overrides and resume.

Settings are frozen keyword-only dataclasses, nested by part. A tree of plain values becomes settings with
`build`; `flatten` and `as_tree` go back. Unknown keys and bad values are errors that suggest the right one;
nothing is adjusted silently.

TOML of settings, whoever wrote it: bounded in size before it is parsed, and in depth after.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import inspect
import tomllib
import typing
from collections.abc import Mapping
from typing import Any, TypeVar

from hotloop.core.errors import SettingsError
from hotloop.core.values import convert, nearest, shortened
from hotloop.core.vocabulary import misspelt, name_here, todays_name

Settings = TypeVar("Settings")
_LONGEST_PATH = 120


def build(cls: type[Settings], tree: Mapping[str, Any], *, source: str = "settings") -> Settings:
    """Settings of type `cls` from a nested tree; keys that are missing keep their defaults."""
    made: Settings = _build(cls, tree, cls, "", source)
    return made


def _build(cls: Any, tree: Mapping[str, Any], root: Any, prefix: str, source: str) -> Any:
    if not isinstance(tree, Mapping):
        raise SettingsError(f"`{prefix[:-1]}` in {source} is {shortened(tree)}, expected a table of settings")
    hints = field_types(cls)
    values = {}
    for name, value in tree.items():
        if name not in hints:
            raise unknown_key(root, f"{prefix}{name}", source)
        if dataclasses.is_dataclass(hints[name]):
            values[name] = _build(hints[name], value, root, f"{prefix}{name}.", source)
        else:
            values[name] = convert(value, hints[name], prefix + name)
    return cls(**values)


@functools.cache
def field_types(cls: Any) -> dict[str, Any]:
    """Field name -> resolved type, `Annotated` kept."""
    return {
        name: hint
        for name, hint in typing.get_type_hints(cls, include_extras=True).items()
        if name in {field.name for field in dataclasses.fields(cls)}
    }


def as_tree(settings: Any) -> dict[str, Any]:
    """The nested plain values of settings, ready for TOML or JSON."""
    tree: dict[str, Any] = {}
    for field in dataclasses.fields(settings):
        value = getattr(settings, field.name)
        if dataclasses.is_dataclass(value):
            tree[field.name] = as_tree(value)
        else:
            tree[field.name] = list(value) if isinstance(value, tuple) else copy.copy(value)
    return tree


def flatten(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """`{"env": {"id": "x"}}` -> `{"env.id": "x"}`."""
    flat: dict[str, Any] = {}
    for name, value in tree.items():
        if isinstance(value, Mapping):
            flat.update(flatten(value, f"{prefix}{name}."))
        else:
            flat[prefix + name] = value
    return flat


def nested(flat: Mapping[str, Any]) -> dict[str, Any]:
    """`{"env.id": "x", "seed": 1}` -> `{"env": {"id": "x"}, "seed": 1}`."""
    tree: dict[str, Any] = {}
    for name, value in flat.items():
        *folders, last = name.split(".")
        for folder in reversed(folders):
            last, value = folder, {last: value}
        tree = merge(tree, {last: value})
    return tree


def merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """`base` with the leaves of `over` put in their places."""
    merged = dict(base)
    for name, value in over.items():
        old = merged.get(name)
        merged[name] = merge(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return merged


def leaf_types(cls: Any, prefix: str = "") -> dict[str, Any]:
    """Every settable path of `cls` with its type."""
    leaves: dict[str, Any] = {}
    for name, hint in field_types(cls).items():
        if dataclasses.is_dataclass(hint):
            leaves.update(leaf_types(hint, f"{prefix}{name}."))
        else:
            leaves[prefix + name] = hint
    return leaves


def _table_names(cls: Any, prefix: str = "") -> list[str]:
    """Every path that is a table of settings rather than a setting."""
    tables: list[str] = []
    for name, hint in field_types(cls).items():
        if dataclasses.is_dataclass(hint):
            tables += [prefix + name, *_table_names(hint, f"{prefix}{name}.")]
    return tables


def unknown_key(root: Any, path: str, source: str) -> SettingsError:
    path = path if len(path) <= _LONGEST_PATH else path[:_LONGEST_PATH] + "..."
    known = [*leaf_types(root), *_table_names(root)]
    if (now := todays_name(path)) in known:
        return SettingsError(
            f"unknown setting `{path}` in {source}", f"it is called `{now}` now", kind="unknown", key=path
        )
    near = nearest(path, known)
    hint = name_here(path, known) if "." not in path or not near else ""
    if not hint:
        foreign = misspelt(path, near) if "." not in path else ""
        hint = name_here(foreign, known) or (f"did you mean `{near}`? " if near else "")
    name = getattr(root, "algorithm", None)
    verb = f"`hotloop settings {name}`" if isinstance(name, str) else "`hotloop settings`"
    hint += f"{verb} lists every setting"
    return SettingsError(f"unknown setting `{path}` in {source}", hint, kind="unknown", key=path)


MAX_SETTINGS_BYTES = 256 * 2**10
DEEPEST = 16
_MOST_DOTS = 1_000
"""In a line of TOML: its parser takes time by the square of a dotted key's parts, 30,000 of them are minutes."""


def require_shallow(value: Any) -> None:
    """Raise ValueError where lists and tables are nested so deeply that what walks through them would not come back."""
    level = [value]
    for _ in range(DEEPEST + 1):
        tables = [item for item in level if isinstance(item, dict | list)]
        if not tables:
            return
        level = [inner for item in tables for inner in (item.values() if isinstance(item, dict) else item)]
    raise ValueError(f"it is nested more than {DEEPEST} levels deep")


def parse_toml(data: bytes) -> dict[str, Any]:
    """Settings. Raises ValueError, also for what would take the parser minutes."""
    if len(data) > MAX_SETTINGS_BYTES:
        raise ValueError(f"it has {len(data)} bytes; settings have at most {MAX_SETTINGS_BYTES}")
    if any(line.count(b".") > _MOST_DOTS for line in data.split(b"\n")):
        raise ValueError(f"it has a line with more than {_MOST_DOTS} dots")
    try:
        tree = tomllib.loads(data.decode())
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    require_shallow(tree)
    return tree


def options_signature(settings_type: type, **more: Any) -> inspect.Signature:
    """Of a batched env whose options are fields: each by name, so that whoever looks at the class (the registry,
    `help`) sees them; `more` with their defaults."""
    kind = inspect.Parameter.KEYWORD_ONLY
    shown = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in ("num_envs", "seeds")]
    options = {field.name: field.default for field in dataclasses.fields(settings_type)} | more
    shown += [inspect.Parameter(name, kind, default=value) for name, value in options.items()]
    return inspect.Signature(shown)
