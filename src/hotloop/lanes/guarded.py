"""Adam's step, unless loss or gradient are not finite: for lanes that run PyTorch as it comes."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from hotloop.lanes.compiled_step import AdamSpec, Vectors
from hotloop.maths.adam import adam_step, clip_scale

LARGEST = torch.finfo(torch.float32).max


class At(NamedTuple):
    """Which step it is, from 1, and how long."""

    lr: float
    number: int

    def length(self, spec: AdamSpec) -> float:
        """What Adam multiplies with."""
        return self.lr / (1.0 - spec.beta1**self.number)


def guarded_step(
    spec: AdamSpec, vectors: Vectors, gradient: Tensor, loss: Tensor, at: At, on_host: bool
) -> tuple[Tensor, bool]:
    """Clip and step, in place; the gradient's norm before clipping, and whether the step was made.

    `on_host`: a read is free, and no step is made on numbers that are not finite. Elsewhere nobody waits for them:
    nothing moves either, which is decided on the device, and found out when they are read for the next log row.
    """
    norm = gradient.norm()
    if on_host and not (math.isfinite(norm.item()) and math.isfinite(loss.item())):
        return norm, False
    if not at.length(spec) <= LARGEST:  # nor is one by a learning rate that is NaN
        return norm, False
    if spec.max_gradient_norm > 0:
        gradient.mul_(clip_scale(norm, spec.max_gradient_norm))
    before = () if on_host else [vector.clone() for vector in vectors]
    values, mean, square = vectors
    adam_step(values, gradient, (mean, square), (spec.beta1, spec.beta2, spec.epsilon), at.lr, at.number)
    for vector, old in zip(vectors, before, strict=False):
        vector.copy_(torch.where(norm.isfinite() & loss.isfinite(), vector, old))
    return norm, True
