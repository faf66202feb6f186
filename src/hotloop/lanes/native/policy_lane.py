"""The native lane of the actor-critic family: all epochs over a rollout in one machine-code call.

A second implementation of what `lanes/policy_objective.py` says; tests hold it equal. CPU, float32 and
multilayer networks only. The parameters are the same memory as the module's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numba import types
from torch import nn

from hotloop.core.types import Array, Obs, RolloutRow, RolloutSlab, UpdateStats
from hotloop.lanes.native import policy_plan_kernels as policy
from hotloop.lanes.native.layout import MemoryPlan, NativeLayout, UpdateConstants
from hotloop.lanes.native.policy_kernels import run_and_draw, run_epochs, run_networks
from hotloop.lanes.native.policy_loss_kernels import MEASURES
from hotloop.lanes.native.unit_kernels import (
    mask_vector,
    prepare_kernel,
    prepare_units,
    real_matrix,
    real_vector,
    vector,
    whole,
)
from hotloop.lanes.nonfinite import FailedUpdate, explained
from hotloop.lanes.optimizer import FlatParameters
from hotloop.lanes.policy_objective import Minibatches, PolicyObjective, PolicyShared, PolicySpec
from hotloop.lanes.spec import go_on
from hotloop.maths.distributions import NO_MASK
from hotloop.nets.actor_critic import ActorCriticLayout

_matrix = types.float32[:, ::1]
_memory = (whole, vector, whole, vector)
_rollout = (_matrix, *[vector] * 6, mask_vector)
_old = types.Tuple((real_vector, real_vector, vector, whole))
_scratch = types.Tuple((*[real_vector] * 5, real_matrix, real_matrix))
_forward = (whole, *_memory, vector, _matrix, _matrix, vector)
_DRAW = (*_forward, types.uint64[::1], types.boolean[:, ::1], whole, _matrix)
_orders = (types.int64[:, ::1], real_vector, types.int64)
_EPOCHS = (
    whole,
    real_vector,
    *_memory,
    real_vector,
    *[vector] * 4,
    *_rollout,
    *_orders,
    vector,
    _old,
    _scratch,
    _matrix,
)
_UNMASKED = np.zeros(0, np.bool_)


def prepare() -> None:
    """Compile every kernel of the lane, or load them from the cache."""
    prepare_units(run_networks, run_and_draw, run_epochs)
    prepare_kernel(run_networks, *_forward)
    prepare_kernel(run_and_draw, *_DRAW)
    prepare_kernel(run_epochs, *_EPOCHS)


class NativePolicyLane:
    name = "native"

    def __init__(self, objective: PolicyObjective, network: nn.Module, layout: ActorCriticLayout) -> None:
        prepare()
        self.objective, self.network, self._layout = objective, network, layout
        spec = self.spec = objective.spec
        self._flat = FlatParameters(network)
        self.online: Array = self._flat.values.numpy()  # [P], shared with the module
        self._gradient = np.zeros_like(self.online)
        self.moments = (np.zeros_like(self.online), np.zeros_like(self.online))
        self._layouts = network_layouts(layout, spec.actions.num_outputs)
        self._int_plan = whole_numbers(spec, layout, self._layouts)
        self._memory, self._constants = network_plans(spec, self._layouts, spec.rows, training=True)
        self._counts = np.array(spec.actions.counts, np.int64)
        self._acting: dict[int, tuple[Array, ...]] = {}
        self._gathered = np.empty(spec.rows * layout.obs_size, np.float32)
        self._scratch = make_scratch(spec)
        self._old_of: dict[int, tuple[Array, ...]] = {}

    def prepare(self, example: Any, most_updates: int) -> None:
        pass  # the kernels do not depend on shapes and are in place since the constructor

    def infer(self, obs: Obs, action_mask: Array | None = None, noisy: bool = False) -> tuple[Array, Array]:
        assert isinstance(obs, np.ndarray)
        count = len(obs)
        out = np.empty((count, self.spec.actions.num_outputs), np.float32), np.empty(count, np.float32)
        run_networks(*self._memory_for(count), self.online, obs if obs.ndim == 2 else obs.reshape(count, -1), *out)
        return out

    def act(self, row: RolloutRow, state: Array, mask: Array | None) -> None:
        """What `forward_and_draw` does, in one call."""
        obs, outputs, values, action, _ = row
        assert isinstance(obs, np.ndarray)
        memory, rows = self._memory_for(len(values)), obs if obs.ndim == 2 else obs.reshape(len(obs), -1)
        mask = NO_MASK if mask is None else np.ascontiguousarray(mask, np.bool_)  # the env's: it may lie any way
        run_and_draw(*memory, self.online, rows, outputs, values, state, mask, self._counts, action)

    def _memory_for(self, count: int) -> tuple[Array, ...]:
        memory = self._acting.get(count)
        if memory is None:
            plans, _ = network_plans(self.spec, self._layouts, count, training=False)
            memory = self._acting[count] = (self._int_plan, *plans)
        return memory

    def update(self, data: Minibatches, lr: Array, first_update: int, check: Callable[[], None] = go_on) -> UpdateStats:
        check()
        rollout, order, clip = data
        assert isinstance(rollout, RolloutSlab)
        spec, obs = self.spec, rollout.obs
        assert isinstance(obs, np.ndarray)
        float_plan = np.array([clip, spec.value_clip, spec.vf_coef, spec.ent_coef, spec.kl_stop])
        columns = (rollout.outputs, rollout.action, rollout.value[:-1], rollout.returns, rollout.advantage)
        mask = _UNMASKED if rollout.action_mask is None else rollout.action_mask.reshape(-1)
        stats = np.empty((len(self.objective.measures), len(lr)), np.float32)
        made, good = run_epochs(
            self._int_plan, float_plan, *self._memory, self._constants, self.online, self._gradient, *self.moments,
            obs.reshape(order.shape[1], -1), *(column.reshape(-1) for column in (*columns, rollout.weight)), mask,
            order, lr, first_update, self._gathered, self._old(order.shape[1]), self._scratch, stats,
        )  # fmt: skip
        if not good:  # the kernel stops before an optimizer step that would spoil the parameters
            acted = PolicyShared(clip, torch.from_numpy(self._old(order.shape[1])[2]))
            kept = self.objective.failure_batch(data, made, acted)
            failed = FailedUpdate(first_update + made + 1, float(lr[made]), self.state(), kept)
            raise explained(failed, self.objective.nan_search_order(self.network, "float32", failed))
        return UpdateStats(stats[:, :made])

    def _old(self, count: int) -> tuple[Array, ...]:
        """Room for the policy that acted, in `count` rows."""
        if count not in self._old_of:
            actions = self.spec.actions
            room = [np.empty(count * actions.num_outputs) for _ in range(2)]
            self._old_of = {count: (*room, np.empty(actions.continuous, np.float32), np.arange(count))}
        return self._old_of[count]

    def move_target(self, tau: float) -> None:
        pass  # there is none

    def parameters(self) -> Array:
        return self.online.copy()

    def load_parameters(self, values: Array) -> None:
        self.online[:] = values

    def state(self) -> dict[str, Any]:
        vectors = zip(("online", "mean", "square"), (self.online, *self.moments), strict=True)
        return {name: vector.copy() for name, vector in vectors}

    def load_state(self, state: dict[str, Any]) -> None:
        for name, mine in zip(("online", "mean", "square"), (self.online, *self.moments), strict=True):
            mine[:] = state[name]


def network_layouts(layout: ActorCriticLayout, outputs: int) -> list[NativeLayout]:
    """Of the one network whose head has value and policy side by side, or of the policy's and the value's."""
    heads = [(outputs, True)] if layout.shared else [(outputs, False), (1, False)]
    return [
        NativeLayout(
            obs_size=layout.obs_size,
            hidden=layout.hidden,
            num_actions=count,
            activation=layout.activation,
            dueling=both,  # never combined here: only the order of its parameters is used
        )
        for count, both in heads
    ]


def network_plans(
    spec: PolicySpec, layouts: list[NativeLayout], rows: int, training: bool
) -> tuple[tuple[Array, ...], Array]:
    """Plan and workspace of each network (of one that is shared: twice), and the optimizer's constants."""
    constants = UpdateConstants(max_norm=spec.max_grad_norm, beta1=spec.beta1, beta2=spec.beta2, epsilon=spec.epsilon)
    plans = [MemoryPlan(layout, constants, rows, training) for layout in layouts]
    memory = [array for each in plans for array in (each.numbers, each.workspace)]
    return (*memory, *memory)[:4], plans[0].constants


def whole_numbers(spec: PolicySpec, layout: ActorCriticLayout, layouts: list[NativeLayout]) -> Array:
    sizes = [each.num_parameters for each in layouts] + [0]
    actions, int_plan = spec.actions, np.zeros(policy.COUNTS + len(spec.actions.counts), np.int64)
    int_plan[policy.SHARED] = layout.shared
    int_plan[policy.POLICY_PARAMETERS], int_plan[policy.VALUE_PARAMETERS] = sizes[:2]
    int_plan[policy.PARAMETERS] = sum(sizes) + actions.continuous
    int_plan[policy.OUTPUTS], int_plan[policy.CONTINUOUS] = actions.num_outputs, actions.continuous
    int_plan[policy.SQUASHED], int_plan[policy.PLAIN] = actions.squashed, spec.policy_loss == "plain"
    int_plan[policy.NORMALIZE], int_plan[policy.ROWS] = spec.normalize_advantage, spec.rows
    int_plan[policy.CHOICES] = len(actions.counts)
    int_plan[policy.COUNTS :] = actions.counts
    return int_plan


def make_scratch(spec: PolicySpec) -> tuple[Array, ...]:
    """Of one minibatch: log p, p, entropies, the entropy's slopes by mean and log std, measures, slopes."""
    rows, actions = spec.rows, spec.actions
    widths = (actions.num_outputs, actions.num_outputs, len(actions.counts), actions.continuous, actions.continuous)
    return (*(np.empty(rows * width) for width in widths), np.zeros((MEASURES, rows)), np.empty((2, rows)))
