"""The policy of an accelerated PPO: its networks in machine code, its draws as Stable-Baselines3 makes them."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from stable_baselines3.common.distributions import (
    CategoricalDistribution,
    DiagGaussianDistribution,
    MultiCategoricalDistribution,
)
from stable_baselines3.common.policies import ActorCriticPolicy
from torch import Tensor, nn
from torch.distributions import Categorical, Normal

from hotloop.adapters.sb3.in_place import InPlace
from hotloop.adapters.sb3.memory import ACTED_TOGETHER, as_float_rows
from hotloop.maths.distributions import ActionLayout

LOG_ROOT_TWO_PI = np.float32(0.5 * np.log(2.0 * np.pi))


class Heads(nn.Module):
    """What a policy computes before it draws: obs -> (logits or means, values)."""

    def __init__(self, policy: ActorCriticPolicy) -> None:
        super().__init__()
        self.policy = policy

    def forward(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        policy = self.policy
        features = policy.extract_features(obs)
        if policy.share_features_extractor:
            latent_pi, latent_vf = policy.mlp_extractor(features)
        else:
            latent_pi = policy.mlp_extractor.forward_actor(features[0])
            latent_vf = policy.mlp_extractor.forward_critic(features[1])
        return policy.action_net(latent_pi), policy.value_net(latent_vf)


def action_layout(policy: ActorCriticPolicy) -> ActionLayout | None:
    """None where the native lane has no such distribution."""
    kind = type(policy.action_dist)
    if kind is DiagGaussianDistribution:
        return ActionLayout(continuous=policy.action_dist.action_dim)
    if kind is CategoricalDistribution:
        return ActionLayout((policy.action_dist.action_dim,))
    return ActionLayout(tuple(policy.action_dist.action_dims)) if kind is MultiCategoricalDistribution else None


def draw_choice(logits: Tensor, _: Any = None) -> tuple[Tensor, Tensor]:
    """Actions [N] and their log-probabilities, by the race of exponentials that `torch.multinomial` runs too: the same
    draws, without its look at every probability."""
    given = logits.numpy()
    shifted = given - given.max(axis=1, keepdims=True)
    p = np.exp(shifted)
    total = p.sum(axis=1, keepdims=True)
    p /= total
    race = torch.empty(p.shape).exponential_(1.0).numpy()
    action = (p / race).argmax(axis=1)
    log_prob = shifted[np.arange(len(action)), action] - np.log(total[:, 0])
    return torch.from_numpy(action), torch.from_numpy(log_prob)


def draw_normal(means: Tensor, log_std: Tensor) -> tuple[Tensor, Tensor]:
    """Actions [N, C] and their log-probabilities, from the numbers that `Normal.rsample` draws."""
    spread, noise = log_std.detach().numpy(), torch.empty(means.shape).normal_().numpy()
    action = means.numpy() + noise * np.exp(spread)
    scaled = (action - means.numpy()) * np.exp(-spread)
    log_prob = (-0.5 * scaled * scaled - spread - LOG_ROOT_TWO_PI).sum(axis=1)
    return torch.from_numpy(action), torch.from_numpy(log_prob)


def draws_like_torch() -> bool:
    """Whether this version of torch draws as we do; the state of its generator stays."""
    logits, log_std = torch.linspace(-2.0, 2.0, 96).reshape(32, 3), torch.linspace(-1.0, 0.0, 3)
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        pairs = []
        for theirs, ours in (
            (lambda: Categorical(logits=logits).sample(), lambda: draw_choice(logits)[0]),
            (lambda: Normal(logits, log_std.exp()).rsample(), lambda: draw_normal(logits, log_std)[0]),
        ):
            drawn = []
            for draw in (theirs, ours):
                torch.default_generator.manual_seed(0)
                drawn.append(torch.cat([draw().float().reshape(-1), torch.rand(1)]))
            pairs.append(drawn)
    return all(torch.allclose(one, other, rtol=1e-5, atol=1e-6) for one, other in pairs)


DRAWS: dict[type, Any] = (
    {CategoricalDistribution: draw_choice, DiagGaussianDistribution: draw_normal} if draws_like_torch() else {}
)
"""Where a distribution's own way is slower than the network; whatever is missing here draws that way."""


class QuickActorCritic(ActorCriticPolicy, InPlace):
    """Methods of an accelerated `PPO`'s policy. Where a gradient is wanted, torch computes as ever."""

    def forward(self, obs: Any, deterministic: bool = False) -> Any:
        known = self._heads(obs)
        if known is None:
            return super().forward(obs, deterministic)
        outputs, values = known
        draw = DRAWS.get(type(self.action_dist)) if not deterministic else None
        if draw is not None:
            actions, log_prob = draw(outputs, self.log_std if draw is draw_normal else None)
        else:
            distribution = self._distribution(outputs)
            actions = distribution.get_actions(deterministic=deterministic)
            log_prob = distribution.log_prob(actions)
        return actions.reshape((-1, *self.action_space.shape)), values, log_prob

    def get_distribution(self, obs: Any) -> Any:
        known = self._heads(obs)
        if known is None:
            return super().get_distribution(obs)
        return self._distribution(known[0])

    def predict_values(self, obs: Any) -> Any:
        known = self._heads(obs)
        return super().predict_values(obs) if known is None else known[1]

    def set_training_mode(self, mode: bool) -> None:
        """Once is enough: the layers that a native network has do not know modes."""
        if self.training is not mode:
            super().set_training_mode(mode)

    def _distribution(self, outputs: Tensor) -> Any:
        if isinstance(self.action_dist, DiagGaussianDistribution):
            return self.action_dist.proba_distribution(outputs, self.log_std)
        return self.action_dist.proba_distribution(action_logits=outputs)

    def _heads(self, obs: Any) -> tuple[Tensor, Tensor] | None:
        """Outputs [N, O] and values [N, 1]; None where a gradient is wanted, or the policy has other memory by now."""
        engine, shape = self._hotloop, self.observation_space.shape
        if torch.is_grad_enabled() or obs.shape[1:] != shape or not 0 < len(obs) <= ACTED_TOGETHER:
            return None
        if not engine.memory.is_in_place():
            return None
        outputs, values = engine.infer(as_float_rows(obs.detach().numpy(), 1))
        return torch.from_numpy(outputs), torch.from_numpy(values).unsqueeze(1)
