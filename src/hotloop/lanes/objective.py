"""What one update computes, said once for all lanes; `q_objective`, `policy_objective`,
`graph_objective` and `sac_objective` say it.

An objective is a batch type, one or more stages (each a loss, and the parameters that the loss moves), what it
measures, what acting needs of the network, and the order in which a number that is not finite is looked for. It makes
no optimizer step; of lanes it knows only whether a native one exists for it. A further objective is a further file; no
lane has to know it by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import torch
from torch import Tensor, nn

from hotloop.core.types import map_obs
from hotloop.lanes.spec import AdamSpec, Lane

if TYPE_CHECKING:
    from hotloop.lanes.nonfinite import FailedUpdate, Named

ONLINE, TARGET = "online", "target"


class Network(NamedTuple):
    """A module with certain parameters in it: its own on the eager lane, pieces of a flat vector in traced code."""

    forward: Callable[[Any], Any]
    parameters: Mapping[str, Tensor]


Networks = Mapping[str, Network]
"""By the name of their group; the slowly moving copy of a group is `target_of(group)`."""


def target_of(group: str) -> str:
    return TARGET if group == ONLINE else f"{group}_{TARGET}"


def moment_of(group: str, moment: str) -> str:
    """What checkpoints call Adam's `mean` or `square` of a group."""
    return moment if group == ONLINE else f"{group}_{moment}"


class Outcome(NamedTuple):
    """What a stage computes of one batch of B rows."""

    loss: Tensor  # scalar
    measures: Tensor  # [M - 1], as `Objective.measures` names them, the loss first
    row_error: Tensor | None = None  # [B], the rows' new priorities
    next_stage_inputs: dict[str, Tensor] | None = (
        None  # [B, ...], fields of the batch that later stages of the update get
    )


class Stage(NamedTuple):
    """One optimizer step within an update, or within every so many of them."""

    parameters: str  # the group that it moves
    loss: Callable[[Networks, Any, Any], Outcome]  # of networks, one batch, and what all batches of a call share
    every: int = 1
    num_measures: int = 0  # known of stages that are not made in every update

    def is_made(self, update: int) -> bool:
        """In the update of this number, counted from 1."""
        return update % self.every == 0

    def count(self, update: int) -> int:
        """How often it was made, this update's included: what Adam counts by."""
        return update // self.every


class TensorBatches(Protocol):
    """The data of one call on the lane's device, cut into batches, one update each."""

    per_epoch: int
    """The objective is asked after so many updates whether it has had enough."""

    def one(self, j: int) -> Any:
        """Batch j, a NamedTuple of tensors [B, ...]."""
        ...

    def several(self, start: int, count: int) -> Any:
        """`count` batches of one epoch as tensors [count, B, ...], for lanes that fuse updates."""
        ...


class Objective(Protocol):
    measures: tuple[str, ...]
    """What is measured in each update: the loss first, stage by stage, the norm of all gradients before clipping last.
    Where a stage is not made its measures are 0, and `every` times themselves where it is: means over updates hold."""
    targets: tuple[str, ...]
    """The groups that have a slowly moving copy."""
    acts_in_precision: bool
    """Whether acting has the precision of updates too: where what acted is compared with what is learned."""
    native_title: str
    """What the native lane needs the network to be."""

    @property
    def spec(self) -> AdamSpec: ...

    @property
    def stages(self) -> tuple[Stage, ...]: ...

    @property
    def noisy(self) -> bool:
        """Whether the networks have noisy layers, drawn anew for every update."""
        ...

    @property
    def accumulate(self) -> int:
        """Into how many parts of equal size a batch is split, whose gradients are averaged."""
        ...

    @property
    def target_every(self) -> int:
        """In updates; 0: the lane does not move the target by itself."""
        ...

    @property
    def target_tau(self) -> float: ...

    def groups(self, network: nn.Module) -> dict[str, nn.Module]:
        """The parts of the network that are optimized each by itself, by name."""
        ...

    def on_device(self, data: Any, device: torch.device) -> TensorBatches: ...

    def call_constants(self, data: Any, networks: Networks) -> Any:
        """What all batches of a call have in common, as it is before the first update; a NamedTuple, or None."""
        ...

    def known_targets(self, target: Network, batches: Any) -> list[Network] | None:
        """What a target without noise says in each of n updates on `batches` [n, B, ...], where one forward for all
        of them tells it; traced code asks."""
        ...

    def stop_early(self, epoch: Sequence[Tensor]) -> bool:
        """Whether to stop after an epoch that measured this: [M] of an update, or [M, n] of n in one call."""
        ...

    def obs_tensors(self, obs: Any, device: torch.device) -> Any: ...

    def infer(self, network: Network, obs: Any, action_mask: Tensor | None) -> tuple[Tensor | None, ...]:
        """What acting needs, of observations [N, ...]."""
        ...

    def failure_batch(self, data: Any, j: int, shared: Any) -> dict[str, Any]:
        """Batch j as a failed update keeps it: arrays by name, on the host."""
        ...

    def nan_search_order(self, network: nn.Module, precision: str, failed: FailedUpdate) -> Named:
        """The tensors of an update in the order in which they are computed: where a NaN is looked for."""
        ...

    def native_problem(self, layout: Any) -> str:
        """Why the native lane cannot train a network of this layout; empty where it can."""
        ...

    def native_lane(self, network: nn.Module, layout: Any, batch_size: int) -> Lane: ...


def joined_measures(stages: Sequence[Stage], measured: Mapping[str, Tensor], norms: Sequence[Tensor]) -> Tensor:
    """What an update measured [M], of what those of its stages measured that were made, by their parameters."""
    norm = norms[0] if len(norms) == 1 else torch.stack(tuple(norms)).norm()
    parts = [_share(stage, measured.get(stage.parameters), norm) for stage in stages]
    return torch.cat([*parts, norm[None]])


def _share(stage: Stage, measures: Tensor | None, like: Tensor) -> Tensor:
    if measures is None:
        return like.new_zeros(stage.num_measures)
    return measures if stage.every == 1 else measures * stage.every


def map_tensors(function: Callable[..., Any], batch: Any) -> Any:
    """`function` of every field of a NamedTuple that is there, dict observations part by part."""
    return type(batch)._make([None if field is None else map_obs(function, field) for field in batch])


def as_tensors_on(device: torch.device) -> Callable[[Any], Tensor]:
    """From an array to a tensor on `device`: shared memory on a CPU, a copy that nobody waits for elsewhere. What is
    a tensor already stays one."""

    def tensor(array: Any) -> Tensor:
        if isinstance(array, Tensor):
            return array.to(device, non_blocking=True)
        host = torch.from_numpy(array)
        return host if on_host else host.to(device, non_blocking=True)  # a microsecond for each field of a batch

    on_host = device.type == "cpu"
    return tensor


def flatten_tensors(batch: Any) -> list[Any]:
    """The tensors of a NamedTuple, in the order that `restore_tensors` expects; a dict's by name, however it came."""
    parts: list[Any] = []
    for field in batch or ():
        if field is not None:
            parts += flatten_obs(field)
    return parts


def flatten_obs(obs: Any) -> list[Any]:
    """The parts of an observation; those of a dict by name."""
    return [obs[name] for name in sorted(obs)] if isinstance(obs, dict) else [obs]


def restore_tensors(tensors: Sequence[Tensor], like: Any) -> Any:
    """`tensors` back in their places; `like` is any batch of the same kind."""
    if like is None:
        return None
    left = iter(tensors)

    def restored(field: Any) -> Any:
        if isinstance(field, dict):
            return {name: next(left) for name in sorted(field)}
        return None if field is None else next(left)

    return type(like)._make([restored(field) for field in like])
