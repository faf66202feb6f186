"""Gymnasium's wrappers by name: `FrameStackObservation(stack_size=4)`, read as a name and literals, never evaluated."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

from hotloop.core.errors import SettingsError
from hotloop.core.values import shortened

EXAMPLE = "for example `FrameStackObservation(stack_size=4)` or `ClipReward(-1, 1)`"
OWN_CLASS = "write it into a class or function of your own, and pass that as `--env.id path/to/file.py:Class`"
NO_RECORDING = "`hotloop watch RUN --video FILE.mp4` records a trained agent"
LONGEST = 1_000

REFUSED = {
    "Autoreset": ("restarts episodes, which hotloop does itself", "leave it out"),
    "PassiveEnvChecker": ("checks the env at every step", "`hotloop envs check` does that beforehand"),
    "RecordEpisodeStatistics": ("only adds to `info`", "leave it out: returns and lengths are in the run's events"),
    "HumanRendering": ("opens a window", NO_RECORDING),
    "RecordVideo": ("records while training", NO_RECORDING),
    "RenderCollection": ("collects pictures while training", NO_RECORDING),
    "ArrayConversion": ("takes modules as arguments", "leave it out: observations are numpy's"),
    "JaxToTorch": ("hands on tensors", "leave it out: observations are numpy's"),
    "NumpyToTorch": ("hands on tensors", "leave it out: observations are numpy's"),
    "TransformAction": ("takes a function as an argument", OWN_CLASS),
    "TransformObservation": ("takes a function as an argument", OWN_CLASS),
    "TransformReward": ("takes a function as an argument", OWN_CLASS),
    "NormalizeObservation": (
        "keeps statistics in each env, which evaluations and a resumed run would not share",
        "PPO: `--normalize.obs`; or fixed bounds: `RescaleObservation(-1.0, 1.0)`",
    ),
    "NormalizeReward": (
        "keeps statistics in each env, which a resumed run would not share",
        "PPO: `--normalize.reward`; or `ClipReward(-1, 1)`",
    ),
}
"""Wrappers that make no sense here: why, and what does."""


@dataclass(frozen=True)
class Wrapper:
    text: str
    name: str
    positional: tuple[Any, ...]
    named: dict[str, Any]


def parse_wrapper(text: str) -> Wrapper:
    """Name and arguments. Whether Gymnasium has such a wrapper shows when it is made."""
    try:
        if len(text) > LONGEST:
            raise ValueError
        node = ast.parse(text.strip(), mode="eval").body
        call = node if isinstance(node, ast.Call) else ast.Call(node, [], [])
        if not isinstance(call.func, ast.Name):
            raise ValueError
        positional = tuple(ast.literal_eval(argument) for argument in call.args)
        named = {str(pair.arg): ast.literal_eval(pair.value) for pair in call.keywords if pair.arg is not None}
        if len(named) < len(call.keywords):  # `**something`, or a name twice
            raise ValueError
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        raise SettingsError(
            f"`env.wrappers` has {shortened(text)}; expected the name of a wrapper with plain values as arguments",
            EXAMPLE,
        ) from None
    if call.func.id in REFUSED:
        reason, hint = REFUSED[call.func.id]
        raise SettingsError(f"the wrapper `{call.func.id}` makes no sense in `env.wrappers`: it {reason}", hint)
    return Wrapper(text, call.func.id, positional, named)
