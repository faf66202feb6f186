"""Whose code a file is, and how a report names its files, functions and lines."""

from __future__ import annotations

import ast
import dis
import os
import sys
import sysconfig
from bisect import bisect_right
from functools import lru_cache
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING, Any

from .originals import exists, open_file

if TYPE_CHECKING:
    Stack = tuple[tuple[CodeType, int], ...]
    """Code and instruction of each frame, innermost first; lines are looked up at the end, since that takes longer."""

OURS = os.path.dirname(os.path.abspath(__file__)) + os.sep
LIBRARIES = tuple(
    {str(Path(path).resolve()) + os.sep for name, path in sysconfig.get_paths().items() if name.endswith("lib")}
)
PACKAGES = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
UNSEEN = os.path.join(OURS, "importlib", "_bootstrap.py")
"""No file: the name that frames of our hooks have, by which `warnings` tells the import system's."""
USER, LIBRARY, DOCTOR = "user", "library", "doctor"


class SourcePlaces:
    """Whose code a file is, and how a report names it."""

    def __init__(self, script: str) -> None:
        self.folder = str(Path(script).resolve().parent) + os.sep
        cached = lru_cache(maxsize=None)
        self.kind, self.name = cached(self._kind), cached(self._name)
        self.whose = cached(lambda code: self.kind(code.co_filename))

    def _kind(self, file: str) -> str:
        """The user's own is what is neither installed, nor of the standard library, nor ours."""
        if file.startswith(OURS):
            return DOCTOR
        if file.startswith("<") or any(part in file for part in PACKAGES):
            return LIBRARY
        full = str(Path(file).resolve()) if exists(file) else file
        if full.startswith(self.folder) and not any(part in full for part in PACKAGES):
            return USER
        return LIBRARY if full.startswith(LIBRARIES) or not exists(file) else USER

    def _name(self, file: str) -> str:
        """Relative to the script's folder, or to where it is installed; no path of this machine."""
        if file.startswith("<"):
            return file
        full = str(Path(file).resolve())
        roots = [self.folder, *(path.rstrip(os.sep) + os.sep for path in sys.path if path), *LIBRARIES]
        inside = [full[len(root) :] for root in roots if full.startswith(root)]
        if inside and full.startswith(self.folder) and not any(part in full for part in PACKAGES):
            return full[len(self.folder) :]
        return min(inside, key=len) if inside else os.path.basename(full)

    def where(self, file: str, line: int) -> str:
        return f"{self.name(file)}:{line}"

    def frame(self, code: CodeType, instruction: int) -> str:
        return f"{qualified_name(code)} ({self.where(code.co_filename, line_of(code, instruction))})"


def is_recording(file: str) -> bool:
    """Whether code of this file is the recording's own work; a hook that passes a call on has another name."""
    return file.startswith(OURS) and file != UNSEEN


def unseen(hook: Any, file: str | None = UNSEEN) -> Any:
    """A hook of ours that nobody counts who looks for a caller: `warnings` passes over what it takes for the import
    system's, `logging` over its own file."""
    hook.__code__ = hook.__code__.replace(co_filename=file)
    hook.watched = True
    return hook


@lru_cache(maxsize=None)
def line_of(code: CodeType, instruction: int) -> int:
    """The line of one instruction; before the first, the line where the function is defined."""
    starts, lines = _line_starts(code)
    place = bisect_right(starts, instruction) - 1
    return lines[place] if instruction >= 0 and place >= 0 else code.co_firstlineno


@lru_cache(maxsize=None)
def _line_starts(code: CodeType) -> tuple[list[int], list[int]]:
    found = [(start, line) for start, line in dis.findlinestarts(code) if line is not None]
    return [start for start, _ in found], [line for _, line in found]


@lru_cache(maxsize=None)
def qualified_name(code: CodeType) -> str:
    """`Class.method` or `function.<locals>.inner`; from the source where Python does not keep it (before 3.11)."""
    known: str | None = getattr(code, "co_qualname", None)
    if known is not None:
        return known
    return _names_in(code.co_filename).get((code.co_firstlineno, code.co_name), code.co_name)


@lru_cache(maxsize=None)
def _names_in(file: str) -> dict[tuple[int, str], str]:
    found: dict[tuple[int, str], str] = {}
    try:
        with open_file(file, "rb") as source:
            tree = ast.parse(source.read())
    except (OSError, SyntaxError, ValueError):
        return found
    waiting: list[tuple[ast.AST, str]] = [(tree, "")]
    while waiting:
        node, prefix = waiting.pop()
        for child in ast.iter_child_nodes(node):
            inside = prefix
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                first = min([child.lineno, *(decorator.lineno for decorator in child.decorator_list)])
                found[first, child.name] = prefix + child.name
                inside = f"{prefix}{child.name}." + ("" if isinstance(child, ast.ClassDef) else "<locals>.")
            waiting.append((child, inside))
    return found
