"""Networks; `TopologyNetwork` is for use on its own too.

Files:
    actor_critic.py  A policy and a value of each observation, from one torso or two
    branches.py      A branch for each named part of an observation, and attention over what the branches say
    build.py         A Q-network from settings and specs; and its plain layout, for the lane that does without
                     modules
    given_network.py  A network of the user's own as ours are used: its module shared, its parameters in the order that
                     lanes read
    graphs/          Networks over graphs of any size
    modules.py       The parts of a Q-network: torsos, heads and noisy layers
    reading.py       A user's module read as a plain multilayer network, whichever way it is written
    sac_network.py   The actor, the critics and the temperature of soft actor-critic; TD3 and DDPG have the first two
    topology/        Networks wired like any directed acyclic graph
    tracing.py       A module's forward followed from the observation on, operation by operation
    user_torso.py    A torso of the user's own: `--network.torso path/to/file.py:Class`
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hotloop.nets.topology.network import TopologyNetwork as TopologyNetwork

__all__ = ["TopologyNetwork"]


def __getattr__(name: str) -> Any:
    """Compiled code is loaded only when it is asked for."""
    if name not in __all__:
        raise AttributeError(f"module 'hotloop.nets' has no attribute {name!r}")
    from hotloop.nets.topology.network import TopologyNetwork

    return TopologyNetwork
