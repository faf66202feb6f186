"""Which actions an algorithm can take."""

from __future__ import annotations

from hotloop.core.errors import EnvError
from hotloop.core.types import ActionSpec, BoxActions, DiscreteActions, GraphActionSpec, HybridActions, NodeActions

OWN_CLASS_HINT = "write a class that wraps the env in `gymnasium.wrappers.{}` and pass it as `path/to/file.py:Class`"


def require_discrete(env_id: str, actions: ActionSpec | GraphActionSpec) -> DiscreteActions:
    """The actions of an env that DQN can train on, or an error that says how to make it one."""
    if isinstance(actions, DiscreteActions):
        return actions
    if isinstance(actions, NodeActions):
        raise EnvError(f"`{env_id}` wants a choice for each node of a graph; DQN needs Discrete actions", "use PPO")
    if isinstance(actions, BoxActions):
        kind = f"Box of shape {actions.shape}, which is continuous"
    elif isinstance(actions, HybridActions):
        kind = "of choices and numbers, which is partly continuous"
    else:
        kind = f"MultiDiscrete({list(actions.counts)}), which is not one choice among a few"
    raise EnvError(
        f"`{env_id}` has action space {kind}; DQN needs Discrete actions",
        OWN_CLASS_HINT.format("TransformAction") + ", mapping each of a few numbers to an action; or train with PPO",
    )
