"""Hooks on the rest: what prints and logs, what draws a batch, and compilers that must see a class unhooked."""

from __future__ import annotations

import builtins
import logging
import random
from collections.abc import Callable
from types import FunctionType, ModuleType

from hotloop.doctor.script import attribution
from hotloop.doctor.script.hooks import ClassHooks, time_all, timed
from hotloop.doctor.script.imports import Arrivals
from hotloop.doctor.script.torch_hooks import TorchHooks
from hotloop.doctor.script.watch import Watch


def install_hooks(watch: Watch, named: tuple[str, ...]) -> tuple[ClassHooks, TorchHooks]:
    """All of them; returns those that know more at the end."""
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
