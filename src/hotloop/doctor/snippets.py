"""Snippets of remedies: the program's own lines with an argument more, and names that stand for the reader's."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator, Sequence

from hotloop.doctor.trace import Trace

STAND_IN = "# stand for your own: "
EXAMPLE = "# an example of other code than yours"
LEFT_OPEN = "..."
"""For a value that was not recorded. Run as it stands, it is refused rather than taken for a number."""


def with_foreign_names(text: str, trace: Trace, example: bool) -> str:
    """A snippet that says which of its names no recorded line of the program holds, for the reader has others for them;
    and where it is an `example` that nothing recorded went into, that it is one."""
    known = set(re.findall(r"\w+", " ".join(_own_sources(trace))))
    foreign = ", ".join(name for name in free_names(text) if name not in known)
    if example and (foreign or makes_names(text)):
        return f"{EXAMPLE}{f'; {foreign} stand for your own' if foreign else ''}\n{text}"
    return f"{STAND_IN}{foreign}\n{text}" if foreign else text


def makes_names(text: str) -> bool:
    """Whether a snippet has things of its own in it, besides what it imports."""
    try:
        nodes = ast.walk(ast.parse(text))
    except SyntaxError:
        return bool(text)
    return any(True for node in nodes if not isinstance(node, ast.Import | ast.ImportFrom) for _ in _made_by(node))


def shape_text(shape: Sequence[int]) -> str:
    """`(4,)`; open where no shape was recorded."""
    return f"({', '.join(map(str, shape))}{',' * (len(shape) == 1)})" if shape else LEFT_OPEN


def number_or_open(value: float, form: str = "g") -> str:
    """As code; 0 is what was not recorded."""
    return format(value, form) if value else LEFT_OPEN


def is_statement(source: str) -> bool:
    """Whether a line is one whole simple statement, which may be moved into a block."""
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError):
        return False
    return len(body) == 1 and not hasattr(body[0], "body")


def with_fewer_rounds(head: str, divisor: int) -> str:
    """`for i in range(64):` as `for i in range(16):`; empty where a line is no such loop."""
    try:
        loop = ast.parse(f"{head.rstrip()} pass").body[0]
    except (SyntaxError, IndexError):
        return ""
    if not isinstance(loop, ast.For) or not isinstance(call := loop.iter, ast.Call):
        return ""
    if ast.unparse(call.func) != "range" or len(call.args) != 1:
        return ""
    times = call.args[0]
    whole = isinstance(times, ast.Name | ast.Attribute | ast.Call | ast.Subscript)
    fewer = f"max(1, {ast.unparse(times) if whole else f'({ast.unparse(times)})'} // {divisor})"
    if isinstance(times, ast.Constant) and isinstance(times.value, int):
        fewer = str(max(1, times.value // divisor))
    return f"for {ast.unparse(loop.target)} in range({fewer}):"


def _own_sources(trace: Trace) -> Iterator[str]:
    yield from trace.sources.values()
    yield from (line.source for line in trace.lines)


def free_names(text: str) -> list[str]:
    """Names that a snippet reads before it has made them itself, in the order of their first use; nothing where it is
    no Python."""
    try:
        nodes = list(ast.walk(ast.parse(text)))
    except SyntaxError:
        return []
    made: dict[str, int] = {}
    for node in nodes:
        for name, line in _made_by(node):
            made[name] = min(line, made.get(name, line))
    names = [node for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)]
    names.sort(key=lambda one: (one.lineno, one.col_offset))
    foreign = (one.id for one in names if one.lineno < made.get(one.id, one.lineno + 1))
    return list(dict.fromkeys(name for name in foreign if not hasattr(builtins, name)))


def _made_by(node: ast.AST) -> Iterator[tuple[str, int]]:
    """Names, and the line from which on there is one. `x = 2 * x` reads before it writes."""
    if isinstance(node, ast.Assign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for one in (inner for target in targets for inner in ast.walk(target)):
            if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store):
                yield one.id, (node.end_lineno or node.lineno) + 1
    elif isinstance(node, ast.For | ast.comprehension | ast.withitem | ast.NamedExpr):
        target = node.optional_vars if isinstance(node, ast.withitem) else node.target
        yield from ((one.id, 0) for one in ast.walk(target or ast.Pass()) if isinstance(one, ast.Name))
    elif isinstance(node, ast.FunctionDef | ast.ClassDef):
        yield node.name, 0
    elif isinstance(node, ast.arg):
        yield node.arg, 0
    elif isinstance(node, ast.Import | ast.ImportFrom):
        yield from (((alias.asname or alias.name).partition(".")[0], 0) for alias in node.names)


def with_argument(source: str, function: str, argument: str) -> str:
    """A line that assigns what `function(...)` returns, with one argument more; empty where it is none such."""
    try:
        statement = ast.parse(source).body[0]
    except (SyntaxError, IndexError):
        return ""
    call = statement.value if isinstance(statement, ast.Assign | ast.AnnAssign) else None
    if not isinstance(call, ast.Call) or ast.unparse(call.func).rpartition(".")[2] != function or not call.args:
        return ""
    end = len(source.encode()[: call.end_col_offset].decode()) - 1
    return f"{source[:end].rstrip().rstrip(',')}, {argument}{source[end:]}"
