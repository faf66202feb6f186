"""Hooks on classes as they are made: envs by their `step`, replay by what it stores and samples, loggers by name.

Nothing is imported here that a script might import: the hook sits in `builtins.__build_class__`.
"""

from __future__ import annotations

import builtins
import functools
import inspect
import os
import re
import sys
from collections.abc import Callable, Iterable
from threading import get_ident
from types import FunctionType, ModuleType
from typing import Any

from . import words
from .passes import Pass
from .places import unseen
from .watch import NOT_AN_ENV, SURE, UNSURE, Watch
from .words import ENV, RESET

STEPS = ("step", "play_step", "step_wait")
STORES = (
    "add",
    "push",
    "append",
    "store",
    "remember",
    "store_transition",
    "add_experience",
    "save_transition",
    "insert",
)
SAMPLES = ("sample", "sample_batch", "get_batch", "recall", "sample_buffer", "sample_memory", "get", "get_batches")
REPLAY_NAME = re.compile(r"replay|rollout|memory|buffer", re.IGNORECASE)
STANDARD = getattr(sys, "stdlib_module_names", None) or {
    *sys.builtin_module_names,
    *(name.partition(".")[0] for name in os.listdir(os.path.dirname(os.__file__))),
}
NEVER = {
    *STANDARD,
    "torch",
    "numpy",
    "jax",
    "jaxlib",
    "tensorflow",
    "numba",
    "hotloop",
    "scipy",
    "networkx",
}
LOGGERS = {
    "SummaryWriter": r"add_\w+|flush",
    "Logger": r"record|record_mean|dump|logkv|dumpkvs|log|log_metrics|write",
    "tqdm": r"update|set_postfix|set_postfix_str|set_description|write|refresh",
    "Run": r"log",
}
LEARNERS = {
    "fit": words.LEARN,
    "train_on_batch": words.LEARN,
    "predict": words.FORWARD,
    "predict_on_batch": words.FORWARD,
}


FRAME_READERS = ("overrides",)
"""Packages that look up the stack from inside a class body, where a hook of ours would be one frame too many: Tianshou
could not be imported."""


class ClassHooks(Pass):
    """Sees every class that is made from now on; once a frame reader is imported, those that a module has when its
    import is over. A class of the script itself is then missed, unless `--env` names it."""

    def __init__(self, named: Iterable[str] = ()) -> None:
        self.named = tuple(named)
        self.originals: dict[type, dict[str, Any]] = {}
        self.make: Any = None
        self.reads_modules = False

    def prepare(self) -> None:
        make = self.make = builtins.__build_class__

        def build_class(function: Any, name: str, /, *bases: Any, **keywords: Any) -> Any:
            made = make(function, name, *bases, **keywords)
            if type(made) is type or issubclass(type(made), type):
                self.see(made)
            return made

        builtins.__build_class__ = build_class

    def arrivals(self) -> dict[str, Callable[[ModuleType], None]]:
        return dict.fromkeys(FRAME_READERS, self.leave_class_bodies)

    def arrive_anywhere(self) -> Callable[[ModuleType], None] | None:
        return self.read_module

    def leave_class_bodies(self, module: ModuleType) -> None:
        builtins.__build_class__ = self.make
        self.reads_modules = True

    def read_module(self, module: ModuleType) -> None:
        if not self.reads_modules:
            return
        for value in list(vars(module).values()):
            if isinstance(value, type) and value.__module__ == module.__name__:
                self.see(value)

    def see(self, made: type) -> None:
        """A class was made: one that we cannot read is left as it is."""
        if self.watch.over:
            return
        try:
            self.look(made)
        except Exception as error:
            self.watch.faults.note("a class that could not be looked at", error)

    def look(self, made: type) -> None:
        own, module = made.__dict__, made.__module__
        if not isinstance(module, str):  # a proxy's, which it computes
            return
        self._hook_named(made)
        top = module.partition(".")[0]
        if made.__name__ in LOGGERS and top != "logging":
            self._hook_events(made, re.compile(LOGGERS[made.__name__]).fullmatch, words.LOG)
            return
        if top in ("keras", "tf_keras"):
            for name, kind in LEARNERS.items():
                self._hook_events(made, name.__eq__, kind, rows=kind == words.FORWARD)
        if top in NEVER or _is_module(made):
            return
        if any(name in own for name in STEPS) and callable(_attribute(made, "reset")):
            self._hook_env(made)
        elif any(name in own for name in (*STORES, *SAMPLES)):
            self._hook_replay(made)

    def _hook_named(self, made: type) -> None:
        for name in self.named:
            module, _, path = name.rpartition(":")
            class_name, _, method = path.partition(".")
            if class_name != made.__name__ or (module and module not in (made.__module__, "__main__")):
                continue
            for step in (method,) if method else STEPS:
                function = made.__dict__.get(step)
                if isinstance(function, FunctionType):
                    self._put(made, step, self.env_step(function, sure=True))
                    return

    def _hook_env(self, made: type) -> None:
        for name in STEPS:
            function = made.__dict__.get(name)
            if isinstance(function, FunctionType) and not hasattr(function, "watched") and takes_an_action(function):
                self._put(made, name, self.env_step(function, sure=False))
        self._hook_events(made, "step_async".__eq__, words.RESET)
        reset = made.__dict__.get("reset")
        if isinstance(reset, FunctionType) and not hasattr(reset, "watched"):
            self._put(made, "reset", self.env_reset(reset))

    def _hook_replay(self, made: type) -> None:
        stores = any(callable(_attribute(made, name)) for name in STORES)
        samples = any(callable(_attribute(made, name)) for name in SAMPLES)
        if stores and (callable(_attribute(made, "sample")) or (samples and REPLAY_NAME.search(made.__name__))):
            self._hook_events(made, STORES.__contains__, words.STORE)
            self._hook_events(made, SAMPLES.__contains__, words.SAMPLE)

    def _hook_events(self, made: type, chosen: Callable[[str], Any], kind: str, rows: bool = False) -> None:
        for name, function in list(made.__dict__.items()):
            if isinstance(function, FunctionType) and chosen(name) and _returns_at_once(function):
                self._put(made, name, timed(self.watch, function, kind, rows))

    def _put(self, made: type, name: str, hook: Any) -> None:
        self.originals.setdefault(made, {}).setdefault(name, made.__dict__.get(name))
        type.__setattr__(made, name, hook)

    def restore(self, made: type) -> None:
        """Give a class its own methods back, for compilers that read them."""
        for name, function in self.originals.pop(made, {}).items():
            type.__setattr__(made, name, function)

    def env_step(self, function: Callable[..., Any], *, sure: bool) -> Callable[..., Any]:
        """The outermost call of a `step` is an env call; what does not answer like an env is left alone for good."""
        watch = self.watch
        verdict = [SURE if sure else UNSURE]

        def outermost(args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
            if verdict[0] == UNSURE or not watch.begun:
                return watch.try_env(verdict, function, args, keywords)
            start = watch.enter()
            try:
                result = function(*args, **keywords)
            except BaseException:
                watch.leave(ENV, start)
                raise
            watch.leave_env(start, (*args, *keywords.values()) if keywords else args, result)
            return result

        def step(*args: Any, **keywords: Any) -> Any:
            if (watch.begun and (watch.busy or get_ident() != watch.thread)) or verdict[0] == NOT_AN_ENV:
                return function(*args, **keywords)
            return outermost(args, keywords)

        def step_by(self: Any, action: Any) -> Any:
            if (watch.begun and (watch.busy or get_ident() != watch.thread)) or verdict[0] == NOT_AN_ENV:
                return function(self, action)
            return outermost((self, action), {})

        unseen(outermost)
        # An env's wrappers come here at every step, to be passed through: without packing it adds a third of the time.
        return unseen(functools.wraps(function)(step_by if takes_only_an_action(function) else step))

    def env_reset(self, function: Callable[..., Any]) -> Callable[..., Any]:
        watch = self.watch

        @functools.wraps(function)
        def reset(*args: Any, **keywords: Any) -> Any:
            if watch.busy or get_ident() != watch.thread:
                return function(*args, **keywords)
            start = watch.enter()
            try:
                result = function(*args, **keywords)
            except BaseException:
                watch.leave(RESET, start)
                raise
            watch.leave_reset(start, args, result)
            return result

        reset.watched = True  # type: ignore[attr-defined]
        return reset


def timed(watch: Watch, function: Callable[..., Any], kind: str, rows: bool = False) -> Callable[..., Any]:
    """The same function, its outermost calls reported as events of one kind; a method's with the rows of its input,
    where they are wanted."""
    if hasattr(function, "watched"):
        return function
    clock, note = watch.clock, watch.unsettled.append

    @functools.wraps(function)
    def hook(*args: Any, **keywords: Any) -> Any:
        if watch.busy or get_ident() != watch.thread:
            return function(*args, **keywords)
        start = watch.enter()
        try:
            return function(*args, **keywords)
        finally:
            now = clock()
            if now - start < watch.plain_below and not watch.over and not rows:
                note((kind, start, now, None, watch._resumed, None, None))
                watch._left, watch.busy = now, False
            else:
                watch.leave(kind, start, (rows_of(args), False, id(args[0])) if rows and args else None, now)

    return unseen(hook)


def rows_of(args: tuple[Any, ...]) -> int:
    """Of the first input of a method; 0 where it cannot be told."""
    shape = getattr(args[1], "shape", None) if len(args) > 1 else None
    try:
        return int(shape[0]) if shape is not None and len(shape) else 0
    except (TypeError, ValueError):  # of a length that a trace does not know yet
        return 0


def time_all(watch: Watch, module: ModuleType, names: tuple[str, ...], kind: str) -> None:
    """Time these functions of a module, where it has them."""
    for name in names:
        if hasattr(module, name):
            setattr(module, name, timed(watch, getattr(module, name), kind))


def takes_an_action(function: FunctionType) -> bool:
    code = function.__code__
    return code.co_argcount > 1 or bool(code.co_flags & inspect.CO_VARARGS) or function.__name__ == "step_wait"


def takes_only_an_action(function: Callable[..., Any]) -> bool:
    """By the names that nearly all envs and wrappers have, so that it can be given by name too."""
    code = getattr(function, "__code__", None)
    if code is None or code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS) or code.co_kwonlyargcount:
        return False
    return code.co_varnames[: code.co_argcount] == ("self", "action") and not getattr(function, "__defaults__", None)


def _returns_at_once(function: FunctionType) -> bool:
    """A generator's time is spent when it is resumed, not when it is called."""
    lazy = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
    return not function.__code__.co_flags & lazy


def bases_of(made: type) -> tuple[type, ...]:
    """Past any `__mro__` of its metaclass."""
    bases: tuple[type, ...] = type.__dict__["__mro__"].__get__(made)
    return bases


def _attribute(made: type, name: str) -> Any:
    """As it stands in the class or a base, past any `__getattr__` of its metaclass; None where it is nowhere."""
    found = next((vars(base)[name] for base in bases_of(made) if name in vars(base)), None)
    return getattr(found, "__func__", found)


def _is_module(made: type) -> bool:
    return any(base.__name__ == "Module" and str(base.__module__).startswith("torch.") for base in bases_of(made))
