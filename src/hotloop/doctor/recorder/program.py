"""Runs a script as Python itself would: as `__main__`, with its own arguments and its folder first on the path."""

from __future__ import annotations

import ast
import builtins
import sys
import traceback
from collections.abc import Callable, Collection, Sequence
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

from .watch import LimitReached

DECORATOR = "__watched_env__"


class Program(SourceFileLoader):
    """Loads the script; functions that the user named as envs get a decorator on the way."""

    def __init__(self, path: Path, names: Sequence[str] = ()) -> None:
        super().__init__("__main__", str(path))
        self.names = frozenset(names)

    def get_code(self, fullname: str) -> Any:
        """Without the bytecode cache: a script leaves none either."""
        return self.source_to_code(self.get_data(self.path), self.path)

    def source_to_code(self, data: Any, path: Any, *, _optimize: int = -1) -> Any:  # type: ignore[override]
        tree = ast.parse(data, str(path))
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and node.name in self.names:
                mark = ast.copy_location(ast.Name(DECORATOR, ast.Load()), node)
                mark.end_lineno = mark.lineno
                node.decorator_list.append(mark)
        return compile(tree, str(path), "exec", dont_inherit=True, optimize=_optimize)


def prepare(script: str, arguments: Sequence[str], before: Collection[str]) -> None:
    """What the script will find in `sys`. `before` are the modules that Python had loaded before ours: of the rest,
    those that files beside the script would hide are forgotten, so that the script finds its own."""
    sys.argv = [script, *arguments]
    folder = Path(script).resolve().parent
    if not getattr(sys.flags, "safe_path", False):
        sys.path.insert(0, str(folder))
    own = {path.stem for path in folder.glob("*.py")} | {path.parent.name for path in folder.glob("*/__init__.py")}
    for name in tuple(sys.modules):
        if name not in before and name.partition(".")[0] in own and name.partition(".")[0] not in before:
            del sys.modules[name]


def run_program(script: str, names: Sequence[str], watched_env: Callable[..., Any]) -> tuple[str, int | None, str]:
    """Run to the end, whatever end that is: (ending, exit code, error)."""
    path = Path(script).absolute()
    main = ModuleType("__main__")
    main.__dict__.update(__file__=str(path), __builtins__=builtins, __annotations__={}, __cached__=None)
    main.__dict__[DECORATOR] = watched_env
    program = Program(path, names)
    main.__loader__ = program
    sys.modules["__main__"] = main
    try:
        program.exec_module(main)
    except LimitReached:
        return "limit", None, ""
    except KeyboardInterrupt:
        return "interrupted", 130, "KeyboardInterrupt"
    except SystemExit as leave:
        return _exit(leave)
    except BaseException as error:
        _show(error, str(path))
        return "crashed", 1, f"{type(error).__name__}: {error}"
    return "finished", 0, ""


def _exit(leave: SystemExit) -> tuple[str, int | None, str]:
    if leave.code is None or isinstance(leave.code, int):
        return "exited", leave.code or 0, ""
    print(leave.code, file=sys.stderr)
    return "exited", 1, str(leave.code)


def _show(error: BaseException, path: str) -> None:
    """The script's traceback, without the frames that started it."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename != path:
        trace = trace.tb_next
    traceback.print_exception(type(error), error, trace or error.__traceback__)
