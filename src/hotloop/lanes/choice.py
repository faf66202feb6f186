"""Which lane executes the updates. `auto` is a rule, never a stopwatch: the same settings choose the same lane."""

from __future__ import annotations

from torch import nn

from hotloop.lanes.eager import EagerLane
from hotloop.lanes.spec import Lane, UpdateSpec


def build_lane(name: str, spec: UpdateSpec, network: nn.Module, device: str, seed: int) -> Lane:
    return EagerLane(spec, network, device, seed)
