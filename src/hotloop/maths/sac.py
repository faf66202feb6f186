"""Soft actor-critic and its deterministic kin: squashed actions, targets, the temperature's loss.

Tensors in, tensors out. Shape letters: B rows, A numbers of an action, C critics.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from hotloop.maths.distributions import log_slope_of_tanh

LOWEST_LOG_STD, HIGHEST_LOG_STD = -20.0, 2.0
_LOG_ROOT_TWO_PI = 0.5 * math.log(2.0 * math.pi)


def split_outputs(outputs: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and log std [..., A] from what the actor says [..., 2A]; the second is held within its bounds."""
    mean, log_std = outputs.chunk(2, dim=-1)
    return mean, log_std.clamp(LOWEST_LOG_STD, HIGHEST_LOG_STD)


def squashed_sample(mean: Tensor, log_std: Tensor, noise: Tensor, slope_epsilon: float = 0.0) -> tuple[Tensor, Tensor]:
    """a = tanh(mean + std * noise) [B, A] and log p(a) [B], both differentiable by mean and log std.

    log p(a) = sum_i -noise_i^2 / 2 - log std_i - log sqrt(2 pi) - log(1 - tanh(u_i)^2), with u = mean + std * noise.
    From the noise itself: (u - mean) / std would lose it where std is small. The last logarithm is computed without
    cancellation near a = 1 unless `slope_epsilon` is added inside it, as programs do that compute 1 - a^2 first.
    """
    u = mean + log_std.exp() * noise
    action = u.tanh()
    slopes = torch.log(1.0 - action * action + slope_epsilon) if slope_epsilon > 0.0 else log_slope_of_tanh(u)
    return action, (-0.5 * noise * noise - log_std - _LOG_ROOT_TWO_PI - slopes).sum(-1)


def smoothed_action(action: Tensor, noise: Tensor, scale: float, limit: float) -> Tensor:
    """clip(a + clip(scale * noise, -limit, limit), -1, 1) (Fujimoto et al. 2018): a target that is smooth in a."""
    return (action + (scale * noise).clamp(-limit, limit)).clamp(-1.0, 1.0)


def soft_target(
    reward: Tensor, discount: Tensor, q: Tensor, log_prob: Tensor | float = 0.0, temperature: Tensor | float = 0.0
) -> Tensor:
    """y = r + discount * (min_c Q_c(s', a') - alpha log p(a'|s')) [B] of q [C, B]; no second term: TD3's and DDPG's.

    `discount` [B] already holds gamma^n * (1 - terminated).
    """
    return reward + discount * (q.amin(0) - temperature * log_prob)


def temperature_loss(log_alpha: Tensor, log_prob: Tensor, target_entropy: float) -> Tensor:
    """-log alpha * mean(log p + target entropy): alpha rises while the policy's entropy is below its target.

    Of log alpha rather than alpha, as programs have it: its gradient does not shrink with alpha.
    """
    return -(log_alpha * (log_prob + target_entropy).mean()).sum()
