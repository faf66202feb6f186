"""What every setting means: the string under each dataclass field, read from the source."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import textwrap
from dataclasses import dataclass
from typing import Any

from hotloop.core.settings import field_types
from hotloop.core.values import type_name


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
    """Field name -> the string literal that follows it in the class body."""
    body = ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0].body  # type: ignore[attr-defined]
    docs: dict[str, str] = {}
    for field, after in zip(body, body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and _is_text(after):
            docs[field.target.id] = " ".join(after.value.value.split())
    return docs


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
