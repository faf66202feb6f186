"""The rules of durotaxis that can be chosen, as `env.options`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from hotloop.core.errors import SettingsError
from hotloop.core.values import Count

Substrate = Literal["linear", "exponential", "random"]
ActionMode = Literal["ratio", "per_node"]
RewardMode = Literal["centroid_distance_only", "full", "simple_delete_only"]

MOST_NODES = 2_000
SMALLEST_FIELD, LARGEST_FIELD = 20.0, 100_000.0
STIFFEST = 1e9
DEFAULTS = {"linear": (0.05, 1.0), "exponential": (0.01, 1.0), "random": (0.0, 0.0)}


@dataclass(frozen=True, kw_only=True)
class DurotaxisSettings:
    substrate: Substrate = "linear"
    """How stiff the ground is at x: `linear` m * x + b, `exponential` b * exp(m * x), `random` draws one of the two and
    its m and b for every episode."""

    m: float = 0.0
    """Slope of the substrate; 0 for the usual one, 0.05 (linear) or 0.01 (exponential)."""

    b: float = 0.0
    """Stiffness of the substrate at x = 0; 0 for the usual 1."""

    width: float = 600.0
    """Of the field, 20 to 100000; colonies begin at its left and want to its right."""

    height: float = 400.0
    """Of the field, 20 to 100000."""

    start_nodes: int = 5
    """Nodes of a new colony, 1 to `max_nodes`."""

    max_nodes: int = 500
    """A colony with more nodes than this has failed, 2 to 2000."""

    max_delete_ratio: float = 0.7
    """Largest share of a colony that one step may delete, 0 to 1; below 0.6 every colony grows until it fails."""

    action: ActionMode = "ratio"
    """Who is deleted: `ratio` the left-most, as many as one number says; `per_node` each node has a choice of its own
    between spawning (0) and deleting itself (1)."""

    reward: RewardMode = "centroid_distance_only"
    """What a step is worth: `centroid_distance_only` how far the colony moved right; `full` everything there is;
    `simple_delete_only` whether the right nodes were deleted. How the episode ended counts in all three."""

    recovery: bool = False
    """Whether a colony without nodes starts again round its last centroid, twice an episode at most."""

    curriculum_steps: Count = 0
    """Steps of each colony, over all its episodes, in which only the delete ratio counts and the rest of the action is
    fixed; 0 for none."""

    max_steps: Count = 1000
    """An episode is truncated after so many of its own steps; 0 for no such limit."""

    def __post_init__(self) -> None:
        _require_between(self, "width", SMALLEST_FIELD, LARGEST_FIELD, "600 is the usual field")
        _require_between(self, "height", SMALLEST_FIELD, LARGEST_FIELD, "400 is the usual field")
        _require_between(self, "max_nodes", 2, MOST_NODES, "500 is the usual cap")
        _require_between(self, "start_nodes", 1, self.max_nodes, "5 is the usual start; also see `max_nodes`")
        _require_between(self, "max_delete_ratio", 0.0, 1.0, "0.7 is the usual bound")
        for name in ("curriculum_steps", "max_steps"):
            _require_between(self, name, 0, 2**62, "0 is for none")
        if self.curriculum_steps and self.action == "per_node":
            raise SettingsError(
                f"`curriculum_steps` is {self.curriculum_steps}, but `action` is `per_node`, which has no delete ratio",
                "leave `curriculum_steps` out, or set `action` to `ratio`",
            )
        self._check_substrate()

    def _check_substrate(self) -> None:
        if self.substrate == "random":
            if self.m or self.b:
                raise SettingsError(
                    "`m` or `b` is set, but `substrate` is `random`, which draws them", "leave them out"
                )
            return
        m, b = self.slope_and_start
        try:
            ends = (b, m * self.width + b if self.substrate == "linear" else b * math.exp(m * self.width))
        except OverflowError:
            ends = (b, math.inf)
        if not all(0.0 <= end <= STIFFEST for end in ends):
            raise SettingsError(
                f"`m` {m} and `b` {b} make the ground {ends[0]:.3g} stiff at the left and {ends[1]:.3g} at the right; "
                f"expected 0 to {STIFFEST:.0e}",
                "leave them out for the usual substrate",
            )

    @property
    def slope_and_start(self) -> tuple[float, float]:
        m, b = DEFAULTS[self.substrate]
        return self.m or m, self.b or b


def _require_between(settings: DurotaxisSettings, name: str, low: float, high: float, hint: str) -> None:
    value = getattr(settings, name)
    if not low <= value <= high:  # NaN is not either
        raise SettingsError(f"`{name}` is {value!r}; expected {low:g} to {high:g}", hint)
