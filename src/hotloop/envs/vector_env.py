"""Envs for anybody's loop: any env, several at once, as a Gymnasium VectorEnv."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from gymnasium import Env, Space, spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from hotloop.core.errors import ArgumentError, EnvError
from hotloop.core.rng import derive_seed
from hotloop.core.types import (
    ActionSpec,
    Array,
    ArraySpec,
    BoxActions,
    DiscreteActions,
    EnvStep,
    MultiDiscreteActions,
    ObsSpec,
    VecEnv,
    map_obs,
)
from hotloop.envs.registry import is_native, make_envs
from hotloop.inputs.specs import read_action_spec
from hotloop.inputs.values import Values, require_count
from hotloop.presets.env_settings import EnvSettings

OURS = {"hotloop/Snake-v0": "snake", "hotloop/SFC-v0": "sfc", "hotloop/Durotaxis-v0": "durotaxis"}


def vector(
    env: str | Callable[..., Env],
    num_envs: int = 1,
    *,
    workers: int = 0,
    seed: int = 0,
    max_episode_steps: int = 0,
    **options: Any,
) -> Vector:
    """`num_envs` of an env, stepped together: a `gymnasium.vector.VectorEnv` for anybody's loop.

    >>> import hotloop
    >>> envs = hotloop.vector("CartPole-v1", num_envs=8, seed=1)
    >>> obs, info = envs.reset()
    >>> ends = 0
    >>> for _ in range(200):
    ...     next_obs, reward, terminated, truncated, info = envs.step(envs.action_space.sample())
    ...     led_to = hotloop.final_obs(next_obs, info)      # of each action: for `replay.add`
    ...     ends += int((terminated | truncated).sum())
    >>> obs.shape, led_to.shape, ends > 0
    ((8, 4), (8, 4), True)
    >>> envs.close()

    `env` is a Gymnasium id (`module:Id-v0` imports the module first), `path/to/file.py:Class`, one of ours (`cartpole`,
    `snake`, `sfc`), a class, or a function that makes an env; `options` go to its constructor. Episodes that end start
    anew in the same step: `obs` begins the next one, and what the last action led to is in `info["final_obs"]`, as with
    Gymnasium's own vector envs; `hotloop.final_obs` puts the two together. Env i is seeded with `seed` + i, as
    Gymnasium does it. `workers` steps envs given by name in so many processes; their infos stay there, masks aside.

    What comes out is what networks take: float32 or bytes, one-hot where the space is Discrete, actions counted from 0;
    the spaces say so. Arrays that were handed out are not written to again.
    """
    return Vector(env, num_envs, workers, seed, max_episode_steps, options)


def final_obs(obs: Any, info: Mapping[str, Any]) -> Any:
    """What the last actions led to, of all envs [N, ...], from what a vector env's `step` returned: where an episode
    ended its last observation, elsewhere `obs`. It is what `Replay.add` and `Rollout.add` want to know.

    >>> import hotloop, numpy
    >>> obs = numpy.array([[0.0], [5.0]])                       # env 0 has begun anew
    >>> info = {"final_obs": numpy.array([[9.0], None], object), "_final_obs": numpy.array([True, False])}
    >>> hotloop.final_obs(obs, info)
    array([[9.],
           [5.]])

    Works through wrappers, and with any vector env of Gymnasium's that resets in the same step; one that resets in the
    next step shows the last observation as `obs`, which is returned as it is.
    """
    if not isinstance(info, Mapping) or _is_info(obs):
        raise ArgumentError("`obs` and `info` are the wrong way round", "`hotloop.final_obs(next_obs, info)`")
    if "final_obs" not in info:
        return obs
    whole = map_obs(np.copy, obs)
    for index in np.flatnonzero(info["_final_obs"]):
        map_obs(lambda part, row, index=index: part.__setitem__(index, row), whole, info["final_obs"][index])
    return whole


def _is_info(obs: Any) -> bool:
    """Observations may be dicts too, but have parts, and none beside a mask of the envs that have it."""
    return isinstance(obs, Mapping) and (not obs or any(f"_{name}" in obs for name in obs))


def final_mask(info: Mapping[str, Any]) -> Any:
    """Which actions are allowed in what the last actions led to, of all envs [N, A], from the `info` of a vector env's
    `step`: where an episode ended the mask of its last observation, elsewhere that of now. It is the
    `next_action_mask` of `Replay.add`, and belongs to `final_obs`.

    >>> import hotloop, numpy
    >>> now, last = numpy.array([[True, True], [True, False]]), numpy.array([[False, True], [False, False]])
    >>> info = {"action_mask": now, "final_info": {"action_mask": last}, "_final_info": numpy.array([True, False])}
    >>> hotloop.final_mask(info)                                # env 0 has begun anew
    array([[False,  True],
           [ True, False]])

    An env tells its masks in the `info` of `reset` and `step`, as `info["action_mask"]`; `hotloop.vector` also asks a
    method `action_masks()`.
    """
    if not isinstance(info, Mapping) or "action_mask" not in info:
        found = "has no `action_mask`" if isinstance(info, Mapping) else f"is a {type(info).__name__}"
        hint = 'give the last value of `envs.step`; the env must say `info["action_mask"]`, also in `reset`'
        raise ArgumentError(f"`info` {found}", hint)
    if "final_info" not in info:
        return info["action_mask"]
    ended, last = np.asarray(info["_final_info"]), info["final_info"]
    if "action_mask" not in last or not np.all(np.asarray(last.get("_action_mask", True)) | ~ended):
        raise ArgumentError("`info` has no `action_mask` of an episode that ended", "the env must say it at every step")
    return np.where(ended[:, None], last["action_mask"], info["action_mask"])


class Vector(VectorEnv[Any, Any, Any]):
    """Made by `hotloop.vector`."""

    metadata = {"autoreset_mode": AutoresetMode.SAME_STEP, "render_modes": []}

    def __init__(
        self, env: Any, num_envs: int, workers: int, seed: int, max_episode_steps: int, options: dict[str, Any]
    ) -> None:
        self.num_envs = require_count("num_envs", num_envs)
        self._env: Any = OURS.get(env, env) if isinstance(env, str) else env
        self._options = options
        self._settings = self._read(workers, max_episode_steps)
        self._seeds = self._seeds_from(seed)
        self._envs = self._make()
        self._is_new, self._is_started = True, False
        try:
            obs_spec, own_space = self._envs.obs_spec, getattr(self._envs, "observation_space", None)
            self.single_observation_space = _obs_space(self._settings.id, obs_spec, own_space)
            self.single_action_space = _action_space(self._settings.id, self._envs.action_spec)
        except BaseException:
            self._envs.close()
            raise
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        action = read_action_spec(self.single_action_space, None)
        self._actions = Values("actions", action.array, self.num_envs, action.bounds)
        self._all = np.ones(self.num_envs, np.bool_)

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start an episode in every env; a `seed` (env i gets `seed` + i), or one for each env, seeds them anew."""
        self._require_open()
        if options:
            raise ArgumentError("`options` of `reset` are not handed on", "give them to the env's constructor")
        if seed is not None:
            self._reseed(self._seeds_from(seed))
        obs, mask = self._envs.reset()
        self._is_new, self._is_started = False, True
        return obs, self._with_now({}, mask)

    def step(self, actions: Any) -> tuple[Any, Array, Array, Array, dict[str, Any]]:
        """One action of each env, [N, ...]: obs, reward, terminated, truncated, info."""
        self._require_open()
        if not self._is_started:
            raise EnvError("`step` was called before `reset`", "call `obs, info = envs.reset()` first")
        step = self._envs.step(self._actions(actions).copy())
        return step.obs, step.reward, step.terminated, step.truncated, self._info(step)

    def close_extras(self, **kwargs: Any) -> None:
        self._envs.close()

    def _info(self, step: EnvStep) -> dict[str, Any]:
        """As Gymnasium's own vector envs give it: each entry with a mask of the envs that have it."""
        info: dict[str, Any] = {}
        if step.final_obs is not step.obs:  # as where nothing ended
            finals = getattr(self._envs, "final_infos", None)
            for index in np.flatnonzero(step.terminated | step.truncated).tolist():
                said = _row(step.episode_stats, index) if finals is None else finals[index]
                if step.final_action_mask is not None:
                    said = said | {"action_mask": step.final_action_mask[index]}
                ended = _row(step.final_obs, index)
                info = self._add_info(info, {"final_obs": ended, "final_info": said}, index)
        return self._with_now(info, step.action_mask)

    def _with_now(self, info: dict[str, Any], mask: Array | None) -> dict[str, Any]:
        """With what envs say beside `obs`."""
        for index, said in enumerate(getattr(self._envs, "infos", ())):
            if said:
                info = self._add_info(info, said, index)
        return info if mask is None else info | {"action_mask": mask, "_action_mask": self._all.copy()}

    def _read(self, workers: int, max_episode_steps: int) -> EnvSettings:
        name = self._env
        if isinstance(name, Env | VectorEnv):
            raise ArgumentError(
                f"`env` is a {type(name).__name__} already, one object", "give its class, or a function that makes it"
            )
        if isinstance(name, type) and issubclass(name, VectorEnv):
            raise ArgumentError(f"`env` is {name.__name__}, which is a vector env", "use it as it is")
        if not isinstance(name, str) and not callable(name):
            raise ArgumentError(f"`env` is {name!r}; expected an id, a class or a function", 'e.g. "CartPole-v1"')
        if workers and not isinstance(name, str):
            raise ArgumentError(
                "`workers` is given, but `env` has no name by which another process could make it",
                "give an id, or `path/to/file.py:Class`",
            )
        env_id = name if isinstance(name, str) else getattr(name, "__name__", type(name).__name__)
        return EnvSettings(
            id=env_id,
            num_envs=self.num_envs,
            workers=workers,
            max_episode_steps=max_episode_steps,
            dict_obs="keep",
            options=self._options if isinstance(name, str) else {},
        )

    def _make(self) -> VecEnv:
        if isinstance(self._env, str):
            envs = make_envs(self._settings, self.num_envs, self._seeds)
        else:
            from hotloop.envs.gymnasium_make import make_from_factory

            envs = make_from_factory(self._settings, self.num_envs, self._seeds, lambda: self._env(**self._options))
        return envs

    def _seeds_from(self, seed: Any) -> Array:
        """One for each env; those of ours are drawn from a stream named after the env."""
        is_list = isinstance(seed, list | tuple | np.ndarray)
        numbers = list(seed) if is_list else [require_count("seed", seed, 0) + i for i in range(self.num_envs)]
        if len(numbers) != self.num_envs:
            raise ArgumentError(f"`seed` has {len(numbers)} entries for {self.num_envs} envs", "give one for each")
        numbers = [require_count("seed", number, 0) for number in numbers]
        name = self._settings.id
        if isinstance(self._env, str) and is_native(name):
            numbers = [derive_seed(number, name) for number in numbers]
        return np.array(numbers, np.uint64)

    def _reseed(self, seeds: Array) -> None:
        if self._is_new and np.array_equal(seeds, self._seeds):
            return
        self._seeds = seeds
        if hasattr(self._envs, "reseed") and not is_native(self._settings.id):
            self._envs.reseed(seeds)
        else:  # made anew
            self._envs.close()
            self._envs = self._make()

    def _require_open(self) -> None:
        if self.closed:
            raise EnvError(f"`{self._settings.id}` was closed", "make the envs anew")


def _row(of: Any, index: int) -> Any:
    return map_obs(lambda part: part[index], of)


def _obs_space(env_id: str, spec: ObsSpec, source: Any = None) -> Space[Any]:
    """Of what is handed out; bounds are those of the env's own space, where it tells them."""
    if isinstance(spec, dict):
        parts = source.spaces if isinstance(source, spaces.Dict) else {}
        return spaces.Dict({name: _obs_space(env_id, part, parts.get(name)) for name, part in spec.items()})
    if not isinstance(spec, ArraySpec):
        raise EnvError(
            f"`{env_id}` hands out graphs of changing size, which a VectorEnv cannot",
            "train on it with `hotloop train`, or make single envs with `gymnasium.make`",
        )
    if isinstance(source, spaces.Box) and source.shape == spec.shape:
        with np.errstate(over="ignore"):  # of float64, beyond float32: infinite
            low, high = source.low.astype(spec.dtype), source.high.astype(spec.dtype)
        return spaces.Box(low, high, spec.shape, spec.dtype.type)
    if isinstance(source, spaces.Discrete):
        return spaces.Box(0.0, 1.0, spec.shape, np.float32)
    if spec.dtype == np.uint8:
        return spaces.Box(0, 255, spec.shape, np.uint8)
    return spaces.Box(-np.inf, np.inf, spec.shape, spec.dtype.type)


def _action_space(env_id: str, actions: ActionSpec) -> Space[Any]:
    if isinstance(actions, DiscreteActions):
        return spaces.Discrete(actions.count)
    if isinstance(actions, MultiDiscreteActions):
        return spaces.MultiDiscrete(list(actions.counts))
    if isinstance(actions, BoxActions):
        low, high = (np.array(bound, np.float32).reshape(actions.shape) for bound in (actions.low, actions.high))
        return spaces.Box(low, high, actions.shape, np.float32)
    raise EnvError(
        f"`{env_id}` takes choices and numbers at once, which `vector` does not hand on",
        "wrap it in `gymnasium.wrappers.TransformAction`",
    )
