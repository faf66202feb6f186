"""What a Q-network looks like."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hotloop.core.errors import SettingsError
from hotloop.core.settings import require_finite

Activation = Literal["relu", "tanh", "selu", "leaky_relu"]


@dataclass(frozen=True, kw_only=True)
class NetworkSettings:
    """Torso and head; every combination of dueling, noisy and atoms is allowed."""

    torso: Literal["auto", "mlp", "cnn"] = "auto"
    """`mlp` flattens the observation; `cnn` puts three 3x3 convolutions (32, 64, 64) before the hidden layers;
    `auto` takes `cnn` for observations of shape height x width x channels, `mlp` otherwise."""
    hidden: tuple[int, ...] = (64, 64)
    """Units of each hidden layer, each at least 1."""
    activation: Activation = "relu"
    """After every hidden layer: `relu`, `tanh`, `selu` or `leaky_relu` (slope 0.01)."""
    dueling: bool = False
    """Split the head into a state value and action advantages (Wang et al. 2016)."""
    noisy: bool = False
    """Learned noise on every linear layer (Fortunato et al. 2018); with `exploration.start` 0 it alone explores."""
    noisy_sigma: float = 0.5
    """Initial size of that noise, above 0."""
    atoms: int = 1
    """1: scalar Q-values. Above 1: a distribution of returns on so many atoms, C51 (Bellemare et al. 2017)."""
    v_min: float = 0.0
    """Return of the lowest atom."""
    v_max: float = 200.0
    """Return of the highest atom, above `v_min`."""

    def __post_init__(self) -> None:
        require_finite(self, "network.")
        if any(width < 1 for width in self.hidden):
            raise SettingsError(f"`network.hidden` is {list(self.hidden)}, expected widths of at least 1")
        if self.atoms < 1:
            raise SettingsError(f"`network.atoms` is {self.atoms}, expected 1 (scalar) or more (C51 uses 51)")
        if self.v_max <= self.v_min:
            raise SettingsError(f"`network.v_max` is {self.v_max}, expected above `network.v_min` ({self.v_min})")
        if self.noisy_sigma <= 0:
            raise SettingsError(f"`network.noisy_sigma` is {self.noisy_sigma}, expected above 0")
