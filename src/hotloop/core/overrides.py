"""Command-line overrides: `--env.num-envs 8 --network.hidden 64 64 --double` as a settings tree.

Text is read by the type of the field it is meant for, so that `--batch-size 1e2` fails and `--total-env-steps 1e6`
does not. Everything else (unknown keys, ranges) is the strict loader's business.
"""

from __future__ import annotations

import typing
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from hotloop.core.errors import SettingsError
from hotloop.core.settings import flatten, leaf_types, unknown_key
from hotloop.core.values import Switch, type_name

Overrides = Mapping[str, Any] | Sequence[str]
"""Settings that differ: a nested tree (`{"env": {"num_envs": 8}}`), or words of a command line."""
_TRUE, _FALSE = {"true", "yes", "on", "1"}, {"false", "no", "off", "0"}


def parse_overrides(words: Sequence[str], cls: Any) -> dict[str, Any]:
    """The tree that `words` describe, for settings of type `cls`."""
    leaves = leaf_types(cls)
    tree: dict[str, Any] = {}
    for flag, values in _group(words):
        path, hint, values = _resolve(flag, values, leaves, cls)
        _put(tree, path, _read(path, values, hint))
    return tree


def as_argv(overrides: Overrides) -> list[str]:
    """The words that `parse_overrides` reads as this tree; words are left as they are."""
    if not isinstance(overrides, Mapping):
        return list(overrides)
    return [word for path, value in flatten(overrides).items() for word in _words(flag_of(path), value)]


def flag_of(path: str) -> str:
    """`--network.hidden`; options of an env keep their own spelling."""
    return "--" + (path if ".options." in path else path.replace("_", "-"))


def _words(flag: str, value: Any) -> list[str]:
    if isinstance(value, bool):
        return [flag, "true" if value else "false"]
    if isinstance(value, list | tuple):
        return [flag, *map(str, value)]
    return [f"{flag}={value}"] if str(value).startswith("-") else [flag, str(value)]


def _group(words: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Each flag with the words after it; `--name=value` is split."""
    groups: list[tuple[str, list[str]]] = []
    for word in words:
        if word.startswith("--") and len(word) > 2:
            name, equals, value = word[2:].partition("=")
            groups.append((name, [value] if equals else []))
        elif not groups:
            raise SettingsError(f"unexpected word `{word}`", "settings are given as `--name value`")
        else:
            groups[-1][1].append(word)
    return groups


def _resolve(flag: str, values: list[str], leaves: dict[str, Any], cls: Any) -> tuple[str, Any, list[str]]:
    path = flag.replace("-", "_")
    if path in leaves:
        return path, leaves[path], values
    parent, _, _ = path.rpartition(".")
    if typing.get_origin(leaves.get(parent)) is dict:
        return parent + "." + flag.rpartition(".")[2], None, values
    folder, _, last = path.rpartition(".")
    positive = f"{folder}.{last[3:]}" if folder else last[3:]
    if last.startswith("no_") and leaves.get(positive) in (bool, Switch) and not values:
        return positive, bool, ["false"]
    raise unknown_key(cls, path, "the command line")


def _put(tree: dict[str, Any], path: str, value: Any) -> None:
    *folders, last = path.split(".")
    for folder in folders:
        tree = tree.setdefault(folder, {})
        if not isinstance(tree, dict):
            raise SettingsError(f"`{folder}` got a value of its own and `{path}` too", "give one or the other")
    tree[last] = value


def _read(path: str, values: list[str], hint: Any) -> Any:
    if typing.get_origin(hint) is tuple:
        item = typing.get_args(hint)[0]
        return [_read_one(path, value, item) for value in values]
    if hint in (bool, Switch) and not values:
        return True
    if len(values) != 1:
        expected = type_name(hint) if hint is not None else "a value"
        flag = f"--{path.replace('_', '-')}"
        raise SettingsError(f"`{flag}` got {len(values)} values, expected {expected}", kind="count", key=path)
    return _read_one(path, values[0], hint)


def _read_one(path: str, text: str, hint: Any) -> Any:
    """`text` as the nearest plain value of the kind `hint` wants; the loader refuses what does not fit."""
    if hint in (bool, Switch):
        return True if text.lower() in _TRUE else False if text.lower() in _FALSE else text
    if hint is str or typing.get_origin(hint) in (Annotated, typing.Literal):
        return _literal(text, hint)
    if hint is None:
        lowered = {"true": True, "false": False}.get(text.lower())
        return lowered if lowered is not None else _number(text)
    return _number(text)


def _literal(text: str, hint: Any) -> Any:
    if typing.get_origin(hint) is typing.Literal:
        by_text = {str(choice): choice for choice in typing.get_args(hint)}
        return by_text.get(text, text)
    return text


def _number(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
