"""What one actor-critic update does, as data, and what a lane must offer that executes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol

import numpy as np

from hotloop.core.types import Array, Obs, Rollout, RolloutRow
from hotloop.maths.action_kernels import draw_actions
from hotloop.maths.actions import NO_MASK, ActionLayout


@dataclass(frozen=True, kw_only=True)
class PolicySpec:
    """Loss terms and optimiser constants of one PPO or A2C update."""

    actions: ActionLayout
    rows: int  # of a minibatch
    policy_loss: Literal["clipped", "plain"]
    normalise_advantage: bool  # within each minibatch
    value_clip: float  # 0: none
    value_weight: float
    entropy_weight: float
    kl_stop: float  # no further epoch once an epoch's mean KL is above; 0: never
    max_gradient_norm: float  # 0: no clipping
    beta1: float
    beta2: float
    epsilon: float


@dataclass(slots=True)
class PolicyStats:
    """What k sequential updates measured; on the learner's device, so that reading them is the caller's choice."""

    scalars: Any  # [7, k]

    NAMES: ClassVar[tuple[str, ...]] = (
        "loss",
        "policy_loss",
        "value_loss",
        "entropy",
        "kl",
        "clip_fraction",
        "gradient_norm",
    )
    KL: ClassVar[int] = 4

    def made(self) -> int:
        """How many updates there were: fewer than planned where KL stopped them."""
        return self.scalars.shape[1]


class PolicyLane(Protocol):
    """Executes updates on parameters it shares with an ordinary `nn.Module`."""

    name: str
    spec: PolicySpec

    def forward(self, obs: Obs, out: tuple[Array, Array] | None = None) -> tuple[Array, Array]:
        """The policy's outputs [N, O] and the values [N] of observations [N, ...], on the host; into `out` if given."""
        ...

    def act(self, row: RolloutRow, state: Array, mask: Array | None) -> None:
        """Outputs, values and drawn actions of the row's observations, into the row; advances the generator `state`."""
        ...

    def log_std(self) -> Array:
        """Of the continuous part [C], on the host."""
        ...

    def update(self, rollout: Rollout, order: Array, lr: Array, clip: float, first_update: int) -> PolicyStats:
        """One update per minibatch of `spec.rows` rows, in the order of `order` [epochs, T * N], with rates lr [k]."""
        ...

    def parameters(self) -> Array: ...

    def load_parameters(self, values: Array) -> None: ...

    def state(self) -> dict[str, Any]: ...

    def load_state(self, state: dict[str, Any]) -> None: ...


def forward_and_draw(lane: PolicyLane, row: RolloutRow, state: Array, mask: Array | None) -> None:
    """`act`, for a lane that has no quicker way."""
    outputs, _ = lane.forward(row.obs, (row.outputs, row.value))
    counts = np.array(lane.spec.actions.counts, np.int64)
    draw_actions(state, outputs, lane.log_std(), NO_MASK if mask is None else mask, counts, row.action)
