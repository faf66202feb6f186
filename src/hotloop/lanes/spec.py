"""What one update does, as data. A lane executes it; every lane must compute the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Protocol

from hotloop.core.types import Array, Batch, Obs, UpdateStats

Precision = Literal["float32", "bfloat16"]
LANES = ("eager", "compiled", "native")


@dataclass(frozen=True, kw_only=True)
class UpdateSpec:
    """Loss, optimiser constants and target rule of one DQN update."""

    loss: Literal["huber", "mse"]
    double: bool
    atoms: int
    v_min: float
    v_max: float
    noisy: bool
    max_gradient_norm: float  # 0: no clipping
    accumulate: int  # a batch is split into so many parts whose gradients are averaged
    beta1: float
    beta2: float
    epsilon: float
    target_tau: float  # target <- tau * online + (1 - tau) * target
    target_every: int  # in updates; 0: the loop moves the target itself


class Lane(Protocol):
    """Executes updates on parameters it shares with an ordinary `nn.Module`."""

    name: str

    def prepare(self, example: Batch, most_updates: int) -> None:
        """Compile for batches shaped like `example`, up to `most_updates` at once; changes no state."""
        ...

    def update(self, batches: Batch, lr: Array, first_update: int) -> UpdateStats:
        """len(lr) sequential updates, one per batch; `first_update` updates were made before."""
        ...

    def greedy(self, obs: Obs, action_mask: Array | None, noisy: bool) -> Array:
        """The best action [N] for each row under the online parameters; `noisy`: with fresh noise, if it has any."""
        ...

    def move_target(self, tau: float) -> None: ...

    def parameters(self) -> Array:
        """A copy of the online parameters [P], on the host."""
        ...

    def load_parameters(self, values: Array) -> None: ...

    def state(self) -> dict[str, Any]: ...

    def load_state(self, state: dict[str, Any]) -> None: ...
