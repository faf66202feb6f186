"""A plain multilayer network as numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class MLPLayout:
    """A multilayer Q-network as numbers: parameters lie in the order of the layers, weight [out, in] before bias,
    the value stream of a dueling head before its advantages."""

    title: ClassVar[str] = "a multilayer network"

    obs_size: int
    hidden: tuple[int, ...]
    activation: str
    dueling: bool
    num_actions: int
    atoms: int
