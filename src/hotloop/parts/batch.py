"""What `Replay.sample` hands out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hotloop.core.types import Array, map_obs
from hotloop.core.types import Batch as StackedBatch
from hotloop.replay.storage import BatchArrays


@dataclass(slots=True)
class Batch:
    """Transitions drawn from a `Replay`: arrays that start [B], or [k, B] of `sample(batch_size, k=k)`.

    `discount` is gamma^n * (1 - terminated), so that the target `reward + discount * value(next_obs)` needs no cases;
    a transition that was truncated has its discount. `weight` is the importance weight (ones unless prioritised),
    `index` the row in the replay, for `update_priorities`. The arrays are the batch's own: safe to keep or change.

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

    obs: Any  # [B, ...], or a dict of such arrays
    action: Any  # [B] int64, or [B, ...] as the replay's `action=`
    reward: Any  # [B] float32, the discounted sum of n
    discount: Any  # [B] float32
    next_obs: Any  # [B, ...]
    weight: Any  # [B] float32
    index: Any  # [B] int64
    next_action_mask: Any = None  # [B, A] bool
    _arrays: BatchArrays | None = field(default=None, repr=False, compare=False)

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

    def stacked(self) -> StackedBatch:
        """As lanes take it: every array begins [k, B], with k = 1 of a single batch; views, not copies."""
        mask = self.next_action_mask
        if self.reward.ndim == 2:
            head = (self.obs, self.action, self.reward, self.discount, self.next_obs)
            return StackedBatch(*head, self.weight, self.index, mask)
        return StackedBatch(
            map_obs(_one, self.obs),
            self.action[None],
            self.reward[None],
            self.discount[None],
            map_obs(_one, self.next_obs),
            self.weight[None],
            self.index[None],
            None if mask is None else mask[None],
        )


def _one(array: Array) -> Array:
    return array[None]


def _first(array: Array) -> Array:
    return array[0]


def show(arrays: BatchArrays, is_single: bool, out: Batch | None) -> Batch:
    """The batch of `arrays`; `out` is made to show it where there is one."""
    drawn = arrays.batch
    fields: tuple[Any, ...]
    if is_single:
        obs, next_obs = drawn.obs, drawn.next_obs
        fields = (
            map_obs(_first, obs) if obs.__class__ is dict else obs[0],  # type: ignore[index]
            drawn.action[0],
            drawn.reward[0],
            drawn.discount[0],
            map_obs(_first, next_obs) if next_obs.__class__ is dict else next_obs[0],  # type: ignore[index]
            drawn.weight[0],
            drawn.index[0],
            None if drawn.next_action_mask is None else drawn.next_action_mask[0],
        )
    else:
        head = (drawn.obs, drawn.action, drawn.reward, drawn.discount, drawn.next_obs)
        fields = (*head, drawn.weight, drawn.index, drawn.next_action_mask)
    if out is None:
        return Batch(*fields, _arrays=arrays)
    out.__init__(*fields, _arrays=arrays)  # type: ignore[misc]
    return out
