"""Passes that ask PyTorch: networks and optimisers, operators, compilations, covariances."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any

from .passes import Pass

if TYPE_CHECKING:
    from .torch_hooks import TorchHooks

MOST_VALUES = 50_000_000
MOST = 20
SECONDS = 3.0
LOOKED_AT = 200


class Learning(Pass):
    """What can be told of networks and optimisers when the loop has ended."""

    def __init__(self, hooks: TorchHooks) -> None:
        self.hooks = hooks

    def add_to(self, trace: dict[str, Any]) -> None:
        trace["counts"].update(learning_counts(self.hooks, self.watch.told().modules))


def learning_counts(hooks: TorchHooks, learning_modules: dict[int, int]) -> dict[str, Any]:
    """Fields of Counts."""
    torch = sys.modules.get("torch")
    if torch is None or not hooks.optimisers:
        return {}
    parameters = {id(one): one for optimiser in hooks.optimisers for one in _parameters(optimiser)}
    return {
        "parameter_tensors": len(parameters),
        "parameters": sum(one.numel() for one in parameters.values()),
        "double_parameters": sum(one.numel() for one in parameters.values() if one.dtype == torch.float64),
        "optimiser": _name(hooks.optimisers[0]),
        "device": _device(list(parameters.values())),
        "denormal_values": _denormals(torch, hooks.optimisers),
        "unneeded_grad_forwards": _unneeded(hooks.modules, learning_modules, set(parameters)),
    }


def _parameters(optimiser: Any) -> Iterator[Any]:
    for group in optimiser.param_groups:
        yield from group["params"]


def _device(parameters: list[Any]) -> str:
    """Where most of the numbers lie."""
    numbers: dict[str, int] = {}
    for one in parameters:
        numbers[one.device.type] = numbers.get(one.device.type, 0) + one.numel()
    return max(numbers, key=lambda name: numbers[name], default="")


def _name(optimiser: Any) -> str:
    group = optimiser.param_groups[0] if optimiser.param_groups else {}
    how = next((word for word in ("fused", "foreach") if group.get(word)), "")
    return f"{type(optimiser).__name__} {how}".strip()


def _denormals(torch: Any, optimisers: list[Any]) -> int:
    found = seen = 0
    with torch.no_grad():
        for optimiser in optimisers:
            for values in (value for state in optimiser.state.values() for value in state.values()):
                if not torch.is_tensor(values) or not values.is_floating_point() or seen > MOST_VALUES:
                    continue
                if values.device.type == "meta":  # it has no numbers
                    continue
                seen += values.numel()
                tiny = torch.finfo(values.dtype).tiny
                found += int(((values != 0) & (values.abs() < tiny)).sum())
    return found


def _unneeded(modules: dict[int, Any], forwards: dict[int, int], optimised: set[int]) -> int:
    """Forwards that recorded gradients nobody uses: no optimiser holds any parameter of the module."""
    total = 0
    for identity, count in forwards.items():
        module = modules.get(identity)
        own = [one for one in module.parameters() if one.requires_grad] if module is not None else []
        if own and not any(id(one) in optimised for one in own):
            total += count
    return total


class Operators(Pass):
    """The most expensive PyTorch operators, by PyTorch's own profiler over a short stretch from the first update on."""

    def __init__(self) -> None:
        self._profiler: Any = None
        self._running = False

    def on_env(self, now: float) -> None:
        if self._profiler is None and self.watch.attribution.bursts:
            profiler = sys.modules["torch"].profiler
            self._profiler = profiler.profile(activities=[profiler.ProfilerActivity.CPU])
            self._profiler.__enter__()
            self._running = True
            self.watch.bound(min(self.watch.deadline - now, SECONDS))

    def stop(self) -> None:
        if self._running:
            self._running = False
            self._profiler.__exit__(None, None, None)

    def add_to(self, trace: dict[str, Any]) -> None:
        if self._profiler is None:
            return
        rows = [row for row in self._profiler.key_averages() if row.self_cpu_time_total > 0]
        total = sum(row.self_cpu_time_total for row in rows)
        rows.sort(key=lambda row: -row.self_cpu_time_total)
        trace["operators"] = [
            dict(
                name=row.key,
                calls=int(row.count),
                seconds=row.self_cpu_time_total / 1e6,
                share=row.self_cpu_time_total / total,
            )
            for row in rows[:MOST]
        ]


class Compilations(Pass):
    """By the counters that PyTorch keeps itself."""

    def __init__(self) -> None:
        self._before = self._after = 0

    def begin(self) -> None:
        self._before = graphs()

    def steady(self) -> None:
        self._before = graphs()

    def stop(self) -> None:
        self._after = graphs()

    def add_to(self, trace: dict[str, Any]) -> None:
        trace["counts"]["compilations"] = max(0, self._after - self._before)


def graphs() -> int:
    """Graphs compiled so far; 0 where nothing was."""
    module = sys.modules.get("torch._dynamo.utils")
    counters = getattr(module, "counters", {})
    return int(counters["stats"].get("unique_graphs", 0)) if "stats" in counters else 0


class Diagonals(Pass):
    """Looks at the first ones that are made once the loop has begun."""

    def __init__(self) -> None:
        self.looked = self.diagonal = 0

    def arrivals(self) -> dict[str, Callable[[ModuleType], None]]:
        return {"torch.distributions.multivariate_normal": self.arrive}

    def arrive(self, module: ModuleType) -> None:
        make, look = module.MultivariateNormal.__init__, self.watch.faults.guarded("a covariance", self._look)

        @functools.wraps(make)
        def initialise(distribution: Any, *args: Any, **keywords: Any) -> None:
            make(distribution, *args, **keywords)
            if self.looked < LOOKED_AT and self.watch.begun and not self.watch.over:
                look(distribution)

        module.MultivariateNormal.__init__ = initialise

    def _look(self, distribution: Any) -> None:
        """The Cholesky factor of a diagonal matrix is diagonal, and nothing else's is."""
        factor = distribution._unbroadcasted_scale_tril
        self.looked += 1
        self.diagonal += int(bool((factor.tril(-1) == 0).all()))

    def add_to(self, trace: dict[str, Any]) -> None:
        trace.setdefault("counted", {})["diagonal_covariances"] = self.diagonal
