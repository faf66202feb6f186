"""From what a policy draws to what an env takes.

A policy's numbers are in units of half the action's range around its middle: -1 is the lowest, 1 the highest; an
action without bounds is taken as it is.
"""

from __future__ import annotations

import numpy as np

from hotloop.core.errors import EnvError
from hotloop.core.types import ActionSpec, Array, BoxActions, DiscreteActions, HybridActions
from hotloop.maths.action_kernels import best_actions, draw_actions
from hotloop.maths.distributions import NO_MASK, ActionLayout


class ActionMap:
    """Turns a policy's rows [N, W] into the env's actions."""

    def __init__(self, spec: ActionSpec, squashed: bool) -> None:
        self.spec = spec
        self.layout = layout_of(spec, squashed)
        self._counts = np.array(self.layout.counts, np.int64)
        numbers = spec.numbers if isinstance(spec, HybridActions) else spec
        if isinstance(numbers, BoxActions):
            self._middle, self._half = ranges(numbers, squashed)

    def best(self, outputs: Array, log_std: Array, mask: Array | None) -> Array:
        """The likeliest choices and the means [N, W]."""
        action = np.empty((len(outputs), self.layout.width), np.float32)
        best_actions(outputs, log_std, NO_MASK if mask is None else mask, self._counts, action)
        return action

    def draw(self, state: Array, outputs: Array, log_std: Array, mask: Array | None) -> Array:
        """Choices and numbers drawn from the policy [N, W], advancing the generator `state` [1]."""
        action = np.empty((len(outputs), self.layout.width), np.float32)
        draw_actions(state, outputs, log_std, NO_MASK if mask is None else mask, self._counts, action)
        return action

    def to_env(self, action: Array) -> Array:
        """Rows [N, W] as the env takes them: int64 [N] or [N, W], or float32 [N, ...] within their bounds."""
        if isinstance(self.spec, DiscreteActions):
            return action[:, 0].astype(np.int64)
        if isinstance(self.spec, BoxActions):
            return self._within_bounds(action).reshape(len(action), *self.spec.shape)
        if isinstance(self.spec, HybridActions):
            choices, numbers = np.split(action, [len(self.layout.counts)], axis=1)
            return np.concatenate([choices, self._within_bounds(numbers)], axis=1)
        return action.astype(np.int64)

    def _within_bounds(self, action: Array) -> Array:
        """Numbers [N, C] in the env's own units."""
        unit = np.tanh(action) if self.layout.squashed else np.where(self._half > 0, np.clip(action, -1, 1), action)
        scaled = self._middle + np.where(self._half > 0, self._half, 1.0) * unit
        return scaled.astype(np.float32)


def layout_of(spec: ActionSpec, squashed: bool) -> ActionLayout:
    if isinstance(spec, HybridActions):
        return ActionLayout(spec.choices.counts, len(spec.numbers.low), squashed)
    if isinstance(spec, BoxActions):
        return ActionLayout(continuous=len(spec.low), squashed=squashed)
    return ActionLayout((spec.count,) if isinstance(spec, DiscreteActions) else spec.counts)


def ranges(spec: BoxActions, squashed: bool) -> tuple[Array, Array]:
    """Middle and half of each number's range; 0 and 0 where it has no bounds."""
    low, high = np.array(spec.low), np.array(spec.high)
    bounded = np.isfinite(low) & np.isfinite(high)
    if squashed and not bounded.all():
        raise EnvError(
            f"actions lie between {list(spec.low)} and {list(spec.high)}, and those without bounds cannot be squashed",
            "`--network.squashed false`",
        )
    low, high = np.where(bounded, low, 0.0), np.where(bounded, high, 0.0)
    return (low + high) / 2, (high - low) / 2
