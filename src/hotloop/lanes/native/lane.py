"""The native lane: both forwards, backward, clipping, Adam and target update of k updates in one machine-code call.

A second implementation of what `lanes/q_objective.py` says; tests hold it equal. CPU, float32, multilayer
networks and branches with attention only. The parameters are the same memory as the module's, so it saves, evaluates
and exports as usual.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from torch import nn

from hotloop.core.types import Array, Batch, Obs, UpdateStats
from hotloop.lanes.native.branch_layout import NativeBranches
from hotloop.lanes.native.branch_updater import BranchActor, BranchUpdater
from hotloop.lanes.native.layout import NativeLayout, UpdateConstants
from hotloop.lanes.native.updater import NativeActor, NativeUpdater
from hotloop.lanes.nonfinite import FailedUpdate, explained
from hotloop.lanes.optimiser import FlatParameters
from hotloop.lanes.q_objective import QObjective, QSpec
from hotloop.nets.branches import BranchLayout
from hotloop.nets.layouts import MLPLayout


class NativeLane:
    name = "native"

    def __init__(self, objective: QObjective, network: nn.Module, layout: MLPLayout | BranchLayout, rows: int) -> None:
        self.objective, self.network, spec = objective, network, objective.spec
        self._online = FlatParameters(network)
        self._target = FlatParameters(copy.deepcopy(network).requires_grad_(False))
        constants = update_constants(spec)
        self._names = layout.names if isinstance(layout, BranchLayout) else ()
        self._updater: NativeUpdater | BranchUpdater
        self._make_actor: Callable[[int], NativeActor | BranchActor]
        if isinstance(layout, BranchLayout):
            branches = native_branches(spec, layout)
            self._updater, self._make_actor = BranchUpdater(branches, constants, rows), partial(BranchActor, branches)
        else:
            layers = native_layout(spec, layout)
            self._updater, self._make_actor = NativeUpdater(layers, constants, rows), partial(NativeActor, layers)
        self._actors: dict[int, NativeActor | BranchActor] = {}
        self.online: Array = self._online.values.numpy()  # [P], shared with the module
        self.target: Array = self._target.values.numpy()
        self.moments = (np.zeros_like(self.online), np.zeros_like(self.online))

    def prepare(self, example: Batch, most_updates: int) -> None:
        pass  # the kernels do not depend on shapes and are in place since the constructor

    def update(self, data: Batch, lr: Array, first_update: int) -> UpdateStats:
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
        made, td_error, scalars = self._updater.update(self.online, self.target, self.moments, fields, lr, first_update)
        if made < k:  # the kernel stops before an optimiser step that would spoil the parameters
            kept = self.objective.kept(batches, made)
            failed = FailedUpdate(first_update + made + 1, float(lr[made]), self.state(), kept)
            raise explained(failed, self.objective.in_order(self.network, "float32", failed))
        return UpdateStats(scalars, td_error)

    def infer(self, obs: Obs, action_mask: Array | None = None, noisy: bool = False) -> tuple[Array]:
        vectors = self._as_vectors(obs, 1)
        num_envs = len(vectors)
        actor = self._actors.get(num_envs)
        if actor is None:
            actor = self._actors[num_envs] = self._make_actor(num_envs)
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


def native_layout(spec: QSpec, layout: MLPLayout) -> NativeLayout:
    return NativeLayout(
        obs_size=layout.obs_size,
        hidden=layout.hidden,
        num_actions=layout.num_actions,
        activation=layout.activation,
        dueling=layout.dueling,
        atoms=layout.atoms,
        v_min=spec.v_min,
        v_max=spec.v_max,
    )


def native_branches(spec: QSpec, layout: BranchLayout) -> NativeBranches:
    settings = layout.settings
    return NativeBranches(
        shapes=layout.shapes,
        vector_hidden=settings.vector_hidden,
        row_width=settings.row_width,
        width=settings.width,
        attention=settings.attention,
        trunk=native_layout(spec, layout.trunk),
    )


def update_constants(spec: QSpec) -> UpdateConstants:
    return UpdateConstants(
        double=spec.double,
        huber=spec.loss == "huber",
        max_norm=spec.max_gradient_norm,
        beta1=spec.beta1,
        beta2=spec.beta2,
        epsilon=spec.epsilon,
        tau=spec.target_tau,
        target_every=spec.target_every,
    )
