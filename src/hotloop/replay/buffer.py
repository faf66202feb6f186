"""Replay: n-step window, ring and sampler behind one small door.

Reading order: `layout` (what a row is), `storage` (the ring), `n_step` (which rows enter), `samplers` (which leave).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hotloop.core.errors import EnvError
from hotloop.core.types import Array, ArraySpec, Batch, EnvStep, Obs, ObsSpec
from hotloop.presets.replay_settings import ReplaySettings
from hotloop.replay.layout import make_joiner, make_layout, make_packer, wrong_shape
from hotloop.replay.memory import require_room
from hotloop.replay.n_step import NStepWindow, Returns
from hotloop.replay.samplers import make_sampler
from hotloop.replay.storage import BatchArrays, BatchPlan, Ring
from hotloop.replay.storage_kernels import store_one, store_planned, store_step

KEPT_BATCH_SHAPES = 8
FLOAT = np.dtype(np.float32)


class ReplayMemory:
    """Transitions of `num_envs` envs; `num_actions` is given only where the env has action masks, `action` only where
    an action is anything but one choice."""

    def __init__(
        self,
        settings: ReplaySettings,
        obs_spec: ObsSpec,
        num_envs: int,
        returns: Returns,
        seed: int,
        num_actions: int | None = None,
        action: ArraySpec | None = None,
    ) -> None:
        layout = make_layout(obs_spec, num_actions, action)
        require_room(settings, layout, num_envs, returns)
        self.buffer_size = settings.buffer_size
        self._gamma = returns.gamma
        self._timeout_gamma = 0.0 if returns.timeouts_are_terminal else returns.gamma
        self._ring = Ring(layout, settings.buffer_size, settings.folder if settings.memory == "disk" else None)
        self._window = NStepWindow(layout, num_envs, returns) if returns.n_step > 1 else None
        self._settings = settings
        self._sampler = make_sampler(settings, seed)
        self.max_batches_per_sample = self._sampler.max_batches
        self._is_flat = layout.is_flat
        self._pack, self._pack_next = make_packer(layout, num_envs), make_packer(layout, num_envs)
        self._join = None if action is None else make_joiner(layout, num_envs)
        self._no_choice = np.zeros(num_envs, dtype=np.int64)
        self._all_valid = np.ones(num_envs, dtype=np.bool_)
        self._no_mask = np.zeros((num_envs, 0), dtype=np.bool_)
        self._num_actions = num_actions
        self._obs_shape = (num_envs, layout.obs_units)
        self._arrays: dict[tuple[int, int], BatchArrays] = {}

    @property
    def size(self) -> int:
        return self._ring.size

    @property
    def num_bytes(self) -> int:
        """Bytes of rows, tree and n-step windows; what `estimate_bytes` foretells."""
        window = self._window.num_bytes if self._window else 0
        return self._ring.num_bytes + self._sampler.num_bytes + window

    def add(self, obs: Obs, action: Array, step: EnvStep[Obs]) -> int:
        """Take in what `action` led to from `obs` in every env; the number of rows stored."""
        if self._is_flat:  # spelt out: two calls fewer are a tenth of adding one row
            packed, packed_next = np.ascontiguousarray(obs, FLOAT), np.ascontiguousarray(step.final_obs, FLOAT)
        else:
            packed, packed_next = self._pack(obs), self._pack_next(step.final_obs)
        if packed.shape != self._obs_shape or packed_next.shape != self._obs_shape:
            raise wrong_shape((packed.shape, packed_next.shape), self._obs_shape)
        if self._join is not None:
            packed, action = self._join(packed, action), self._no_choice
        mask = self._no_mask if self._num_actions is None else self._next_mask(step)
        valid = self._all_valid if step.valid is None else step.valid
        ring = self._ring
        position = ring.num_added % ring.capacity
        if self._window is not None:
            count = self._window.push(packed, action, step, valid)
            self._store_planned(self._window, position, count, packed_next, mask)
        else:  # one-step returns need no window: one call writes the rows
            count = store_step(
                ring.memory,
                ring.row_bytes,
                position,
                packed,
                action,
                step.reward,
                step.terminated,
                step.truncated,
                packed_next,
                mask,
                valid,
                self._gamma,
                self._timeout_gamma,
            )
        if count < 0:
            raise _wrong_length(self._obs_shape[0])
        ring.num_added += count
        self._sampler.added(position, count)
        return count

    def add_one(self, obs: Array, action: int, reward: float, next_obs: Array, terminated: bool) -> bool:
        """As `add`, for one env without an n-step window or mask and with vectors [F] of float32: half the time goes
        into arrays around single numbers otherwise. False, and nothing stored, where a number is not finite."""
        ring = self._ring
        position = ring.num_added % ring.capacity
        discount = 0.0 if terminated else self._gamma
        if not store_one(ring.memory, ring.row_bytes, position, obs, action, reward, discount, next_obs):
            return False
        ring.num_added += 1
        self._sampler.added(position, 1)
        return True

    def _store_planned(self, window: NStepWindow, position: int, count: int, next_obs: Array, mask: Array) -> None:
        memory, row_bytes = self._ring.memory, self._ring.row_bytes
        store_planned(memory, row_bytes, position, count, window.plan, window.values, window.obs, next_obs, mask)

    def _next_mask(self, step: EnvStep[Obs]) -> Array:
        """The mask of each `final_obs`; where an episode ended and the env gave none, all actions count as allowed."""
        mask = step.final_action_mask
        if mask is None and step.action_mask is not None:
            mask = step.action_mask | (step.terminated | step.truncated)[:, None]
        expected = (self._obs_shape[0], self._num_actions)
        if mask is None or mask.shape != expected:
            raise EnvError(
                f"the env announced action masks, but a step came with {'none' if mask is None else mask.shape}",
                f"return `action_mask` of shape {expected} from every step, or set `has_action_mask` to False",
            )
        return np.ascontiguousarray(mask, dtype=np.bool_)

    def sample(self, batch_size: int, k: int, env_steps: int, repeat: int = 1) -> Batch:
        """k batches of `batch_size` rows; each drawn batch appears `repeat` times in a row.

        The arrays are reused by the next call with the same `batch_size` and `k`: consume them before.
        """
        if not self._ring.num_added:
            raise ValueError("sample from an empty replay")
        arrays = self._arrays.get((k, batch_size)) or self._new_arrays(k, batch_size)
        beta = self._settings.beta(env_steps) if self._settings.prioritized else 1.0
        self.sample_into(arrays, beta, repeat)
        return arrays.batch

    def sample_into(self, arrays: BatchArrays, beta: float, repeat: int = 1) -> None:
        """As `sample`, into arrays of the caller's; `beta` is the exponent of importance weights."""
        ring = self._ring
        self._sampler.draw(arrays.batch, repeat, ring.size, ring.newest, beta)
        ring.gather(arrays)

    def plan(self, k: int, batch_size: int) -> BatchPlan:
        return BatchPlan(self._ring.layout, k, batch_size)

    def _new_arrays(self, k: int, batch_size: int) -> BatchArrays:
        if len(self._arrays) >= KEPT_BATCH_SHAPES:
            self._arrays.clear()
        arrays = self._arrays[k, batch_size] = BatchArrays(self.plan(k, batch_size))
        return arrays

    def update_priorities(self, index: Array, td_error: Array) -> None:
        """Tell the sampler the TD errors [k, B] of the rows `index` [k, B]; of equal rows the last counts."""
        self._sampler.update(index, td_error)

    def reseed(self, seed: int) -> None:
        """Draw batches from another stream from here on."""
        self._sampler.reseed(seed)

    def drop_pending(self) -> None:
        """Forget unfinished n-step windows, for envs that start afresh."""
        if self._window is not None:
            self._window.drop_pending()

    def state(self) -> dict[str, Any]:
        """Everything needed to continue exactly; rows and priorities are views: write them before the next `add`."""
        window = {} if self._window is None else self._window.state()
        return {"ring": self._ring.state(), "sampler": self._sampler.state(), "n_step": window}

    def load_state(self, state: dict[str, Any], num_actions: int | None = None) -> None:
        """Whatever kernels take for an index is one: rows, priorities, windows and, where their number is given,
        actions. A file may hold anything."""
        self._ring.load_state(state["ring"], num_actions)
        self._sampler.load_state(state["sampler"], self._ring.size)
        if self._window is not None:
            self._window.load_state(state["n_step"], num_actions)


def _wrong_length(num_envs: int) -> EnvError:
    return EnvError(
        f"action, reward, terminated, truncated or valid does not have one entry for each of {num_envs} envs",
        "run `hotloop envs check` on this env for the whole contract",
    )
