"""The rules of a game of snake, as `env.options`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from hotloop.core.errors import SettingsError
from hotloop.core.values import Count

Observation = Literal["basic", "basic10", "flood_fill", "selective", "enhanced", "foresight", "grid"]
Actions = Literal["auto", "relative", "absolute"]

SMALLEST_BOARD, LARGEST_BOARD = 5, 64
NUM_FEATURES = {"basic": 11, "basic10": 10, "flood_fill": 14, "selective": 19, "enhanced": 24, "foresight": 31}


@dataclass(frozen=True, kw_only=True)
class SnakeSettings:
    board_size: int = 10
    """Cells along each side of the square board, 5 to 64."""

    observation: Observation = "basic"
    """What the policy sees. `basic`: 11 features (danger straight, left, right, back; food up, right, down, left;
    heading up, right, down); `basic10` drops the danger behind, which never changes; `flood_fill` adds the share of
    free cells reachable straight, right and left; `selective` adds to that where the tail is and whether it can be
    reached; `enhanced` adds escape routes, the distance to the tail and the length too; `foresight` adds to that, for
    straight, right and left, whether the tail could still be followed after that step and whether it begins a
    shortest way to the food, then hunger (steps since food as h / (h + cells)); `grid`: the board itself as
    size x size x 3 bytes (head, rest of the body, food)."""

    actions: Actions = "auto"
    """`relative`: straight, left, right; `absolute`: up, right, down, left, a reversal being ignored; `auto`:
    absolute for `grid`, which does not show the heading, otherwise relative."""

    max_steps: Count = 1000
    """An episode times out after so many of its own steps; 0 for no such limit."""

    max_steps_without_food: Count = 0
    """An episode times out after so many steps since the last food; 0 for no such limit. The one to use when aiming
    at a full board, which takes more than 1000 steps."""

    free_tail: bool = False
    """Whether the head may move to the cell that the tail leaves in the same step."""

    start_length: int = 3
    """Cells of a new snake, 2 to board_size // 2 + 1."""

    food_reward: float = 10.0
    """For a step that eats, the winning one included."""

    death_reward: float = -10.0
    """For a step that dies, in place of the step's own reward."""

    step_reward: float = -0.01
    """For any other step."""

    distance_reward: float = 0.5
    """Times the cells by which such a step came nearer to the food (Manhattan distance), divided by board_size."""

    timeout_reward: float = -5.0
    """Added to the reward of the step that times out."""

    def __post_init__(self) -> None:
        if not SMALLEST_BOARD <= self.board_size <= LARGEST_BOARD:
            raise _bad("board_size", self.board_size, f"{SMALLEST_BOARD} to {LARGEST_BOARD}", "10 is the usual board")
        longest = self.board_size // 2 + 1
        if not 2 <= self.start_length <= longest:
            hint = "a new snake lies from the middle of the board to its left edge at most"
            raise _bad("start_length", self.start_length, f"2 to {longest} on a board of {self.board_size}", hint)
        for name in ("max_steps", "max_steps_without_food"):
            if not 0 <= getattr(self, name) < 2**62:
                raise _bad(name, getattr(self, name), "a number of steps, or 0 for no limit", "1000 is the default")
        for name in ("food_reward", "death_reward", "step_reward", "distance_reward", "timeout_reward"):
            if not math.isfinite(getattr(self, name)):
                raise _bad(name, getattr(self, name), "a finite number", "leave it out for the usual reward")
        if self.observation == "grid" and self.actions == "relative":
            raise SettingsError(
                "`actions` is `relative`, but `observation` is `grid`, which does not show the heading to turn from",
                "leave `actions` out: grid observations use the four absolute actions",
            )

    @property
    def absolute(self) -> bool:
        return self.actions == "absolute" or (self.actions == "auto" and self.observation == "grid")

    @property
    def num_cells(self) -> int:
        return self.board_size**2

    @property
    def obs_shape(self) -> tuple[int, ...]:
        if self.observation == "grid":
            return (self.board_size, self.board_size, 3)
        return (NUM_FEATURES[self.observation],)


def _bad(name: str, value: object, expected: str, hint: str) -> SettingsError:
    return SettingsError(f"`{name}` is {value!r}; expected {expected}", hint)
