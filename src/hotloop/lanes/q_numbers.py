"""The tensors of a DQN update that failed, in the order in which they are computed."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from hotloop.core.types import Batch
from hotloop.lanes.numbers import (
    FailedUpdate,
    Named,
    NotFiniteError,
    as_arrays,
    as_tensors,
    explained,
    forward_of,
    parameters_of,
    tensors_of_rows,
    tensors_of_state,
    tensors_of_step,
)
from hotloop.lanes.objective import Network, Rows, objective
from hotloop.lanes.spec import UpdateSpec

FIELDS = ("obs", "reward", "discount", "next_obs", "weight")
"""In the order in which they are looked at."""
NOISE = "noise"


def q_failure(spec: UpdateSpec, network: nn.Module, precision: str, failed: FailedUpdate) -> NotFiniteError:
    return explained(failed, q_tensors(spec, network, precision, failed))


def batch_rows(batches: Batch, j: int, noise: dict[str, Any] | None = None) -> dict[str, Any]:
    """The j-th of k batches, and the noise of both networks where they have any."""

    def taken(field: Any) -> Any:
        return {name: part[j] for name, part in field.items()} if isinstance(field, dict) else field[j]

    fields = {name: getattr(batches, name) for name in Rows._fields}
    rows = {name: taken(field) for name, field in fields.items() if field is not None}
    return as_arrays(rows | ({} if noise is None else {NOISE: noise}))


def q_tensors(spec: UpdateSpec, network: nn.Module, precision: str, failed: FailedUpdate) -> Named:
    yield from tensors_of_state(network, failed)
    yield from tensors_of_rows(failed.batch, FIELDS)
    batch = as_tensors(failed.batch)
    noise = batch.pop(NOISE, {"online": {}, "target": {}})
    rows = Rows._make(batch.get(name) for name in Rows._fields)
    values, parameters = parameters_of(network, failed.state["online"])
    _, target_parameters = parameters_of(network, failed.state["target"])
    online = _network(network, parameters | noise["online"], precision)
    target = _network(network, target_parameters | noise["target"], precision)
    with torch.no_grad():
        yield "Q of next_obs by the target network", target(rows.next_obs)
        if spec.double:
            yield "Q of next_obs", online(rows.next_obs)
        yield "Q", online(rows.obs)
    loss = objective(spec, online, target, rows).loss
    yield from tensors_of_step(spec, network, failed, values, loss)


def _network(network: nn.Module, numbers: dict[str, Any], precision: str) -> Network:
    forward = forward_of(network, numbers, precision)
    return lambda obs: forward(obs).float()
