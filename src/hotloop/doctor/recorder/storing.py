"""Rows stored in one call: what a replay's method does with its arguments is seen from outside, then done for several
rows at once."""

from __future__ import annotations

import functools
import sys
from collections import deque
from types import CodeType
from typing import Any

from .places import unseen
from .stacks import callers
from .trial import Switch, Trial


class Storing(Switch):
    """Where a replay keeps rows in a list or deque, and its method appends its arguments as they are: the rows of one
    env call are kept back and appended together."""

    name = "rows stored in one call"
    what = "the rows of an env call are appended together"

    def __init__(self) -> None:
        super().__init__()
        self.label, self.why_not = "", ""
        self.container = ""
        self._method: Any = None
        self._row: Any = tuple
        self._rows_per_call = 0
        self._counted = self._matched = 0
        self._kept: dict[int, tuple[Any, list[Any]]] = {}
        self.codes: set[CodeType] = set()
        """Functions in which rows are stored."""

    def wrap(self, function: Any, name: str) -> Any:
        if hasattr(function, "watched"):
            return function

        @functools.wraps(function)
        def hook(*args: Any, **keywords: Any) -> Any:
            self.seen += 1
            if self.active and function is self._method and not keywords and args:
                return self._keep(args[0], args[1:])
            if self._counted >= 200 or not args:
                return function(*args, **keywords)
            return self._learn(function, name, args, keywords)

        return unseen(hook)

    def flushing(self, function: Any) -> Any:
        """Any other method of a replay: it finds all rows in their place."""
        if hasattr(function, "watched"):
            return function

        @functools.wraps(function)
        def hook(*args: Any, **keywords: Any) -> Any:
            if self._kept:
                self.flush()
            return function(*args, **keywords)

        return unseen(hook)

    def _learn(self, function: Any, name: str, args: tuple[Any, ...], keywords: Any) -> Any:
        """What the method does with its arguments, seen from outside."""
        self.codes.update(one.f_code for one in callers(sys._getframe(2)))
        before = {key: len(value) for key, value in containers(args[0]).items()}
        result = function(*args, **keywords)
        self._counted += 1
        for key, value in containers(args[0]).items():
            grown = len(value) - before.get(key, len(value))
            full = isinstance(value, deque) and value.maxlen == len(value) and not grown
            if value and not keywords and (grown == 1 or full) and is_row(value[-1], args[1:]):
                self.container, self._method, self._row = key, function, type(value[-1])
                self.label = f"{type(args[0]).__name__}.{name}"
                self._matched += 1
                break
        self.why_not = f"`{type(args[0]).__name__}.{name}` does more than append its arguments to a list or deque"
        return result

    def look(self, trial: Trial) -> None:
        self._rows_per_call = round(self.seen / max(1, trial.env_calls))
        if self.label:
            self.what = f"the {self._rows_per_call} rows of an env call are appended together, not by `{self.label}`"

    def reason(self, trial: Trial) -> str:
        if not self.seen:
            return "no replay was recognized: no class that has a method such as add or push, and one such as sample"
        if self._rows_per_call < 2:
            return "one call stores all there is to store at an env call"
        if self._matched < self._counted or not self._matched:
            return self.why_not
        return ""

    def _keep(self, replay: Any, row: tuple[Any, ...]) -> None:
        rows = self._kept.setdefault(id(replay), (replay, []))[1]
        rows.append(row if self._row is tuple else self._row(*row))
        if len(rows) >= self._rows_per_call:
            self.flush()

    def flush(self) -> None:
        for replay, rows in self._kept.values():
            getattr(replay, self.container).extend(rows)
        self._kept.clear()

    def off(self) -> None:
        super().off()
        self.flush()


def containers(replay: Any) -> dict[str, Any]:
    attributes = getattr(replay, "__dict__", {})
    return {name: value for name, value in attributes.items() if type(value) in (list, deque)}


def is_row(item: Any, args: tuple[Any, ...]) -> bool:
    """Whether it is a plain or named tuple of just these objects."""
    plain = type(item) is tuple or (isinstance(item, tuple) and hasattr(type(item), "_fields"))
    return plain and len(item) == len(args) and all(one is other for one, other in zip(item, args))
