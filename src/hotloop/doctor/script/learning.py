"""What can be told of networks and optimisers when the loop has ended."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from hotloop.doctor.script.torch_hooks import TorchHooks

MOST_VALUES = 50_000_000


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
        "denormal_values": _denormals(torch, hooks.optimisers),
        "unneeded_grad_forwards": _unneeded(hooks.modules, learning_modules, set(parameters)),
    }


def _parameters(optimiser: Any) -> Iterator[Any]:
    for group in optimiser.param_groups:
        yield from group["params"]


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
