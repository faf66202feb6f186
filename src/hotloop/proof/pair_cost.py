"""What two functions that are equal cost: paired speed, memory, and both at several sizes of input."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hotloop.proof import memory, speed
from hotloop.proof.made_inputs import Arguments
from hotloop.proof.pair_calls import Calls
from hotloop.proof.randomness import generators_kept
from hotloop.proof.speed import Speed
from hotloop.proof.values import copied
from hotloop.proof.verdict import PairCost, SizeCost


def of_functions(
    calls: Calls, given: list[tuple[str, Arguments]], inputs: Any, sizes: tuple[int, ...], seconds: float
) -> tuple[PairCost | None, tuple[str, ...]]:
    """The cost on the last given input that does not raise (of sizes: the largest), and notes."""
    usable = [arguments for _, arguments in given if calls.both(arguments)[0].error is None]
    if not usable:
        return None, ("not timed: every given input raises",)
    try:
        with generators_kept():
            if not callable(inputs) or len(sizes) < 2:
                return _cost(calls, usable[-1], seconds), ()
            share = seconds / len(sizes)
            rows = tuple(
                SizeCost(size, _speed(calls, arguments, share))
                for size, (_, arguments) in zip(sizes, given, strict=True)
            )
            plain, fast = _ready(calls.plain, usable[-1]), _ready(calls.fast, usable[-1])
            return PairCost(rows[-1].speed, "call", *memory.measure_both(plain, fast), rows), ()
    except Exception as error:
        return None, (
            f"not timed: called again on what a call before it left, it raises {type(error).__name__}: {error}",
        )


def _cost(calls: Calls, arguments: Arguments, seconds: float) -> PairCost:
    measured = _speed(calls, arguments, seconds)
    plain, fast = _ready(calls.plain, arguments), _ready(calls.fast, arguments)
    return PairCost(measured, "call", *memory.measure_both(plain, fast))


def _speed(calls: Calls, arguments: Arguments, seconds: float) -> Speed:
    return speed.measure(_ready(calls.plain, arguments), _ready(calls.fast, arguments), seconds)


def _ready(function: Callable[..., Any], arguments: Arguments) -> Callable[[], Any]:
    """Called again and again on a copy of its own: a function that changes its inputs goes on from there."""
    own = copied(arguments)
    return lambda: function(*own.positional, **own.named)
