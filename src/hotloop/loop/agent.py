"""A trained agent, loaded from its run: plain data in, an ordinary network out, no code of the run's executed."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import torch

from hotloop.algos.dqn_settings import DQNSettings
from hotloop.core.errors import CheckpointError, EnvError, RunError
from hotloop.core.types import Array, ArraySpec, Obs, ObsSpec, map_obs
from hotloop.loop.journal import spec_from_data
from hotloop.maths import categorical, td
from hotloop.nets.build import QNetwork, build_q_network
from hotloop.runs import checkpoint
from hotloop.runs.directory import Run


class Agent:
    """`act` on one observation or on a batch of them; `network` is an ordinary `nn.Module`."""

    def __init__(self, network: QNetwork, settings: DQNSettings, obs_spec: ObsSpec, first_action: int = 0) -> None:
        self.network = network
        self.settings = settings
        self.obs_spec = obs_spec
        self.first_action = first_action

    def as_policy(self) -> Agent:
        """The same agent with actions numbered from 0, as our envs take them."""
        return Agent(self.network, self.settings, self.obs_spec)

    @torch.no_grad()
    def q_values(self, obs: Obs) -> Array:
        """Q [N, A] of a batch of observations."""
        q = self.network(map_obs(torch.from_numpy, obs))
        network = self.settings.network
        if network.atoms > 1:
            q = categorical.expected_q(q, categorical.make_support(network.v_min, network.v_max, network.atoms))
        return q.numpy()

    def act(self, obs: Any, action_mask: Any = None) -> Any:
        """The best action as the env numbers it: an int for one observation, an array [N] for a batch."""
        batch, single = self._as_batch(obs)
        q = torch.from_numpy(self.q_values(batch))
        mask = None if action_mask is None else torch.as_tensor(np.atleast_2d(action_mask), dtype=torch.bool)
        action = td.mask_actions(q, mask).argmax(-1).numpy() + self.first_action
        return int(action[0]) if single else action

    def _as_batch(self, obs: Any) -> tuple[Obs, bool]:
        if isinstance(self.obs_spec, dict):
            if not isinstance(obs, dict) or obs.keys() != self.obs_spec.keys():
                raise EnvError(f"the observation must be a dict of {', '.join(self.obs_spec)}")
            parts = {name: _checked(obs[name], spec) for name, spec in self.obs_spec.items()}
            return {name: batch for name, (batch, _) in parts.items()}, all(single for _, single in parts.values())
        return _checked(obs, self.obs_spec)


def _checked(obs: Any, spec: ArraySpec) -> tuple[Array, bool]:
    array = np.asarray(obs, dtype=spec.dtype)
    if array.shape == spec.shape:
        return array[None], True
    if array.shape[1:] == spec.shape:
        return array, False
    raise EnvError(
        f"the observation has shape {array.shape}, the agent was trained on {spec.shape}",
        "give one observation, or a batch with one more leading axis",
    )


def load_agent(run: Run, settings: DQNSettings) -> Agent:
    """The best weights by periodic evaluation up to the newest good checkpoint."""
    found = checkpoint.newest(run.checkpoints, warn=lambda text: print(text, file=sys.stderr))
    if found is None:
        raise RunError(f"{run.path} has no checkpoint yet", "`hotloop resume` continues the run")
    _, state, meta = found
    obs_spec = spec_from_data(meta["obs_spec"])
    network = build_q_network(settings.network, obs_spec, meta["num_actions"], seed=0)
    best = state["best"]["parameters"]
    values = best if len(best) else state["learner"]["online"]
    expected = sum(parameter.numel() for parameter in network.parameters())
    if len(values) != expected:
        raise CheckpointError(f"the checkpoint has {len(values)} parameters, the network of its settings {expected}")
    torch.nn.utils.vector_to_parameters(torch.from_numpy(values.copy()), network.parameters())
    return Agent(network, settings, obs_spec, meta.get("first_action", 0))
