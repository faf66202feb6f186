"""Single envs in Gymnasium's wrappers, by what `presets/env_wrappers.py` reads."""

from __future__ import annotations

import inspect
from typing import Any

from hotloop.core.errors import EnvError, SettingsError
from hotloop.core.values import nearest
from hotloop.presets.env_wrappers import REFUSED, Wrapper, parse_wrapper


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
