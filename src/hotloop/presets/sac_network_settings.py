"""What the networks of soft actor-critic and its kin look like, and the same as numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from hotloop.core.values import require_at_least
from hotloop.presets.network_settings import Activation, require_widths


@dataclass(frozen=True, kw_only=True)
class SACNetworkSettings:
    """An actor and its critics, of the same hidden layers; a critic sees observation and action side by side."""

    squashed: ClassVar[bool] = True

    torso: Literal["auto", "mlp"] = "auto"
    """`mlp` flattens the observation. `auto` does so too, and refuses images, which deserve convolutions."""
    hidden: tuple[int, ...] = (256, 256)
    """Units of each hidden layer; 0: 64 where an observation has at most 32 numbers, 256 where it has more."""
    activation: Activation = "relu"
    """After every hidden layer: `relu`, `tanh`, `selu` or `leaky_relu` (slope 0.01)."""
    critics: int = 2
    """Critics, the lowest of which counts in targets, at least 1; 2 keep each other from overestimating (Fujimoto et
    al. 2018)."""

    def __post_init__(self) -> None:
        require_widths(self.hidden, "network.hidden", least=0)
        require_at_least(1, self, "network.", "critics")


@dataclass(frozen=True)
class SACLayout:
    """Actor and critics as numbers, for the lane that does without modules.

    The actor's parameters lie in the order of its layers, weight [out, in] before bias; those of C critics layer by
    layer too, weight [C, out, in] before bias [C, out].
    """

    title: ClassVar[str] = "multilayer actor and critics"

    obs_size: int
    hidden: tuple[int, ...]
    activation: str
    actions: int
    critics: int
    stochastic: bool

    @property
    def num_outputs(self) -> int:
        """Of the actor: means, and log standard deviations behind them where it draws."""
        return 2 * self.actions if self.stochastic else self.actions
