"""The native lane: both forwards, backward, clipping, Adam and target update of k updates in one machine-code call.

A second implementation of what `lanes/q_objective.py` says; tests hold it equal. CPU, float32, multilayer
networks and branches with attention only. The parameters are the same memory as the module's, so it saves, evaluates
and exports as usual.

The kernels stand behind two small classes, one that updates and one that acts. Each is for one thread at a time (its
workspace is shared by its calls) and wants C-contiguous arrays of exactly the stated types: anything else is a
TypeError, never a conversion or a second compilation.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import types
from torch import nn

from hotloop.core.types import Array, Batch, Obs, UpdateStats
from hotloop.lanes.native import plan_kernels as plan
from hotloop.lanes.native.branch_kernels import backward_branches, forward_branches
from hotloop.lanes.native.layout import Branches, MemoryPlan, NativeLayout, UpdateConstants
from hotloop.lanes.native.loss_kernels import categorical_rows
from hotloop.lanes.native.network_kernels import expected_values
from hotloop.lanes.native.unit_kernels import prepare_kernel, prepare_units, real_vector, whole
from hotloop.lanes.native.unit_kernels import vector as float_vector
from hotloop.lanes.native.update_kernels import greedy, run_updates
from hotloop.lanes.nonfinite import FailedUpdate, explained
from hotloop.lanes.optimizer import FlatParameters
from hotloop.lanes.q_objective import QObjective, QSpec
from hotloop.lanes.spec import go_on
from hotloop.nets.branches import BranchLayout
from hotloop.presets.network_settings import MLPLayout

_matrix, _cube = types.float32[:, ::1], types.float32[:, :, ::1]
_plan = (whole, real_vector, float_vector)
KEPT_UPDATERS = 8
"""Batch sizes that a lane is ready for at once; most runs have one."""
_batch = (_cube, types.int64[:, ::1], _matrix, _matrix, _cube, _matrix, types.boolean[:, :, ::1])
_UPDATE = (*_plan, *[float_vector] * 5, *_batch, real_vector, types.int64, _matrix, _matrix)
_GREEDY = (*_plan, float_vector, _matrix, types.boolean[:, ::1])


def prepare(layout: NativeLayout) -> None:
    """Compile the kernels that this network needs (some 8 s of processor time), or load them from the cache (0.2 s)."""
    without = [] if layout.branches else [forward_branches, backward_branches]
    without += [] if layout.atoms > 1 else [categorical_rows, expected_values]
    prepare_units(run_updates, greedy, without=without)
    prepare_kernel(run_updates, *_UPDATE)
    prepare_kernel(greedy, *_GREEDY)


class NativeBatch(NamedTuple):
    """k batches of B rows."""

    obs: Array  # [k, B, F] float32
    action: Array  # [k, B] int64
    reward: Array  # [k, B] float32
    discount: Array  # [k, B] float32
    next_obs: Array  # [k, B, F] float32
    weight: Array  # [k, B] float32
    next_action_mask: Array | None  # [k, B, A] bool


class NativeUpdater:
    """Updates flat float32 vectors in place, by batches of `rows` rows."""

    def __init__(self, layout: NativeLayout, constants: UpdateConstants, rows: int) -> None:
        prepare(layout)
        memory = MemoryPlan(layout, constants, rows)
        self.rows = rows
        self.gradient = np.zeros(layout.num_parameters, np.float32)
        """Of the last update, before clipping."""
        self._no_mask = np.zeros((0, 0, 0), np.bool_)
        self._plan = (memory.numbers, memory.constants, memory.workspace)

    def update(
        self,
        parameters: Array,
        target: Array,
        moments: tuple[Array, Array],
        batch: NativeBatch | tuple[Array | None, ...],
        lr: Array,
        first_update: int,
    ) -> tuple[int, Array, Array]:
        """len(lr) sequential updates of the vectors [P] in place; `moments` are Adam's mean and square.

        `lr` [k] float64; `first_update` updates were made before. Returns how many were made, the TD errors [k, B] and
        the statistics [3, k]: loss, mean q of the actions taken, gradient norm before clipping. Fewer than k: that
        one's loss or gradient was not finite; its statistics are there, parameters and moments have not seen it.
        """
        obs, action, reward, discount, next_obs, weight, mask = batch
        td_error = np.empty((len(lr), self.rows), np.float32)
        stats = np.empty((3, len(lr)), np.float32)
        made = run_updates(
            *self._plan, parameters, target, self.gradient, *moments,
            obs, action, reward, discount, next_obs, weight, self._no_mask if mask is None else mask,
            lr, first_update, td_error, stats,
        )  # fmt: skip
        return made, td_error, stats


class NativeActor:
    """Values and best actions of up to `rows` observations at a time, under the parameters given with each call."""

    def __init__(self, layout: NativeLayout, rows: int) -> None:
        prepare(layout)
        memory = MemoryPlan(layout, UpdateConstants(), rows, training=False)
        self._no_mask = np.zeros((0, 0), np.bool_)
        self._plan = (memory.numbers, memory.constants, memory.workspace)

    def greedy(self, parameters: Array, obs: Array, mask: Array | None = None) -> Array:
        """The best action [N], among those the mask [N, A] allows."""
        return greedy(*self._plan, parameters, obs, self._no_mask if mask is None else mask)

    def values(self, parameters: Array, obs: Array) -> Array:
        """Q [N, A] of obs [N, F]."""
        self.greedy(parameters, obs)
        numbers, _, workspace = self._plan
        first, actions = int(numbers[plan.Q_ROWS]), int(numbers[plan.ACTIONS])
        return workspace[first : first + len(obs) * actions].reshape(len(obs), actions).copy()


class LaneMemory(NamedTuple):
    """Vectors [P] that a lane trains where they are somebody else's; the module's parameters are views of the first."""

    online: Array
    target: Array
    mean: Array
    square: Array


class NativeLane:
    name = "native"

    def __init__(
        self,
        objective: QObjective,
        network: nn.Module,
        layout: MLPLayout | BranchLayout,
        rows: int,
        memory: LaneMemory | None = None,
    ) -> None:
        self.objective, self.network, spec = objective, network, objective.spec
        if memory is None:
            self._online = FlatParameters(network)
            self._target = FlatParameters(copy.deepcopy(network).requires_grad_(False))
            online, target = self._online.values.numpy(), self._target.values.numpy()
            memory = LaneMemory(online, target, np.zeros_like(online), np.zeros_like(online))
        self._names = layout.names if isinstance(layout, BranchLayout) else ()
        self._layout = native_layout(spec, layout)
        self._constants = update_constants(spec)
        self._updaters = {rows: NativeUpdater(self._layout, self._constants, rows)}
        self._actors: dict[int, NativeActor] = {}
        self.online, self.target, *moments = memory  # [P], shared with the module
        self.moments: tuple[Array, Array] = (moments[0], moments[1])

    def prepare(self, example: Batch, most_updates: int) -> None:
        pass  # the kernels do not depend on shapes and are in place since the constructor

    def update(self, data: Batch, lr: Array, first_update: int, check: Callable[[], None] = go_on) -> UpdateStats:
        check()
        batches, k = data, len(data.reward)
        fields = (
            self._as_vectors(batches.obs, 2),
            batches.action,
            batches.reward,
            batches.discount,
            self._as_vectors(batches.next_obs, 2),
            batches.weight,
            batches.next_action_mask,
        )
        updater = self._updater_for(batches.reward.shape[1])
        made, td_error, scalars = updater.update(self.online, self.target, self.moments, fields, lr, first_update)
        if made < k:  # the kernel stops before an optimizer step that would spoil the parameters
            kept = self.objective.failure_batch(batches, made)
            failed = FailedUpdate(first_update + made + 1, float(lr[made]), self.state(), kept)
            raise explained(failed, self.objective.nan_search_order(self.network, "float32", failed))
        return UpdateStats(scalars, td_error)

    def _updater_for(self, rows: int) -> NativeUpdater:
        updater = self._updaters.get(rows)
        if updater is None:
            if len(self._updaters) == KEPT_UPDATERS:  # a workspace each
                self._updaters.clear()
            updater = self._updaters[rows] = NativeUpdater(self._layout, self._constants, rows)
        return updater

    def infer(self, obs: Obs, action_mask: Array | None = None, noisy: bool = False) -> tuple[Array]:
        vectors = obs if obs.__class__ is np.ndarray and obs.ndim == 2 else self._as_vectors(obs, 1)
        num_envs = len(vectors)
        actor = self._actors.get(num_envs)
        if actor is None:
            actor = self._actors[num_envs] = NativeActor(self._layout, num_envs)
        return (actor.greedy(self.online, vectors, action_mask),)

    def _as_vectors(self, obs: Obs, leading: int) -> Array:
        """[..., F] after `leading` axes: an array flattened, the parts of a dict side by side."""
        if isinstance(obs, dict):
            parts = [obs[name] for name in self._names]
            return np.concatenate([part.reshape(*part.shape[:leading], -1) for part in parts], axis=-1)
        return obs if obs.ndim == leading + 1 else obs.reshape(*obs.shape[:leading], -1)

    def move_target(self, tau: float) -> None:
        if tau == 1.0:
            self.target[:] = self.online
        else:
            self.target += np.float32(tau) * (self.online - self.target)

    def parameters(self) -> Array:
        return self.online.copy()

    def load_parameters(self, values: Array) -> None:
        self.online[:] = values

    def state(self) -> dict[str, Any]:
        vectors = (self.online, self.target, *self.moments)
        return {
            name: vector.copy() for name, vector in zip(("online", "target", "mean", "square"), vectors, strict=True)
        }

    def load_state(self, state: dict[str, Any]) -> None:
        vectors = (self.online, self.target, *self.moments)
        for name, vector in zip(("online", "target", "mean", "square"), vectors, strict=True):
            vector[:] = state[name]


def native_layout(spec: QSpec, layout: MLPLayout | BranchLayout) -> NativeLayout:
    branches, layers = None, layout
    if isinstance(layout, BranchLayout):
        settings, layers = layout.settings, layout.trunk
        branches = Branches(
            shapes=layout.shapes,
            vector_hidden=settings.vector_hidden,
            row_width=settings.row_width,
            width=settings.width,
            attention=settings.attention,
        )
    assert isinstance(layers, MLPLayout)
    return NativeLayout(
        obs_size=branches.obs_size if branches else layers.obs_size,
        hidden=layers.hidden,
        num_actions=layers.num_actions,
        activation=layers.activation,
        dueling=layers.dueling,
        atoms=layers.atoms,
        v_min=spec.v_min,
        v_max=spec.v_max,
        branches=branches,
    )


def update_constants(spec: QSpec) -> UpdateConstants:
    return UpdateConstants(
        double=spec.double,
        huber=spec.loss == "huber",
        max_norm=spec.max_grad_norm,
        beta1=spec.beta1,
        beta2=spec.beta2,
        epsilon=spec.epsilon,
        tau=spec.target_tau,
        target_every=spec.target_every,
    )
