"""What goes with exported weights: what they see, what their outputs mean, where they come from. No paths."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hotloop.core.settings import as_tree
from hotloop.core.types import BoxActions, DiscreteActions, HybridActions, MultiDiscreteActions
from hotloop.envs.registry import is_file
from hotloop.loop.actor_agent import ActorAgent
from hotloop.loop.agent import Agent
from hotloop.loop.graph_agent import GraphAgent
from hotloop.loop.spec_data import actions_as_data, spec_as_data
from hotloop.runs.schema import hotloop_version

AnyAgent = Agent | ActorAgent | GraphAgent


def describe(agent: AnyAgent) -> dict[str, Any]:
    return {
        "hotloop": hotloop_version(),
        "algorithm": agent.settings.algorithm,
        "env": env_name(agent.settings.env.id),
        "observation": spec_as_data(agent.obs_spec),
        "actions": _actions(agent),
        "action_meaning": action_meaning(agent),
        "normaliser": getattr(agent, "normaliser", None) is not None,
    }


def settings_of(agent: AnyAgent) -> dict[str, Any]:
    """All settings but where the run lay."""
    tree = as_tree(agent.settings)
    tree["env"]["id"] = env_name(tree["env"]["id"])
    return {name: value for name, value in tree.items() if name not in ("run_dir", "trust")}


def env_name(env_id: str) -> str:
    """Of an env in a file, the file without its folders."""
    if not is_file(env_id):
        return env_id
    path, _, name = env_id.rpartition(":")
    return f"{Path(path).name}:{name}"


def action_meaning(agent: AnyAgent) -> str:
    if isinstance(agent, Agent):
        return _choice(agent.num_actions, agent.first_action)
    spec: Any = agent.action_spec
    if isinstance(spec, DiscreteActions):
        return _choice(spec.count, spec.first)
    if isinstance(spec, MultiDiscreteActions):
        return f"int64 row of {len(spec.counts)} choices, as the env numbers them"
    if isinstance(spec, BoxActions):
        return f"float32 of shape {list(spec.shape)}, in the env's units and within its bounds"
    if isinstance(spec, HybridActions):
        return (
            f"float32 row: {len(spec.choices.counts)} choices, then {len(spec.numbers.low)} numbers in the env's units"
        )
    return "a choice for each node and numbers for the graph"


def _choice(count: int, first: int) -> str:
    return f"int64 from {first} to {first + count - 1}, as the env numbers its {count} actions"


def _actions(agent: AnyAgent) -> dict[str, Any]:
    if isinstance(agent, Agent):
        return actions_as_data(DiscreteActions(agent.num_actions, agent.first_action))
    return actions_as_data(agent.action_spec)
