"""Hooks on PyTorch, set the moment the script has imported it (forwards, backwards, optimiser steps), and the
installing of all hooks.

Functions that TorchScript may compile (`torch.randint` and its like) must stay what they are.
"""

from __future__ import annotations

import builtins
import functools
import logging
import random
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import FunctionType, ModuleType
from typing import Any

from hotloop.doctor.recorder import attribution
from hotloop.doctor.recorder.attribution import FORWARD
from hotloop.doctor.recorder.hooks import ClassHooks, time_all, timed
from hotloop.doctor.recorder.watch import Watch

MOST_KEPT = 256


class TorchHooks:
    def __init__(self, watch: Watch) -> None:
        self.watch = watch
        self.optimisers: list[Any] = []
        """Held, since they are asked for their state when the script's own names are gone; likewise the modules."""
        self.modules: dict[int, Any] = {}
        self._grad_enabled: Any = None

    def arrive(self, torch: ModuleType) -> None:
        watch = self.watch
        self._hook_forward(torch)
        self._hook_optimisers(torch.optim.Optimizer)
        torch.Tensor.backward = timed(watch, torch.Tensor.backward, attribution.BACKWARD)
        time_all(watch, torch.autograd, ("backward", "grad"), attribution.BACKWARD)
        time_all(watch, torch, ("save",), attribution.SAVE)

    def _hook_forward(self, torch: ModuleType) -> None:
        watch, keep, self._grad_enabled = self.watch, self._keep, torch.is_grad_enabled
        call = torch.nn.Module.__call__

        @functools.wraps(call)
        def forward(module: Any, *args: Any, **keywords: Any) -> Any:
            if watch.busy or watch.off_main_thread():
                if module._compiled_call_impl is None:  # what `call` does too: modules within modules cost nothing
                    return module._call_impl(*args, **keywords)
                return call(module, *args, **keywords)
            start = watch.enter()
            try:
                return call(module, *args, **keywords)
            finally:
                keep(start, module, args)

        torch.nn.Module.__call__ = forward

    def _keep(self, start: float, module: Any, args: tuple[Any, ...]) -> None:
        now, identity = self.watch.clock(), id(module)
        self.watch.leave(FORWARD, start, (_rows(args), self._grad_enabled(), identity), now)
        if identity not in self.modules and len(self.modules) < MOST_KEPT:
            self.modules[identity] = module

    def _hook_optimisers(self, optimiser: Any) -> None:
        """Each class of optimiser is hooked when one is first made of it, so that those of others count too."""
        make, watch, optimisers = optimiser.__init__, self.watch, self.optimisers

        @functools.wraps(make)
        def initialise(self: Any, *args: Any, **keywords: Any) -> None:
            make(self, *args, **keywords)
            if len(optimisers) < MOST_KEPT:
                optimisers.append(self)
            kind = type(self)
            if not hasattr(kind.step, "watched"):
                kind.step = timed(watch, kind.step, attribution.OPTIMISER)

        optimiser.__init__ = initialise


def _rows(args: tuple[Any, ...]) -> int:
    """Rows of the first input: 1 for a single observation without a batch axis."""
    shape = getattr(args[0], "shape", None) if args else None
    if shape is None:
        return 0
    return shape[0] if len(shape) > 1 else 1


Arrival = Callable[[ModuleType], None]


class Arrivals:
    """Tells when a module of interest has just been imported, before the importer gets it. Stands first in
    `sys.meta_path`; finds nothing itself, but puts a note on the loader that does."""

    def __init__(self, wanted: dict[str, Arrival], anywhere: Arrival | None = None) -> None:
        self.wanted = wanted
        self.anywhere = anywhere
        """Called for every other module."""

    def install(self) -> None:
        for name, arrival in self.wanted.items():
            if name in sys.modules:
                arrival(sys.modules[name])
        sys.meta_path.insert(0, self)

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: Any = None) -> ModuleSpec | None:
        arrival = self.wanted.get(name, self.anywhere)
        if arrival is None:
            return None
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find is not None and finder is not self else None
            if spec is not None:
                announce(spec, arrival)
                return spec
        return None


def announce(spec: ModuleSpec, arrival: Arrival) -> None:
    """Have `arrival` called once the module has been executed."""
    execute = getattr(spec.loader, "exec_module", None)
    if execute is None:
        return

    def exec_module(module: ModuleType) -> None:
        execute(module)
        arrival(module)

    try:
        spec.loader.exec_module = exec_module  # type: ignore[union-attr, method-assign]
    except AttributeError:
        return


def install_hooks(watch: Watch, named: tuple[str, ...]) -> tuple[ClassHooks, TorchHooks]:
    """All of them: PyTorch, what prints and logs, what draws a batch, compilers that must see a class unhooked; returns
    those that know more at the end."""
    classes, torch_hooks = ClassHooks(watch, named), TorchHooks(watch)
    classes.install()
    builtins.print = timed(watch, builtins.print, attribution.LOG)
    logging.Logger._log = timed(watch, logging.Logger._log, attribution.LOG)  # type: ignore[method-assign]
    for name in ("sample", "choices"):
        setattr(random, name, timed(watch, getattr(random, name), attribution.DRAW))
    wanted: dict[str, Callable[[ModuleType], None]] = {
        "torch": torch_hooks.arrive,
        "numpy.random": lambda module: time_all(watch, module, ("choice", "randint", "permutation"), attribution.DRAW),
        "wandb": lambda module: time_all(watch, module, ("log",), attribution.LOG),
        "matplotlib.pyplot": lambda module: time_all(
            watch, module, ("pause", "savefig", "show", "draw"), attribution.LOG
        ),
        "stable_baselines3.common.evaluation": lambda module: time_all(
            watch, module, ("evaluate_policy",), attribution.EVALUATE
        ),
        "numba.experimental.jitclass.base": lambda module: _unhook_compiled(module, classes),
    }
    functions = [name for name in named if "." not in name.rpartition(":")[2]]
    Arrivals(wanted, (lambda module: hook_functions(classes, module, functions)) if functions else None).install()
    return classes, torch_hooks


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
