"""A policy and a value of each observation, from one torso or two.

Parameters lie in the order that the native lane reads: one torso, value head, policy head; or policy torso and head,
then value torso and head. The standard deviations of continuous actions come last.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor, nn

from hotloop.core.given import is_given
from hotloop.core.types import ObsSpec
from hotloop.maths.distributions import ActionLayout
from hotloop.nets.build import build_torso, is_plain, num_features
from hotloop.nets.user_torso import UserTorso
from hotloop.presets.network_settings import ActorCriticSettings

if TYPE_CHECKING:
    from hotloop.nets.given_network import SharedActorCritic

LOG_STD = "spread.log_std"
"""The standard deviations' name among the parameters; absent where no action is a number."""
POLICY_GAIN = 0.01
HIDDEN_GAIN = math.sqrt(2.0)


class LogStd(nn.Module):
    """A module of its own only to come last: a module's own parameters come before its children's."""

    log_std: Tensor

    def __init__(self, continuous: int, log_std: float) -> None:
        super().__init__()
        start = torch.full((continuous,), log_std)
        if continuous:
            self.log_std = nn.Parameter(start)
        else:
            self.register_buffer("log_std", start, persistent=False)


class ActorCritic(nn.Module):
    """obs [B, ...] -> outputs [B, O] that make the policy's distribution, and values [B]."""

    def __init__(self, settings: ActorCriticSettings, obs_spec: ObsSpec, layout: ActionLayout) -> None:
        super().__init__()
        torso = build_torso(settings, obs_spec, nn.Linear)
        policy_head, value_head = nn.Linear(torso.num_out, layout.num_outputs), nn.Linear(torso.num_out, 1)
        if settings.shared:
            self.torso, self.value_head, self.policy_head = torso, value_head, policy_head
        else:
            self.policy_torso, self.policy_head = torso, policy_head
            self.value_torso, self.value_head = build_torso(settings, obs_spec, nn.Linear), value_head
        self._shared = settings.shared
        self._initialize()
        self.spread = LogStd(layout.continuous, settings.log_std)

    @property
    def log_std(self) -> Tensor:
        """Of the continuous part [C], the same in every state."""
        return self.spread.log_std

    def forward(self, obs: Tensor | dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        if self._shared:
            features = self.torso(obs)
            return self.policy_head(features), self.value_head(features).squeeze(-1)
        return self.policy_head(self.policy_torso(obs)), self.value_head(self.value_torso(obs)).squeeze(-1)

    def _initialize(self) -> None:
        """A torso of the user's own stays as its constructor left it."""
        theirs = {part for torso in self.modules() if isinstance(torso, UserTorso) for part in torso.modules()}
        for module in self.modules():
            if isinstance(module, nn.Linear | nn.Conv2d) and module not in theirs:
                nn.init.orthogonal_(module.weight, HIDDEN_GAIN)
                assert module.bias is not None
                nn.init.zeros_(module.bias)
        nn.init.orthogonal_(self.policy_head.weight, POLICY_GAIN)
        nn.init.orthogonal_(self.value_head.weight, 1.0)


def build_actor_critic(
    settings: ActorCriticSettings, obs_spec: ObsSpec, layout: ActionLayout, seed: int
) -> ActorCritic | SharedActorCritic:
    """The network, initialized from `seed` alone (torch's global generator is left as it was)."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed % 2**63)
        if is_given(settings.torso):
            from hotloop.nets.given_network import given_actor_critic

            return given_actor_critic(settings.torso, obs_spec, layout, settings.log_std)
        return ActorCritic(settings, obs_spec, layout)


@dataclass(frozen=True)
class ActorCriticLayout:
    """A multilayer actor-critic as numbers, for the lane that does without modules."""

    title: ClassVar[str] = "a multilayer network"

    obs_size: int
    hidden: tuple[int, ...]
    activation: str
    shared: bool


def actor_critic_layout(settings: ActorCriticSettings, obs_spec: ObsSpec) -> ActorCriticLayout | None:
    """None where it is not a plain multilayer network on floats."""
    if not is_plain(settings, obs_spec):
        return None
    return ActorCriticLayout(num_features(obs_spec), settings.hidden, settings.activation, settings.shared)
