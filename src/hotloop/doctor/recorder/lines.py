"""What the syntax of a source file shows of its lines: formatting, loops around them, host reads, shifting lists."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

HOST_READS = ("item", "cpu", "numpy", "tolist")
LOOPS = (ast.For, ast.AsyncFor, ast.While)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
MATCH: Any = getattr(ast, "Match", ())  # from Python 3.10 on
NO_EXPRESSIONS: Any = (ast.stmt, ast.ExceptHandler, getattr(ast, "match_case", ast.ExceptHandler))
BLOCKS = (*LOOPS, *FUNCTIONS, ast.ClassDef, ast.If, ast.With, ast.AsyncWith, ast.Try, *([MATCH] if MATCH else []))


class Syntax:
    """What the lines of one source file show about their cost: formatting, loops, host reads, shifting lists."""

    def __init__(self, text: str) -> None:
        self.lines = text.splitlines()
        self._text: str | None = text
        self._features: dict[int, set[str]] = {}
        self._loops: dict[int, tuple[int, ...]] = {}

    def _parse(self) -> None:
        """When first asked for: of most files only the text of a line is wanted, and parsing a library takes long."""
        text, self._text = self._text, None
        if text is None:
            return
        try:
            self._visit(ast.parse(text), function=None, loops=())
        except (SyntaxError, ValueError, RecursionError, SystemError):  # the last where two threads parse at once
            return

    def source(self, line: int) -> str:
        return self.lines[line - 1].strip() if 0 < line <= len(self.lines) else ""

    def features(self, line: int) -> tuple[str, ...]:
        self._parse()
        return tuple(sorted(self._features.get(line, ())))

    def loops(self, line: int) -> tuple[int, ...]:
        """Lines on which loops around this one begin, in its function, the outermost first; the line itself where it
        holds a comprehension."""
        self._parse()
        return self._loops.get(line, ())

    def _visit(self, node: ast.AST, function: ast.AST | None, loops: tuple[int, ...]) -> None:
        for child in ast.iter_child_nodes(node):
            inside = loops
            if isinstance(child, ast.stmt):
                self._note(child, function, loops)
            if isinstance(child, FUNCTIONS):
                self._visit(child, child, ())
                continue
            if isinstance(child, LOOPS):
                inside = (*loops, child.lineno)
            self._visit(child, function, inside)

    def _note(self, statement: ast.stmt, function: ast.AST | None, loops: tuple[int, ...]) -> None:
        found = set(_features(statement))
        if loops and function is not None:
            found.add("python-loop-body")
        if function is not None and _calls(statement, function.name):  # type: ignore[attr-defined]
            found.add("function-recursive")
        around = (*loops, statement.lineno) if "comprehension" in found else loops
        for line in range(statement.lineno, _last_line(statement) + 1):
            self._features.setdefault(line, set()).update(found)
            self._loops[line] = max(self._loops.get(line, ()), around, key=len)


@lru_cache(maxsize=None)
def read_syntax(file: str) -> Syntax:
    try:
        return Syntax(Path(file).read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return Syntax("")


def _last_line(statement: ast.stmt) -> int:
    """Of the statement's head, where it has a body."""
    if isinstance(statement, BLOCKS):
        body = statement.cases[0].pattern.lineno if isinstance(statement, MATCH) else statement.body[0].lineno
        return max(statement.lineno, body - 1)
    return statement.end_lineno or statement.lineno


def _expressions(statement: ast.stmt) -> Iterator[ast.AST]:
    """The statement and its expressions, but no statement of its body."""
    yield statement
    waiting = [statement] if not isinstance(statement, ast.ClassDef) else []
    while waiting:
        for child in ast.iter_child_nodes(waiting.pop()):
            if not isinstance(child, NO_EXPRESSIONS):
                yield child
                waiting.append(child)  # type: ignore[arg-type]


def _features(statement: ast.stmt) -> Iterator[str]:
    for node in _expressions(statement):
        if isinstance(node, ast.JoinedStr):
            yield "f-string"
        elif isinstance(node, (ast.For, ast.AsyncFor)):
            yield "for-loop"
        elif isinstance(node, ast.While):
            yield "while-loop"
        elif isinstance(node, COMPREHENSIONS):
            yield "comprehension"
        elif isinstance(node, ast.Subscript) and _is_built_string(node.slice):
            yield "string-key"
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            yield from _call_features(node, node.func.attr)


def _call_features(call: ast.Call, name: str) -> Iterator[str]:
    first = call.args[0] if call.args else None
    at_front = isinstance(first, ast.Constant) and first.value == 0 and first.value is not False
    if name in HOST_READS:
        yield "item"
    elif name == "insert" and at_front:
        yield "insert-front"
    elif name == "pop" and at_front:
        yield "pop-front"


def _is_built_string(key: ast.expr) -> bool:
    """An f-string, or strings put together."""
    if isinstance(key, ast.JoinedStr):
        return True
    if isinstance(key, ast.Call):
        return isinstance(key.func, ast.Attribute) and key.func.attr in ("format", "join")
    if isinstance(key, ast.BinOp) and isinstance(key.op, (ast.Add, ast.Mod)):
        return any(_is_text(side) or _is_built_string(side) for side in (key.left, key.right))
    return False


def _is_text(node: ast.expr) -> bool:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "str":
        return True
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _calls(statement: ast.stmt, name: str) -> bool:
    """Whether it calls `name`, plainly or as a method of self."""
    for node in _expressions(statement):
        if isinstance(node, ast.Call):
            called = node.func
            if isinstance(called, ast.Name) and called.id == name:
                return True
            owner = called.value if isinstance(called, ast.Attribute) else None
            if isinstance(owner, ast.Name) and owner.id in ("self", "cls") and called.attr == name:  # type: ignore[attr-defined]
                return True
    return False
