"""Multivariate normals whose covariance is diagonal, seen where they are made."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

from .passes import Pass

LOOKED_AT = 200


class Diagonals(Pass):
    """Looks at the first ones that are made once the loop has begun."""

    def __init__(self) -> None:
        self.looked = self.diagonal = 0

    def arrivals(self) -> dict[str, Callable[[ModuleType], None]]:
        return {"torch.distributions.multivariate_normal": self.arrive}

    def arrive(self, module: ModuleType) -> None:
        make, look = module.MultivariateNormal.__init__, self.watch.faults.guarded("a covariance", self._look)

        @functools.wraps(make)
        def initialise(distribution: Any, *args: Any, **keywords: Any) -> None:
            make(distribution, *args, **keywords)
            if self.looked < LOOKED_AT and self.watch.begun and not self.watch.over:
                look(distribution)

        module.MultivariateNormal.__init__ = initialise

    def _look(self, distribution: Any) -> None:
        """The Cholesky factor of a diagonal matrix is diagonal, and nothing else's is."""
        factor = distribution._unbroadcasted_scale_tril
        self.looked += 1
        self.diagonal += int(bool((factor.tril(-1) == 0).all()))

    def add_to(self, trace: dict[str, Any]) -> None:
        trace.setdefault("counted", {})["diagonal_covariances"] = self.diagonal
