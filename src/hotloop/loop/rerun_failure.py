"""An update that failed, repeated in plain PyTorch from what its run kept; no code of the run's is executed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor, nn

from hotloop.core.errors import CheckpointError, RunError
from hotloop.core.graphs import GraphSpec
from hotloop.core.settings import build
from hotloop.core.vocabulary import upgraded
from hotloop.lanes.nonfinite import FailedUpdate, Named, tensors_of_batch, tensors_of_state
from hotloop.lanes.objective import Objective
from hotloop.lanes.q_objective import QObjective
from hotloop.lanes.sac_objective import SACObjective
from hotloop.learners.action_map import ActionMap
from hotloop.learners.dqn import q_spec
from hotloop.learners.graph_policies import GraphActionMap
from hotloop.learners.networks import build_network
from hotloop.learners.ppo import policy_objective
from hotloop.learners.sac import sac_spec
from hotloop.loop.collector import ANSWERED
from hotloop.loop.spec_data import actions_from_data, spec_from_data
from hotloop.presets.ppo_settings import PPOSettings
from hotloop.presets.registry import class_of
from hotloop.presets.sac_settings import SACSettings
from hotloop.runs import checkpoint
from hotloop.runs.directory import FAILURE, Run
from hotloop.runs.files import require_real_folder


def repeat_failure(run: Run | str | Path) -> dict[str, Any]:
    """Repeat the update at which a run's numbers became NaN or infinite, from what the run kept of it.

    Every tensor of that update in the order in which it is computed, up to the first that is not finite: the object
    that `hotloop debug-nan --json` prints. Nothing of the run is changed or executed.
    """
    run = run if isinstance(run, Run) else Run.open(run)
    folder = run.path / FAILURE
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
    tree = upgraded(meta["settings"], FAILURE)
    settings = build(class_of(tree), tree, source=FAILURE)
    objective, network = _objective_and_network(settings, meta)
    if failed.update == 0:
        return _state_and_answers(network, failed)
    return objective.nan_search_order(network, settings.learner.precision, failed)


def _objective_and_network(settings: Any, meta: dict[str, Any]) -> tuple[Objective, nn.Module]:
    obs_spec, action_spec = spec_from_data(meta["obs_spec"]), actions_from_data(meta)
    network = build_network(settings, obs_spec, action_spec)
    if isinstance(settings, SACSettings):
        return SACObjective(sac_spec(settings, len(action_spec.low))), network
    if not isinstance(settings, PPOSettings):
        return QObjective(q_spec(settings)), network
    if isinstance(obs_spec, GraphSpec):
        return policy_objective(settings, GraphActionMap(action_spec)), network
    return policy_objective(settings, ActionMap(action_spec, settings.network.squashed)), network


def _state_and_answers(network: nn.Module, failed: FailedUpdate) -> Named:
    """Where no update failed: what an env answered, or nothing but the weights."""
    yield from tensors_of_state(network, failed)
    yield from tensors_of_batch(failed.batch, [name for name in ANSWERED if name in failed.batch])
