"""The C51 projection as its paper's algorithm has it: floor, ceiling, one atom at a time, in plain numbers."""

from __future__ import annotations

import math


def project(
    reward: float, discount: float, probability: list[float], v_min: float, v_max: float, atoms: int
) -> list[float]:
    delta = (v_max - v_min) / (atoms - 1)
    projected = [0.0] * atoms
    for j in range(atoms):
        moved = min(v_max, max(v_min, reward + discount * (v_min + j * delta)))
        b = min(atoms - 1.0, max(0.0, (moved - v_min) / delta))
        low, high = math.floor(b), math.ceil(b)
        if low == high:
            projected[low] += probability[j]
        else:
            projected[low] += probability[j] * (high - b)
            projected[high] += probability[j] * (b - low)
    return projected


def expected(probability: list[float], v_min: float, v_max: float) -> float:
    delta = (v_max - v_min) / (len(probability) - 1)
    return sum(p * (v_min + i * delta) for i, p in enumerate(probability))


def cross_entropy(target: list[float], logits: list[float]) -> float:
    log_sum = math.log(sum(math.exp(logit) for logit in logits))
    return -sum(t * (logit - log_sum) for t, logit in zip(target, logits, strict=True))
