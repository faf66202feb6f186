"""An update that failed, repeated in plain PyTorch from what its run kept; no code of the run's is executed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from torch import Tensor, nn

from hotloop.algos.action_map import layout_of
from hotloop.algos.dqn import update_spec
from hotloop.algos.dqn_settings import DQNSettings
from hotloop.algos.graph_policies import GraphActionMap
from hotloop.algos.graph_ppo import build_graph_network
from hotloop.algos.ppo import policy_spec
from hotloop.algos.ppo_settings import PPOSettings
from hotloop.algos.registry import class_of
from hotloop.core.errors import CheckpointError, RunError
from hotloop.core.graphs import GraphSpec
from hotloop.core.settings import build
from hotloop.lanes.graph_numbers import graph_tensors
from hotloop.lanes.numbers import FailedUpdate, Named, tensors_of_rows, tensors_of_state
from hotloop.lanes.policy_numbers import policy_tensors
from hotloop.lanes.q_numbers import q_tensors
from hotloop.loop.failure import FOLDER
from hotloop.loop.finite import ANSWERED
from hotloop.loop.spec_data import actions_from_data, spec_from_data
from hotloop.maths.actions import ActionLayout
from hotloop.nets.actor_critic import build_actor_critic
from hotloop.nets.build import build_q_network
from hotloop.runs import checkpoint
from hotloop.runs.directory import Run
from hotloop.runs.files import require_real_folder


def repeat_failure(run: Run) -> dict[str, Any]:
    """What each tensor of the failed update is, up to the first that is not finite: the object of `hotloop replay`."""
    folder = run.path / FOLDER
    require_real_folder(folder)
    if not folder.is_dir():
        what = "is finished and has no failed update" if run.finished else "has no failed update"
        raise RunError(f"{run.path} {what}", "only a run whose numbers became NaN or infinite keeps one")
    state, meta = checkpoint.load(folder)
    try:
        return _repeated(run, state, meta)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, RuntimeError) as error:
        raise CheckpointError(f"{folder} does not hold a failed update: {type(error).__name__}: {error}") from error


def _repeated(run: Run, state: checkpoint.State, meta: dict[str, Any]) -> dict[str, Any]:
    failed = FailedUpdate(meta["update"], meta["lr"], state["lane"], state["batch"])
    tensors = list(_up_to_the_first(_tensors(failed, meta)))
    last = tensors[-1]
    return {
        "run": str(run.path),
        "message": meta["message"],
        "update": failed.update,
        "counters": meta["counters"],
        "lane": meta["lane"],
        "named": meta["first"],
        "first": last["tensor"] if last["not_finite"] else "",
        "batch_kept": bool(failed.batch),
        "tensors": tensors,
    }


def _up_to_the_first(tensors: Named) -> Iterator[dict[str, Any]]:
    for name, tensor in tensors:
        described = _described(name, tensor)
        yield described
        if described["not_finite"]:
            return


def _described(name: str, tensor: Tensor) -> dict[str, Any]:
    values = tensor.detach().double().numpy()
    finite = np.isfinite(values)
    largest = float(np.abs(values[finite]).max()) if finite.any() else None
    return {"tensor": name, "numbers": values.size, "not_finite": int((~finite).sum()), "largest": largest}


def _tensors(failed: FailedUpdate, meta: dict[str, Any]) -> Named:
    tree = meta["settings"]
    settings = build(class_of(tree), tree, source=FOLDER)
    if isinstance(settings, PPOSettings):
        return _policy_tensors(failed, settings, meta)
    network = build_q_network(settings.network, spec_from_data(meta["obs_spec"]), meta["num_actions"], seed=0)
    if failed.update == 0:
        return _state_and_rows(network, failed)
    return _q_tensors(failed, settings, network)


def _q_tensors(failed: FailedUpdate, settings: DQNSettings, network: nn.Module) -> Named:
    return q_tensors(update_spec(settings), network, settings.learner.precision, failed)


def _policy_tensors(failed: FailedUpdate, settings: PPOSettings, meta: dict[str, Any]) -> Named:
    obs_spec, action_spec = spec_from_data(meta["obs_spec"]), actions_from_data(meta)
    precision = settings.learner.precision
    if isinstance(obs_spec, GraphSpec):
        actions = GraphActionMap(action_spec)
        graph_network = build_graph_network(settings, obs_spec, actions, seed=0)
        spec = policy_spec(settings, ActionLayout(continuous=actions.num_numbers, squashed=True))
        weights = np.array(settings.reward_parts.value_weights, np.float32)
        named = graph_tensors(spec, graph_network, precision, weights, failed)
        return named if failed.update else _state_and_rows(graph_network, failed)
    layout = layout_of(action_spec, settings.network.squashed)
    network = build_actor_critic(settings.network, obs_spec, layout, 0)
    named = policy_tensors(policy_spec(settings, layout), network, precision, failed)
    return named if failed.update else _state_and_rows(network, failed)


def _state_and_rows(network: nn.Module, failed: FailedUpdate) -> Named:
    """Where no update failed: what an env answered, or nothing but the weights."""
    yield from tensors_of_state(network, failed)
    yield from tensors_of_rows(failed.batch, [name for name in ANSWERED if name in failed.batch])
