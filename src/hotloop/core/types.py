"""The nouns that every part shares. Shape letters: N envs, k batches, B rows of a batch, A actions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from hotloop.core.graphs import Graphs

Array = np.ndarray
Obs = Array | dict[str, Array]
"""What a policy sees of N envs: one array [N, ...], or a dict of them."""
EnvObs = Obs | Graphs
"""Of N envs; `Graphs` where each observation is a graph."""
ObsT = TypeVar("ObsT", bound=EnvObs)
"""What the envs of a run give: of one kind, `Obs` or `Graphs`."""
Seen = TypeVar("Seen", bound=EnvObs, contravariant=True)
LARGEST_TABLE_OF_BYTES = 8
"""Rows or columns."""


@dataclass(frozen=True, slots=True)
class ArraySpec:
    """Shape and dtype of one env's observation (no leading N)."""

    shape: tuple[int, ...]
    dtype: np.dtype = np.dtype(np.float32)

    @property
    def num_bytes(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def is_image(self) -> bool:
        """As a part of a dict: three dimensions, or bytes in two, larger than a table is: an image in grey."""
        grey = len(self.shape) == 2 and self.dtype == np.uint8 and min(self.shape) > LARGEST_TABLE_OF_BYTES
        return grey or len(self.shape) == 3


ObsSpec = ArraySpec | dict[str, ArraySpec]


@dataclass(frozen=True, slots=True)
class DiscreteActions:
    """Actions 0 .. count-1; an adapter translates to the env's own numbering, which begins at `first`."""

    count: int
    first: int = 0

    @property
    def mask_width(self) -> int:
        """Columns of an action mask."""
        return self.count

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one env's action, an int64."""
        return ()


@dataclass(frozen=True, slots=True)
class MultiDiscreteActions:
    """Several choices at once, each 0 .. count-1; an action is an int64 row of them, a mask lies side by side."""

    counts: tuple[int, ...]
    first: tuple[int, ...] = ()  # empty: zeros

    @property
    def mask_width(self) -> int:
        return sum(self.counts)

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.counts),)


@dataclass(frozen=True, slots=True)
class BoxActions:
    """Numbers between bounds, which lie flat in the order of `shape`; an action is a float32 array of that shape."""

    low: tuple[float, ...]
    high: tuple[float, ...]
    shape: tuple[int, ...]
    masked: bool = False
    """Whether a mask says which of the numbers count; the env ignores the others."""

    @property
    def mask_width(self) -> int:
        return len(self.low) if self.masked else 0


@dataclass(frozen=True, slots=True)
class HybridActions:
    """Choices and numbers at once; an action is a float32 row of both, the choices as whole numbers first."""

    choices: MultiDiscreteActions
    numbers: BoxActions

    @property
    def mask_width(self) -> int:
        return self.choices.mask_width

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.choices.counts) + len(self.numbers.low),)


@dataclass(frozen=True, slots=True)
class NodeActions:
    """A choice for each node of a graph (`count` of them) and some numbers for the whole graph: a `NodeAction`."""

    count: int
    numbers: BoxActions

    @property
    def mask_width(self) -> int:
        return self.numbers.mask_width

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the numbers."""
        return self.numbers.shape


class NodeAction(NamedTuple):
    """What N graphs do, as `NodeActions` says."""

    numbers: Array  # [N, C] float32
    choices: Array  # [nodes of all] int64, in the order of the observation's nodes


ActionSpec = DiscreteActions | MultiDiscreteActions | BoxActions | HybridActions
GraphActionSpec = BoxActions | NodeActions
"""Where observations are graphs."""
Action = Array | NodeAction


@dataclass(slots=True)
class EnvStep(Generic[ObsT]):
    """What N envs answered to one action each, with same-step reset.

    Where an episode ended, `obs` already starts the next one and `final_obs` is what the last action led to;
    elsewhere the two are equal (they may be the same array). `terminated` and `truncated` are never merged here.
    """

    obs: ObsT  # [N, ...]
    reward: Array  # [N] float32
    terminated: Array  # [N] bool
    truncated: Array  # [N] bool
    final_obs: ObsT  # [N, ...]
    action_mask: Array | None = None  # [N, A] bool, True where allowed, for `obs`
    final_action_mask: Array | None = None  # [N, A] bool, for `final_obs`
    episode_stats: dict[str, Array] = field(default_factory=dict)  # name -> [N], valid where an episode ended
    valid: Array | None = None  # [N] bool; False where the action was ignored (a vector env's own reset step)
    reward_parts: Array | None = None  # [N, P] float32, of an env that has `reward_parts`: what it names


class VecEnv(Protocol[ObsT]):
    """`num_envs` environments stepped together. Arrays it returns are not written to again by later steps."""

    num_envs: int
    obs_spec: Any
    """`ObsSpec`, or `GraphSpec`."""
    action_spec: Any
    """`ActionSpec`, or `GraphActionSpec`."""
    has_action_mask: bool
    saves_state: bool
    """Whether `get_state` and `set_state` restore the envs exactly; where not, a run re-creates them at checkpoints."""

    def reset(self) -> tuple[ObsT, Array | None]:
        """Start an episode in every env: first observations [N, ...] and action mask [N, A] or None."""
        ...

    def step(self, action: Any) -> EnvStep[ObsT]: ...

    def get_state(self) -> dict[str, Array]: ...

    def set_state(self, state: Mapping[str, Array]) -> None: ...

    def close(self) -> None: ...


@dataclass(slots=True, eq=False)
class Batch:
    """Transitions: arrays that start [k, B], k batches of B rows; or [B], what `Replay.sample(batch_size)` hands out.

    `discount` is gamma^n * (1 - terminated), so that the target `reward + discount * value(next_obs)` needs no cases;
    a transition that was truncated has its discount. `weight` is the importance weight (ones unless prioritized),
    `index` the row in the replay, for `update_priorities`. The arrays of a `Replay` are the batch's own: safe to keep
    or change.

    >>> import hotloop
    >>> replay = hotloop.Replay(1_000, obs=(4,))
    >>> for step in range(100):
    ...     _ = replay.add([0.1] * 4, step % 2, 1.0, [0.2] * 4, terminated=False, truncated=step == 99)
    >>> batch = replay.sample(32)
    >>> batch.obs.shape, batch.action.dtype, float(batch.discount[0])
    ((32, 4), dtype('int64'), 0.9900000095367432)
    >>> tensors = batch.torch()                     # the same memory
    >>> tensors.reward.shape, tensors.obs.dtype
    (torch.Size([32]), torch.float32)
    """

    obs: Obs  # [k, B, ...], or a dict of such arrays
    action: Array  # [k, B] int64; float32 [k, B, ...] where actions are numbers
    reward: Array  # [k, B] float32, the discounted sum of n
    discount: Array  # [k, B] float32
    next_obs: Obs  # [k, B, ...]
    weight: Array  # [k, B] float32
    index: Array  # [k, B] int64, rows of the replay
    next_action_mask: Array | None = None  # [k, B, A] bool
    _drawn: Any = field(default=None, repr=False)  # the `BatchArrays` that its arrays are views of
    _views: tuple[Any, ...] = field(default=(), repr=False)

    def as_drawn(self) -> Any:
        """The `BatchArrays` that a replay drew into, [k, B, ...], unless a field was replaced since: a learner takes
        them as they are."""
        views = self._views
        is_whole = (
            len(views) == 7
            and self.obs is views[0]
            and self.action is views[1]
            and self.reward is views[2]
            and self.discount is views[3]
            and self.next_obs is views[4]
            and self.weight is views[5]
            and self.next_action_mask is views[6]
        )
        return self._drawn if is_whole else None

    def torch(self, device: Any = None) -> Batch:
        """The same as tensors, which share memory with the arrays; on another `device` they are copies."""
        from torch import from_numpy

        def tensor(array: Array) -> Any:
            return from_numpy(array) if device is None else from_numpy(array).to(device)

        mask = None if self.next_action_mask is None else tensor(self.next_action_mask)
        columns = (self.action, self.reward, self.discount, self.weight, self.index)
        action, reward, discount, weight, index = map(tensor, columns)
        obs, next_obs = map_obs(tensor, self.obs), map_obs(tensor, self.next_obs)
        return Batch(obs, action, reward, discount, next_obs, weight, index, mask)


@dataclass(slots=True)
class UpdateStats:
    """What k sequential updates measured; on the learner's device, so that reading them is the caller's choice."""

    scalars: Any  # [M, k] what the objective names in its `measures`: the loss first, the gradient's norm last
    td_error: Any = None  # [k, B] |target - prediction| (C51: cross-entropy), the new priorities; None: of a policy

    @property
    def num_updates(self) -> int:
        """Fewer than planned where the objective stopped them."""
        count: int = self.scalars.shape[1]
        return count

    def td_error_on_host(self) -> Array:
        """The new priorities as numpy: shared memory on a CPU, a copy that waits for any other device."""
        return self.td_error if isinstance(self.td_error, np.ndarray) else self.td_error.cpu().numpy()


@dataclass(slots=True)
class RolloutSlab:
    """T steps of N envs for on-policy learning, time-major; O outputs of the policy, W columns of an action.

    `obs` are as the network saw them. `value` has one row more, of what was seen last; `final_value` counts where an
    episode was truncated. `weight` is 1, or 0 where an action was ignored (`EnvStep.valid`).
    """

    obs: Obs  # [T, N, ...]
    outputs: Array  # [T, N, O] float32, of the policy that acted
    action: Array  # [T, N, W] float32, choices as whole numbers
    value: Array  # [T + 1, N] float32
    reward: Array  # [T, N] float32
    terminated: Array  # [T, N] bool
    truncated: Array  # [T, N] bool
    weight: Array  # [T, N] float32
    final_value: Array  # [T, N] float32
    advantage: Array  # [T, N] float32
    returns: Array  # [T, N] float32
    action_mask: Array | None = None  # [T, N, A] bool


@dataclass(slots=True)
class GraphRollout:
    """T steps of N envs whose observations are graphs, for on-policy learning; C numbers of an action, P parts.

    Rewards and values are kept part by part, so that each part is a [T, N] slab like any rollout's. What belongs to
    nodes lies end to end over all T * N graphs, time-major; None where nodes choose nothing.
    """

    obs: Graphs  # T * N
    mean: Array  # [T, N, C] float32, of the policy that acted; so is the next
    log_std: Array  # [T, N, C] float32
    numbers: Array  # [T, N, C] float32, before squashing
    counts: Array  # [T, N, C] bool: which of them count
    value: Array  # [P, T + 1, N] float32
    reward: Array  # [P, T, N] float32
    terminated: Array  # [T, N] bool
    truncated: Array  # [T, N] bool
    final_value: Array  # [P, T, N] float32, counts where an episode was truncated
    advantage: Array  # [T, N] float32
    returns: Array  # [P, T, N] float32
    node_logits: Array | None = None  # [nodes of all, A] float32
    choices: Array | None = None  # [nodes of all] int64


class RolloutRow(NamedTuple):
    """One time step of a rollout: what a policy saw, thought and did, which it returns beside its action."""

    obs: Obs  # [N, ...]
    outputs: Array  # [N, O]
    value: Array  # [N]
    action: Array  # [N, W]
    action_mask: Array | None  # [N, A]


class GraphRolloutRow(NamedTuple):
    """The same where observations are graphs."""

    obs: Graphs
    outputs: Any  # mean, log_std, value and node_logits of them
    numbers: Array  # [N, C], before squashing
    choices: Array | None  # [nodes of all]
    counts: Array | None  # [N, C]: which numbers count


class Policy(Protocol[Seen]):
    """Acts."""

    def act(self, obs: Seen, action_mask: Array | None) -> Any: ...


def map_obs(function: Callable[..., Any], *obs: Any) -> Any:
    """Apply `function` to an array observation, or to each part of a dict observation."""
    if isinstance(obs[0], dict):
        return {name: function(*(part[name] for part in obs)) for name in obs[0]}
    return function(*obs)
