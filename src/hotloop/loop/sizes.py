"""How large a network and its run would be, known before anything of it is allocated.

Settings may come from a stranger, or with a digit too many. A network is counted as PyTorch builds it on its `meta`
device, where tensors have shapes and no memory: exact for every kind of network, and as quick for a large one.
"""

from __future__ import annotations

from typing import Any

import torch

from hotloop.core.errors import CheckpointError, SettingsError
from hotloop.core.given import is_given
from hotloop.core.graphs import GraphSpec
from hotloop.learners.derived import resolve
from hotloop.learners.networks import build_network
from hotloop.learners.normalizer import is_float
from hotloop.nets.build import num_features
from hotloop.presets.dqn_settings import DQNSettings
from hotloop.presets.env_names import refuse_untrusted
from hotloop.presets.network_settings import NetworkSettings
from hotloop.presets.ppo_settings import PPOSettings
from hotloop.presets.registry import RunSettings
from hotloop.replay.memory import USABLE_SHARE, available_bytes

FLOAT_BYTES = 4
COPIES = {"dqn": 7, "ppo": 6, "sac": 7}
"""What a run holds for every parameter: itself, gradient, two moments of Adam, the best so far, the module it was
initialized in; DQN and SAC also have targets."""
EDGE_BYTES = 400
"""Of a DAG-wired network while its graph is made, by measurement: lists and dicts of Python numbers."""
TOO_MANY = 2**62


def num_weights(settings: RunSettings, obs_spec: Any, action_spec: Any) -> int:
    """Parameters of the network that these settings build, and what observations are normalized by.

    Whatever builds a run's network comes by here first: a torso of the user's own is not run without `trust`.
    """
    if not settings.trust:
        refuse_untrusted(settings.network.torso)
    if isinstance(settings, DQNSettings) and settings.network.torso == "topology":
        return _topology_weights(settings.network, num_features(obs_spec), action_spec.count)
    try:
        # a module of the user's own is made as it will be, and says itself what is wrong with it
        with torch.device("cpu" if ":" in settings.network.torso else "meta"):
            network = build_network(settings, obs_spec, action_spec)
    except (RuntimeError, OverflowError, TypeError):  # more numbers than can be counted
        return TOO_MANY
    own = sum(parameter.numel() for parameter in network.parameters())
    return own + (_normalizer_weights(obs_spec) if settings.normalize.obs else 0)


def _normalizer_weights(obs_spec: Any) -> int:
    parts = obs_spec.values() if isinstance(obs_spec, dict) else [] if isinstance(obs_spec, GraphSpec) else [obs_spec]
    return sum(2 * part.size for part in parts if is_float(part))


def _topology_weights(network: NetworkSettings, num_in: int, num_actions: int) -> int:
    """At most: a weight for each edge and a bias for each node; rewiring may give a few edges up."""
    num_out = network.atoms * (num_actions + network.dueling)
    topology = network.topology
    if topology.generator == "small_world":
        edges = topology.hidden * (topology.ring_degree // 2) + topology.ring_degree * (num_in + num_out)
        return edges + num_in + topology.hidden + num_out
    widths = (num_in, *network.hidden, num_out)
    return sum(one * other for one, other in zip(widths, widths[1:], strict=False)) + sum(widths)


def require_weights(found: int, settings: RunSettings, obs_spec: Any, action_spec: Any) -> None:
    """Refuse a checkpoint of `found` weights whose settings describe a network of another size."""
    expected = num_weights(resolve(settings, obs_spec), obs_spec, action_spec)
    if isinstance(settings, DQNSettings) and settings.network.torso == "topology":
        fits = found <= expected <= 2 * found + 1_000  # its exact number is known once the graph is made
    else:
        fits = found == expected
    if not fits:
        raise CheckpointError(
            f"the checkpoint has {found:,} parameters, the network of its settings {_told(expected)}",
            "give the network that it was trained with"
            if is_given(settings.network.torso)
            else "its settings.toml was changed, or belongs to another run",
        )


def require_memory(settings: RunSettings, obs_spec: Any, action_spec: Any) -> None:
    """Refuse what cannot fit into the memory that is free, by a bound from below: network, optimizer and batches."""
    weights, rows = num_weights(settings, obs_spec, action_spec), settings.batch_size
    each = FLOAT_BYTES * COPIES[settings.algorithm]
    if not isinstance(settings, PPOSettings):
        rows *= settings.optimizer.accumulate
    if isinstance(settings, DQNSettings):
        each += EDGE_BYTES if settings.network.torso == "topology" else 0
    features = 0 if isinstance(obs_spec, GraphSpec) else num_features(obs_spec)
    network, batches = weights * each, rows * FLOAT_BYTES * (features + sum(settings.network.hidden))
    if isinstance(settings, PPOSettings):
        batches += settings.rollout_rows * (FLOAT_BYTES * 8 + 8 * settings.n_epochs)
    limit = int(USABLE_SHARE * available_bytes())
    if network + batches <= limit:
        return
    what, hint = ("network", "smaller layers: `network.hidden`, `network.graph`")
    if batches > network:
        what, hint = ("batches", "a smaller `batch_size`, or fewer `rollout_steps` or `env.num_envs`")
    raise SettingsError(
        f"training needs {_gib(network + batches)} of memory at least; {_gib(limit)} may be used (80 % of what is "
        f"free): the network has {_told(weights)} parameters, and most of it is for the {what}",
        hint,
    )


def _told(count: int) -> str:
    return f"{count:,}" if count < TOO_MANY else "more than can be counted"


def _gib(count: int) -> str:
    return f"{count / 2**30:,.2f} GiB"
