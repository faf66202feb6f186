"""What a network looks like that gives a policy and a value."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from hotloop.core.errors import SettingsError
from hotloop.core.values import require_finite
from hotloop.nets.graph_settings import GraphNetworkSettings
from hotloop.nets.settings import Activation, ImageLayout, require_widths


@dataclass(frozen=True, kw_only=True)
class ActorCriticSettings:
    """Orthogonal weights; the policy's last layer starts near zero, so that all actions start equally likely."""

    torso: Literal["auto", "mlp", "cnn"] = "auto"
    """`mlp` flattens the observation; `cnn` puts three 3x3 convolutions (32, 64, 64) before the hidden layers;
    `auto` takes `cnn` for observations of three dimensions (`network.image_layout`), `mlp` otherwise."""
    image_layout: ImageLayout = "auto"
    """Where the channels of an image stand for a `cnn`: `channels-first` (4 x 84 x 84), `channels-last` (84 x 84 x 4);
    `auto` decides by shape, says what it decided, and refuses a shape that could be either."""
    hidden: tuple[int, ...] = (64, 64)
    """Units of each hidden layer, each at least 1."""
    activation: Activation = "tanh"
    """After every hidden layer: `relu`, `tanh`, `selu` or `leaky_relu` (slope 0.01)."""
    shared: bool = False
    """One torso for policy and value instead of one for each."""
    squashed: bool = False
    """Continuous actions go through tanh, so that they cannot leave their bounds, instead of being cut off there."""
    log_std: float = 0.0
    """Continuous actions: logarithm of the standard deviation to begin with, in units of half the action's range."""
    graph: GraphNetworkSettings = field(default_factory=GraphNetworkSettings)

    def __post_init__(self) -> None:
        require_finite(self, "network.")
        require_widths(self.hidden, "network.hidden")
        if not -10.0 <= self.log_std <= 2.0:
            raise SettingsError(f"`network.log_std` is {self.log_std}, expected -10 to 2")
