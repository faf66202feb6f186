"""Runs a script as Python itself would: as `__main__`, with its own arguments and its folder first on the path."""

from __future__ import annotations

import ast
import atexit
import builtins
import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Collection, Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import decode_source
from pathlib import Path
from types import ModuleType
from typing import Any

from .places import OURS
from .watch import LimitReached

DECORATOR = "__watched_env__"


class Program(SourceFileLoader):
    """Loads the script; functions that the user named as envs get a decorator on the way."""

    def __init__(self, path: str, names: Sequence[str] = ()) -> None:
        super().__init__("__main__", path)
        self.names = frozenset(names)

    def get_code(self, fullname: str) -> Any:
        """Without the bytecode cache: a script leaves none either."""
        data = self.get_data(self.path)
        require_decodable(data, self.path)
        return self.source_to_code(data, self.path)

    def source_to_code(self, data: Any, path: Any, *, _optimize: int = -1) -> Any:  # type: ignore[override]
        tree = ast.parse(data, str(path))
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and node.name in self.names:
                mark = ast.copy_location(ast.Name(DECORATOR, ast.Load()), node)
                mark.end_lineno = mark.lineno
                node.decorator_list.append(mark)
        return compile(tree, str(path), "exec", dont_inherit=True, optimize=_optimize)


def require_decodable(data: bytes, path: str) -> None:
    """Python reads the whole file in its encoding; the parser of bytes never looks at comments."""
    try:
        decode_source(data)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        refused = f"Non-UTF-8 code starting with '\\x{data[error.start]:02x}' on line {line}"
        declared = error.encoding.lower().replace("_", "-") not in ("utf-8", "utf8")
        words = (
            f"cannot be read as {error.encoding}, which is declared: {error}"
            if declared
            else (f"{refused}, but no encoding declared; see https://peps.python.org/pep-0263/ for details")
        )
        raise SyntaxError(words, (path, line, None, None)) from None
    except SyntaxError as error:
        raise SyntaxError(error.msg, (path, 1, None, None)) from None


def prepare(script: str, arguments: Sequence[str], before: Collection[str], module: str = "") -> None:
    """What the script will find in `sys`; a module finds the current folder first. `before` are the modules that Python
    had loaded before ours: of the rest, those that files beside the script would hide are forgotten, so that the script
    finds its own."""
    sys.argv = [os.path.abspath(script) if module else script, *arguments]
    folder = Path.cwd() if module else Path(script).resolve().parent
    if not getattr(sys.flags, "safe_path", False):
        sys.path.insert(0, str(folder))
    own = {path.stem for path in folder.glob("*.py")} | {path.parent.name for path in folder.glob("*/__init__.py")}
    for name in tuple(sys.modules):
        if name not in before and name.partition(".")[0] in own and name.partition(".")[0] not in before:
            del sys.modules[name]


class Ending:
    """How a script ended, and the way to leave as Python itself would have left."""

    def __init__(self, how: str, code: int | None = None, error: str = "", raised: BaseException | None = None) -> None:
        self.how, self.code, self.error = how, code, error
        self._raised = raised

    def leave(self) -> None:
        """Python's own end of a program: an interrupted one dies of the signal once all else is done."""
        if isinstance(self._raised, KeyboardInterrupt) and hasattr(signal, "raise_signal"):
            for shut_down in (threading._shutdown, atexit._run_exitfuncs):  # type: ignore[attr-defined]
                with contextlib.suppress(Exception):
                    shut_down()
            with contextlib.suppress(Exception):
                sys.stdout.flush()
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            signal.raise_signal(signal.SIGINT)
        if isinstance(self._raised, SystemExit):
            raise SystemExit(self._raised.code)
        raise SystemExit(self.code or 0)


def run_program(script: str, named: Sequence[str], watched_env: Callable[..., Any], module: str = "") -> Ending:
    """Run to the end, whatever end that is."""
    path = os.path.join(os.getcwd(), script)
    main = ModuleType("__main__")
    main.__dict__.update(__file__=path, __builtins__=builtins, __annotations__={}, __cached__=None)
    names = [name.rpartition(":")[2] for name in named]
    if names:
        main.__dict__[DECORATOR] = watched_env
    program = Program(path, names)
    main.__loader__ = program
    sys.modules["__main__"] = main
    try:
        if module:
            main.__package__ = module.rpartition(".")[0]
            main.__spec__ = ModuleSpec(module, program, origin=path)
            if main.__package__:
                import_module(main.__package__)
        program.exec_module(main)
    except LimitReached:
        return Ending("limit")
    except SystemExit as leave:
        return _exit(leave)
    except BaseException as error:
        _show(error, path)
        if isinstance(error, KeyboardInterrupt):
            return Ending("interrupted", 130, "KeyboardInterrupt", error)
        return Ending("crashed", 1, _words(error), error)
    return Ending("finished", 0)


def _exit(leave: SystemExit) -> Ending:
    if leave.code is None or isinstance(leave.code, int):
        return Ending("exited", _seen_outside(leave.code or 0), "", leave)
    return Ending("exited", 1, str(leave.code), leave)


def _seen_outside(code: int) -> int:
    """What the system keeps of an exit code: its lowest byte, of one that is no C long that of -1."""
    fits = -sys.maxsize - 1 <= code <= sys.maxsize
    return (code if fits else -1) & 0xFF if os.name == "posix" else code


def _words(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:
        return type(error).__name__


def _show(error: BaseException, path: str) -> None:
    """The script's traceback, without the frames that started it, by whatever hook the script has set for that."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename != path:
        trace = trace.tb_next
    with contextlib.suppress(Exception):
        error.__traceback__ = trace or error.__traceback__
        hide_our_frames(error)
        sys.excepthook(type(error), error, error.__traceback__)


def hide_our_frames(error: BaseException | None) -> None:
    """Of the hooks that only passed a call on; in what led to the error too."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        kept, trace = [], error.__traceback__
        while trace is not None:
            kept += [trace] if not trace.tb_frame.f_code.co_filename.startswith(OURS) else []
            trace = trace.tb_next
        for one, following in zip(kept, [*kept[1:], None]):
            one.tb_next = following
        error.__traceback__ = kept[0] if kept else error.__traceback__
        if error.__cause__ is not error.__context__:
            hide_our_frames(error.__cause__)
        error = error.__context__
