"""Service-chain provisioning for anybody's agent: importing this module registers `hotloop/SFC-v0` with Gymnasium.

    gymnasium.make("hotloop.workloads.sfc.gymnasium_env:hotloop/SFC-v0", max_data_centres=8)
    gymnasium.make_vec("hotloop.workloads.sfc.gymnasium_env:hotloop/SFC-v0", num_envs=32)

Observations are a Dict of three parts; `info["action_mask"]` tells which actions can be carried out. Env i of a batch
seeded with s plays what a single env seeded with s + i plays.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from hotloop.core.errors import EnvError
from hotloop.core.rng import derive_seed
from hotloop.core.types import Array
from hotloop.workloads.sfc import draw
from hotloop.workloads.sfc.env import PARTS, Sfc
from hotloop.workloads.sfc.tables_kernels import NUM_ACTIONS

ENV_ID = "hotloop/SFC-v0"
RENDER_MODES = ["rgb_array", "ansi"]
HIGHEST = 2.0  # log1p(count) / 5 of as many requests as there can be, and a little more
Parts = dict[str, Array]


class SfcEnv(gymnasium.Env[Parts, Any]):
    """One network; keyword arguments are the fields of `SfcSettings`. `info` of a finished episode has its measures."""

    metadata = {"render_modes": RENDER_MODES, "render_fps": 50}

    def __init__(self, render_mode: str | None = None, **options: Any) -> None:
        self.render_mode = _checked_mode(render_mode)
        self._sfc = Sfc(1, np.zeros(1, np.uint64), **options)
        self._sfc.hold_finished()
        self.observation_space, self.action_space = _spaces()
        self._seeded = False

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Parts, dict[str, Any]]:
        super().reset(seed=seed)
        if seed is not None or not self._seeded:
            _seed(self._sfc, [seed], self.np_random)
            self._seeded = True
        obs, mask = self._sfc.reset()
        return _row(obs, 0), {"action_mask": mask[0]}

    def step(self, action: Any) -> tuple[Parts, float, bool, bool, dict[str, Any]]:
        if not self.action_space.contains(action):
            raise EnvError(f"action {action!r} is not in {self.action_space}", "0 is the first action")
        step = self._sfc.step(np.array([action], np.int64))
        terminated, truncated = bool(step.terminated[0]), bool(step.truncated[0])
        info: dict[str, Any] = {"action_mask": step.action_mask[0]}  # type: ignore[index]
        if terminated or truncated:
            info |= {name: values[0].item() for name, values in step.episode_stats.items()}
        return _row(step.obs, 0), float(step.reward[0]), terminated, truncated, info

    def render(self) -> Any:
        return _rendered(self._sfc, 0, self.render_mode)


class SfcVectorEnv(VectorEnv[Parts, Any, Array]):
    """`num_envs` networks in one call each step; episodes that end start anew in the same step."""

    metadata = {"render_modes": RENDER_MODES, "render_fps": 50, "autoreset_mode": AutoresetMode.SAME_STEP}

    def __init__(self, num_envs: int = 1, render_mode: str | None = None, **options: Any) -> None:
        self.num_envs = num_envs
        self.render_mode = _checked_mode(render_mode)
        self._sfc = Sfc(num_envs, np.zeros(num_envs, np.uint64), **options)
        self.single_observation_space, self.single_action_space = _spaces()
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._seeded = False

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Parts, dict[str, Any]]:
        seeds = seed if isinstance(seed, list) else [None if seed is None else seed + i for i in range(self.num_envs)]
        if len(seeds) != self.num_envs:
            raise EnvError(f"{len(seeds)} seeds were given for {self.num_envs} envs", "give one seed per env")
        super().reset(seed=seeds[0])
        if not self._seeded or any(one is not None for one in seeds):
            _seed(self._sfc, seeds, self.np_random)
            self._seeded = True
        obs, mask = self._sfc.reset()
        return obs, {"action_mask": mask, "_action_mask": np.ones(self.num_envs, bool)}  # type: ignore[return-value]

    def step(self, actions: Any) -> tuple[Parts, Array, Array, Array, dict[str, Any]]:
        step = self._sfc.step(np.ascontiguousarray(actions, np.int64))
        done = step.terminated | step.truncated
        info: dict[str, Any] = {"action_mask": step.action_mask, "_action_mask": np.ones(self.num_envs, bool)}
        if done.any():
            final = step.episode_stats | {"action_mask": step.final_action_mask}
            info |= {"final_obs": _as_objects(step.final_obs, done), "_final_obs": done}
            info |= {"final_info": final | {f"_{name}": done for name in final}, "_final_info": done}
        return step.obs, step.reward, step.terminated, step.truncated, info

    def render(self) -> tuple[Any, ...]:
        return tuple(_rendered(self._sfc, index, self.render_mode) for index in range(self.num_envs))


def register() -> None:
    """Make the id known to Gymnasium; again does nothing."""
    if ENV_ID not in gymnasium.registry:
        here = __name__
        gymnasium.register(ENV_ID, entry_point=f"{here}:SfcEnv", vector_entry_point=f"{here}:SfcVectorEnv")


def _spaces() -> tuple[Any, spaces.Discrete]:
    boxes = {name: spaces.Box(0.0, HIGHEST, spec.shape, np.float32) for name, spec in PARTS.items()}
    return spaces.Dict(boxes), spaces.Discrete(NUM_ACTIONS)  # type: ignore[arg-type]


def _row(obs: Any, index: int) -> Parts:
    return {name: part[index] for name, part in obs.items()}


def _seed(sfc: Sfc, seeds: list[int | None], generator: np.random.Generator) -> None:
    """Start each network's generator from its seed, or from a draw where none is given."""
    numbers = [int(generator.integers(2**63)) if seed is None else seed for seed in seeds]
    streams = np.array([derive_seed(number, "sfc") for number in numbers], np.uint64)
    sfc.reseed(streams)


def _as_objects(obs: Any, done: Array) -> Array:
    """Rows where done as Gymnasium's own vector envs hand them over: an object per env, None elsewhere."""
    rows = np.full(len(done), None, dtype=object)
    for index in np.flatnonzero(done):
        rows[index] = _row(obs, int(index))
    return rows


def _checked_mode(render_mode: str | None) -> str | None:
    if render_mode is not None and render_mode not in RENDER_MODES:
        raise EnvError(f"`render_mode` is {render_mode!r}", f"choose one of {', '.join(RENDER_MODES)}")
    return render_mode


def _rendered(sfc: Sfc, index: int, render_mode: str | None) -> Any:
    if render_mode == "rgb_array":
        return draw.frame(sfc.get_state(), index)
    return draw.text(sfc.get_state(), index) if render_mode == "ansi" else None


register()
