"""Networks; `TopologyNetwork` is for use on its own too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hotloop.nets.topology.network import TopologyNetwork as TopologyNetwork

__all__ = ["TopologyNetwork"]


def __getattr__(name: str) -> Any:
    """Compiled code is loaded only when it is asked for."""
    if name not in __all__:
        raise AttributeError(f"module 'hotloop.nets' has no attribute {name!r}")
    from hotloop.nets.topology.network import TopologyNetwork

    return TopologyNetwork
