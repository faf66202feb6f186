"""The native lane: both forwards, backward, clipping, Adam and target update of k updates in one machine-code call.

Honestly a second implementation of what `lanes/objective.py` says; tests hold it equal. CPU, float32 and multilayer
networks only. The parameters are the same memory as the module's, so it saves, evaluates and exports as usual.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from torch import nn

from hotloop.core.errors import NumbersError
from hotloop.core.types import Array, Batch, Obs, UpdateStats
from hotloop.lanes.flat import FlatParameters
from hotloop.lanes.native.layout import NativeLayout, UpdateConstants
from hotloop.lanes.native.updater import NativeActor, NativeUpdater
from hotloop.lanes.spec import UpdateSpec
from hotloop.nets.build import MLPLayout


class NativeLane:
    name = "native"

    def __init__(self, spec: UpdateSpec, network: nn.Module, layout: MLPLayout, rows: int) -> None:
        self.spec = spec
        self._online = FlatParameters(network)
        self._target = FlatParameters(copy.deepcopy(network).requires_grad_(False))
        self._layout = native_layout(spec, layout)
        self._updater = NativeUpdater(self._layout, update_constants(spec), rows)
        self._actors: dict[int, NativeActor] = {}
        self.online: Array = self._online.values.numpy()  # [P], shared with the module
        self.target: Array = self._target.values.numpy()
        self.moments = (np.zeros_like(self.online), np.zeros_like(self.online))

    def prepare(self, example: Batch, most_updates: int) -> None:
        pass  # the kernels do not depend on shapes and are in place since the constructor

    def update(self, batches: Batch, lr: Array, first_update: int) -> UpdateStats:
        k, rows = batches.reward.shape
        assert isinstance(batches.obs, np.ndarray)
        assert isinstance(batches.next_obs, np.ndarray)
        fields = (
            batches.obs if batches.obs.ndim == 3 else batches.obs.reshape(k, rows, -1),
            batches.action,
            batches.reward,
            batches.discount,
            batches.next_obs if batches.next_obs.ndim == 3 else batches.next_obs.reshape(k, rows, -1),
            batches.weight,
            batches.next_action_mask,
        )
        made, td_error, scalars = self._updater.update(self.online, self.target, self.moments, fields, lr, first_update)
        if made < k:  # the kernel stops before an optimiser step that would spoil the parameters
            raise NumbersError(
                f"the loss or gradient of update {first_update + made + 1:,} is NaN or infinite",
                "a smaller `optimiser.lr` or `optimiser.max_gradient_norm` helps; the weights are as before it",
            )
        return UpdateStats(td_error, scalars)

    def greedy(self, obs: Obs, action_mask: Array | None, noisy: bool) -> Array:
        assert isinstance(obs, np.ndarray)
        num_envs = len(obs)
        actor = self._actors.get(num_envs)
        if actor is None:
            actor = self._actors[num_envs] = NativeActor(self._layout, num_envs)
        return actor.greedy(self.online, obs if obs.ndim == 2 else obs.reshape(num_envs, -1), action_mask)

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


def native_layout(spec: UpdateSpec, layout: MLPLayout) -> NativeLayout:
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


def update_constants(spec: UpdateSpec) -> UpdateConstants:
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
