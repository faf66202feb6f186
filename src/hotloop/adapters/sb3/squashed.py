"""The policy of an accelerated SAC, TD3 or DDPG: its networks as machine code takes them, acting by the same draws."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from stable_baselines3 import SAC, TD3
from stable_baselines3.common.distributions import SquashedDiagGaussianDistribution
from stable_baselines3.common.policies import BasePolicy, ContinuousCritic
from stable_baselines3.common.torch_layers import FlattenExtractor
from stable_baselines3.sac.policies import LOG_STD_MAX, LOG_STD_MIN, SACPolicy
from stable_baselines3.sac.policies import Actor as SACActor
from stable_baselines3.td3.policies import Actor as TD3Actor
from stable_baselines3.td3.policies import TD3Policy
from torch import Tensor, nn

from hotloop.adapters.sb3.in_place import InPlace, overridden
from hotloop.adapters.sb3.memory import ACTED_TOGETHER, as_float_rows
from hotloop.lanes.native.stack_layout import StackLayout
from hotloop.lanes.objective import ONLINE
from hotloop.nets.reading import read_actor_critic, read_q_network
from hotloop.nets.sac_network import CRITICS

HEADS = ("mu", "log_std")


@dataclass(frozen=True)
class Stacks:
    """A model's networks as numbers, and its parameters in their order."""

    actor: StackLayout
    critics: StackLayout
    actions: int
    orders: dict[str, tuple[str, ...]]


class LogTemperature(nn.Module):
    """`log_ent_coef`, which is no `nn.Parameter`, as a network of one parameter."""

    def __init__(self, log_ent_coef: Tensor) -> None:
        super().__init__()
        self._value, self.network = [log_ent_coef], nn.Identity()

    def parameters(self, recurse: bool = True) -> Iterator[Any]:
        yield from self._value


class SACHeads(nn.Module):
    """What SAC's actor computes before it bounds and draws: obs -> (means, log standard deviations)."""

    def __init__(self, actor: SACActor) -> None:
        super().__init__()
        self.actor = actor

    def forward(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        latent = self.actor.latent_pi(self.actor.extract_features(obs, self.actor.features_extractor))
        return self.actor.mu(latent), self.actor.log_std(latent)


class TD3Head(nn.Module):
    """What TD3's actor computes before its tanh."""

    def __init__(self, actor: TD3Actor) -> None:
        super().__init__()
        self.actor = actor

    def forward(self, obs: Tensor) -> Tensor:
        x = self.actor.extract_features(obs, self.actor.features_extractor)
        for layer in list(self.actor.mu)[:-1]:
            x = layer(x)
        return x


def read_stacks(model: SAC | TD3) -> tuple[Stacks | None, str]:
    """The networks as the native lane takes them, or why this model is left alone."""
    if problem := _policy_problem(model):
        return None, problem
    size = int(np.prod(model.observation_space.shape))
    actions = int(np.prod(model.action_space.shape))
    actor, order, reason = _read_actor(model, actions)
    if actor is None:
        return None, reason
    layouts, names = set(), []
    for place, network in enumerate(model.critic.q_networks):
        reading = read_q_network(network, (size + actions,))
        if reading.layout is None:
            return None, reading.reason
        layouts.add((reading.layout.hidden, reading.layout.activation))
        names.append([f"qf{place}.{name}" for name in reading.order])
    if len(layouts) > 1:
        return None, "its critics have different layers"
    ((hidden, activation),) = layouts
    critics = StackLayout(
        num_in=size + actions, hidden=hidden, num_out=1, activation=activation, copies=len(names)
    )  # fmt: skip
    together = tuple(name for layer in zip(*names, strict=True) for name in layer)
    return Stacks(actor, critics, actions, {ONLINE: order, CRITICS: together}), ""


def _read_actor(model: SAC | TD3, actions: int) -> tuple[StackLayout | None, tuple[str, ...], str]:
    """Its layout, and its parameters' names: the weights of both heads lie side by side, then their biases."""
    stochastic = isinstance(model, SAC)
    shape = model.observation_space.shape
    heads: nn.Module = SACHeads(model.actor) if stochastic else TD3Head(model.actor)
    reading = read_actor_critic(heads, shape) if stochastic else read_q_network(heads, shape)
    if reading.layout is None:
        return None, (), reading.reason
    order = tuple(name.removeprefix("actor.") for name in reading.order)
    if stochastic:
        last = tuple(f"{head}.{kind}" for kind in ("weight", "bias") for head in HEADS)
        order = (*(name for name in order if name not in last), *last)
    outputs = 2 * actions if stochastic else actions
    layout = StackLayout(
        num_in=reading.layout.obs_size, hidden=reading.layout.hidden, num_out=outputs,
        activation=reading.layout.activation,
    )  # fmt: skip
    return layout, order, ""


def _policy_problem(model: SAC | TD3) -> str:
    """Which part of the policy is not the original's."""
    policy, stochastic = model.policy, isinstance(model, SAC)
    if not isinstance(policy, SACPolicy if stochastic else TD3Policy):
        return f"its policy is a {type(policy).__name__}"
    if model.use_sde:
        return "it explores by gSDE, whose noise depends on the state"
    if name := overridden(QuickSquashedPolicy, policy, SACPolicy if stochastic else TD3Policy, "forward", "_predict"):
        return f"its policy {type(policy).__name__} has a `{name}` of its own"
    names = ("forward", "_predict", *(("get_action_dist_params", "action_log_prob") if stochastic else ()))
    original = SACActor if stochastic else TD3Actor
    for part, kind, methods in ((model.actor, original, names), (model.critic, ContinuousCritic, ("forward",))):
        for name in methods:
            if getattr(type(part), name) is not getattr(kind, name):
                return f"its {type(part).__name__} has a `{name}` of its own"
        if type(part.features_extractor) is not FlattenExtractor:
            return f"its features extractor is a {type(part.features_extractor).__name__}"
    if stochastic and type(model.actor.action_dist) is not SquashedDiagGaussianDistribution:
        return f"its actions are drawn from a {type(model.actor.action_dist).__name__}"
    if not stochastic and not isinstance(model.actor.mu[-1], nn.Tanh):
        return "its actor does not end with a tanh"
    return ""


class QuickSquashedPolicy(BasePolicy, InPlace):
    """Methods of the policy."""

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = False
    ) -> Any:
        engine = self._hotloop
        shape = observation.shape if observation.__class__ is np.ndarray else None
        single = shape == engine.obs_shape
        known = single or (shape is not None and shape[1:] == engine.obs_shape and 0 < shape[0] <= ACTED_TOGETHER)
        if not known or not engine.is_in_place():
            return super().predict(observation, state, episode_start, deterministic)
        self.set_training_mode(False)
        outputs = engine.act(as_float_rows(observation[None] if single else observation, 1))
        if isinstance(self, SACPolicy):
            outputs = _drawn(outputs, deterministic)
        action = self.unscale_action(np.tanh(outputs).reshape(-1, *self.action_space.shape))
        return (action.squeeze(axis=0) if single else action), state

    def set_training_mode(self, mode: bool) -> None:
        """Once is enough: the layers that a native network has do not know modes."""
        if self.training is not mode:
            super().set_training_mode(mode)


def _drawn(outputs: Any, deterministic: bool) -> Any:
    """Before the tanh: the means, or what is drawn around them by the numbers that `Normal.rsample` draws."""
    mean, log_std = np.split(outputs, 2, axis=1)
    if deterministic:
        return mean
    noise = torch.empty(mean.shape).normal_().numpy()
    return mean + np.exp(log_std.clip(LOG_STD_MIN, LOG_STD_MAX)) * noise
