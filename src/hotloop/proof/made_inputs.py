"""Inputs made from given ones, to look where an author did not: rows permuted, repeated, removed, and ties.

The rows of an input are the first axis of its arrays, tensors and lists: of those that are as long as most of them.
They are taken together, so that row i of one still belongs to row i of the other. A difference is then looked for on
fewer rows, until none can be left out.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hotloop.core.extras import torch_if_loaded
from hotloop.proof.values import is_array, is_tensor, shown_value

LEVELS = 3
"""Different values that are left where ties are made."""
MOST_CALLS, MOST_SECONDS = 200, 5.0
"""Of looking for a smaller input."""
LONGEST_TEXT = 400


@dataclass(frozen=True)
class Arguments:
    """What one call is given."""

    positional: tuple[Any, ...] = ()
    named: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, given: Any) -> Arguments:
        """A tuple holds positional arguments, a dict named ones; anything else is the only argument."""
        if isinstance(given, Arguments):
            return given
        if isinstance(given, tuple) and not hasattr(given, "_fields"):
            return cls(given)
        return (
            cls((), given) if isinstance(given, dict) and all(isinstance(key, str) for key in given) else cls((given,))
        )

    def shown(self) -> str:
        words = [shown_value(value) for value in self.positional]
        words += [f"{name}={shown_value(value)}" for name, value in self.named.items()]
        text = ", ".join(words)
        return text if len(text) <= LONGEST_TEXT else f"{text[: LONGEST_TEXT - 3]}..."

    def num_rows(self) -> int:
        """0 where nothing in it has rows; of lengths that are as frequent, the largest."""
        lengths: Counter[int] = Counter()
        self._map(lambda value: lengths.update([len(value)]) or value)
        return max(lengths, key=lambda length: (lengths[length], length), default=0)

    def take(self, rows: Any) -> Arguments:
        """The rows with these numbers, in this order."""
        count, places = self.num_rows(), np.array(rows, np.int64)
        return self._map(lambda value: _taken(value, places) if len(value) == count else value)

    def with_ties(self, levels: int) -> Arguments:
        """Every array of floats holds only its own first `levels` values, interleaved; rows stay as they are many."""
        return self._map(lambda value: _tied(value, levels))

    def _map(self, change: Callable[[Any], Any]) -> Arguments:
        named = {name: _map_rows(value, change) for name, value in self.named.items()}
        return Arguments(tuple(_map_rows(value, change) for value in self.positional), named)


def _map_rows(value: Any, change: Callable[[Any], Any]) -> Any:
    """`change` applied to everything in `value` that has rows; lists are rows, tuples and dicts hold such.

    Unless these are of several lengths: such a container holds no columns of a table, but the layers of a network, say.
    """
    if isinstance(value, dict | tuple) and len(_lengths(value)) > 1:
        return value
    if is_array(value):
        return change(value) if value.ndim else value
    if isinstance(value, list):
        return change(value) if value else value
    if isinstance(value, dict):
        return type(value)({name: _map_rows(part, change) for name, part in value.items()})
    if isinstance(value, tuple):
        parts = [_map_rows(part, change) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return value


def _lengths(value: Any) -> set[int]:
    if isinstance(value, list) or is_array(value):
        return {len(value)} if isinstance(value, list) or value.ndim else set()
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, tuple) else ()
    return set().union(*map(_lengths, parts))


def _taken(value: Any, places: np.ndarray) -> Any:
    if isinstance(value, list):
        return [value[place] for place in places]
    if is_tensor(value):
        return value.detach()[torch_if_loaded().from_numpy(places)].requires_grad_(value.requires_grad)
    return value[places]


def _tied(value: Any, levels: int) -> Any:
    if is_tensor(value) and value.is_floating_point() and value.numel():
        flat = value.detach().reshape(-1)
        tied = flat[torch_if_loaded().arange(flat.numel()) % min(levels, flat.numel())]
        return tied.reshape(value.shape).requires_grad_(value.requires_grad)
    if isinstance(value, np.ndarray) and value.dtype.kind == "f" and value.size:
        numbers: Any = value.reshape(-1)
        return numbers[np.arange(value.size) % min(levels, value.size)].reshape(value.shape)
    if isinstance(value, list) and all(isinstance(one, float) for one in value):
        return [value[place % levels] for place in range(len(value))]
    return value


def made_from(given: Arguments) -> Iterator[tuple[str, Arguments]]:
    """Each with what was done to the given one."""
    count = given.num_rows()
    if not count:
        return
    order = np.arange(count)
    mixed = np.random.default_rng(count).permutation(count)
    half = order[::2]
    for done, rows in {
        "its rows in reverse order": order[::-1],
        "its rows shuffled": mixed,
        "every row twice": np.repeat(order, 2),
        "all its rows twice, one after the other": np.tile(order, 2),
        "every row equal to the first": np.zeros(count, np.int64),
        "every second row removed": half,
        "the last row removed": order[:-1],
        "the first row alone": order[:1],
        "no rows": order[:0],
    }.items():
        if count > 1 or len(rows) != 1:
            yield done, given.take(rows)
    yield f"ties: its numbers only {LEVELS} different ones", given.with_ties(LEVELS)
    yield "ties: all its numbers equal", given.with_ties(1)


def smallest(found: Arguments, still_differs: Callable[[Arguments], bool]) -> tuple[Arguments, int]:
    """Leave rows out, half of them at a time, then fewer, as long as the difference stays; with the rows left."""
    rows, chunk = list(range(found.num_rows())), found.num_rows() // 2
    calls, end = 0, time.monotonic() + MOST_SECONDS
    while chunk:
        start = 0
        while start < len(rows) and calls < MOST_CALLS and time.monotonic() < end:
            fewer = rows[:start] + rows[start + chunk :]
            calls += 1
            if fewer and still_differs(found.take(fewer)):
                rows = fewer
            else:
                start += chunk
        chunk //= 2
    return (found.take(rows) if rows else found), len(rows)
