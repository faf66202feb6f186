"""The actor, the critics and the temperature of soft actor-critic; TD3 and DDPG have the first two.

C critics are one module whose weights are [C, out, in]: their first layer is a single product, the others one batched
product each, instead of C small ones.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from hotloop.core.errors import SettingsError
from hotloop.core.types import ArraySpec, ObsSpec
from hotloop.nets.build import num_features
from hotloop.nets.modules import ACTIVATIONS, MLP, as_vector
from hotloop.presets.sac_network_settings import SACLayout, SACNetworkSettings

ACTOR, CRITICS, TEMPERATURE = "actor", "critics", "temperature"


class Actor(nn.Module):
    """obs [B, ...] -> [B, O]: means, and behind them log standard deviations where actions are drawn."""

    def __init__(self, num_in: int, hidden: tuple[int, ...], activation: str, num_out: int) -> None:
        super().__init__()
        self.torso = MLP(num_in, hidden, activation, nn.Linear)
        self.head = nn.Linear(self.torso.num_out, num_out)

    def forward(self, obs: Tensor | dict[str, Tensor]) -> Tensor:
        return self.head(self.torso(obs))


class CriticLayer(nn.Module):
    """C linear layers at once, initialized as `nn.Linear` is."""

    def __init__(self, critics: int, num_in: int, num_out: int) -> None:
        super().__init__()
        bound = 1.0 / math.sqrt(num_in) if num_in else 0.0
        self.weight = nn.Parameter(torch.empty(critics, num_out, num_in).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(critics, num_out).uniform_(-bound, bound))

    def forward(self, x: Tensor) -> Tensor:
        """Of what all critics see [B, in], or of each critic's own [C, B, in]; [C, B, out]."""
        if x.dim() == 2:
            together = functional.linear(x, self.weight.flatten(0, 1), self.bias.flatten())
            return together.unflatten(1, self.bias.shape).transpose(0, 1)
        return torch.baddbmm(self.bias.unsqueeze(1), x, self.weight.transpose(1, 2))


class Critics(nn.Module):
    """(obs [B, ...], action [B, A]) -> Q [C, B]."""

    def __init__(self, critics: int, num_in: int, hidden: tuple[int, ...], activation: str) -> None:
        super().__init__()
        widths = (num_in, *hidden, 1)
        pairs = zip(widths, widths[1:], strict=False)
        self.layers = nn.ModuleList(CriticLayer(critics, wide, narrow) for wide, narrow in pairs)
        self.activation = ACTIVATIONS[activation]()

    def forward(self, seen: tuple[Tensor | dict[str, Tensor], Tensor]) -> Tensor:
        obs, action = seen
        x = torch.cat((as_vector(obs), action), dim=-1)
        for layer in self.layers[:-1]:
            x = self.activation(layer(x))
        return self.layers[-1](x).squeeze(-1)


class Temperature(nn.Module):
    """The logarithm of what entropy is worth."""

    def __init__(self, start: float) -> None:
        super().__init__()
        self.log_alpha = nn.Parameter(torch.full((1,), math.log(start)))


class SACNetwork(nn.Module):
    """obs [B, ...] -> what the actor says [B, O]. Actor, critics and temperature lie in this order."""

    def __init__(self, layout: SACLayout, temperature: float | None) -> None:
        super().__init__()
        self.actor = Actor(layout.obs_size, layout.hidden, layout.activation, layout.num_outputs)
        seen = layout.obs_size + layout.actions
        self.critics = Critics(layout.critics, seen, layout.hidden, layout.activation)
        if temperature is not None:
            self.temperature = Temperature(temperature)

    def forward(self, obs: Tensor | dict[str, Tensor]) -> Tensor:
        return self.actor(obs)


def build_sac_network(
    settings: SACNetworkSettings,
    obs_spec: ObsSpec,
    actions: int,
    stochastic: bool,
    temperature: float | None,
    seed: int,
) -> SACNetwork:
    """The networks, initialized from `seed` alone (torch's global generator is left as it was); `temperature` is what
    a learned one begins with."""
    refuse_images(settings, obs_spec)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed % 2**63)
        return SACNetwork(_layout(settings, obs_spec, actions, stochastic), temperature)


def sac_layout(settings: SACNetworkSettings, obs_spec: ObsSpec, actions: int, stochastic: bool) -> SACLayout | None:
    """None where observations are not an array of floats."""
    plain = isinstance(obs_spec, ArraySpec) and obs_spec.dtype.kind == "f"
    return _layout(settings, obs_spec, actions, stochastic) if plain else None


def _layout(settings: SACNetworkSettings, obs_spec: ObsSpec, actions: int, stochastic: bool) -> SACLayout:
    features = num_features(obs_spec)
    return SACLayout(features, settings.hidden, settings.activation, actions, settings.critics, stochastic)


def refuse_images(settings: SACNetworkSettings, obs_spec: ObsSpec) -> None:
    parts = obs_spec.values() if isinstance(obs_spec, dict) else [obs_spec]
    images = [part.shape for part in parts if part.is_image or len(part.shape) > 2]
    if images and settings.torso == "auto":
        raise SettingsError(
            f"an observation of shape {images[0]} is an image, and SAC's networks here have no convolutions",
            "`--network.torso mlp` flattens it; PPO has convolutions",
        )
