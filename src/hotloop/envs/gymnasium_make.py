"""Making Gymnasium envs, single or vectorized, with errors that say what to install or change."""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import gymnasium
from gymnasium.vector import VectorEnv

from hotloop.core.errors import EnvError, MissingExtraError
from hotloop.core.program import install_command
from hotloop.core.types import Array, VecEnv
from hotloop.core.user_files import is_file
from hotloop.core.workloads import env_places
from hotloop.envs.foreign import HINT, close_all, env_code
from hotloop.envs.gymnasium_envs import GymnasiumEnvs
from hotloop.envs.gymnasium_vector import GymnasiumVector
from hotloop.envs.user_files import load_maker
from hotloop.envs.wrappers import wrap
from hotloop.presets.env_settings import EnvSettings

MAKING_HINT = "compare what it is given with the arguments of its constructor"


def make_from_id(settings: EnvSettings, gymnasium_id: str, num_envs: int, seeds: Array) -> VecEnv:
    if settings.workers:
        return _make_pool(settings, num_envs, seeds)
    if settings.batched:
        options: dict[str, Any] = dict(settings.options)
        if settings.max_episode_steps:
            options["max_episode_steps"] = settings.max_episode_steps
        return _adapt_vector(settings, seeds, lambda: _make_vector(gymnasium_id, num_envs, options))
    return _adapt_single(settings, num_envs, seeds)


def make_from_file(settings: EnvSettings, num_envs: int, seeds: Array) -> VecEnv:
    if settings.workers:
        return _make_pool(settings, num_envs, seeds)
    kind: Any = load_maker(settings.id)
    if not isinstance(kind, type) or issubclass(kind, gymnasium.Env):
        if settings.batched:
            raise EnvError(f"`{settings.id}` steps one env at a time", "leave `batched` out, or derive from VectorEnv")
        return _adapt_single(settings, num_envs, seeds)
    if not issubclass(kind, VectorEnv):
        raise EnvError(f"`{settings.id}` is no gymnasium.Env and no gymnasium.vector.VectorEnv", "derive it from one")
    if settings.wrappers:
        raise EnvError(f"`{settings.id}` steps all its envs at once; `env.wrappers` wrap single ones", "leave them out")
    options: dict[str, Any] = dict(settings.options)
    if settings.max_episode_steps:
        options["max_episode_steps"] = settings.max_episode_steps
    make: Any = kind
    return _adapt_vector(settings, seeds, lambda: make(num_envs=num_envs, **options))


def make_single(settings: EnvSettings, **options: Any) -> gymnasium.Env:
    """One env, limited and wrapped as the settings say; `options` stand beside theirs. A module that the id names is
    imported already."""
    options = {**settings.options, **options}
    limit = settings.max_episode_steps
    if not is_file(settings.id):
        if limit:
            options["max_episode_steps"] = limit
        env = gymnasium.make(settings.id.rpartition(":")[2], disable_env_checker=True, **options)
    else:
        env = load_maker(settings.id)(**options)
        if not isinstance(env, gymnasium.Env):
            raise EnvError(
                f"`{settings.id}` made a {type(env).__name__}; expected a gymnasium.Env",
                "a function makes one env at a time and returns it; many at once are a class derived from VectorEnv",
            )
        env = gymnasium.wrappers.TimeLimit(env, limit) if limit else env
    return wrap(env, settings.id, settings.wrappers)


def make_from_factory(settings: EnvSettings, num_envs: int, seeds: Array, factory: Callable[..., Any]) -> VecEnv:
    """Envs that a function or class of the user's makes, one at each call; `settings.id` names it in errors."""

    def make() -> gymnasium.Env:
        env = factory(**settings.options)
        if not isinstance(env, gymnasium.Env):
            raise EnvError(f"`{settings.id}` made a {type(env).__name__}; expected a gymnasium.Env", "mend the factory")
        limit = settings.max_episode_steps
        env = gymnasium.wrappers.TimeLimit(env, limit) if limit else env
        return wrap(env, settings.id, settings.wrappers)

    hint = "`gymnasium.utils.env_checker.check_env` looks at the whole of an env"
    return _adapt_single(settings, num_envs, seeds, make, hint)


def is_registered(gymnasium_id: str) -> bool:
    """Whether Gymnasium can make it. What makes single envs in an installed workload is registered here, so that it is
    an env like any other of Gymnasium's: wrapped, in workers, drawn."""
    if gymnasium_id not in gymnasium.registry and gymnasium_id in env_places():
        gymnasium.register(gymnasium_id, entry_point=env_places()[gymnasium_id])
    return gymnasium_id in gymnasium.registry


def import_module(env_id: str, name: str) -> None:
    """Import the module of `module:Id-v0`, which registers the id."""
    with env_code(env_id, f"cannot be made, since importing `{name}` failed", HINT):
        try:
            # runs of before the workloads had a folder of their own name ours where they were
            importlib.import_module(re.sub(r"^hotloop\.envs\.", "hotloop.workloads.", name))
        except ModuleNotFoundError as error:
            raise EnvError(
                f"there is no module `{error.name}` to import for `{env_id}`", "install it, or mend its name"
            ) from error


def _make_vector(gymnasium_id: str, num_envs: int, options: dict[str, Any]) -> VectorEnv:
    if gymnasium.spec(gymnasium_id).vector_entry_point is None:
        raise EnvError(f"`{gymnasium_id}` has no vectorized implementation", "leave `batched` out")
    return gymnasium.make_vec(gymnasium_id, num_envs, vectorization_mode="vector_entry_point", **options)


def _make_pool(settings: EnvSettings, num_envs: int, seeds: Array) -> VecEnv:
    if os.name != "posix":
        raise EnvError("`env.workers` needs Linux or another Unix", "leave it out")
    from hotloop.envs.workers.pool import WorkerPool  # here: workers import this module and need no pool

    return WorkerPool(settings, num_envs, seeds)


def _adapt_single(
    settings: EnvSettings, num_envs: int, seeds: Array, make: Callable[[], Any] | None = None, hint: str = ""
) -> VecEnv:
    envs: list[gymnasium.Env] = []
    try:
        with _made(settings.id):
            for _ in range(num_envs):
                envs.append(make_single(settings) if make is None else make())
            if len({id(env.unwrapped) for env in envs}) < num_envs:
                raise EnvError(f"`{settings.id}` gave the same env twice", "make a new one at every call")
            return GymnasiumEnvs(settings.id, envs, seeds, settings.dict_obs, hint)
    except BaseException:
        close_all(settings.id, envs)
        raise


def _adapt_vector(settings: EnvSettings, seeds: Array, make: Callable[[], VectorEnv]) -> VecEnv:
    with _made(settings.id):
        envs = make()
    try:
        if envs.num_envs != len(seeds):
            raise EnvError(
                f"`{settings.id}` made {envs.num_envs} envs where {len(seeds)} were asked for", "mind `num_envs`"
            )
        with _made(settings.id):
            return GymnasiumVector(settings.id, envs, seeds, settings.dict_obs)
    except BaseException:
        close_all(settings.id, [envs])
        raise


@contextlib.contextmanager
def _made(env_id: str) -> Iterator[None]:
    """Translate what constructors raise. Gymnasium's own log lines at this point (an old version, a missing field
    that we check ourselves) are warnings to whoever registered the env; all of them start with `WARN:`."""
    with env_code(env_id, "could not be made", MAKING_HINT), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r".*WARN: ")
        try:
            yield
        except (gymnasium.error.DependencyNotInstalled, ImportError) as error:
            raise MissingExtraError(
                f"`{env_id}` needs what is not installed: {error}", _install_hint(str(error))
            ) from error


def _install_hint(message: str) -> str:
    for ours in ("box2d", "mujoco"):
        if ours in message.lower():
            return install_command(ours)
    extra = re.search(r"gymnasium\[([\w-]+)\]", message)
    return f"pip install 'gymnasium[{extra[1]}]'" if extra else "install the package it names"
