"""Where in the program something happens: the functions on the stack, and one of them replaced by another."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import CodeType, FrameType, FunctionType
from typing import Any

from .places import OURS, UNSEEN

DEEPEST = 60


def callers(frame: FrameType | None) -> list[FrameType]:
    """The frames around `frame`, the innermost first, without ours."""
    found: list[FrameType] = []
    while frame is not None and len(found) < DEEPEST:
        file = frame.f_code.co_filename
        if file != UNSEEN and not file.startswith(OURS):
            found.append(frame)
        frame = frame.f_back
    return found


def codes(frame: FrameType | None) -> list[CodeType]:
    return [one.f_code for one in callers(frame)]


def innermost_common(one: list[CodeType], other: list[CodeType]) -> list[CodeType]:
    """Of two stacks, the innermost first: what they share from the outermost inwards, again the innermost first."""
    shared = []
    for first, second in zip(reversed(one), reversed(other)):
        if first is not second:
            break
        shared.append(first)
    return shared[::-1]


class StackLocation:
    """A function where the program finds it: on a class, or by name in modules."""

    def __init__(self, function: Callable[..., Any], owners: list[tuple[Any, str]], label: str) -> None:
        self.function, self.owners, self.label = function, owners, label

    def put(self, hook: Callable[..., Any]) -> None:
        for owner, name in self.owners:
            if isinstance(owner, dict):
                owner[name] = hook
            else:
                type.__setattr__(owner, name, hook)


def find_function(frame: FrameType) -> StackLocation | None:
    """What was called to make this frame, where another can be put in its place: a method of the first argument's
    class, or a function by its name in modules; None for functions within functions."""
    code = frame.f_code
    if code.co_name.startswith("<"):
        return None
    if code.co_argcount:
        first = frame.f_locals.get(code.co_varnames[0])
        for base in type.__dict__["__mro__"].__get__(type(first)) if first is not None else ():
            function = vars(base).get(code.co_name)
            if isinstance(function, FunctionType) and _is_of(function, code):
                return StackLocation(function, [(base, code.co_name)], f"{base.__name__}.{code.co_name}")
    function = frame.f_globals.get(code.co_name)
    if isinstance(function, FunctionType) and _is_of(function, code):
        return StackLocation(function, names_of(function, frame.f_globals), code.co_name)
    return None


def names_of(function: Any, first: dict[str, Any]) -> list[tuple[Any, str]]:
    """Every module and name by which it is called, its own module first."""
    tables = [first, *(vars(module) for module in list(sys.modules.values()) if hasattr(module, "__dict__"))]
    found: list[tuple[Any, str]] = []
    for table in tables:
        found += [(table, name) for name, value in list(table.items()) if value is function]
    return found


def _is_of(function: Any, code: CodeType) -> bool:
    """Through decorators that keep what they wrap."""
    for _ in range(8):
        if getattr(function, "__code__", None) is code:
            return True
        function = getattr(function, "__wrapped__", None)
        if function is None:
            return False
    return False
