"""What every lane offers, whatever it computes: a lane executes an objective's updates on parameters it shares with an
ordinary `nn.Module`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from hotloop.core.types import Array, UpdateStats

LANES = ("eager", "compiled", "native")


def go_on() -> None:
    """What `update` asks between calls where nobody may want it to end."""


class AdamSpec(Protocol):
    """What an objective's spec says of the optimizer."""

    @property
    def max_grad_norm(self) -> float:
        """0: no clipping."""
        ...

    @property
    def beta1(self) -> float: ...

    @property
    def beta2(self) -> float: ...

    @property
    def epsilon(self) -> float: ...


class Lane(Protocol):
    """`data` is what the objective learns from: a `Batch` of transitions, `Minibatches` of a rollout."""

    name: str

    def prepare(self, example: Any, most_updates: int) -> None:
        """Compile for data shaped like `example`, up to `most_updates` at once; changes no state."""
        ...

    def update(self, data: Any, lr: Array, first_update: int, check: Callable[[], None] = go_on) -> UpdateStats:
        """Sequential updates, one per batch of `data`, with learning rates lr [k]; `first_update` were made before.
        Fewer than k where the objective stops early. `check` is asked between two calls of whatever computes them, and
        may raise: the lane is then in the middle of them."""
        ...

    def infer(self, obs: Any, action_mask: Array | None = None, noisy: bool = False) -> tuple[Any, ...]:
        """What acting on `obs` needs, as the objective's `infer` says, on the host; `noisy`: with fresh noise, if the
        network has any."""
        ...

    def move_target(self, tau: float) -> None:
        """target <- tau * online + (1 - tau) * target."""
        ...

    def parameters(self) -> Array:
        """A copy of the online parameters [P], on the host."""
        ...

    def load_parameters(self, values: Array) -> None: ...

    def state(self) -> dict[str, Any]: ...

    def load_state(self, state: dict[str, Any]) -> None: ...
