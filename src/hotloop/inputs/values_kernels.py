"""One look at every number that is handed in: in numpy it costs several times the storing of a small row."""

from __future__ import annotations

from typing import Any

from hotloop.core.kernels import kernel


@kernel
def count_outside(values: Any, low: Any, high: Any) -> int:
    """How many of `values` [n] are not within `low` .. `high`; NaN is not."""
    count = 0
    for index in range(values.shape[0]):
        if not low <= values[index] <= high:
            count += 1
    return count


@kernel
def first_forbidden(mask: Any, choices: Any, starts: Any, counts: Any) -> int:
    """The first env whose `mask` [N, A] allows nothing, or forbids what it chose ([N, W], each choice with its own part
    of the mask from `starts` [W] on); -1 without any. What an env chose where it does not count (`counts` [N], empty
    where all do) may be forbidden."""
    for env in range(mask.shape[0]):
        if not mask[env].any():
            return env
        if counts.shape[0] and not counts[env]:
            continue
        for choice in range(choices.shape[1]):
            if not mask[env, starts[choice] + choices[env, choice]]:
                return env
    return -1
