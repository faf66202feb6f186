"""Gymnasium's wrappers by name: `FrameStackObservation(stack_size=4)`, read as a name and literals, never evaluated."""

from __future__ import annotations

import ast
import inspect
from dataclasses import dataclass
from typing import Any

from hotloop.core.errors import EnvError, SettingsError
from hotloop.core.values import nearest, shortened

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
        "PPO: `--normalise.obs`; or fixed bounds: `RescaleObservation(-1.0, 1.0)`",
    ),
    "NormalizeReward": (
        "keeps statistics in each env, which a resumed run would not share",
        "PPO: `--normalise.reward`; or `ClipReward(-1, 1)`",
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


def wrap(env: Any, env_id: str, wrappers: tuple[str, ...]) -> Any:
    """`env` in its wrappers, the first one innermost. What a wrapper needs and is not installed is left to raise."""
    from gymnasium.error import DependencyNotInstalled

    for text in wrappers:
        wrapper = parse_wrapper(text)
        kind = _kind_of(wrapper)
        try:
            env = kind(env, *wrapper.positional, **wrapper.named)
        except (DependencyNotInstalled, ImportError):
            raise
        except Exception as error:
            reason = " ".join(str(error).split())
            raise EnvError(
                f"`{text}` cannot wrap `{env_id}`: {type(error).__name__}: {reason}", _usage(kind)
            ) from error
    return env


def _kind_of(wrapper: Wrapper) -> Any:
    """The class, once its arguments are known to fit its signature."""
    import gymnasium.wrappers

    known = [one for one in gymnasium.wrappers.__all__ if one[0].isupper()]
    if wrapper.name not in known:
        raise _unknown(wrapper.name, [one for one in known if one not in REFUSED])
    kind = getattr(gymnasium.wrappers, wrapper.name)
    try:
        inspect.signature(kind).bind(None, *wrapper.positional, **wrapper.named)
    except TypeError as error:
        raise SettingsError(f"`{wrapper.text}` in `env.wrappers`: {error}", _usage(kind)) from None
    return kind


def _unknown(name: str, known: list[str]) -> SettingsError:
    from gymnasium.wrappers import vector

    if name in vector.__all__:
        return SettingsError(
            f"the wrapper `{name}` takes a vector env; `env.wrappers` wrap single ones", "leave it out"
        )
    near = next((one for one in known if name and one.startswith(name)), None) or nearest(name, known)
    hint = f"did you mean `{near}`?" if near else f"it has {', '.join(sorted(known))}"
    return SettingsError(f"`gymnasium.wrappers` has no `{name}`", hint)


def _usage(kind: Any) -> str:
    """How the wrapper is written, without its env and without types."""
    parameters = list(inspect.signature(kind).parameters.values())[1:]
    plain = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in parameters]
    return f"`{kind.__name__}{inspect.Signature(plain)}`"
