"""Random numbers under control: every generator that a program may draw from, in the same state before each call."""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from hotloop.core.extras import torch_if_loaded
from hotloop.proof.values import generator_state, set_generator_state

SEED = 20_240_229
GLOBAL = ("Python's random", "numpy.random", "torch's default generator")


class Generators:
    """Python's, numpy's and torch's own generators, and those that some functions reach by a name of theirs.

    `reset` brings all of them to one state: the library's are seeded, the others are put back to where they were found.
    """

    def __init__(self, *owners: Any) -> None:
        self._own = [
            (one, generator_state(one)) for one in _distinct(one for owner in owners for one in _reached(owner))
        ]

    def reset(self, seed: int = SEED) -> None:
        seed_library(seed)
        for generator, state in self._own:
            set_generator_state(generator, state)

    def states(self) -> dict[str, Any]:
        """By name, to be compared: a program that drew another number of times goes on differently."""
        named = dict(zip(GLOBAL, library_states(), strict=True))
        return named | {f"generator {number}": generator_state(one) for number, (one, _) in enumerate(self._own)}


def seed_library(seed: int) -> None:
    random.seed(seed)
    np.random.seed(seed % 2**32)
    if torch := torch_if_loaded():
        torch.manual_seed(seed)


def library_states() -> tuple[Any, Any, Any]:
    """The last is None where nobody has imported PyTorch."""
    torch = torch_if_loaded()
    return random.getstate(), np.random.get_state(), torch and torch.get_rng_state()


@contextmanager
def generators_kept() -> Iterator[None]:
    """The caller's random numbers go on as if nothing had been drawn in between."""
    python, numpy, tensor = library_states()
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)
        if tensor is not None:
            torch_if_loaded().set_rng_state(tensor)


def disturb(owner: Any, seed: int) -> None:
    """Let everything that `owner` may draw from go on with other numbers: attributes of an env, and the library's."""
    seed_library(seed)
    for generator in _distinct(_reached(owner)):
        if isinstance(generator, np.random.Generator):
            generator.bit_generator.state = type(generator.bit_generator)(seed).state
        elif isinstance(generator, random.Random | np.random.RandomState):
            generator.seed(seed)
        else:
            generator.manual_seed(seed)


def _reached(owner: Any) -> Iterator[Any]:
    """Generators among an object's attributes, and of a function those among its globals and what it encloses."""
    function: Callable[..., Any] | None = inspect.unwrap(owner) if callable(owner) else None
    function = getattr(function, "__func__", function)
    for holder in (owner, getattr(owner, "__self__", None)):
        yield from _among(vars(holder).values() if hasattr(holder, "__dict__") else ())
    yield from _among(getattr(function, "__globals__", {}).values())
    cells = getattr(function, "__closure__", None) or ()
    yield from _among(cell.cell_contents for cell in cells if _is_filled(cell))


def _among(values: Iterable[Any]) -> Iterator[Any]:
    return (value for value in list(values) if not inspect.ismodule(value) and generator_state(value) is not None)


def _is_filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False


def _distinct(generators: Iterable[Any]) -> list[Any]:
    return list({id(one): one for one in generators}.values())
