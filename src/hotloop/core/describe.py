"""What every setting means, from the string under each field: as text, and as a TOML file to start from."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import json
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hotloop.core.settings import field_types
from hotloop.core.values import type_name

NOT_IN_A_FILE = ("algorithm", "run_dir", "trust")
"""Said by the file's first line, or of one run or one command only."""
WIDTH = 100


@dataclass(frozen=True)
class SettingDoc:
    path: str
    type: str
    default: Any
    meaning: str


def describe(cls: Any, prefix: str = "", defaults: Any = None) -> list[SettingDoc]:
    """Every settable path of `cls`, in the order of its definition."""
    defaults = cls() if defaults is None else defaults
    meanings = field_docs(cls)
    rows: list[SettingDoc] = []
    for name, hint in field_types(cls).items():
        value = getattr(defaults, name)
        if dataclasses.is_dataclass(hint):
            rows += describe(hint, f"{prefix}{name}.", value)
        else:
            rows.append(SettingDoc(prefix + name, type_name(hint), value, meanings.get(name, "")))
    return rows


def field_docs(cls: Any) -> dict[str, str]:
    """Field name -> the string literal that follows it in the class body, or else in that of the class it inherits."""
    bases = [base for base in cls.__mro__[1:] if dataclasses.is_dataclass(base)]
    docs: dict[str, str] = field_docs(bases[0]) if bases else {}
    body = ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0].body  # type: ignore[attr-defined]
    for field, after in zip(body, body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and _is_text(after):
            docs[field.target.id] = " ".join(after.value.value.split())
    return docs


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def find_settings(cls: Any, words: Sequence[str]) -> list[SettingDoc]:
    """Those whose name or meaning contains all of the words."""
    wanted = [word.lower().replace("-", "_").lstrip("_") for word in words]
    return [row for row in describe(cls) if all(_has(row, word) for word in wanted)]


def _has(row: SettingDoc, word: str) -> bool:
    return word in row.path.lower() or word in row.meaning.lower().replace("-", "_")


def as_text(rows: list[SettingDoc]) -> str:
    """As they are given on the command line, by table, each with its default and its meaning."""
    lines: list[str] = []
    for table, own in _by_table(rows).items():
        lines += ["", f"[{table}]" if table else "[the run]"]
        for row in own:
            lines.append(f"  --{row.path.replace('_', '-')}  [{_value(row.default)}]")
            lines += textwrap.wrap(row.meaning, WIDTH, initial_indent=" " * 6, subsequent_indent=" " * 6)
    return "\n".join(lines[1:])


def as_toml(algorithm: str, rows: list[SettingDoc]) -> str:
    """Every setting at its default, its meaning above it: a file to start from."""
    lines = [f"# Every setting of {algorithm} at its default: change what you like, leave out the rest.", ""]
    lines += [f'algorithm = "{algorithm}"']
    for table, own in _by_table([row for row in rows if row.path not in NOT_IN_A_FILE]).items():
        lines += ["", f"[{table}]"] if table else []
        for row in own:
            lines += ["", *textwrap.wrap(row.meaning, WIDTH, initial_indent="# ", subsequent_indent="# ")]
            lines.append(f"{row.path.rpartition('.')[2]} = {_value(row.default)}")
    return "\n".join(lines) + "\n"


def _by_table(rows: list[SettingDoc]) -> dict[str, list[SettingDoc]]:
    tables: dict[str, list[SettingDoc]] = {}
    for row in rows:
        tables.setdefault(row.path.rpartition(".")[0], []).append(row)
    return dict(sorted(tables.items(), key=lambda item: item[0] != ""))  # those without a table first, as TOML wants


def _value(value: Any) -> str:
    """As TOML writes it."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name} = {_value(entry)}" for name, entry in value.items()) + "}"
    if isinstance(value, tuple | list):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:_}"
    return json.dumps(value)
