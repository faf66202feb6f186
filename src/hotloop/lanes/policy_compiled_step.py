"""Several sequential actor-critic updates as one pure function of flat vectors, for `compile_function` to trace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value

from hotloop.core.types import Obs
from hotloop.lanes.compiled_step import Function, flatten_obs, optimise, restore_obs, split_vector
from hotloop.lanes.policy_objective import PolicyRows, policy_objective
from hotloop.lanes.policy_spec import PolicySpec

LOG_STD = "spread.log_std"
"""The standard deviations' name among the parameters; absent where no action is a number."""


class FunctionalPolicy:
    """An actor-critic's forward as a function of a flat parameter vector."""

    def __init__(self, module: nn.Module, precision: str) -> None:
        self._module = module
        self._shapes = {name: parameter.shape for name, parameter in module.named_parameters()}
        self._half = precision == "bfloat16"

    def split(self, values: Tensor) -> dict[str, Tensor]:
        return split_vector(values, self._shapes)

    def forward(self, parameters: dict[str, Tensor], obs: Any) -> tuple[Tensor, Tensor]:
        device = next(iter(parameters.values())).device.type
        with torch.autocast(device, torch.bfloat16, enabled=self._half, cache_enabled=False):
            outputs, value = functional_call(self._module, parameters, (obs,))
        return outputs.float(), value.float()


def flatten_rows(rows: PolicyRows) -> list[Tensor]:
    """The tensors of `rows`, in the order that `_rows` expects."""
    mask = [] if rows.action_mask is None else [rows.action_mask]
    return [*flatten_obs(rows.obs), *rows[1:7], *mask]


def _rows(fields: Sequence[Tensor], like: Obs) -> PolicyRows:
    parts = len(flatten_obs(like))
    rest, mask = fields[parts : parts + 6], fields[parts + 6 :]
    return PolicyRows._make((restore_obs(fields, like), *rest, mask[0] if mask else None))


def make_policy_step(spec: PolicySpec, policy: FunctionalPolicy, like: Obs, in_place: bool) -> Function:
    """n updates as a function of parameters and moments [P], the log stds that acted [C], the clip [1], Adam factors
    [n, 2] and the rows' fields [n, B, ...]. It writes to the vectors, or returns new ones before the statistics [7, n].
    From the first update on whose loss or gradient is not finite the vectors stay as they are.
    """

    def step(
        values: Tensor, mean: Tensor, square: Tensor, acted: Tensor, clip: Tensor, factors: Tensor, *fields: Tensor
    ) -> tuple[Tensor, ...]:
        vectors, measured, good = (values, mean, square), [], values.new_ones((), dtype=torch.bool)
        for j in range(len(factors)):
            rows = _rows([field[j] for field in fields], like)
            gradient, measures = _gradient(spec, policy, vectors[0], acted, clip, rows)
            vectors, norm, good = optimise(spec, vectors, gradient, factors[j], measures[0], good)
            measured.append(torch.cat((measures, norm[None])))
        stats = torch.stack(measured, 1)
        if not in_place:
            return *vectors, stats
        for old, new in zip((values, mean, square), vectors, strict=True):
            old.copy_(new)
        return (stats,)

    return step


def make_policy_forward(policy: FunctionalPolicy, like: Obs) -> Function:
    """Outputs [N, O] and values [N] as a function of parameters [P] and the observation's parts [N, ...]."""

    def forward(values: Tensor, *fields: Tensor) -> tuple[Tensor, Tensor]:
        return policy.forward(policy.split(values), restore_obs(fields, like))

    return forward


def _gradient(
    spec: PolicySpec, policy: FunctionalPolicy, values: Tensor, acted: Tensor, clip: Tensor, rows: PolicyRows
) -> tuple[Tensor, Tensor]:
    def loss(parameters: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        log_stds = acted, parameters.get(LOG_STD, acted)
        terms = policy_objective(spec, policy.forward(parameters, rows.obs), log_stds, rows, clip)
        return terms.loss, terms.measures

    gradients, (_, measures) = grad_and_value(loss, has_aux=True)(policy.split(values))
    return torch.cat([part.reshape(-1) for part in gradients.values()]), measures
