"""What `Replay.sample` hands out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hotloop.core.types import Array, map_obs
from hotloop.replay.storage import BatchArrays


@dataclass(slots=True, eq=False)
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
    _arrays: BatchArrays | None = field(default=None, repr=False)
    _shown: tuple[Any, ...] = field(default=(), repr=False)

    def arrays_as_drawn(self) -> BatchArrays | None:
        """The arrays that a replay drew into, [k, B, ...], unless a field was replaced since: a learner takes them as
        they are."""
        shown = self._shown
        is_whole = (
            len(shown) == 7
            and self.obs is shown[0]
            and self.action is shown[1]
            and self.reward is shown[2]
            and self.discount is shown[3]
            and self.next_obs is shown[4]
            and self.weight is shown[5]
            and self.next_action_mask is shown[6]
        )
        return self._arrays if is_whole else None

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


def _first(array: Array) -> Array:
    return array[0]


def show(arrays: BatchArrays, is_single: bool, out: Batch | None) -> Batch:
    """The batch of `arrays`, which `out` is made to show where there is one."""
    drawn = arrays.batch
    obs, next_obs, mask = drawn.obs, drawn.next_obs, drawn.next_action_mask
    action, reward, discount, weight, index = drawn.action, drawn.reward, drawn.discount, drawn.weight, drawn.index
    if is_single:  # spelt out: in a loop it would be a tenth of drawing a batch
        obs = map_obs(_first, obs) if isinstance(obs, dict) else obs[0]
        next_obs = map_obs(_first, next_obs) if isinstance(next_obs, dict) else next_obs[0]
        action, reward, discount, weight, index = action[0], reward[0], discount[0], weight[0], index[0]
        mask = None if mask is None else mask[0]
    shown = (obs, action, reward, discount, next_obs, weight, mask)
    fields: tuple[Any, ...] = (obs, action, reward, discount, next_obs, weight, index, mask, arrays, shown)
    if out is None:
        return Batch(*fields)
    out.__init__(*fields)  # type: ignore[misc]
    return out
