"""From an id to envs. Native names are those that workloads bring; nothing heavy is imported until one is made.

Policies that do not learn, to compare with: at random for every env, and the rules that an env brings along.
"""

from __future__ import annotations

import difflib
import inspect
from typing import Any

import numpy as np

from hotloop.core.errors import EnvError, SettingsError
from hotloop.core.given import given, is_given
from hotloop.core.graphs import Graphs
from hotloop.core.types import (
    Action,
    ActionSpec,
    Array,
    BoxActions,
    DiscreteActions,
    EnvObs,
    GraphActionSpec,
    HybridActions,
    NodeAction,
    NodeActions,
    Policy,
    VecEnv,
)
from hotloop.core.user_files import is_file as is_file
from hotloop.core.values import nearest
from hotloop.core.workloads import env_places, import_place
from hotloop.envs.foreign import env_code
from hotloop.presets.env_names import refuse_untrusted, require_named
from hotloop.presets.env_settings import EnvSettings


def is_native(env_id: str) -> bool:
    """Whether a workload brings it as a batched env: one that is made with `seeds`, and steps all its envs in one call.
    What makes single envs is Gymnasium's, whoever brings it."""
    return is_ours(env_id) or (env_id in env_places() and "seeds" in inspect.signature(_loaded(env_id)).parameters)


def is_ours(env_id: str) -> bool:
    """Whether it is a batched env of this package: nothing of it needs to be loaded to know that it is one, and it
    comes back from every step."""
    return env_places().get(env_id, "").startswith("hotloop.")


def _loaded(env_id: str) -> Any:
    place = env_places()[env_id]
    if is_ours(env_id):
        return import_place(place)
    with env_code(env_id, "cannot be loaded", f"its workload names `{place}`"):
        return import_place(place)


def make_envs(settings: EnvSettings, num_envs: int, seeds: Array, trust: bool = True) -> VecEnv:
    """`num_envs` envs of `settings.id`, env i seeded with `seeds[i]` (uint64).

    Without `trust`, ids that import code of the user's (`module:Id-v0`, `file.py:Class`, `file.py:function`) are
    refused.
    """
    env_id = settings.id
    if not trust:
        refuse_untrusted(env_id)
    if len(seeds) != num_envs:
        raise EnvError(f"{len(seeds)} seeds were given for {num_envs} envs", "give one seed per env")
    if is_native(env_id):
        return _make_native(settings, num_envs, seeds)
    require_named(env_id)
    from hotloop.envs import gymnasium_make

    if is_given(env_id):
        if settings.workers:
            raise SettingsError(
                f"`env.workers` is set, but `{env_id}` is an object of this process", "give a file: `file.py:Name`"
            )
        return gymnasium_make.make_from_factory(settings, num_envs, seeds, given("env", env_id))
    if is_file(env_id):
        return gymnasium_make.make_from_file(settings, num_envs, seeds)
    module, _, gymnasium_id = env_id.rpartition(":")
    if module:
        gymnasium_make.import_module(env_id, module)
    if not gymnasium_make.is_registered(gymnasium_id):
        raise _unknown(env_id, gymnasium_id)
    return gymnasium_make.make_from_id(settings, gymnasium_id, num_envs, seeds)


def episode_limit(settings: EnvSettings) -> int:
    """After how many of its steps an episode is truncated at the latest; 0 where only the env itself knows."""
    if settings.max_episode_steps or is_native(settings.id) or is_file(settings.id) or is_given(settings.id):
        return settings.max_episode_steps
    import gymnasium

    return gymnasium.spec(settings.id.rpartition(":")[2]).max_episode_steps or 0


def list_envs() -> list[tuple[str, str]]:
    """Every id that can be made as it stands, with its kind: `native`, `workload` (of an installed package, which is
    not loaded for this) or `gymnasium`."""
    brought = {name: "native" if is_ours(name) else "workload" for name in env_places()}
    return [*brought.items(), *((name, "gymnasium") for name in sorted(_gymnasium_ids()) if name not in brought)]


def _make_native(settings: EnvSettings, num_envs: int, seeds: Array) -> VecEnv:
    if settings.batched:
        raise SettingsError(f"`batched` is set, but `{settings.id}` is always batched", "leave `batched` out")
    if settings.workers:
        raise SettingsError(
            f"`env.workers` is set, but `{settings.id}` steps all its envs at once in this process",
            "leave `workers` out: it would only be slower",
        )
    if settings.wrappers:
        raise SettingsError(
            f"`env.wrappers` is set, but `{settings.id}` steps all its envs at once",
            "leave `wrappers` out: they wrap single envs of Gymnasium's",
        )
    kind = _loaded(settings.id)
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
    with env_code(settings.id, "could not be made", "compare what it is given with the arguments of its constructor"):
        return kind(num_envs, seeds, **options)


def _gymnasium_ids() -> list[str]:
    import gymnasium

    return list(gymnasium.registry)


def _unknown(env_id: str, gymnasium_id: str) -> EnvError:
    """Only exact ids: Gymnasium would take `CartPole` for its newest version, which changes over time."""
    by_lower = {name.lower(): name for name in [*_gymnasium_ids(), *env_places()]}
    near = difflib.get_close_matches(gymnasium_id.lower(), by_lower, n=3, cutoff=0.6)
    hint = (
        f"did you mean {' or '.join(f'`{by_lower[name]}`' for name in near)}?" if near else "`hotloop envs` lists them"
    )
    if "/" in gymnasium_id and not near:
        hint = f"if a package registers it, name its module: `module:{gymnasium_id}`"
    return EnvError(f"there is no env `{env_id}`", hint)


RANGE = 20.0
"""Of numbers that lack a bound: from the one they have, or round 0."""


class AtRandom:
    """Any allowed action, each as likely; numbers evenly between their bounds."""

    def __init__(self, actions: ActionSpec | GraphActionSpec, seed: int) -> None:
        self._actions = actions
        self._generator = np.random.default_rng(seed)

    def act(self, obs: EnvObs, action_mask: Array | None) -> Action:
        num_envs = len(next(iter(obs.values())) if isinstance(obs, dict) else obs)
        actions = self._actions
        if isinstance(actions, NodeActions):
            assert isinstance(obs, Graphs)
            choices = self._generator.integers(actions.count, size=len(obs.nodes))
            return NodeAction(self._numbers(actions.numbers, num_envs), choices)
        if isinstance(actions, BoxActions):
            return self._numbers(actions, num_envs)
        if isinstance(actions, HybridActions):
            choices = self._choices(actions.choices.counts, num_envs, action_mask)
            numbers = self._numbers(actions.numbers, num_envs).reshape(num_envs, -1)
            return np.concatenate([choices.astype(np.float32), numbers], axis=1)
        if isinstance(actions, DiscreteActions):
            return self._choices((actions.count,), num_envs, action_mask)[:, 0]
        return self._choices(actions.counts, num_envs, action_mask)

    def _choices(self, counts: tuple[int, ...], num_envs: int, mask: Array | None) -> Array:
        """[N, choices] int64: of each, the allowed one that drew the most."""
        draws = self._generator.random((num_envs, sum(counts)))
        parts = np.split(draws if mask is None else draws * mask, np.cumsum(counts)[:-1], axis=1)
        return np.stack([part.argmax(axis=1) for part in parts], axis=1)

    def _numbers(self, actions: BoxActions, num_envs: int) -> Array:
        """[N, *shape] float32; a mask need not be asked, since numbers that do not count are ignored."""
        low, high = np.array(actions.low), np.array(actions.high)
        low = np.where(np.isfinite(low), low, np.where(np.isfinite(high), high, RANGE / 2) - RANGE)
        high = np.where(np.isfinite(high), high, low + RANGE)
        numbers = low + self._generator.random((num_envs, len(low))) * (high - low)
        return numbers.astype(np.float32).reshape(num_envs, *actions.shape)


def make_baseline(name: str, envs: VecEnv, env_id: str, seed: int) -> Policy:
    """The policy called `name` for these very envs: `random`, or one that they offer as `baselines`."""
    own: dict[str, Any] = getattr(envs, "baselines", {})
    if name == "random":
        return AtRandom(envs.action_spec, seed)
    if name in own:
        return own[name](envs)
    known = ["random", *own]
    near = nearest(name, known)
    hint = f"did you mean `{near}`?" if near else f"it has {', '.join(f'`{one}`' for one in known)}"
    raise EnvError(f"`{env_id}` has no policy `{name}`", hint)
