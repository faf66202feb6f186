"""N envs of whatever kind as N sequences of the same events: single envs, vector envs, and ours.

An event is a reset or a step of one env, with what the env said. How a vector env restarts (at once, with the next
step, or when told) does not show in it, so that batched and single envs are compared env step by env step.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, Protocol

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import concatenate, create_empty_array, iterate

from hotloop.core.errors import EnvError
from hotloop.core.graphs import Graphs
from hotloop.core.types import BoxActions, DiscreteActions, MultiDiscreteActions, VecEnv
from hotloop.core.user_files import is_file
from hotloop.envs.foreign import MASK_KEY, close_all, env_code
from hotloop.envs.gymnasium_make import import_module, is_registered
from hotloop.envs.gymnasium_vector import autoreset_mode
from hotloop.envs.registry import is_native, make_envs
from hotloop.envs.user_files import load_maker
from hotloop.presets.env_names import require_named
from hotloop.presets.env_settings import EnvSettings

Target = str | Callable[..., Any]
"""An id, `file.py:Name`, a class, or a function that makes one env; with a parameter `num_envs`, that many at once."""


class Event(NamedTuple):
    kind: Literal["reset", "step", "raised"]
    fields: dict[str, Any]


class Side(Protocol):
    """One of the two that are compared."""

    name: str
    num_envs: int
    observation_space: Any
    """Of one env; None where only its shape is known."""
    action_space: Any
    steps_alone: bool
    """Whether one env can be stepped without the others."""
    restarts_at_once: bool
    """Whether the step that ends an episode begins the next one too."""

    def reset(self, seeds: Sequence[int]) -> list[Event]: ...

    def step(self, actions: Sequence[Any]) -> list[list[Event]]:
        """What each env did: a step, a step and a reset, or a reset alone where its action was ignored.

        An env whose action is None is left alone.
        """
        ...

    def turn(self, actions: Sequence[Any]) -> Callable[[], None]:
        """One step of every env with these actions, to be timed: nothing is recorded."""
        ...

    def owner(self, index: int) -> Any:
        """The object that env `index` draws its random numbers with; None where it is out of reach."""
        ...

    def close(self) -> None: ...


def side_of(target: Target, num_envs: int) -> Side:
    if isinstance(target, str) and is_native(target):
        return NativeEnvs(target, num_envs)
    name, make = _maker(target)
    with env_code(name, "could not be made", "compare what it is given with the arguments of its constructor"):
        if "num_envs" in _parameters(make) or (isinstance(make, type) and issubclass(make, VectorEnv)):
            return BatchedEnvs(name, make(num_envs=num_envs), num_envs)
        return SingleEnvs(name, [make() for _ in range(num_envs)])


def _maker(target: Target) -> tuple[str, Callable[..., Any]]:
    if not isinstance(target, str):
        return str(getattr(target, "__qualname__", type(target).__name__)), target
    require_named(target)
    if is_file(target):
        return target, load_maker(target)
    module, _, gymnasium_id = target.rpartition(":")
    if module:
        import_module(target, module)
    if not is_registered(gymnasium_id):
        raise EnvError(f"there is no env `{target}`", "`hotloop envs` lists them; one of yours is `file.py:Class`")
    return target, lambda: gymnasium.make(gymnasium_id, disable_env_checker=True)


def _parameters(make: Any) -> list[str]:
    try:
        return list(inspect.signature(make).parameters)
    except (TypeError, ValueError):
        return []


def _fields(obs: Any, mask: Any, reward: Any = None, terminated: Any = None, truncated: Any = None) -> dict[str, Any]:
    """Copied at once: an env may write to its array again."""
    found = {"observation": obs, "reward": reward, "terminated": terminated, "truncated": truncated, MASK_KEY: mask}
    return {name: _copy(value) for name, value in found.items() if value is not None}


def _copy(value: Any) -> Any:
    return value.copy() if isinstance(value, np.ndarray) else copy.deepcopy(value)


class SingleEnvs:
    """Envs with Gymnasium's `reset` and `step`, one after the other."""

    steps_alone = restarts_at_once = True

    def __init__(self, name: str, envs: list[Any]) -> None:
        self.name, self._envs, self.num_envs = name, envs, len(envs)
        for needed in ("reset", "step", "action_space", "observation_space"):
            if not hasattr(envs[0], needed):
                raise EnvError(
                    f"`{name}` made a {type(envs[0]).__name__}, which has no `{needed}`", "make a gymnasium.Env"
                )
        if len({id(env) for env in envs}) < len(envs):
            raise EnvError(f"`{name}` gave the same env twice", "make a new one at every call")
        self.observation_space, self.action_space = envs[0].observation_space, envs[0].action_space

    def reset(self, seeds: Sequence[int]) -> list[Event]:
        return [self._reset(env, int(seed)) for env, seed in zip(self._envs, seeds, strict=True)]

    def step(self, actions: Sequence[Any]) -> list[list[Event]]:
        return [self._step(env, action) for env, action in zip(self._envs, actions, strict=True)]

    def _reset(self, env: Any, seed: int | None) -> Event:
        obs, info = env.reset(seed=seed)
        return Event("reset", _fields(obs, self._mask(env, info)))

    def _step(self, env: Any, action: Any) -> list[Event]:
        if action is None:
            return []
        try:
            obs, reward, terminated, truncated, info = env.step(action)
        except Exception as error:
            return [raised(error)]
        event = Event("step", _fields(obs, self._mask(env, info), reward, terminated, truncated))
        if not (terminated or truncated):
            return [event]
        try:
            return [event, self._reset(env, None)]
        except Exception as error:
            return [event, raised(error)]

    def turn(self, actions: Sequence[Any]) -> Callable[[], None]:
        pairs = list(zip(self._envs, actions, strict=True))

        def step_all() -> None:
            for env, action in pairs:
                _, _, terminated, truncated, _ = env.step(action)
                if terminated or truncated:
                    env.reset()

        return step_all

    @staticmethod
    def _mask(env: Any, info: Any) -> Any:
        if isinstance(info, dict) and MASK_KEY in info:
            return info[MASK_KEY]
        method = getattr(getattr(env, "unwrapped", env), "action_masks", None)
        return method() if callable(method) else None

    def owner(self, index: int) -> Any:
        return getattr(self._envs[index], "unwrapped", self._envs[index])

    def close(self) -> None:
        close_all(self.name, [env for env in self._envs if hasattr(env, "close")])


class BatchedEnvs:
    """A Gymnasium VectorEnv, whichever of the three ways it restarts."""

    steps_alone = False

    def __init__(self, name: str, envs: VectorEnv, num_envs: int) -> None:
        self.name, self._envs, self.num_envs = name, envs, num_envs
        if not isinstance(envs, VectorEnv) or envs.num_envs != num_envs:
            raise EnvError(f"`{name}` made no gymnasium.vector.VectorEnv of {num_envs} envs", "mind `num_envs`")
        self.observation_space, self.action_space = envs.single_observation_space, envs.single_action_space
        self._mode = autoreset_mode(name, envs)
        self.restarts_at_once = self._mode is not AutoresetMode.NEXT_STEP
        self._ignored = np.zeros(num_envs, bool)

    def reset(self, seeds: Sequence[int]) -> list[Event]:
        """By Gymnasium's custom one seed stands for those that count on from it, which not all take as a list."""
        self._ignored[:] = False
        try:
            each: Any = [int(seed) for seed in seeds]
            obs, info = self._envs.reset(seed=each)
        except (TypeError, ValueError, gymnasium.error.Error):
            obs, info = self._envs.reset(seed=int(seeds[0]))
        return [Event("reset", _fields(row, _row_of(info, MASK_KEY, i))) for i, row in enumerate(self._rows(obs))]

    def step(self, actions: Sequence[Any]) -> list[list[Event]]:
        try:
            obs, *columns, info = self._envs.step(self._batch(actions))
            rows = self._rows(obs)
            done = np.asarray(columns[1], bool) | np.asarray(columns[2], bool)
            fresh, fresh_info = rows, info
            if self._mode is AutoresetMode.DISABLED and done.any():
                restarted, fresh_info = self._envs.reset(options={"reset_mask": done.copy()})
                fresh = self._rows(restarted)
        except Exception as error:
            return [[raised(error)] for _ in actions]
        found = [self._events(i, rows, [column[i] for column in columns], info) for i in range(self.num_envs)]
        for i in np.flatnonzero(done & ~self._ignored) if self._mode is not AutoresetMode.NEXT_STEP else ():
            found[i].append(Event("reset", _fields(fresh[i], _row_of(fresh_info, MASK_KEY, int(i)))))
        self._ignored = done & ~self._ignored if self._mode is AutoresetMode.NEXT_STEP else self._ignored
        return found

    def _events(self, i: int, rows: list[Any], said: list[Any], info: dict[str, Any]) -> list[Event]:
        mask = _row_of(info, MASK_KEY, i)
        if self._ignored[i]:
            return [Event("reset", _fields(rows[i], mask))]
        if self._mode is AutoresetMode.SAME_STEP and (said[1] or said[2]):
            mask = _row_of(info.get("final_info", {}), MASK_KEY, i)
            return [Event("step", _fields(_row_of(info, "final_obs", i), mask, *said))]
        return [Event("step", _fields(rows[i], mask, *said))]

    def turn(self, actions: Sequence[Any]) -> Callable[[], None]:
        batch = self._batch(actions)

        def step_all() -> None:
            _, _, terminated, truncated, _ = self._envs.step(batch)
            if self._mode is AutoresetMode.DISABLED and (done := terminated | truncated).any():
                self._envs.reset(options={"reset_mask": done})

        return step_all

    def _batch(self, actions: Sequence[Any]) -> Any:
        space = self._envs.single_action_space
        room: Any = create_empty_array(space, self.num_envs)
        return concatenate(space, actions, room)

    def _rows(self, obs: Any) -> list[Any]:
        return list(iterate(self._envs.observation_space, obs))

    def owner(self, index: int) -> Any:
        envs = getattr(self._envs.unwrapped, "envs", None)
        return envs[index].unwrapped if envs else self._envs.unwrapped

    def close(self) -> None:
        close_all(self.name, [self._envs])


class NativeEnvs:
    """Ours: made with their seeds, restarted with the step that ends an episode."""

    steps_alone, restarts_at_once = False, True

    def __init__(self, name: str, num_envs: int) -> None:
        self.name, self.num_envs = name, num_envs
        self._envs = self._make(range(num_envs))
        self.observation_space, self.action_space = None, _space_of(name, self._envs.action_spec)

    def _make(self, seeds: Sequence[int]) -> VecEnv:
        return make_envs(EnvSettings(id=self.name), self.num_envs, np.array(seeds, np.uint64))

    def reset(self, seeds: Sequence[int]) -> list[Event]:
        self._envs.close()
        self._envs = self._make(seeds)
        obs, mask = self._envs.reset()
        return [Event("reset", _fields(_row(obs, i), _row(mask, i))) for i in range(self.num_envs)]

    def step(self, actions: Sequence[Any]) -> list[list[Event]]:
        step = self._envs.step(np.array(actions))
        found = []
        for i in range(self.num_envs):
            said = (step.reward[i], step.terminated[i], step.truncated[i])
            events = [Event("step", _fields(_row(step.final_obs, i), _row(step.final_action_mask, i), *said))]
            if said[1] or said[2]:
                events.append(Event("reset", _fields(_row(step.obs, i), _row(step.action_mask, i))))
            found.append(events)
        return found

    def turn(self, actions: Sequence[Any]) -> Callable[[], None]:
        batch = np.array(actions)

        def step_all() -> None:
            self._envs.step(batch)

        return step_all

    def owner(self, index: int) -> Any:
        return None

    def close(self) -> None:
        self._envs.close()


def raised(error: Exception) -> Event:
    return Event("raised", {"error": f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"})


def _row_of(info: dict[str, Any], name: str, i: int) -> Any:
    rows = info.get(name) if isinstance(info, dict) else None
    return None if rows is None else _row(rows, i)


def _row(rows: Any, i: int) -> Any:
    if isinstance(rows, dict):
        return {name: _row(part, i) for name, part in rows.items()}
    if isinstance(rows, Graphs):
        return rows[i : i + 1]
    return None if rows is None else rows[i]


def _space_of(name: str, actions: Any) -> spaces.Space:
    if isinstance(actions, DiscreteActions):
        return spaces.Discrete(actions.count)
    if isinstance(actions, MultiDiscreteActions):
        return spaces.MultiDiscrete(list(actions.counts))
    if isinstance(actions, BoxActions):
        low, high = (np.reshape(bound, actions.shape).astype(np.float32) for bound in (actions.low, actions.high))
        return spaces.Box(low, high, dtype=np.float32)
    raise EnvError(f"`{name}` has actions of its own kind", "give the Gymnasium env of the same name")
