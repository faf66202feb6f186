"""One strict loader for TOML presets, command-line overrides and resume.

Settings are frozen keyword-only dataclasses, nested by part. A tree of plain values becomes settings with
`build`; `flatten` and `as_tree` go back. Unknown keys and bad values are errors that suggest the right one;
nothing is adjusted silently.
"""

from __future__ import annotations

import dataclasses
import difflib
import types
import typing
from collections.abc import Mapping
from fractions import Fraction
from typing import Annotated, Any, TypeVar

from hotloop.core.errors import SettingsError

Count = Annotated[int, "count"]
"""A whole number that may be written `1e6`, `1_000_000` or `2M`."""

Ratio = Annotated[float | str, "ratio"]
"""A number that is kept exact: `0.25`, `8` or `1/32`."""

Settings = TypeVar("Settings")
_SUFFIXES = {"k": 1_000, "K": 1_000, "M": 1_000_000, "G": 1_000_000_000}


def exact_fraction(value: float | str) -> Fraction:
    """The fraction a user meant: 0.03 is 3/100, not the nearest binary float."""
    return Fraction(str(value))


def build(cls: type[Settings], tree: Mapping[str, Any], *, source: str = "settings") -> Settings:
    """Settings of type `cls` from a nested tree; keys that are missing keep their defaults."""
    return _build(cls, tree, cls, "", source)


def _build(cls: Any, tree: Mapping[str, Any], root: Any, prefix: str, source: str) -> Any:
    if not isinstance(tree, Mapping):
        raise SettingsError(f"`{prefix[:-1]}` in {source} is {tree!r}, expected a table of settings")
    hints = field_types(cls)
    values = {}
    for name, value in tree.items():
        if name not in hints:
            raise unknown_key(root, prefix + name, source)
        if dataclasses.is_dataclass(hints[name]):
            values[name] = _build(hints[name], value, root, f"{prefix}{name}.", source)
        else:
            values[name] = convert(value, hints[name], prefix + name)
    return cls(**values)


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
            tree[field.name] = list(value) if isinstance(value, tuple) else value
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


def unknown_key(root: Any, path: str, source: str) -> SettingsError:
    near = nearest(path, leaf_types(root))
    hint = f"did you mean `{near}`? " if near else ""
    name = getattr(root, "algorithm", None)
    verb = f"`hotloop settings {name}`" if isinstance(name, str) else "`hotloop settings`"
    return SettingsError(f"unknown setting `{path}` in {source}", hint + f"{verb} lists every setting")


def nearest(wrong: str, known: typing.Iterable[str]) -> str | None:
    """The known name most like `wrong`; a path also matches by its last part."""
    known = list(known)
    close = difflib.get_close_matches(wrong, known, n=1, cutoff=0.6)
    if close:
        return close[0]
    by_last_part = {path.rsplit(".", 1)[-1]: path for path in known}
    close = difflib.get_close_matches(wrong.rsplit(".", 1)[-1], by_last_part, n=1, cutoff=0.6)
    return by_last_part[close[0]] if close else None


def convert(value: Any, hint: Any, path: str) -> Any:
    """`value` as the type `hint`, or an error that says what was expected."""
    try:
        return _convert(value, hint)
    except (ValueError, TypeError, ZeroDivisionError, OverflowError):
        raise SettingsError(f"`{path}` is {value!r}, expected {type_name(hint)}", _value_hint(value, hint)) from None


def _convert(value: Any, hint: Any) -> Any:
    origin = typing.get_origin(hint)
    if origin is Annotated:
        return parse_count(value) if hint is Count else _parse_ratio(value)
    if origin is typing.Literal:
        return _one_of(value, typing.get_args(hint))
    if origin is tuple:
        return _convert_sequence(value, typing.get_args(hint)[0])
    if origin is dict:
        return {str(key): _plain(entry) for key, entry in dict(value).items()}
    if hint is bool:
        return _parse_bool(value)
    return _number_or_text(value, hint)


def _number_or_text(value: Any, hint: Any) -> Any:
    if isinstance(value, bool) or (hint is str) != isinstance(value, str):
        raise TypeError
    if hint is int and (not isinstance(value, int)):
        raise TypeError
    if hint is float and not isinstance(value, (int, float)):
        raise TypeError
    return hint(value)


def _convert_sequence(value: Any, item: Any) -> tuple[Any, ...]:
    if isinstance(value, (str, bytes)) or not isinstance(value, (list, tuple)):
        raise TypeError
    return tuple(_convert(entry, item) for entry in value)


def _one_of(value: Any, choices: tuple[Any, ...]) -> Any:
    if value not in choices:
        raise ValueError
    return value


def _plain(value: Any) -> Any:
    if not isinstance(value, (bool, int, float, str)):
        raise TypeError
    return value


def _parse_bool(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError
    return value


def parse_count(value: Any) -> int:
    """`1e6`, `1_000_000`, `2M` and 1000000 are all counts; 1.5 is not."""
    if isinstance(value, bool):
        raise TypeError
    if isinstance(value, str):
        text = value.strip().replace("_", "")
        scale = _SUFFIXES.get(text[-1:], 1)
        number = Fraction(text[:-1] if scale > 1 else text) * scale
    else:
        number = Fraction(value)
    if number.denominator != 1:
        raise ValueError
    return int(number)


def _parse_ratio(value: Any) -> float | str:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise TypeError
    fraction = exact_fraction(value)
    return value if isinstance(value, str) and "/" in value else float(fraction)


def type_name(hint: Any) -> str:
    """How a type is called towards users."""
    origin = typing.get_origin(hint)
    if origin is Annotated:
        return "a whole number (like 50000, 1e6 or 2M)" if hint is Count else "a number (like 0.25 or 1/32)"
    if origin is typing.Literal:
        return "one of " + ", ".join(f"`{choice}`" for choice in typing.get_args(hint))
    if origin is tuple:
        return f"a list, each {type_name(typing.get_args(hint)[0])}"
    if origin in (dict, types.UnionType):
        return "a table of plain values"
    names = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}
    return names.get(hint, str(hint))


def _value_hint(value: Any, hint: Any) -> str:
    if typing.get_origin(hint) is typing.Literal:
        near = difflib.get_close_matches(str(value), [str(choice) for choice in typing.get_args(hint)], n=1)
        return f"did you mean `{near[0]}`?" if near else ""
    return ""
