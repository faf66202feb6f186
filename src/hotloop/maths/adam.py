"""Adam and gradient clipping on one flat vector: a few in-place passes instead of an object per parameter."""

from __future__ import annotations

import math

from torch import Tensor


def clip_scale(norm: Tensor, max_norm: float) -> Tensor:
    """The factor that brings a gradient of this norm to at most `max_norm`; stays on the device."""
    return (max_norm / (norm + 1e-6)).clamp(max=1.0)


def adam_step(
    parameters: Tensor,
    gradient: Tensor,
    moments: tuple[Tensor, Tensor],
    constants: tuple[float, float, float],
    lr: float,
    count: int,
) -> None:
    """One bias-corrected step (Kingma & Ba 2015), the `count`-th from 1, in place; equal to torch.optim.Adam.

    `moments` are the running mean and the running square, `constants` beta1, beta2 and epsilon.
    """
    mean, square = moments
    beta1, beta2, epsilon = constants
    mean.lerp_(gradient, 1.0 - beta1)
    square.mul_(beta2).addcmul_(gradient, gradient, value=1.0 - beta2)
    denominator = square.sqrt().div_(math.sqrt(1.0 - beta2**count)).add_(epsilon)
    parameters.addcdiv_(mean, denominator, value=-lr / (1.0 - beta1**count))
