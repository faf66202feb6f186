"""The compiled lane of the actor-critic family: the eager lane's network and loss, several updates in one call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from hotloop.core.types import Array, Obs, Rollout, RolloutRow
from hotloop.lanes.compiled import adam_factors, chunks
from hotloop.lanes.compiled_build import Compiled, compile_function, require_compiler
from hotloop.lanes.compiled_step import flatten_obs
from hotloop.lanes.guarded import At
from hotloop.lanes.numbers import first_spoiled
from hotloop.lanes.policy_adam import moved_too_far
from hotloop.lanes.policy_compiled_step import FunctionalPolicy, flatten_rows, make_policy_forward, make_policy_step
from hotloop.lanes.policy_eager import EagerPolicyLane
from hotloop.lanes.policy_numbers import minibatch
from hotloop.lanes.policy_spec import PolicySpec, PolicyStats, forward_and_draw
from hotloop.lanes.spec import Precision
from hotloop.nets.actor_critic import ActorCritic


class CompiledPolicyLane:
    """Shares its state with an eager lane, which acts for any number of envs but `num_envs`."""

    name = "compiled"

    def __init__(
        self, spec: PolicySpec, network: ActorCritic, device: str, precision: Precision = "float32", num_envs: int = 0
    ) -> None:
        require_compiler(torch.device(device))
        self.spec = spec
        self.eager = EagerPolicyLane(spec, network, device, precision)
        self.parameters, self.load_parameters = self.eager.parameters, self.eager.load_parameters
        self.state, self.load_state, self.log_std = self.eager.state, self.eager.load_state, self.eager.log_std
        self._policy = FunctionalPolicy(network, precision)
        self._in_place = self.eager.device.type == "cpu"  # a CUDA graph would not see writes to its inputs
        self._num_envs = num_envs
        self._compiled: dict[tuple[Any, ...], Compiled] = {}

    def forward(self, obs: Obs, out: tuple[Array, Array] | None = None) -> tuple[Array, Array]:
        parts = flatten_obs(obs)
        if len(parts[0]) != self._num_envs:
            return self.eager.forward(obs, out)
        fields = [self.eager.tensor(part).contiguous() for part in parts]
        values = self.eager.adam.flat.values
        build = lambda: compile_function(make_policy_forward(self._policy, obs), (values, *fields))  # noqa: E731
        outputs, value = self._remember(("act", *_shapes(fields)), build)(values, *fields)
        if out is None:
            return outputs.cpu().numpy(), value.cpu().numpy()
        out[0][:], out[1][:] = outputs.cpu().numpy(), value.cpu().numpy()
        return out

    def act(self, row: RolloutRow, state: Array, mask: Array | None) -> None:
        forward_and_draw(self, row, state, mask)

    def update(self, rollout: Rollout, order: Array, lr: Array, clip: float, first_update: int) -> PolicyStats:
        rows, acted = self.eager.rows(rollout), self.eager.network.log_std.detach().clone()
        fields, held = flatten_rows(rows), torch.full((1,), clip, device=self.eager.device)
        per_epoch = order.shape[1] // self.spec.rows
        measured: list[Tensor] = []
        factors = self.eager.tensor(adam_factors(self.spec, lr, first_update))
        for place, epoch in enumerate(self.eager.tensor(order)):
            shuffled = [field[epoch].unflatten(0, (per_epoch, -1)) for field in fields]
            begun = len(measured)
            for start, count in chunks(per_epoch, 0, 0):
                end, at = start + count, place * per_epoch + start
                inputs = [factors[at : at + count], *(field[start:end] for field in shuffled)]
                stats = self._run(self._step(count, inputs, acted, held, rollout.obs), acted, held, *inputs)
                if self.eager.adam.on_host and (j := first_spoiled(stats)) >= 0:
                    rows_of = slice((at + j) * self.spec.rows, (at + j + 1) * self.spec.rows)
                    batch = minibatch(rollout, order.reshape(-1)[rows_of], acted.numpy(), clip)
                    raise self.eager.failure(batch, At(float(lr[at + j]), first_update + at + j + 1))
                measured += stats.unbind(1)
            if moved_too_far(self.spec, measured[begun:]):
                break
        return PolicyStats(torch.stack(measured, 1))

    def _run(self, step: Compiled, *inputs: Tensor) -> Tensor:
        """One call; the statistics [7, n] of its updates."""
        vectors = self._vectors()
        *new, stats = step(*vectors, *inputs)
        for old, values in zip(vectors, new, strict=False):
            old.copy_(values)
        return stats if self._in_place else stats.clone()

    def _step(self, count: int, inputs: Sequence[Tensor], acted: Tensor, held: Tensor, obs: Obs) -> Compiled:
        """The machine code for `count` updates on inputs like these."""

        def build() -> Compiled:
            function = make_policy_step(self.spec, self._policy, obs, self._in_place)
            return compile_function(function, (*self._vectors(), acted, held, *inputs))

        return self._remember((count, *_shapes(inputs)), build)

    def _vectors(self) -> tuple[Tensor, ...]:
        return (self.eager.adam.flat.values, *self.eager.adam.moments)

    def _remember(self, key: tuple[Any, ...], build: Callable[[], Compiled]) -> Compiled:
        compiled = self._compiled.get(key)
        if compiled is None:
            compiled = self._compiled[key] = build()
        return compiled


def _shapes(tensors: Sequence[Tensor]) -> tuple[Any, ...]:
    return tuple((tensor.shape, tensor.dtype) for tensor in tensors)
