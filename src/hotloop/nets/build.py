"""A Q-network from settings and specs; and its plain layout, for the lane that does without modules."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Protocol

import torch
from torch import Tensor, nn

from hotloop.core.errors import SettingsError
from hotloop.core.given import PREFIX, is_given
from hotloop.core.types import ArraySpec, ObsSpec
from hotloop.core.user_files import is_file
from hotloop.nets.branches import BranchAttention
from hotloop.nets.modules import CNN, MLP, NATURE_SMALLEST, DuelingHead, JoinedTorso, Linear, NoisyLinear, QHead
from hotloop.nets.user_torso import UserTorso
from hotloop.presets.network_settings import MLPLayout as MLPLayout
from hotloop.presets.network_settings import NetworkSettings

if TYPE_CHECKING:
    from hotloop.nets.given_network import SharedNetwork

IMAGE_TORSOS = ("cnn", "nature_cnn")


class QNetwork(nn.Module):
    """obs [B, ...] -> Q [B, A], or logits [B, A, Z]."""

    def __init__(self, torso: nn.Module, head: nn.Module) -> None:
        super().__init__()
        self.torso = torso
        self.head = head

    def forward(self, obs: Tensor | dict[str, Tensor]) -> Tensor:
        return self.head(self.torso(obs))


def build_q_network(
    settings: NetworkSettings, obs_spec: ObsSpec, num_actions: int, seed: int
) -> QNetwork | SharedNetwork:
    """The network, initialized from `seed` alone (torch's global generator is left as it was)."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed % 2**63)
        if is_given(settings.torso):
            from hotloop.nets.given_network import given_q_network

            return given_q_network(settings.torso, obs_spec, num_actions)
        if settings.torso == "topology":
            return _build_topology(settings, obs_spec, num_actions)
        linear: Linear = partial(NoisyLinear, sigma=settings.noisy_sigma) if settings.noisy else nn.Linear
        branches = settings.torso == "branch_attention"
        torso = (BranchAttention if branches else build_torso)(settings, obs_spec, linear)
        head = DuelingHead if settings.dueling else QHead
        return QNetwork(torso, head(torso.num_out, num_actions, settings.atoms, linear))


def _build_topology(settings: NetworkSettings, obs_spec: ObsSpec, num_actions: int) -> QNetwork:
    from hotloop.nets.topology.network import (
        OutputNodes,
        TopologyTorso,  # compiled code that other networks do without
    )

    head = OutputNodes(num_actions, settings.atoms, settings.dueling)
    return QNetwork(TopologyTorso(settings, num_features(obs_spec), head.num_in), head)


class TorsoSettings(Protocol):
    """What any network's settings say of its layers."""

    @property
    def image_layout(self) -> str: ...

    @property
    def torso(self) -> str: ...

    @property
    def hidden(self) -> tuple[int, ...]: ...

    @property
    def activation(self) -> str: ...


def build_torso(settings: TorsoSettings, obs_spec: ObsSpec, linear: Linear) -> MLP | CNN | JoinedTorso | UserTorso:
    if is_file(settings.torso):
        return UserTorso(settings.torso, obs_spec)
    mlp = partial(MLP, hidden=settings.hidden, activation=settings.activation, linear=linear)
    if not takes_cnn(settings, obs_spec):
        return mlp(num_features(obs_spec))
    if isinstance(obs_spec, ArraySpec) and len(obs_spec.shape) == 3:
        return _cnn(settings, obs_spec.shape, settings.hidden, linear)
    images = _images(obs_spec)
    if not images:
        raise SettingsError(
            f"`network.torso` is `{settings.torso}`, but the observation is {obs_spec}",
            "a cnn needs observations of shape height x width x channels; use `--network.torso mlp`",
        )
    convolved = {name: _cnn(settings, spec.shape, (), linear) for name, spec in images.items()}
    return JoinedTorso(convolved, num_features(obs_spec) - num_features(images), mlp)


def _cnn(settings: TorsoSettings, shape: tuple[int, ...], hidden: tuple[int, ...], linear: Linear) -> CNN:
    grey, nature = len(shape) == 2, settings.torso == "nature_cnn"
    first = not grey and channels_come_first(settings.image_layout, shape)
    shape = (*shape, 1) if grey else shape
    if nature and min(shape[1:] if first else shape[:2]) < NATURE_SMALLEST:
        raise SettingsError(
            f"`network.torso` is `nature_cnn`, which needs images of {NATURE_SMALLEST} x {NATURE_SMALLEST} pixels or "
            f"more; these are {' x '.join(map(str, shape[1:] if first else shape[:2]))}",
            "`--network.torso cnn` takes images of any size",
        )
    return CNN(shape, first, hidden, settings.activation, linear, nature)


def takes_cnn(settings: TorsoSettings, obs_spec: ObsSpec) -> bool:
    """Whether convolutions are asked for, or `auto` sees an image: three dimensions, or an image among the parts of a
    dict. A part of more dimensions is refused, since nothing but `mlp`, if it is asked for, takes it."""
    if settings.torso != "auto":
        return settings.torso in IMAGE_TORSOS
    if isinstance(obs_spec, ArraySpec):
        return len(obs_spec.shape) == 3
    for name, part in obs_spec.items():
        if len(part.shape) > 3:
            raise SettingsError(
                f"part `{name}` of the observation has shape {part.shape}: an image that would be flattened",
                "`--network.torso mlp` flattens it with the rest; images have three dimensions",
            )
    return bool(_images(obs_spec))


def _images(obs_spec: ObsSpec) -> dict[str, ArraySpec]:
    parts = obs_spec.items() if isinstance(obs_spec, dict) else ()
    return {name: part for name, part in parts if part.is_image}


def channels_come_first(layout: str, shape: tuple[int, ...]) -> bool:
    """By the two sides that are equal, as of (4, 84, 84), or by the end that is at most half of both others."""
    if layout != "auto":
        return layout == "channels-first"
    first, middle, last = shape
    square_after, square_before = first != middle == last, first == middle != last
    if square_after or first * 2 <= min(middle, last):
        return True
    if square_before or last * 2 <= min(first, middle):
        return False
    raise SettingsError(
        f"an observation of shape {shape} could have its channels first or last",
        "say which: `--network.image-layout channels-first` or `channels-last`; or `--network.torso mlp`",
    )


def observation_text(settings: TorsoSettings, obs_spec: ObsSpec) -> str:
    """How an observation that is no vector is read; empty for vectors, and for networks with parts of their own."""
    if is_given(settings.torso):
        return f"`{settings.torso.removeprefix(PREFIX)}` is the network; other settings of `network` are not used"
    if is_file(settings.torso):
        return f"`{settings.torso}` is the torso; `network.hidden` and `network.activation` are not used"
    if settings.torso not in ("auto", "mlp", *IMAGE_TORSOS) or not isinstance(obs_spec, ArraySpec | dict):
        return ""
    if isinstance(obs_spec, dict):
        images = _images(obs_spec) if takes_cnn(settings, obs_spec) else {}
        words = [f"`{name}` of {_image_text(settings, part.shape)}" for name, part in images.items()]
        rest = num_features(obs_spec) - num_features(images)
        return "; ".join([*words, f"the other parts are {rest} numbers"]) if words else ""
    if len(obs_spec.shape) < 2:
        return ""
    if takes_cnn(settings, obs_spec):
        return f"observations of {_image_text(settings, obs_spec.shape)}"
    shape = " x ".join(map(str, obs_spec.shape))
    return f"observations of {shape} are flattened to {obs_spec.size} numbers"


def _image_text(settings: TorsoSettings, shape: tuple[int, ...]) -> str:
    text = " x ".join(map(str, shape))
    if len(shape) == 2:
        return f"{text} are images in grey"
    first = channels_come_first(settings.image_layout, shape)
    height, width, channels = (*shape[1:], shape[0]) if first else shape
    place = "first" if first else "last"
    return f"{text} are images of {height} x {width} with {channels} channels, which come {place}"


def num_features(obs_spec: ObsSpec) -> int:
    """How many numbers one observation has."""
    parts = obs_spec.values() if isinstance(obs_spec, dict) else [obs_spec]
    return sum(part.size for part in parts)


def mlp_layout(settings: NetworkSettings, obs_spec: ObsSpec, num_actions: int) -> MLPLayout | None:
    """The layout of the network that `build_q_network` makes, or None where it is not a plain multilayer network."""
    if settings.noisy or not is_plain(settings, obs_spec):
        return None
    features = num_features(obs_spec)
    return MLPLayout(features, settings.hidden, settings.activation, settings.dueling, num_actions, settings.atoms)


def is_plain(settings: TorsoSettings, obs_spec: ObsSpec) -> bool:
    """Whether the torso is nothing but fully connected layers on an array of floats."""
    if not isinstance(obs_spec, ArraySpec) or obs_spec.dtype.kind != "f":
        return False
    return settings.torso in ("auto", "mlp") and not takes_cnn(settings, obs_spec)
