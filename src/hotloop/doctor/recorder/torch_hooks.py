"""Hooks on PyTorch, set the moment the script has imported it: forwards, backwards, optimiser steps.

Functions that TorchScript may compile (`torch.randint` and its like) must stay what they are.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

from . import attribution
from .attribution import FORWARD
from .hooks import time_all, timed
from .passes import Pass

MOST_KEPT = 256


class TorchHooks(Pass):
    """Any PyTorch from 1.13 on."""

    def __init__(self) -> None:
        self.optimisers: list[Any] = []
        """Held, since they are asked for their state when the script's own names are gone; likewise the modules."""
        self.modules: dict[int, Any] = {}
        self._grad_enabled: Any = None

    def arrivals(self) -> dict[str, Callable[[ModuleType], None]]:
        return {"torch": self.arrive}

    def arrive(self, torch: ModuleType) -> None:
        watch = self.watch
        self._hook_forward(torch)
        self._hook_optimisers(torch.optim.Optimizer)
        torch.Tensor.backward = timed(watch, torch.Tensor.backward, attribution.BACKWARD)
        time_all(watch, torch.autograd, ("backward", "grad"), attribution.BACKWARD)
        time_all(watch, torch, ("save",), attribution.SAVE)

    def _hook_forward(self, torch: ModuleType) -> None:
        watch, keep, self._grad_enabled = self.watch, self._keep, torch.is_grad_enabled
        call, knows_compiled = torch.nn.Module.__call__, hasattr(torch.nn.Module, "_compiled_call_impl")

        @functools.wraps(call)
        def forward(module: Any, *args: Any, **keywords: Any) -> Any:
            if watch.busy or watch.off_main_thread():
                if knows_compiled and module._compiled_call_impl is None:  # what `call` does too, at no further cost
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
        try:
            seen = (_rows(args), self._grad_enabled(), identity)
        except Exception as error:
            seen = (0, False, identity)
            self.watch.faults.note("a forward's input could not be read", error)
        self.watch.leave(FORWARD, start, seen, now)
        if identity not in self.modules and len(self.modules) < MOST_KEPT:
            self.modules[identity] = module

    def _hook_optimisers(self, optimiser: Any) -> None:
        """Each class of optimiser is hooked when one is first made of it, so that those of others count too."""
        make, watch, optimisers = optimiser.__init__, self.watch, self.optimisers

        def time_steps(kind: Any) -> None:
            if not hasattr(kind.step, "watched"):
                kind.step = timed(watch, kind.step, attribution.OPTIMISER)

        hook_step = watch.faults.guarded("an optimiser", time_steps)

        @functools.wraps(make)
        def initialise(self: Any, *args: Any, **keywords: Any) -> None:
            make(self, *args, **keywords)
            if len(optimisers) < MOST_KEPT:
                optimisers.append(self)
            hook_step(type(self))

        optimiser.__init__ = initialise


def _rows(args: tuple[Any, ...]) -> int:
    """Rows of the first input: 1 for a single observation without a batch axis."""
    shape = getattr(args[0], "shape", None) if args else None
    if shape is None:
        return 0
    return shape[0] if len(shape) > 1 else 1
