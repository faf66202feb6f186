"""The tensors of an actor-critic update that failed, in the order in which they are computed."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from hotloop.core.types import Array, Rollout
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
from hotloop.lanes.policy_compiled_step import LOG_STD
from hotloop.lanes.policy_objective import PolicyRows, PolicyTerms, policy_objective
from hotloop.lanes.policy_spec import PolicySpec, PolicyStats

ROLLOUT = ("reward", "value", "final_value")
"""Kept of the whole rollout: a reward that is not finite spreads to rows of other minibatches."""


def policy_failure(spec: PolicySpec, network: nn.Module, precision: str, failed: FailedUpdate) -> NotFiniteError:
    return explained(failed, policy_tensors(spec, network, precision, failed))


def minibatch(rollout: Rollout, chosen: Array, acted_log_std: Array, clip: float) -> dict[str, Any]:
    """The rows `chosen` [B] of a rollout, with what else an update takes."""

    def taken(field: Any) -> Any:
        if isinstance(field, dict):
            return {name: taken(part) for name, part in field.items()}
        return None if field is None else field.reshape(-1, *field.shape[2:])[chosen]

    fields = {name: getattr(rollout, name) for name in PolicyRows._fields} | {"value": rollout.value[:-1]}
    whole = {name: getattr(rollout, name) for name in ROLLOUT}
    rows = {name: taken(field) for name, field in fields.items()}
    return as_arrays({"rollout": whole, **rows, "acted_log_std": acted_log_std, "clip": clip})


def policy_tensors(spec: PolicySpec, network: nn.Module, precision: str, failed: FailedUpdate) -> Named:
    yield from tensors_of_state(network, failed)
    yield from tensors_of_batch(failed)
    batch = as_tensors(failed.batch)
    rows = PolicyRows._make(batch.get(name) for name in PolicyRows._fields)
    values, parameters = parameters_of(network, failed.state["online"])
    outputs, value = (part.float() for part in forward_of(network, parameters, precision)(rows.obs))
    yield "policy outputs", outputs.detach()
    yield "value", value.detach()
    acted, clip = batch["acted_log_std"], float(batch["clip"])
    terms = policy_objective(spec, (outputs, value), (acted, parameters.get(LOG_STD, acted)), rows, clip)
    yield from tensors_of_terms(terms)
    yield from tensors_of_step(spec, network, failed, values, terms.loss)


def tensors_of_batch(failed: FailedUpdate) -> Named:
    """Observation and reward before what was made of them."""
    whole = failed.batch["rollout"]
    yield from tensors_of_rows(failed.batch, ["obs"])
    yield from tensors_of_rows(whole, ["reward"])
    yield from ((f"{name} when acting", tensor) for name, tensor in tensors_of_rows(whole, ROLLOUT[1:]))
    yield from tensors_of_rows({name: rows for name, rows in failed.batch.items() if name not in ("obs", "rollout")})


def tensors_of_terms(terms: PolicyTerms) -> Named:
    for place, name in enumerate(PolicyStats.NAMES[1:4], start=1):
        yield name.replace("_", " "), torch.as_tensor(terms.measures[place])
