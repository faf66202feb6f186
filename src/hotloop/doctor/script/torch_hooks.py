"""Hooks on PyTorch, set the moment the script has imported it: forwards, backwards, optimiser steps.

Functions that TorchScript may compile (`torch.randint` and its like) must stay what they are.
"""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

from hotloop.doctor.script import attribution
from hotloop.doctor.script.attribution import FORWARD
from hotloop.doctor.script.hooks import time_all, timed
from hotloop.doctor.script.watch import Watch

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
            if watch.busy or watch.elsewhere():
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
