"""A trained actor-critic agent, loaded from its run."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from hotloop.algos.action_map import ActionMap
from hotloop.algos.normaliser import ObsNormaliser
from hotloop.algos.ppo_settings import PPOSettings
from hotloop.core.types import ActionSpec, Array, BoxActions, DiscreteActions, HybridActions, Obs, ObsSpec, map_obs
from hotloop.loop.agent_obs import as_batch
from hotloop.nets.actor_critic import ActorCritic


class ActorAgent:
    """`act` on one observation or on a batch of them; `network` is an ordinary `nn.Module`.

    The network takes observations as `normaliser` leaves them, where the run had one.
    """

    def __init__(
        self, network: ActorCritic, settings: PPOSettings, specs: tuple[ObsSpec, ActionSpec], from_zero: bool = False
    ) -> None:
        self.network = network
        self.settings = settings
        self.obs_spec, self.action_spec = specs
        self.actions = ActionMap(self.action_spec, settings.network.squashed)
        limit = settings.normalise.limit
        self.normaliser = ObsNormaliser(self.obs_spec, limit) if settings.normalise.obs else None
        self._from_zero = from_zero

    @property
    def num_weights(self) -> int:
        own = sum(parameter.numel() for parameter in self.network.parameters())
        return own + (self.normaliser.num_weights if self.normaliser else 0)

    def load_weights(self, values: Array) -> None:
        """The parameters, then what observations are normalised by."""
        if self.normaliser is not None:
            self.normaliser.load_weights(values[-self.normaliser.num_weights :])
            values = values[: -self.normaliser.num_weights]
        torch.nn.utils.vector_to_parameters(torch.from_numpy(values.copy()), self.network.parameters())

    def as_policy(self) -> ActorAgent:
        """The same agent with choices numbered from 0, as our envs take them."""
        twin = ActorAgent(self.network, self.settings, (self.obs_spec, self.action_spec), from_zero=True)
        twin.normaliser = self.normaliser
        return twin

    @torch.no_grad()
    def outputs_and_values(self, obs: Obs) -> tuple[Array, Array]:
        """What makes the policy's distribution [N, O], and the values [N], of a batch of observations."""
        seen = obs if self.normaliser is None else self.normaliser.apply(obs)
        outputs, values = self.network(map_obs(torch.from_numpy, seen))
        return outputs.numpy(), values.numpy()

    def act(self, obs: Any, action_mask: Any = None) -> Any:
        """The likeliest action as the env numbers it: one for one observation, an array of them for a batch."""
        batch, single = as_batch(obs, self.obs_spec)
        outputs, _ = self.outputs_and_values(batch)
        mask = None if action_mask is None else np.atleast_2d(np.asarray(action_mask, np.bool_))
        log_std = self.network.log_std.detach().numpy()
        action = self.actions.to_env(self.actions.best(outputs, log_std, mask))
        if not self._from_zero:
            action = _as_numbered(action, self.action_spec)
        if not single:
            return action
        return int(action[0]) if isinstance(self.action_spec, DiscreteActions) else action[0]


def _as_numbered(action: Array, spec: ActionSpec) -> Array:
    """Choices counted as the env counts them."""
    if isinstance(spec, HybridActions):
        count = len(spec.choices.counts)
        return np.concatenate([_as_numbered(action[:, :count], spec.choices), action[:, count:]], axis=1)
    if isinstance(spec, BoxActions) or not spec.first:
        return action
    return action + np.array(spec.first, action.dtype)
