"""Hooks on PyTorch, set the moment the script has imported it: forwards, backwards, optimizer steps.

Functions that TorchScript may compile (`torch.randint` and its like) must stay what they are.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from threading import get_ident
from types import FrameType, ModuleType
from typing import Any

from . import words
from .hooks import time_all, timed
from .passes import Pass
from .places import unseen
from .sources import Made
from .watch import Watch
from .words import FORWARD, OPTIMISER

MOST_KEPT, MOST_COPIES = 256, 1_000
SURE = 20
"""Calls of a network by itself after which its caller is no longer looked at."""
NO_NETWORK = -1
"""Rows of a forward that is none: of a module without parameters (a loss, an activation), or of a layer whose network
has been counted."""


class TorchHooks(Pass):
    """Any PyTorch from 1.13 on."""

    def __init__(self, made: Made | None = None) -> None:
        self.made = made
        self.optimisers: list[Any] = []
        self.rates: list[Any] = []
        """The learning rate of each when it was made: schedules change it."""
        """Held, since they are asked for their state when the script's own names are gone; likewise the modules."""
        self.modules: dict[int, Any] = {}
        self.copied_at: list[int] = []
        """How many updates had been made each time that parameters were loaded into a module: a target is moved."""
        self._networks: dict[int, int] = {}
        """Of the modules that are held: 0 for those without parameters, else how often in a row it was not another's
        `forward` that called them, and `SURE` in the end."""
        self._leaders: dict[int, int] = {}
        """Of a network whose `forward` is called directly: the layer that stands for it."""
        self.owners: list[Any] = []
        """Those networks."""
        self._module: Any = None

    def arrivals(self) -> dict[str, Callable[[ModuleType], None]]:
        return {"torch": self.arrive}

    def arrive(self, torch: ModuleType) -> None:
        watch = self.watch
        self._hook_forward(torch)
        self._hook_optimisers(torch.optim.Optimizer)
        torch.Tensor.backward = timed(watch, torch.Tensor.backward, words.BACKWARD)
        time_all(watch, torch.autograd, ("backward", "grad"), words.BACKWARD)
        time_all(watch, torch, ("save",), words.SAVE)
        self._count_copies(torch.nn.Module)

    def _hook_forward(self, torch: ModuleType) -> None:
        watch, look, networks, grad_enabled = self.watch, self._look, self._networks, torch.is_grad_enabled
        self._module, tensor = torch.nn.Module, torch.Tensor
        call, knows_compiled = torch.nn.Module.__call__, hasattr(torch.nn.Module, "_compiled_call_impl")
        clock, note = watch.clock, watch.unsettled.append

        @functools.wraps(call)
        def forward(module: Any, *args: Any, **keywords: Any) -> Any:
            if watch.busy or get_ident() != watch.thread:
                if knows_compiled and module._compiled_call_impl is None:  # what `call` does too, at no further cost
                    return module._call_impl(*args, **keywords)
                return call(module, *args, **keywords)
            start = watch.enter()
            try:
                if knows_compiled and module._compiled_call_impl is None:
                    return module._call_impl(*args, **keywords)
                return call(module, *args, **keywords)
            finally:
                now, identity = clock(), id(module)
                if networks.get(identity) == SURE and args and type(args[0]) is tensor:
                    shape = args[0].shape  # of nearly every forward, read here
                    rows = shape[0] if len(shape) > 1 else _rows(args)
                else:
                    rows = look(module, args, sys._getframe(1))
                if now - start < watch.plain_below and not watch.over:
                    note((FORWARD, start, now, (rows, grad_enabled(), identity), watch._resumed, None, None))
                    watch._left, watch.busy = now, False
                else:
                    watch.leave(FORWARD, start, (rows, grad_enabled(), identity), now)

        torch.nn.Module.__call__ = unseen(forward)

    def _look(self, module: Any, args: tuple[Any, ...], caller: FrameType) -> int:
        """Rows of its input, where it is a network."""
        try:
            counts = self._is_network(module, caller) and self._stands_for_its_network(id(module), caller)
            return _rows(args) if counts else NO_NETWORK
        except Exception as error:
            self.watch.faults.note("a forward's input could not be read", error)
            return 0

    def _is_network(self, module: Any, caller: FrameType) -> bool:
        """Whether it has parameters."""
        known = self._networks.get(id(module))
        if known is None:
            known = 1 if next(iter(module.parameters()), None) is not None else 0
            if len(self.modules) < MOST_KEPT:
                self.modules[id(module)], self._networks[id(module)] = module, known
        elif 0 < known < SURE:
            self._networks[id(module)] = 1 if caller.f_code.co_name == "forward" else known + 1
        return known > 0

    def _stands_for_its_network(self, layer: int, caller: FrameType) -> bool:
        """A layer called from a `forward` that was itself called directly: the first such layer stands for all."""
        code = caller.f_code
        if code.co_name != "forward" or not code.co_varnames:
            return True
        owner = caller.f_locals.get(code.co_varnames[0])
        if not isinstance(owner, self._module):
            return True
        if id(owner) not in self._leaders:
            if len(self.owners) >= MOST_KEPT:
                return True
            self.owners.append(owner)
            self._leaders[id(owner)] = layer
        return self._leaders[id(owner)] == layer

    def _count_copies(self, module: Any) -> None:
        load, watch = module.load_state_dict, self.watch

        @functools.wraps(load)
        def load_state_dict(*args: Any, **keywords: Any) -> Any:
            counts = watch.begun and not watch.over and get_ident() == watch.thread
            if counts and len(self.copied_at) < MOST_COPIES:
                watch.settle()
                self.copied_at.append(watch.attribution.counts["updates"])
            return load(*args, **keywords)

        module.load_state_dict = unseen(load_state_dict)

    def _hook_optimisers(self, optimiser: Any) -> None:
        """Each class of optimizer is hooked when one is first made of it, so that those of others count too."""
        make, watch, optimisers, rates, made = optimiser.__init__, self.watch, self.optimisers, self.rates, self.made

        def time_steps(kind: Any) -> None:
            watch.expect_updates()
            if not hasattr(kind.step, "watched"):
                kind.step = timed_step(watch, kind.step)

        hook_step = watch.faults.guarded("an optimizer", time_steps)
        note_rate = watch.faults.guarded("a learning rate", lambda one: rates.append(one.param_groups[0].get("lr", 0)))

        @functools.wraps(make)
        def initialise(self: Any, *args: Any, **keywords: Any) -> None:
            make(self, *args, **keywords)
            if len(optimisers) < MOST_KEPT:
                optimisers.append(self)
                note_rate(self)
            hook_step(type(self))
            if made is not None:
                made.here("optimiser", self)

        optimiser.__init__ = unseen(initialise)


def timed_step(watch: Watch, function: Callable[..., Any]) -> Callable[..., Any]:
    """The same `step`, its outermost calls reported with the optimizer that stepped."""

    @functools.wraps(function)
    def hook(*args: Any, **keywords: Any) -> Any:
        if watch.busy or get_ident() != watch.thread:
            if not watch.begun:
                watch.meet_step()
            elif get_ident() != watch.thread:
                watch.unseen_steps += 1
            return function(*args, **keywords)
        start = watch.enter()
        try:
            return function(*args, **keywords)
        finally:
            watch.leave(OPTIMISER, start, (0, False, id(args[0]) if args else 0))

    return unseen(hook)


def _rows(args: tuple[Any, ...]) -> int:
    """Rows of the first input: 1 for a single observation without a batch axis; of whole numbers, which an embedding
    takes, one axis is the batch's."""
    first: Any = args[0] if args else None
    if isinstance(first, dict):
        first = next(iter(first.values()), None)
    elif isinstance(first, (list, tuple)):
        first = first[0] if first else None
    shape = getattr(first, "shape", None)
    if shape is None:
        return 0
    if len(shape) == 1:
        return 1 if _is_floating(first) else shape[0]
    return shape[0] if shape else _length(first)


def _length(values: Any) -> int:
    """Of a container whose parts have no shape in common (Tianshou's batches, when it learns); 1 of a number."""
    try:
        return len(values)
    except TypeError:
        return 1


def _is_floating(values: Any) -> bool:
    """Of a tensor or an array; a container of rows that only has a shape (Tianshou's `Batch`) is not."""
    asked = getattr(values, "is_floating_point", None)
    return bool(asked()) if callable(asked) else getattr(getattr(values, "dtype", None), "kind", "") == "f"
