"""Passes that ask PyTorch: networks and optimizers, operators, matrix products, compilations, covariances."""

from __future__ import annotations

import functools
import sys
import time
from collections.abc import Callable, Iterator
from statistics import median
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

from .order import UPDATE
from .passes import Pass

if TYPE_CHECKING:
    from .torch_hooks import TorchHooks

MOST_VALUES = 50_000_000
MOST = 20
SECONDS = 3.0
LOOKED_AT = 200
FIRST_UPDATES, ENOUGH_UPDATES = 2, 10
"""The products of so many are counted after so many: all updates of a loop are of one size, or nearly."""
SIDE = 512
"""Of the square matrices that the core's speed is measured with: large enough for its best, and it fits a cache."""


class Learning(Pass):
    """What can be told of networks and optimizers when the loop has ended."""

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
        "mode_layers": layers_with_modes(torch.nn.Module, [*hooks.modules.values(), *hooks.owners]),
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
    """Forwards that recorded gradients nobody uses: no optimizer holds any parameter of the module."""
    total = 0
    for identity, count in forwards.items():
        module = modules.get(identity)
        own = [one for one in module.parameters() if one.requires_grad] if module is not None else []
        if own and not any(id(one) in optimised for one in own):
            total += count
    return total


def layers_with_modes(base: Any, networks: list[Any]) -> int:
    """Layers that ask whether they train: those of dropout and batch norm, and whatever reads `training`."""
    layers = {id(one): one for network in networks for one in network.modules()}
    reads: dict[type, bool] = {}
    for kind in {type(one) for one in layers.values()}:
        own = [value for made in kind.__mro__ if made not in (base, object) for value in vars(made).values()]
        reads[kind] = any("training" in one.__code__.co_names for one in own if isinstance(one, FunctionType))
    return sum(reads[type(one)] for one in layers.values())


class Operators(Pass):
    """The most expensive PyTorch operators, by PyTorch's own profiler over a short stretch from the first update on."""

    def __init__(self) -> None:
        self._profiler: Any = None
        self._running = False

    def on_env(self, now: float) -> None:
        if self._profiler is None and self.watch.attribution.bursts and "torch" in sys.modules:
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


ADDED_TO = {"addmm": "mm", "baddbmm": "bmm", "addmv": "mv"}


def product_operations(name: str, args: Any, result: Any) -> float:
    """Of one call of an operator of PyTorch's: a multiplication and an addition for each pair of numbers that meet; 0
    where it is no product of matrices."""
    name = name.rpartition("::")[2]
    if name in ("mm", "bmm", "mv"):
        return 2.0 * args[0].numel() * (args[1].shape[-1] if name != "mv" else 1)
    if name in ADDED_TO:
        return product_operations(ADDED_TO[name], args[1:], result)
    if name == "linear":
        return 2.0 * args[0].numel() * args[1].shape[0]
    if name == "convolution":
        return 2.0 * result.numel() * args[1][0].numel()
    if name == "convolution_backward":
        wanted = sum(bool(one) for one in args[-1][:2])
        return 2.0 * args[0].numel() * args[2][0].numel() * wanted
    return 0.0


def counting_mode(torch: Any, add: Callable[[float], None]) -> Any:
    """While it is entered, `add` is told the operations of every product, of backwards too; PyTorch from 1.13 on."""

    class Counting(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), keywords: Any = None) -> Any:
            result = function(*args, **(keywords or {}))
            try:
                add(product_operations(function._schema.name, args, result))
            except Exception:  # an operator of somebody's that is called like one of PyTorch's
                add(0.0)
            return result

    return Counting()


def measure_matrix_speed(torch: Any, seconds: float = 0.2) -> float:
    """Floating-point operations per second of processor time that this core makes of float32 products.

    Processor time of all threads counts, so that the answer is one core's, however many multiply.
    """
    left, right = (torch.rand(SIDE, SIDE, dtype=torch.float32, device="cpu") for _ in range(2))
    taken: list[float] = []
    end = time.perf_counter() + seconds
    with torch.no_grad():
        torch.mm(left, right)
        while len(taken) < 3 or time.perf_counter() < end:
            begin = time.process_time()
            for _ in range(4):
                torch.mm(left, right)
            taken.append((time.process_time() - begin) / 4)
    return 2.0 * SIDE**3 / max(1e-9, median(taken))


class Products(Pass):
    """The matrix products of a few updates, once the first are over; and how fast this core makes such."""

    def __init__(self) -> None:
        self.operations: dict[str, float] = {}
        """By phase."""
        self.updates = 0
        self._since = 0.0
        self._from = self._seen = 0
        self._mode: Any = None
        self._done = False

    def on_update(self, now: float) -> None:
        """From the first optimizer step of one update to that of another, so that these are whole updates."""
        updates = self.watch.attribution.counts["updates"]
        if self._done or updates == self._seen:
            return
        self._seen = updates
        if self._mode is None:
            if updates >= FIRST_UPDATES:
                self._begin(updates)
        elif updates >= self._from + ENOUGH_UPDATES:
            self.updates = updates - self._from
            self._end()

    def _begin(self, updates: int) -> None:
        torch = sys.modules.get("torch")
        if torch is None or graphs():  # what is compiled must not see a mode
            self._done = True
            return
        self._mode, self._from = counting_mode(torch, self._add), updates
        self._mode.__enter__()

    def _end(self) -> None:
        if self._mode is not None and not self._done:
            self._done = True
            self._mode.__exit__(None, None, None)

    def _add(self, operations: float) -> None:
        if not self._done:
            self._since += operations

    def note(self) -> float:
        since, self._since = self._since, 0.0
        return since

    def charge(self, phase: str, end: float, note: Any) -> None:
        if note:
            self.operations[phase] = self.operations.get(phase, 0.0) + note

    def add_to(self, trace: dict[str, Any]) -> None:
        if self.updates:
            counted = trace.setdefault("counted", {})
            counted["update_operations"] = self.operations.get(UPDATE, 0.0) / self.updates
            counted["matrix_speed"] = measure_matrix_speed(sys.modules["torch"])
