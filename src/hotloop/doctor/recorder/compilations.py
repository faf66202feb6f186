"""How often `torch.compile` compiled while the loop ran."""

from __future__ import annotations

import sys
from typing import Any

from .passes import Pass


class Compilations(Pass):
    """By the counters that PyTorch keeps itself."""

    def __init__(self) -> None:
        self._before = self._after = 0

    def begin(self) -> None:
        self._before = graphs()

    def steady(self) -> None:
        self._before = graphs()

    def stop(self) -> None:
        self._after = graphs()

    def add_to(self, trace: dict[str, Any]) -> None:
        trace["counts"]["compilations"] = max(0, self._after - self._before)


def graphs() -> int:
    """Graphs compiled so far; 0 where nothing was."""
    module = sys.modules.get("torch._dynamo.utils")
    counters = getattr(module, "counters", {})
    return int(counters["stats"].get("unique_graphs", 0)) if "stats" in counters else 0
