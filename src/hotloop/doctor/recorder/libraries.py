"""Hooks on modules, set the moment the script has imported them, before the importer gets them."""

from __future__ import annotations

import builtins
import logging
import random
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

from . import words
from .hooks import ClassHooks, time_all, timed
from .passes import Faults, Pass
from .places import unseen

if TYPE_CHECKING:
    Arrival = Callable[[ModuleType], None]


class Arrivals:
    """Stands first in `sys.meta_path`; finds nothing itself, but puts a note on the loader that does."""

    def __init__(self, faults: Faults) -> None:
        self.faults = faults
        self.wanted: dict[str, list[Arrival]] = {}
        self.anywhere: list[Arrival] = []
        """Called for every module that nobody wants by name."""

    def want(self, arrivals: dict[str, Arrival]) -> None:
        """Have these called; at once for what is imported already. Each swallows its own error and is not called
        again."""
        for name, arrival in arrivals.items():
            guarded = self.faults.guarded(f"a hook on {name}", arrival)
            self.wanted.setdefault(name, []).append(guarded)
            if name in sys.modules:
                guarded(sys.modules[name])

    def want_anywhere(self, arrival: Arrival | None) -> None:
        if arrival is not None:
            self.anywhere.append(self.faults.guarded("a hook on every module", arrival))

    def install(self) -> None:
        sys.meta_path.insert(0, self)

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: Any = None) -> ModuleSpec | None:
        arrivals = self.wanted.get(name, self.anywhere)
        if not arrivals:
            return None
        for finder in tuple(sys.meta_path):
            find = getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find is not None and finder is not self else None
            if spec is not None:
                announce(spec, arrivals)
                return spec
        return None


def announce(spec: ModuleSpec, arrivals: Sequence[Arrival]) -> None:
    """Have them called once the module has been executed."""
    loader: Any = spec.loader
    execute = getattr(loader, "exec_module", None)
    if execute is None:
        return

    def exec_module(module: ModuleType) -> None:
        execute(module)
        for arrival in arrivals:
            arrival(module)

    try:
        loader.exec_module = exec_module
    except AttributeError:
        return


class Libraries(Pass):
    """What prints and logs, what draws a batch, what evaluates and saves; functions that the user named as envs;
    compilers that must see a class unhooked."""

    def __init__(self, classes: ClassHooks) -> None:
        self.classes = classes
        self.functions = [name for name in classes.named if "." not in name.rpartition(":")[2]]

    def prepare(self) -> None:
        watch = self.watch
        builtins.print = timed(watch, builtins.print, words.LOG)
        log = timed(watch, logging.Logger._log, words.LOG)
        logging.Logger._log = unseen(log, logging._srcfile)  # type: ignore[method-assign]
        for name in ("sample", "choices"):
            setattr(random, name, timed(watch, getattr(random, name), words.DRAW))

    def arrivals(self) -> dict[str, Arrival]:
        def times(kind: str, *names: str) -> Arrival:
            return lambda module: time_all(self.watch, module, names, kind)

        return {
            "pickle": times(words.SAVE, "dump"),
            "numpy": times(words.SAVE, "save", "savez", "savez_compressed"),
            "numpy.random": times(words.DRAW, "choice", "randint", "permutation"),
            "wandb": times(words.LOG, "log"),
            "matplotlib.pyplot": times(words.LOG, "pause", "savefig", "show", "draw"),
            "stable_baselines3.common.evaluation": times(words.EVALUATE, "evaluate_policy"),
            "stable_baselines3.common.save_util": times(words.SAVE, "save_to_zip_file", "save_to_pkl"),
            "numba.experimental.jitclass.base": lambda module: _unhook_compiled(module, self.classes),
        }

    def arrive_anywhere(self) -> Arrival | None:
        """For every other module."""
        return (lambda module: hook_functions(self.classes, module, self.functions)) if self.functions else None


def hook_functions(classes: ClassHooks, module: ModuleType, names: list[str]) -> None:
    """Functions that the user named as envs, where this module is the one that defines them."""
    for name in names:
        where, _, function_name = name.rpartition(":")
        function = vars(module).get(function_name)
        if not isinstance(function, FunctionType) or function.__module__ != module.__name__:
            continue
        if where in ("", module.__name__) and not hasattr(function, "watched"):
            setattr(module, function_name, classes.env_step(function, sure=True))


def _unhook_compiled(module: ModuleType, classes: ClassHooks) -> None:
    """Numba compiles the methods it finds on a class, and cannot compile ours."""
    register = module.register_class_type

    def register_class_type(made: type, *args: object, **keywords: object) -> object:
        classes.restore(made)
        return register(made, *args, **keywords)

    module.register_class_type = register_class_type  # type: ignore[attr-defined]
