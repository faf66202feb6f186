"""From sampled stacks to costs of the user's own lines, with what the syntax of each line shows."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING, Any

from .places import DOCTOR, USER, Places, line_of, qualified_name

if TYPE_CHECKING:
    from .places import Stack

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
        self._features: dict[int, set[str]] = {}
        try:
            tree = ast.parse(text)
        except SyntaxError:
            return
        self._visit(tree, function=None, in_loop=False)

    def source(self, line: int) -> str:
        return self.lines[line - 1].strip() if 0 < line <= len(self.lines) else ""

    def features(self, line: int) -> tuple[str, ...]:
        return tuple(sorted(self._features.get(line, ())))

    def _visit(self, node: ast.AST, function: ast.AST | None, in_loop: bool) -> None:
        for child in ast.iter_child_nodes(node):
            inside = in_loop
            if isinstance(child, ast.stmt):
                self._note(child, function, in_loop)
            if isinstance(child, FUNCTIONS):
                self._visit(child, child, False)
                continue
            if isinstance(child, LOOPS):
                inside = True
            self._visit(child, function, inside)

    def _note(self, statement: ast.stmt, function: ast.AST | None, in_loop: bool) -> None:
        found = set(_features(statement))
        if in_loop and function is not None:
            found.add("python-loop-body")
        if function is not None and _calls(statement, function.name):  # type: ignore[attr-defined]
            found.add("function-recursive")
        for line in range(statement.lineno, _last_line(statement) + 1):
            self._features.setdefault(line, set()).update(found)


def read_syntax(path: Path) -> Syntax:
    try:
        return Syntax(path.read_text(encoding="utf-8", errors="replace"))
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


LEAST_SHARE = 0.0005
MOST_STACKS = 2_000
WAITING_FILES = tuple(
    name.replace("/", os.sep)
    for name in ("multiprocessing/connection.py", "selectors.py", "multiprocessing/popen_fork.py", "queue.py")
)


def fit_to_phases(charged: Mapping[tuple[str, Stack], float], phases: Mapping[str, float]) -> dict[Any, float]:
    """What was sampled in each phase made to sum to the time that was measured: samples tell how it divides."""
    sampled: dict[str, float] = {}
    for (phase, _), seconds in charged.items():
        sampled[phase] = sampled.get(phase, 0.0) + seconds
    scale = {phase: phases.get(phase, seconds) / max(seconds, 1e-9) for phase, seconds in sampled.items()}
    return {key: seconds * scale[key[0]] for key, seconds in charged.items()}


def line_costs(charged: Mapping[tuple[str, Stack], float], places: Places) -> list[dict[str, Any]]:
    """Each sample goes to the innermost line of the user's own, itself and all it called."""
    costs: dict[tuple[str, CodeType, int], float] = {}
    for (phase, stack), seconds in charged.items():
        for code, instruction in stack:
            if places.whose(code) == USER:
                line = line_of(code, instruction)
                costs[phase, code, line] = costs.get((phase, code, line), 0.0) + seconds
                break
    least = LEAST_SHARE * sum(charged.values())
    files: dict[str, Syntax] = {}
    rows = []
    for (phase, code, line), seconds in sorted(costs.items(), key=lambda item: -item[1]):
        if seconds < least:
            continue
        syntax = files.setdefault(code.co_filename, read_syntax(Path(code.co_filename)))
        rows.append(
            dict(
                where=places.where(code.co_filename, line),
                function=qualified_name(code),
                source=syntax.source(line),
                phase=phase,
                seconds=seconds,
                features=syntax.features(line),
            )
        )
    return rows


def stack_costs(charged: Mapping[tuple[str, Stack], float], places: Places) -> list[dict[str, Any]]:
    costs: dict[tuple[str, tuple[str, ...]], float] = {}
    for (phase, stack), seconds in charged.items():
        frames = tuple(places.frame(*frame) for frame in reversed(list(_own(stack, places))))
        costs[phase, frames] = costs.get((phase, frames), 0.0) + seconds
    dearest = sorted(costs.items(), key=lambda item: -item[1])[:MOST_STACKS]
    return [dict(phase=phase, frames=frames, seconds=seconds) for (phase, frames), seconds in dearest]


def waiting_seconds(charged: Mapping[tuple[str, Stack], float]) -> float:
    """Time in which the loop only waited for another process or thread."""
    return sum(seconds for (_, stack), seconds in charged.items() if _waits(stack))


def _waits(stack: Stack) -> bool:
    for code, _ in stack[:4]:
        if code.co_filename.endswith(WAITING_FILES) or qualified_name(code) in ("Condition.wait", "Connection.recv"):
            return True
    return False


def _own(stack: Stack, places: Places) -> Iterable[tuple[CodeType, int]]:
    """Without the doctor's own frames and what stands below the script."""
    for code, line in stack:
        if places.whose(code) != DOCTOR and not code.co_filename.startswith("<frozen importlib"):
            yield code, line
