"""Parameters by name: the weight of an edge, the bias of a node."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, MutableMapping
from typing import Any

import torch
from torch import Tensor

from hotloop.nets.topology.graph import Topology, TopologyError


class ParameterView(MutableMapping[Any, float]):
    """A dict over one parameter's numbers that reads from and writes to the parameter itself."""

    def __init__(self, parameter: Tensor, places: Mapping[Hashable, int], what: str) -> None:
        self._parameter = parameter
        self._places = places
        self._what = what

    def __getitem__(self, key: Hashable) -> float:
        return self._parameter[self._place(key)].item()

    def __setitem__(self, key: Hashable, value: float | Tensor) -> None:
        number = as_number(value)
        with torch.no_grad():
            self._parameter[self._place(key)] = number

    def __delitem__(self, key: Hashable) -> None:
        raise TopologyError(f"the {self._what} of {key!r} cannot be removed", "set it to 0, or make another graph")

    def __iter__(self) -> Iterator[Any]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def __repr__(self) -> str:
        return repr(dict(self))

    def _place(self, key: Hashable) -> int:
        try:
            return self._places[key]
        except KeyError:
            raise TopologyError(f"there is no {self._what} of {key!r}", self._hint(key)) from None

    def _hint(self, key: Hashable) -> str:
        if isinstance(key, tuple) and key[::-1] in self._places:
            return f"there is an edge {key[1]!r} -> {key[0]!r}: keys are (source, target)"
        same_text = [other for other in self._places if str(other) == str(key)]
        return f"did you mean {same_text[0]!r}?" if same_text else "`to_networkx()` shows what there is"


def as_number(value: Any) -> float:
    return value.item() if isinstance(value, Tensor) else float(value)


def names_of(graph: Topology) -> dict[str, tuple[str, int]]:
    """Name -> ("weight" or "bias", place): "source_to_target" for edges, the id as text for nodes."""
    named = [(f"{source}_to_{target}", "weight", place) for place, (source, target) in enumerate(graph.edges())]
    named += [(str(node), "bias", place) for place, node in enumerate(graph.computed)]
    names: dict[str, tuple[str, int]] = {}
    for name, kind, place in named:
        if name in names:
            raise TopologyError(f"two parts of the graph are called `{name}`", "give its nodes ids that differ as text")
        names[name] = (kind, place)
    return names


def plain_name(key: str) -> str:
    """`weights.0_to_4` and `biases.4`, as a module of parameter dictionaries saves them, without the dictionary."""
    for prefix in ("weights.", "biases."):
        if key.startswith(prefix):
            return key[len(prefix) :]
    return key
