"""What constructors decide, tried in processes interleaved: the script with its own arguments, and with some more."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from hotloop.core.errors import SettingsError
from hotloop.doctor.experiments import LEAST_PAIRS, TrialInterval, judge
from hotloop.doctor.recorder.order import CHANGES_LEARNING
from hotloop.doctor.trace import Experiment, Untried

ORDER = (False, True, True, False)
"""Whether a process runs with the arm's arguments: neither side is always the first."""


class ScriptArm(NamedTuple):
    name: str
    arguments: tuple[str, ...]

    @property
    def what(self) -> str:
        return f"with `{shlex.join(self.arguments)}`, in processes interleaved"


def parse_arm(text: str) -> ScriptArm:
    """`NAME=ARGUMENTS`: they follow the script's own."""
    name, equals, rest = text.partition("=")
    try:
        words = shlex.split(rest)
    except ValueError as error:
        raise SettingsError(f"`--arm {text}` cannot be read: {error}", "close its quotes") from None
    if not equals or not name.strip() or name.startswith("-") or not words:
        raise SettingsError(
            f"`--arm` is `{text}`, expected NAME=ARGUMENTS of the script", '`--arm "envs=--num-envs 32"`'
        )
    return ScriptArm(name.strip(), tuple(words))


Run = Callable[[Sequence[str], str], tuple[TrialInterval | None, str]]
"""Runs the script with further arguments, told what for: what it took, or why that is not known."""


def try_arm(arm: ScriptArm, run: Run) -> Experiment | Untried:
    """Pairs of processes; the first that fails ends it."""
    told: dict[str, Any] = {"name": arm.name, "what": arm.what, "kind": CHANGES_LEARNING}
    stretches: list[TrialInterval] = []
    for number in range(2 * LEAST_PAIRS):
        changed = ORDER[number % 4]
        purpose = f"arm {arm.name}, {number + 1} of {2 * LEAST_PAIRS}: {'changed' if changed else 'as it is'}"
        stretch, error = run(arm.arguments if changed else (), purpose)
        if stretch is None:
            return Untried(**told, reason=f"the script {'with it' if changed else 'as it is'}: {error}")
        stretches.append(stretch)
    pairs = [
        (one, other) if number % 2 == 0 else (other, one)
        for number, (one, other) in enumerate(zip(stretches[::2], stretches[1::2], strict=True))
    ]
    return judge(arm.name, arm.what, CHANGES_LEARNING, pairs)
