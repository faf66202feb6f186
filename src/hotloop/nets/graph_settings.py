"""What a network over graphs looks like."""

from __future__ import annotations

from dataclasses import dataclass

from hotloop.core.errors import SettingsError
from hotloop.core.values import require_at_least

MOST_LAYERS = 1_000


@dataclass(frozen=True, kw_only=True)
class GraphNetworkSettings:
    """Layers of attention along a graph's edges, for observations that are graphs; other observations ignore this."""

    width: int = 128
    """Units of every node, every edge and the graph's own token, at least 2; a multiple of `heads` and `groups`."""
    heads: int = 4
    """Attention heads of a layer, at least 1; each has `width / heads` units."""
    layers: int = 4
    """Layers, at least 1: after so many, a node has heard from nodes as many edges away."""
    feed_forward: int = 256
    """Units between the two linear maps that end a layer, at least 1."""
    groups: int = 16
    """Groups that the last units are split into, at least 1, each with a softmax of its own; a group needs 2 units."""

    def __post_init__(self) -> None:
        require_at_least(1, self, "network.graph.", "width", "heads", "layers", "feed_forward", "groups")
        if self.layers > MOST_LAYERS:
            raise SettingsError(f"`network.graph.layers` is {self.layers:,}, expected at most {MOST_LAYERS:,}")
        for name in ("heads", "groups"):
            if self.width % getattr(self, name):
                raise SettingsError(
                    f"`network.graph.width` is {self.width}, no multiple of `{name}` ({getattr(self, name)})",
                    f"choose `network.graph.{name}` among the divisors of the width",
                )
        if self.width < 2 * self.groups:
            raise SettingsError(
                f"`network.graph.groups` is {self.groups}, expected at most {self.width // 2}",
                f"half of the width ({self.width}): the softmax of a single unit is always 1",
            )
