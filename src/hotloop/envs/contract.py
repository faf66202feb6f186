"""What every VecEnv promises, checked by playing it: `hotloop envs check ID`, and one test over all of ours."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from hotloop.core.errors import HotloopError
from hotloop.core.graphs import Graphs, GraphSpec
from hotloop.core.types import Array, ArraySpec, Obs, VecEnv
from hotloop.envs import contract_play
from hotloop.envs.contract_play import (
    Chooser,
    Factory,
    PlayRecording,
    copy_of,
    difference,
    play,
    play_on,
    same,
    seeds_for,
)
from hotloop.envs.registry import make_envs
from hotloop.presets.env_settings import EnvSettings

NUM_ENVS = 3
SHORT_EPISODE = 4


class BreachError(Exception):
    """A promise that was not kept, in words."""


class NotChecked(Exception):
    """Nothing could be checked, and why."""


@dataclass(frozen=True, slots=True)
class ContractResult:
    name: str
    ok: bool
    detail: str
    checked: bool = True
    """False: nothing was found because nothing could be looked at; `detail` says why."""


def check_env(target: EnvSettings | Factory, env_steps: int = 600) -> list[ContractResult]:
    """Play the env for about `env_steps` per check and report each promise."""
    factory = partial(make_envs, target) if isinstance(target, EnvSettings) else target
    checks = dict(CHECKS)
    if isinstance(target, EnvSettings):
        checks["max_episode_steps truncates"] = partial(check_limit, target)
    return [_result(name, check, factory, env_steps) for name, check in checks.items()]


def _result(name: str, check: Callable[[Factory, int], str], factory: Factory, env_steps: int) -> ContractResult:
    try:
        return ContractResult(name, True, check(factory, env_steps))
    except NotChecked as reason:
        return ContractResult(name, True, str(reason), checked=False)
    except BreachError as breach:
        return ContractResult(name, False, str(breach))
    except HotloopError as error:
        return ContractResult(name, False, error.message)
    except Exception as error:
        return ContractResult(name, False, f"raised {type(error).__name__}: {error}")


def check_shapes(factory: Factory, env_steps: int) -> str:
    envs = factory(NUM_ENVS, seeds_for(NUM_ENVS))
    specs = envs.obs_spec if isinstance(envs.obs_spec, dict) else {"": envs.obs_spec}
    num_parts = len(getattr(envs, "reward_parts", ()))
    envs.close()
    recording = play(factory, NUM_ENVS, env_steps)
    for field, obs in _observations(recording):
        parts = obs if isinstance(obs, dict) else {"": obs}
        _require(parts.keys() == specs.keys(), f"`{field}` has parts {list(parts)} where {list(specs)} was declared")
        for name, part in parts.items():
            _require_spec(f"{field} {name}".strip(), part, specs[name])
    for step in recording.steps:
        _require((step.reward_parts is not None) == bool(num_parts), f"{num_parts} `reward_parts` were declared")
        if num_parts:
            _require_spec("reward_parts", step.reward_parts, ArraySpec((num_parts,)))
        _require_spec("reward", step.reward, ArraySpec((), np.dtype(np.float32)))
        for name in ("terminated", "truncated"):
            _require_spec(name, getattr(step, name), ArraySpec((), np.dtype(np.bool_)))
    return f"{len(recording.steps) * NUM_ENVS} env steps"


def check_finite(factory: Factory, env_steps: int) -> str:
    recording = play(factory, NUM_ENVS, env_steps)
    for field, obs in _observations(recording):
        for part in _measures(obs):
            _require(bool(np.isfinite(part).all()), f"`{field}` holds NaN or infinity")
    for step in recording.steps:
        _require(bool(np.isfinite(step.reward).all()), "`reward` holds NaN or infinity")
        parts_finite = step.reward_parts is None or np.isfinite(step.reward_parts).all()
        _require(bool(parts_finite), "`reward_parts` holds NaN or infinity")
    return ""


def check_bounds(factory: Factory, env_steps: int) -> str:
    """Wrappers and libraries that scale by the bounds of a Box take them at their word."""
    envs = factory(NUM_ENVS, seeds_for(NUM_ENVS))
    space, raw_obs = getattr(envs, "observation_space", None), getattr(envs, "raw_obs", None)
    envs.close()
    if space is None or raw_obs is None:
        raise NotChecked("it declares shapes and no bounds")
    from hotloop.envs.spaces import obs_bounds

    bounds = obs_bounds(space, raw_obs)
    for field, obs in _observations(play(factory, NUM_ENVS, env_steps)):
        for (name, part, low), (_, _, high) in zip(*(_pairs(obs, bound) for bound in bounds), strict=True):
            outside = (part < low) | (part > high)
            if outside.any():
                place = tuple(int(index) for index in np.argwhere(outside)[0])
                within = f"{low[place[1:]]:g} to {high[place[1:]]:g}"
                what = f"`{field}` {name}".strip()
                raise BreachError(f"{what} holds {part[place]:g} where its space has {within}")
    return ""


def check_final_obs(factory: Factory, env_steps: int) -> str:
    for step in play(factory, NUM_ENVS, env_steps).steps:
        running = ~(step.terminated | step.truncated)
        for name, one, other in _pairs(step.obs, step.final_obs):
            equal = same(one[running], other[running])
            _require(equal, f"`final_obs` {name} differs from `obs` although no episode ended")
    return ""


def check_restart(factory: Factory, env_steps: int) -> str:
    """Where an episode ended, `obs` is another one than `final_obs`, or the next step only resets (`valid` False)."""
    steps = play(factory, NUM_ENVS, env_steps).steps
    ended = restarted = 0
    for step, following in zip(steps[:-1], steps[1:], strict=True):
        for index in np.flatnonzero(step.terminated | step.truncated):
            ended += 1
            later = following.valid is not None and not following.valid[index]
            pairs = _pairs(step.obs, step.final_obs)
            restarted += later or any(not same(one[[index]], other[[index]]) for _, one, other in pairs)
    constant = all(
        same(one[[0]], other[[row]]) for _, one, other in _pairs(steps[0].obs, steps[-1].obs) for row in range(NUM_ENVS)
    )
    _require(bool(restarted) or not ended or constant, f"{ended} episodes ended, but `obs` never began a new one")
    if not ended:
        raise NotChecked(f"no episode ended in {env_steps} env steps; `--env-steps` plays more")
    return f"{ended} episodes ended"


def check_masks(factory: Factory, env_steps: int) -> str:
    envs = factory(NUM_ENVS, seeds_for(NUM_ENVS))
    present, count = envs.has_action_mask, envs.action_spec.mask_width
    envs.close()
    recording = play(factory, NUM_ENVS, env_steps)
    masks = [recording.first_mask]
    masks += [mask for step in recording.steps for mask in (step.action_mask, step.final_action_mask)]
    for mask in masks:
        _require(
            (mask is not None) == present, f"`has_action_mask` is {present}, but the mask is {type(mask).__name__}"
        )
        if mask is not None:
            _require_spec("action_mask", mask, ArraySpec((count,), np.dtype(np.bool_)))
            _require(bool(mask.any(axis=1).all()), "`action_mask` allows no action")
    if not present:
        raise NotChecked("it has no action masks")
    return ""


def check_untouched(factory: Factory, env_steps: int) -> str:
    envs = factory(NUM_ENVS, seeds_for(NUM_ENVS))
    obs, mask = envs.reset()
    before, seen, kept = copy_of(obs), obs, []
    chooser = Chooser(NUM_ENVS)
    for _ in range(max(2, env_steps // NUM_ENVS)):
        [step] = play_on(envs, chooser, seen, mask, 1)
        kept.append((step, copy_of(step)))
        seen, mask = step.obs, step.action_mask
    envs.close()
    for name, one, other in _pairs(obs, before):
        _require(same(one, other), f"the first `obs` {name} was written to by a later step")
    for step, copy in kept:
        field = difference(step, copy)
        _require(not field, f"`{field}` was written to by a later step")
    return ""


def check_seeds(factory: Factory, env_steps: int) -> str:
    _require_same(play(factory, NUM_ENVS, env_steps), play(factory, NUM_ENVS, env_steps), slice(None))
    return ""


def check_independence(factory: Factory, env_steps: int) -> str:
    envs = factory(1, seeds_for(1))
    envs.close()
    if not getattr(envs, "seeds_each_env", True):
        raise NotChecked("not promised: one generator serves all envs")
    alone, together = play(factory, 1, env_steps // NUM_ENVS), play(factory, NUM_ENVS, env_steps)
    _require_same(alone, together, slice(0, 1))
    return ""


def check_state(factory: Factory, env_steps: int) -> str:
    calls = max(1, env_steps // NUM_ENVS // 2)
    one = factory(NUM_ENVS, seeds_for(NUM_ENVS))
    if not one.saves_state:
        one.close()
        raise NotChecked("it cannot save its state: a resumed run begins new episodes")
    obs, mask = one.reset()
    last = play_on(one, Chooser(NUM_ENVS), obs, mask, calls)[-1]
    state, obs, mask = one.get_state(), last.obs, last.action_mask
    saved = {name: value.copy() for name, value in state.items()}
    expected = play_on(one, Chooser(NUM_ENVS), obs, mask, calls)
    changed = [name for name in saved if not np.array_equal(saved[name], state[name])]
    _require(not changed, f"`get_state` gave {changed} that later steps wrote to")
    other = factory(NUM_ENVS, seeds_for(NUM_ENVS, "other"))
    other.reset()
    other.set_state(saved)
    restored = play_on(other, Chooser(NUM_ENVS), obs, mask, calls)
    _close_all(one, other)
    for number, (left, right) in enumerate(zip(expected, restored, strict=True)):
        field = difference(left, right)
        _require(not field, f"`{field}` differs {number + 1} steps after `set_state`")
    return ""


def check_close(factory: Factory, env_steps: int) -> str:
    envs = factory(1, seeds_for(1))
    _close_all(envs, envs)
    return ""


def check_limit(settings: EnvSettings, factory: Factory, env_steps: int) -> str:
    """With a limit of a few steps no episode is longer, and one that is as long is truncated."""
    short = replace(settings, max_episode_steps=SHORT_EPISODE)
    lengths = np.zeros(NUM_ENVS, np.int64)
    for step in play(partial(make_envs, short), NUM_ENVS, env_steps).steps:
        lengths += 1 if step.valid is None else step.valid
        late = lengths >= SHORT_EPISODE
        _require(bool(step.truncated[late].all()), f"an episode was not truncated after {SHORT_EPISODE} steps")
        lengths[step.terminated | step.truncated] = 0
    return ""


CHECKS: dict[str, Callable[[Factory, int], str]] = {
    "shapes and dtypes are as declared": check_shapes,
    "observations and rewards are finite": check_finite,
    "observations lie within their space": check_bounds,
    "final_obs equals obs while an episode runs": check_final_obs,
    "a finished episode starts anew": check_restart,
    "action masks always allow something": check_masks,
    "arrays handed out are left alone": check_untouched,
    "the same seeds give the same episodes": check_seeds,
    "an env does not depend on num_envs": check_independence,
    "a saved state continues exactly": check_state,
    "close may be called twice": check_close,
}


def _observations(recording: PlayRecording) -> Iterator[tuple[str, Obs]]:
    yield "obs", recording.first_obs
    for step in recording.steps:
        yield "obs", step.obs
        yield "final_obs", step.final_obs


def _measures(obs: Obs) -> list[Array]:
    if isinstance(obs, Graphs):
        return contract_play.finite(obs)
    return list(obs.values()) if isinstance(obs, dict) else [obs]


def _pairs(one: Any, other: Any) -> list[tuple[str, Any, Any]]:
    if isinstance(one, dict):
        return [(f"part `{name}`", one[name], other[name]) for name in one]
    return [("", one, other)]


def _require_spec(name: str, array: Any, spec: ArraySpec | GraphSpec) -> None:
    if isinstance(spec, GraphSpec):
        fault = contract_play.fault_in(array, spec, NUM_ENVS)
        return _require(not fault, f"`{name}` {fault}")
    expected = (NUM_ENVS, *spec.shape)
    given = f"{getattr(array, 'dtype', type(array).__name__)}{getattr(array, 'shape', '')}"
    fits = isinstance(array, np.ndarray) and array.shape == expected and array.dtype == spec.dtype
    _require(fits, f"`{name}` is {given} where {spec.dtype}{expected} was expected")


def _require_same(one: PlayRecording, other: PlayRecording, envs: slice) -> None:
    for name, left, right in _pairs(one.first_obs, other.first_obs):
        _require(same(left[envs], right[envs]), f"the first `obs` {name} differs")
    for number, steps in enumerate(zip(one.steps, other.steps, strict=True)):
        field = difference(*steps, envs)
        _require(not field, f"`{field}` differs after {number + 1} steps")


def _close_all(*envs: VecEnv) -> None:
    for one in envs:
        one.close()


def _require(ok: bool, complaint: str) -> None:
    if not ok:
        raise BreachError(complaint)
