"""From an id to envs. Native names are looked up here; nothing heavy is imported until one is made."""

from __future__ import annotations

import dataclasses
import difflib
import importlib
import inspect
from pathlib import Path
from typing import Any

from hotloop.core.errors import EnvError, SettingsError
from hotloop.core.types import Array, VecEnv
from hotloop.envs.settings import EnvSettings
from hotloop.envs.user_files import require_class

NATIVE: dict[str, str] = {
    "cartpole": "hotloop.envs.cartpole:CartPole",
    "snake": "hotloop.envs.snake.env:Snake",
    "sfc": "hotloop.envs.sfc.env:Sfc",
    "durotaxis": "hotloop.envs.durotaxis.env:Durotaxis",
}
"""Name -> class, called as `Class(num_envs, seeds, **options)`; takes `max_episode_steps` as an option, and
`dict_obs` where its observations have parts."""


def make_envs(settings: EnvSettings, num_envs: int, seeds: Array, trust: bool = True) -> VecEnv:
    """`num_envs` envs of `settings.id`, env i seeded with `seeds[i]` (uint64).

    Without `trust`, ids that import code of the user's (`module:Id-v0`, `file.py:Class`) are refused.
    """
    env_id = settings.id
    if not trust:
        refuse_untrusted(env_id)
    if len(seeds) != num_envs:
        raise EnvError(f"{len(seeds)} seeds were given for {num_envs} envs", "give one seed per env")
    if env_id in NATIVE:
        return _make_native(settings, num_envs, seeds)
    require_class(env_id)
    from hotloop.envs import gymnasium_make

    if is_file(env_id):
        return gymnasium_make.make_from_file(settings, num_envs, seeds)
    module, _, gymnasium_id = env_id.rpartition(":")
    if module:
        gymnasium_make.import_module(env_id, module)
    _require_registered(env_id, gymnasium_id)
    return gymnasium_make.make_from_id(settings, gymnasium_id, num_envs, seeds)


def needs_trust(env_id: str) -> bool:
    """Whether making this env runs a user's file or module."""
    return ":" in env_id


def refuse_untrusted(env_id: str) -> None:
    if needs_trust(env_id):
        raise EnvError(f"`{env_id}` runs code from outside hotloop", "pass `--trust` if you know where it comes from")


def is_file(env_id: str) -> bool:
    return env_id.rpartition(":")[0].endswith(".py")


def with_whole_path(settings: Any) -> Any:
    """Settings of a run in which an env's file is found again from any folder, and is the same however it was typed."""
    if not is_file(settings.env.id):
        return settings
    path, _, name = settings.env.id.rpartition(":")
    env = dataclasses.replace(settings.env, id=f"{Path(path).expanduser().resolve()}:{name}")
    return dataclasses.replace(settings, env=env)


def episode_limit(settings: EnvSettings) -> int:
    """After how many of its steps an episode is truncated at the latest; 0 where only the env itself knows."""
    if settings.max_episode_steps or settings.id in NATIVE or is_file(settings.id):
        return settings.max_episode_steps
    import gymnasium

    return gymnasium.spec(settings.id.rpartition(":")[2]).max_episode_steps or 0


def list_envs() -> list[tuple[str, str]]:
    """Every id that can be made as it stands, with its kind: `native` or `gymnasium`."""
    return [(name, "native") for name in NATIVE] + [(name, "gymnasium") for name in sorted(_gymnasium_ids())]


def _make_native(settings: EnvSettings, num_envs: int, seeds: Array) -> VecEnv:
    if settings.batched:
        raise SettingsError(f"`batched` is set, but `{settings.id}` is always batched", "leave `batched` out")
    if settings.workers:
        raise SettingsError(
            f"`env.workers` is set, but `{settings.id}` steps all its envs at once in this process",
            "leave `workers` out: it would only be slower",
        )
    module, _, name = NATIVE[settings.id].partition(":")
    kind = getattr(importlib.import_module(module), name)
    options: dict[str, Any] = dict(settings.options)
    if settings.max_episode_steps:
        options["max_episode_steps"] = settings.max_episode_steps
    parameters = inspect.signature(kind).parameters
    known = [key for key in parameters if key not in ("num_envs", "seeds", "dict_obs")]
    for option in options:
        if option not in known:
            near = difflib.get_close_matches(option, known, n=1)
            hint = f"did you mean `{near[0]}`?" if near else f"it takes {', '.join(known) or 'no options'}"
            raise SettingsError(f"`{settings.id}` has no option `{option}`", hint)
    if "dict_obs" in parameters:
        options["dict_obs"] = "flatten" if settings.dict_obs == "auto" else settings.dict_obs
    return kind(num_envs, seeds, **options)


def _gymnasium_ids() -> list[str]:
    import gymnasium

    return list(gymnasium.registry)


def _require_registered(env_id: str, gymnasium_id: str) -> None:
    """Only exact ids: Gymnasium would take `CartPole` for its newest version, which changes over time."""
    known = _gymnasium_ids()
    if gymnasium_id in known:
        return
    by_lower = {name.lower(): name for name in [*known, *NATIVE]}
    near = difflib.get_close_matches(gymnasium_id.lower(), by_lower, n=3, cutoff=0.6)
    hint = (
        f"did you mean {' or '.join(f'`{by_lower[name]}`' for name in near)}?" if near else "`hotloop envs` lists them"
    )
    if "/" in gymnasium_id and not near:
        hint = f"if a package registers it, name its module: `module:{gymnasium_id}`"
    raise EnvError(f"there is no env `{env_id}`", hint)
