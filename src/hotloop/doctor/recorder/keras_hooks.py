"""Hooks on Keras and TensorFlow, set the moment the script has imported them: forwards, gradients, optimizer steps.

`fit` and `predict` are hooked as their classes are made (`hooks.py`). What `tf.function` compiles is one event: an
update, where an optimizer was applied while it was traced, and a forward otherwise.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any

from .hooks import rows_of, timed
from .passes import Pass
from .places import unseen
from .words import BACKWARD, FORWARD, LEARN, OPTIMISER

if TYPE_CHECKING:
    Arrival = Callable[[ModuleType], None]

LAYERS = (
    *("keras.src.layers.layer", "keras.src.engine.base_layer"),
    *("keras.engine.base_layer", "tf_keras.src.engine.base_layer"),
)
OPTIMISERS = {
    "keras.src.optimizers.base_optimizer": "BaseOptimizer",
    "keras.src.optimizers.optimizer": "Optimizer",
    "tf_keras.src.optimizers.optimizer": "Optimizer",
}
"""Of Keras 3 and 2."""
TAPE = "tensorflow.python.eager.backprop"
COMPILED = "tensorflow.python.eager.polymorphic_function.polymorphic_function"
MOST_KEPT = 256


class KerasHooks(Pass):
    def __init__(self) -> None:
        self.optimisers: dict[int, Any] = {}
        self._applied = 0
        """Optimizers applied so far, those of traces included."""
        self._kinds: dict[int, tuple[Any, str]] = {}
        """Of each compiled function, held: what its calls are."""

    def arrivals(self) -> dict[str, Arrival]:
        wanted: dict[str, Arrival] = dict.fromkeys(LAYERS, self._hook_layers)
        wanted.update((name, functools.partial(self._hook_optimisers, kind)) for name, kind in OPTIMISERS.items())
        return {**wanted, TAPE: self._hook_tape, COMPILED: self._hook_compiled}

    def _hook_layers(self, module: ModuleType) -> None:
        call, watch = module.Layer.__call__, self.watch

        @functools.wraps(call)
        def hook(layer: Any, *args: Any, **keywords: Any) -> Any:
            if watch.busy or watch.off_main_thread():
                return call(layer, *args, **keywords)
            start = watch.enter()
            try:
                return call(layer, *args, **keywords)
            finally:
                watch.leave(FORWARD, start, (rows_of(args), False, id(layer)))

        module.Layer.__call__ = unseen(hook)

    def _hook_optimisers(self, name: str, module: ModuleType) -> None:
        kind = getattr(module, name, None)
        for method in ("apply", "apply_gradients"):
            if method in vars(kind or object):
                setattr(kind, method, self._applying(getattr(kind, method)))

    def _applying(self, apply: Callable[..., Any]) -> Callable[..., Any]:
        watch = self.watch

        @functools.wraps(apply)
        def hook(optimiser: Any, *args: Any, **keywords: Any) -> Any:
            self._applied += 1
            if len(self.optimisers) < MOST_KEPT:
                self.optimisers[id(optimiser)] = optimiser
            if watch.busy or watch.off_main_thread():
                return apply(optimiser, *args, **keywords)
            start = watch.enter()
            try:
                return apply(optimiser, *args, **keywords)
            finally:
                watch.leave(OPTIMISER, start, (0, False, id(optimiser)))

        return unseen(hook)

    def _hook_tape(self, module: ModuleType) -> None:
        module.GradientTape.gradient = timed(self.watch, module.GradientTape.gradient, BACKWARD)

    def _hook_compiled(self, module: ModuleType) -> None:
        call, watch = module.Function.__call__, self.watch

        @functools.wraps(call)
        def hook(function: Any, *args: Any, **keywords: Any) -> Any:
            known = self._kinds.get(id(function))
            if known is None:
                return self._trace(call, function, args, keywords)
            if watch.busy or watch.off_main_thread():
                return call(function, *args, **keywords)
            start = watch.enter()
            try:
                return call(function, *args, **keywords)
            finally:
                rows = (rows_of((function, *args)), False, id(function)) if known[1] == FORWARD else None
                watch.leave(known[1], start, rows)

        module.Function.__call__ = unseen(hook)

    def _trace(self, call: Callable[..., Any], function: Any, args: Any, keywords: Any) -> Any:
        """The first call of a compiled function traces it: what it does is seen then."""
        applied = self._applied
        try:
            return call(function, *args, **keywords)
        finally:
            if len(self._kinds) < MOST_KEPT:
                self._kinds[id(function)] = function, LEARN if self._applied > applied else FORWARD

    def add_to(self, trace: dict[str, Any]) -> None:
        optimiser = next(iter(self.optimisers.values()), None)
        if optimiser is None or trace["counts"].get("optimiser"):
            return
        held = {id(one): one for kept in self.optimisers.values() for one in _variables(kept)}
        numbers = [_size(one) for one in held.values()]
        found = {"optimiser": f"Keras {type(optimiser).__name__}", "parameter_tensors": len(held)}
        trace["counts"].update(found, parameters=sum(numbers))


def _variables(optimiser: Any) -> list[Any]:
    return list(getattr(optimiser, "_trainable_variables", None) or ())


def _size(variable: Any) -> int:
    size = 1
    for length in variable.shape:
        size *= int(length)
    return size
