"""Counts calls with Python's profile hook: every call that the user's own code makes, by line and phase."""

from __future__ import annotations

import sys
from collections import deque
from inspect import CO_GENERATOR
from types import CodeType, FrameType, ModuleType
from typing import TYPE_CHECKING, Any

from .passes import Pass
from .places import DOCTOR, USER, SourcePlaces, line_of, qualified_name

if TYPE_CHECKING:
    from .order import Order

    Key = tuple[CodeType, int, Any]
    """Code and instruction of the call, and what was called."""

HOST_READS = frozenset(("item", "cpu", "numpy", "tolist", "to"))
SIZED = (list, deque)
SILENT = ("<listcomp>", "<genexpr>", "<dictcomp>", "<setcomp>", "<module>")
RENAMED = {"random.Random.": "random.", "multiprocessing._ConnectionBase.": "multiprocessing.Connection."}
PASSING_ON = ("hook", "step", "step_by", "outermost", "forward", "initialise", "try_env")
"""Names of the functions of ours that stand between a caller and what it called."""
STARTING = 8
"""A generator stopped beyond this instruction has begun; to resume it is no call."""
MOST_ROWS = 4_000


class CallCounter(Pass):
    """Counts once the warm-up is over: `skip_env_steps` env steps from the first."""

    early = True

    def __init__(self, places: SourcePlaces, order: Order) -> None:
        self.places, self.order = places, order
        self._before: dict[str, int] | None = None
        """What the watch had counted when this began."""
        self.totals: dict[tuple[str, Key], int] = {}
        self.largest: dict[Key, int] = {}
        self._bucket: dict[Key, int] = {}
        self._names: dict[Key, str] = {}
        self._dispatched: set[str] = set()
        """Functions seen through networkx's dispatch: those that are generators start again when they are iterated."""

    def on_env(self, now: float) -> None:
        if self._before is None and self.watch.env_steps >= self.order.skip_env_steps:
            self._before = self.watch.totals()
            self.watch.bound(self.order.seconds, self.order.env_steps)
            self._bucket = {}
            self.totals.clear()
            sys.setprofile(self.profile)

    def forked(self) -> None:
        sys.setprofile(None)

    def stop(self) -> None:
        if sys.getprofile() == self.profile:
            sys.setprofile(None)

    def note(self) -> dict[Key, int]:
        bucket, self._bucket = self._bucket, {}
        return bucket

    def charge(self, phase: str, end: float, note: Any) -> None:
        for key, count in (note or {}).items():
            self.totals[phase, key] = self.totals.get((phase, key), 0) + count

    def profile(self, frame: FrameType, event: str, arg: Any) -> None:
        try:
            if event == "c_call":
                self._builtin_called(frame, arg)
            elif event == "call":
                self._function_called(frame)
        except Exception as error:  # it would be raised in the script
            sys.setprofile(None)
            self.watch.faults.note("counting", error)

    def _builtin_called(self, frame: FrameType, arg: Any) -> None:
        caller, owner = self._outside(frame), arg.__self__
        if caller is None or (caller is not frame and not _passes_on(frame, arg)):
            return
        if self.places.whose(caller.f_code) != USER and not _is_host_read(caller, owner, arg.__name__):
            return
        of_module = owner is None or isinstance(owner, (ModuleType, type))
        callee = arg if of_module else (type(owner), arg.__name__)
        key = (caller.f_code, caller.f_lasti, callee)
        if key not in self._names:
            self._names[key] = _function_name(arg, owner) if of_module else _method_name(type(owner), arg.__name__)
        self._bucket[key] = self._bucket.get(key, 0) + 1
        if type(owner) in SIZED:
            self.largest[key] = max(self.largest.get(key, 0), len(owner))

    def _function_called(self, frame: FrameType) -> None:
        code = frame.f_code
        whose = self.places.whose(code)
        if whose == DOCTOR or code.co_name in SILENT or code.co_name.endswith("_dispatcher"):
            return
        caller = self._outside(frame.f_back)
        if whose == USER:
            self._count((code, -1, None), f"user:{_plain(qualified_name(code))}")
            if caller is not None and caller.f_code is code:
                self._count((code, -2, None), f"recursive:{_plain(qualified_name(code))}")
        elif caller is not None and self.places.whose(caller.f_code) == USER:
            callee: Any = code
            if qualified_name(code).startswith("_dispatchable."):
                callee = (code, frame.f_locals["self"].name)
                self._dispatched.add(callee[1])
            elif code.co_flags & CO_GENERATOR and (code.co_name in self._dispatched or frame.f_lasti > STARTING):
                return
            self._count((caller.f_code, caller.f_lasti, callee), lambda: _python_name(frame, callee))

    def _count(self, key: Key, name: Any) -> None:
        if key not in self._names:
            self._names[key] = name if isinstance(name, str) else name()
        self._bucket[key] = self._bucket.get(key, 0) + 1

    def _outside(self, frame: FrameType | None) -> FrameType | None:
        """The caller, seen through the hooks that only pass calls on; None where the doctor itself calls."""
        while frame is not None and self.places.whose(frame.f_code) == DOCTOR:
            frame = frame.f_back if frame.f_code.co_name in PASSING_ON else None
        return frame

    def add_to(self, trace: dict[str, Any]) -> None:
        totals, before = self.watch.totals(), self._before or self.watch.totals()
        batch_size = totals.pop("batch_size")
        counted = {name: count - before[name] for name, count in totals.items()}
        trace["calls"] = self.rows()
        trace["counted"] = {**counted, "batch_size": batch_size, "envs": len(self.watch.envs)}

    def rows(self) -> list[dict[str, Any]]:
        merged: dict[tuple[str, str, str], list[int]] = {}
        for (phase, key), count in self.totals.items():
            row = merged.setdefault((self._names[key], self._where(key), phase), [0, 0])
            row[0] += count
            row[1] = max(row[1], self.largest.get(key, 0))
        ordered = sorted(merged.items(), key=lambda item: -item[1][0])[:MOST_ROWS]
        return [
            dict(name=name, where=where, phase=phase, count=count, largest=largest)
            for (name, where, phase), (count, largest) in ordered
        ]

    def _where(self, key: Key) -> str:
        code, instruction, _ = key
        return self.places.where(code.co_filename, line_of(code, instruction))


def _passes_on(hook: FrameType, called: Any) -> bool:
    """Whether it is what a hook of ours stands before, not a call of the hook's own."""
    return any(hook.f_locals.get(name) is called for name in ("function", "call"))


def _is_host_read(caller: FrameType, owner: Any, name: str) -> bool:
    """Reads of tensors count wherever they are, but for those PyTorch makes itself."""
    if name not in HOST_READS or not _is_tensor(type(owner)):
        return False
    return str(caller.f_globals.get("__name__", "")).partition(".")[0] not in ("torch", "numpy")


def _is_tensor(kind: type) -> bool:
    return any(base.__name__ == "Tensor" and base.__module__.startswith("torch") for base in kind.__mro__)


def _method_name(kind: type, name: str) -> str:
    return f"{'Tensor' if _is_tensor(kind) else kind.__name__}.{name}"


def _function_name(function: Any, owner: Any) -> str:
    if isinstance(owner, type) and not owner.__module__.startswith("torch"):
        return f"{owner.__name__}.{function.__name__}"
    module = str(function.__module__ or getattr(owner, "__module__", None) or getattr(owner, "__name__", "builtins"))
    return f"{module.partition('.')[0].lstrip('_')}.{function.__name__}"


def _python_name(frame: FrameType, callee: Any) -> str:
    top = str(frame.f_globals.get("__name__", "")).partition(".")[0]
    name = f"{top}.{callee[1] if isinstance(callee, tuple) else _plain(qualified_name(frame.f_code))}"
    for long, short in RENAMED.items():
        if name.startswith(long):
            return short + name[len(long) :]
    return name


def _plain(qualified: str) -> str:
    return qualified.replace("<locals>.", "")
