"""The native lane of SAC, TD3 and DDPG: k updates of critics, actor, temperature and targets in one machine-code call.

A second implementation of what `lanes/sac_objective.py` says; tests hold it equal. CPU, float32 and multilayer networks
only. The parameters are the same memory as the module's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numba import types
from torch import nn

from hotloop.core.types import Array, Obs, UpdateStats
from hotloop.lanes.native import sac_plan_kernels as sac
from hotloop.lanes.native.layout import aligned_zeros
from hotloop.lanes.native.sac_kernels import run_sac_actor, run_sac_updates
from hotloop.lanes.native.sac_loss_kernels import descend_draw, descend_squash, draw_action, squash_action
from hotloop.lanes.native.stack_layout import StackLayout, StackPlan
from hotloop.lanes.native.unit_kernels import prepare_kernel, prepare_units, real_vector, vector, whole
from hotloop.lanes.native.vector_kernels import LANES
from hotloop.lanes.nonfinite import FailedUpdate, explained
from hotloop.lanes.objective import ONLINE, target_of
from hotloop.lanes.optimizer import FlatParameters
from hotloop.lanes.sac_objective import SACBatch, SACObjective, SACSpec
from hotloop.lanes.spec import go_on
from hotloop.nets.sac_network import CRITICS, TEMPERATURE
from hotloop.presets.sac_network_settings import SACLayout

_matrix = types.float32[:, ::1]
_UPDATES = (whole, real_vector, *[vector] * 2, *[vector] * 9, real_vector, types.int64, _matrix)
_ACTOR = (whole, vector, vector, _matrix, _matrix)
KEPT_PLANS = 8
"""Batch sizes, and numbers of envs, that a lane is ready for at once; most runs have one of each."""
_NOTHING = np.zeros(0, np.float32)
_STATISTICS = {
    "loss": sac.LOSS,
    "q_mean": sac.Q_MEAN,
    "actor_loss": sac.ACTOR_LOSS,
    "entropy": sac.ENTROPY,
    "temperature_loss": sac.TEMPERATURE_LOSS,
    "temperature": sac.TEMPERATURE_MEAN,
    "gradient_norm": sac.GRADIENT_NORM,
}
_STEPPED = (sac.VALUES, sac.MEAN, sac.SQUARE)
_PLACES = {ONLINE: sac.ACTOR, CRITICS: sac.CRITIC, TEMPERATURE: sac.ALPHA}


def prepare(stochastic: bool) -> None:
    """Compile the kernels that such a policy needs (some 10 s of processor time), or load them from the cache."""
    without = [squash_action, descend_squash] if stochastic else [draw_action, descend_draw]
    prepare_units(run_sac_updates, run_sac_actor, without=without)
    prepare_kernel(run_sac_updates, *_UPDATES)
    prepare_kernel(run_sac_actor, *_ACTOR)


class GroupVectors:
    """All groups' values, gradients, moments and slowly moving copies in one vector, shared with their modules."""

    def __init__(self, modules: dict[str, nn.Module], targets: tuple[str, ...]) -> None:
        sizes = {name: sum(value.numel() for value in module.parameters()) for name, module in modules.items()}
        steps = {name: -(-size // LANES) * LANES for name, size in sizes.items()}  # each starts at a cache line
        self.all = aligned_zeros(sac.VECTORS * sum(steps.values()))
        self.places: dict[str, tuple[int, int, int]] = {}
        self._flat: list[FlatParameters] = []
        start = 0
        for name, module in modules.items():
            self.places[name] = (start, steps[name], sizes[name])
            start += sac.VECTORS * steps[name]
            self._share(FlatParameters(module), self.part(name, sac.VALUES), self.part(name, sac.GRADIENT))
            if name in targets:
                self.part(name, sac.SLOW)[:] = self.part(name, sac.VALUES)

    def part(self, name: str, which: int) -> Array:
        start, step, size = self.places[name]
        return self.all[start + which * step : start + which * step + size]

    def move_target(self, name: str, tau: float) -> None:
        values, target = self.part(name, sac.VALUES), self.part(name, sac.SLOW)
        if tau == 1.0:
            target[:] = values
        else:
            target += np.float32(tau) * (values - target)

    def _share(self, flat: FlatParameters, values: Array, gradient: Array) -> None:
        values[:] = flat.values.numpy()
        flat.values, flat.gradient = torch.from_numpy(values), torch.from_numpy(gradient)
        flat.attach()
        self._flat.append(flat)


class NativeSACUpdater:
    """Updates the vectors of `groups` in place, and says what the actor in them says; for one thread at a time."""

    def __init__(self, spec: SACSpec, stacks: tuple[StackLayout, StackLayout], groups: GroupVectors) -> None:
        self.spec, self.groups, (self._actor, self._critics) = spec, groups, stacks
        self._float_plan = real_numbers(spec)
        self._plans: dict[int, tuple[Array, Array]] = {}
        self._acting: dict[int, tuple[Array, Array]] = {}

    def plan(self, rows: int) -> tuple[Array, Array]:
        """What an update on batches of so many rows is, and the workspace for it."""
        return kept(self._plans, rows, self._plan)

    def _plan(self, rows: int) -> tuple[Array, Array]:
        spec, size = self.spec, self._actor.num_in
        beside = -(-rows // LANES) * LANES  # the column where next_obs begins, behind obs
        actor = StackPlan(self._actor, rows, beside + rows if spec.stochastic else rows)
        critics = StackPlan(self._critics, rows, first_wanted=size, start=actor.end)
        numbers = np.zeros(sac.NUMBERS, np.int64)
        numbers[sac.ROWS], numbers[sac.OBS_SIZE], numbers[sac.NEXT] = rows, size, beside
        numbers[sac.ACTIONS], numbers[sac.CRITICS] = spec.actions, spec.critics
        numbers[sac.STOCHASTIC], numbers[sac.LEARN_TEMPERATURE] = spec.stochastic, spec.learn_temperature
        numbers[sac.POLICY_DELAY], numbers[sac.TARGET_EVERY] = spec.policy_delay, spec.target_every
        numbers[sac.LINES], numbers[sac.ACTOR_PLAN] = critics.end, len(numbers)
        numbers[sac.CRITICS_PLAN] = len(numbers) + len(actor.numbers)
        for name, place in self.groups.places.items():
            numbers[_PLACES[name] : _PLACES[name] + 3] = place
        workspace = aligned_zeros(critics.end + (sac.LINE_COUNT + spec.actions) * critics.stride)
        actor.fill(workspace)
        critics.fill(workspace)
        return np.concatenate((numbers, actor.numbers, critics.numbers)), workspace

    def _acting_plan(self, rows: int) -> tuple[Array, Array]:
        actor = StackPlan(self._actor, rows)
        return actor.numbers, aligned_zeros(actor.end)

    def update(self, data: SACBatch, lr: Array, first_update: int) -> tuple[int, Array, Array]:
        """How many of len(lr) updates were made, the TD errors [k, B] and the statistics [7, k] (`sac_plan_kernels`).

        Fewer than asked: a stage of that one was not finite; neither its parameters nor later stages have seen it.
        """
        k, rows = data.reward.shape
        td_error, stats = np.empty((k, rows), np.float32), np.empty((sac.STATISTICS, k), np.float32)
        fields = (*data[:6], *(_NOTHING if noise is None else noise for noise in data[6:8]), td_error)
        numbers, workspace = self.plan(rows)
        flat = (field.reshape(-1) for field in fields)
        made = run_sac_updates(numbers, self._float_plan, workspace, self.groups.all, *flat, lr, first_update, stats)
        return made, td_error, stats

    def act(self, rows: Array) -> Array:
        """What the actor says [N, O] of observations [N, F], before bounds and tanh."""
        count = len(rows)
        out = np.empty((count, self._actor.num_out), np.float32)
        run_sac_actor(*kept(self._acting, count, self._acting_plan), self.groups.part(ONLINE, sac.VALUES), rows, out)
        return out


class NativeSACLane:
    name = "native"

    def __init__(self, objective: SACObjective, network: nn.Module, layout: SACLayout, rows: int) -> None:
        prepare(objective.spec.stochastic)
        self.objective, self.network = objective, network
        self.groups = GroupVectors(objective.groups(network), objective.targets)
        self._updater = NativeSACUpdater(objective.spec, stack_layouts(layout), self.groups)
        self._updater.plan(rows)
        self._rows_of_statistics = [_STATISTICS[name] for name in objective.measures]

    def prepare(self, example: Any, most_updates: int) -> None:
        pass  # the kernels do not depend on shapes and are in place since the constructor

    def update(self, data: SACBatch, lr: Array, first_update: int, check: Callable[[], None] = go_on) -> UpdateStats:
        check()
        made, td_error, stats = self._updater.update(data, lr, first_update)
        if made < len(lr):  # the kernel stops before an optimizer step that would spoil the parameters
            batch = self.objective.failure_batch(data, made)
            failed = FailedUpdate(first_update + made + 1, float(lr[made]), self.state(), batch)
            raise explained(failed, self.objective.nan_search_order(self.network, "float32", failed))
        return UpdateStats(stats[self._rows_of_statistics], td_error)

    def infer(self, obs: Obs, action_mask: Array | None = None, noisy: bool = False) -> tuple[Array]:
        assert isinstance(obs, np.ndarray)
        return (self._updater.act(obs if obs.ndim == 2 else obs.reshape(len(obs), -1)),)

    def move_target(self, tau: float) -> None:
        for name in self.objective.targets:
            self.groups.move_target(name, tau)

    def parameters(self) -> Array:
        return np.concatenate([self.groups.part(name, sac.VALUES) for name in self.groups.places])

    def load_parameters(self, values: Array) -> None:
        for name in self.groups.places:
            part = self.groups.part(name, sac.VALUES)
            part[:], values = values[: part.size], values[part.size :]

    def vectors(self) -> dict[str, Array]:
        """All that updates change, by the names that checkpoints know."""
        part, named = self.groups.part, dict[str, Array]()
        for name in self.groups.places:
            prefix = "" if name == ONLINE else f"{name}_"
            titles = (name, f"{prefix}mean", f"{prefix}square")
            named |= {title: part(name, which) for title, which in zip(titles, _STEPPED, strict=True)}
        return named | {target_of(name): part(name, sac.SLOW) for name in self.objective.targets}

    def state(self) -> dict[str, Any]:
        return {name: values.copy() for name, values in self.vectors().items()}

    def load_state(self, state: dict[str, Any]) -> None:
        for name, values in self.vectors().items():
            values[:] = state[name]


def kept(plans: dict[Any, Any], key: Any, make: Any) -> Any:
    """The plan for so many rows (or other key), made where there is none yet; a workspace each, so not for ever
    more of them."""
    plan = plans.get(key)
    if plan is None:
        if len(plans) == KEPT_PLANS:
            plans.clear()
        plan = plans[key] = make(key)
    return plan


def stack_layouts(layout: SACLayout) -> tuple[StackLayout, StackLayout]:
    """Of the actor, and of all critics together."""
    size, hidden, activation = layout.obs_size, layout.hidden, layout.activation
    actor = StackLayout(num_in=size, hidden=hidden, num_out=layout.num_outputs, activation=activation)
    seen = size + layout.actions
    return actor, StackLayout(num_in=seen, hidden=hidden, num_out=1, activation=activation, copies=layout.critics)


def real_numbers(spec: SACSpec) -> Array:
    optimizer = [spec.max_grad_norm, spec.beta1, spec.beta2, spec.epsilon, spec.target_tau]
    temperature = spec.temperature if spec.stochastic else 0.0
    policy = [temperature, spec.target_entropy, spec.slope_epsilon, spec.smoothing, spec.smoothing_clip]
    return np.array([*optimizer, *policy, spec.critic_weight], np.float64)
