"""Generalised advantages over [T, N], and closed-form entropy and KL against drawing."""

from __future__ import annotations

from functools import partial

import numpy as np
import torch

from hotloop.core.types import Array
from hotloop.maths import actions
from hotloop.maths.actions import ActionLayout, distribution
from hotloop.maths.gae_kernels import gae_slab
from hotloop.prove.case import Built, Case, Growth
from hotloop.prove.equivalence import Equality, compare, worst
from hotloop.prove.reference.ppo_entropy import entropy_and_kl, make_policy
from hotloop.prove.reference.ppo_gae import compute_gae_all

GAMMA, LAMBDA = 0.99, 0.95
SLABS = ((128, 8), (2_048, 1), (2_048, 8))
TOLERANCE = 1e-5
"""Of float32 sums against float64 ones."""
DRAWS = 10_000
STANDARD_ERRORS = 5.0
LAYOUTS = {
    "categorical": ActionLayout((6,)),
    "multi-discrete": ActionLayout((3, 4, 2)),
    "normal": ActionLayout((), 3),
    "squashed": ActionLayout((), 3, squashed=True),
    "hybrid": ActionLayout((4,), 2, squashed=True),
}


def gae_cases(small: bool) -> list[Case]:
    slabs = ((16, 3),) if small else SLABS
    return [
        Case("gae", f"T{steps}-N{envs}", partial(_build_gae, steps, envs), tolerance=TOLERANCE, is_default=True)
        for steps, envs in slabs
    ]


class _Slab:
    def __init__(self, steps: int, num_envs: int, seed: int) -> None:
        draw = np.random.default_rng(seed)
        self.reward, self.final_value = draw.normal(size=(2, steps, num_envs)).astype(np.float32)
        self.value = draw.normal(size=(steps + 1, num_envs)).astype(np.float32)
        self.terminated, self.truncated = draw.random((2, steps, num_envs)) < 0.01
        self.advantage, self.returns = np.empty_like(self.reward), np.empty_like(self.reward)

    def fast(self) -> tuple[Array, Array]:
        gae_slab(
            self.reward, self.terminated, self.truncated, self.value, self.final_value, GAMMA, LAMBDA, self.advantage,
            self.returns,
        )  # fmt: skip
        return self.advantage, self.returns

    def plain(self) -> list[tuple[list[float], list[float]]]:
        flags = (self.terminated, self.truncated)
        return compute_gae_all(self.reward, self.value, self.final_value, *flags, GAMMA, LAMBDA)


def _build_gae(steps: int, num_envs: int) -> Built:
    slab, longer = _Slab(steps, num_envs, 0), _Slab(8 * steps, num_envs, 0)
    return Built(
        check=partial(_check_gae, steps, num_envs),
        reference=slab.plain,
        fast=slab.fast,
        growth=lambda: Growth(slab.fast, longer.fast, 8.0, f"T {steps}", str(8 * steps)),
    )


def _check_gae(steps: int, num_envs: int) -> Equality:
    def one(seed: int) -> Equality:
        slab = _Slab(steps, num_envs, seed)
        plain = np.array(slab.plain())  # [N, 2, T]
        advantage, returns = slab.fast()
        return compare([("advantage", advantage.T, plain[:, 0]), ("returns", returns.T, plain[:, 1])])

    return worst(one(seed) for seed in range(10))


def entropy_cases(small: bool) -> list[Case]:
    rows = 2 if small else 64
    return [
        Case("entropy-kl", f"b{rows}", partial(_build_entropy, name, rows), name, tolerance=1.0, is_default=True)
        for name in LAYOUTS
    ]


class _Policies:
    """Two policies in each of some states, as our outputs and as torch's distributions."""

    def __init__(self, layout: ActionLayout, rows: int) -> None:
        draw = torch.Generator().manual_seed(0)
        self.layout = layout
        self.outputs = torch.randn(2, rows, layout.num_outputs, generator=draw)
        self.log_std = 0.3 * torch.randn(2, layout.continuous, generator=draw) - 0.5
        self.plain = [[self._plain(policy, row) for row in range(rows)] for policy in range(2)]

    def _plain(self, policy: int, row: int) -> list[torch.distributions.Distribution]:
        logits, mean = self.outputs[policy, row].split([self.layout.num_logits, self.layout.continuous])
        return make_policy(logits, list(self.layout.counts), mean, self.log_std[policy], self.layout.squashed)

    def fast(self) -> tuple[torch.Tensor, torch.Tensor]:
        old, new = (distribution(self.layout, self.outputs[i], self.log_std[i]) for i in range(2))
        return actions.entropy(old), actions.kl(old, new)

    def drawn(self) -> list[list[tuple[float, float]]]:
        return [entropy_and_kl(old, new, DRAWS) for old, new in zip(*self.plain, strict=True)]


def _build_entropy(name: str, rows: int) -> Built:
    policies = _Policies(LAYOUTS[name], rows)
    return Built(check=partial(_check_entropy, name, rows), reference=policies.drawn, fast=policies.fast)


def _check_entropy(name: str, rows: int) -> Equality:
    """The distance from what drawing found, in units of five of its standard errors."""
    policies = _Policies(LAYOUTS[name], rows)
    torch.manual_seed(1)
    found = []
    for what, closed, drawn in zip(
        ("entropy", "KL"), policies.fast(), zip(*policies.drawn(), strict=True), strict=True
    ):
        for value, (mean, error) in zip(closed.tolist(), drawn, strict=True):
            found.append(Equality(abs(value - mean) / (STANDARD_ERRORS * error + 1e-5), what))
    return worst(found)
