"""What a run's newest checkpoint says of itself: looked at before anything is built for it, and held against what the
session that is to continue it would have saved itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from hotloop.core.errors import CheckpointError, HotloopError, RunError
from hotloop.core.schedules import Counters
from hotloop.core.settings import as_tree, build, flatten
from hotloop.core.values import shortened
from hotloop.core.vocabulary import upgraded
from hotloop.loop.agents import misfits_named
from hotloop.loop.sizes import require_weights
from hotloop.loop.spec_data import actions_from_data, spec_from_data, torso_change
from hotloop.presets.registry import RunSettings, class_of
from hotloop.runs.checkpoint_files import newest_first
from hotloop.runs.directory import Run
from hotloop.runs.files import canonical_json, require_shallow
from hotloop.runs.manifest import check_sizes, read_manifest
from hotloop.runs.tensors import read_shapes

HARMLESS = ("run_dir", "trust", "checkpoint.keep", "replay.memory", "replay.folder")
"""Settings that may change while a run stands still: what it computes does not depend on them."""
EXTENDED = ("total_env_steps", "extended_from")
FREE_LENGTH = ("metrics/returns", "metrics/lengths", "metrics/terms", "best/parameters", "replay/sampler/leaves")
FREE_SHAPE = ("metrics/pending", "envs/", "collector/last_obs/", "replay/ring/rows")
"""Arrays whose first axis, or whose shape, differs from moment to moment; whoever loads them looks at them."""
LARGEST_COUNT = 2**62


def require_resumable(run: Run, settings: RunSettings, accept_changes: bool) -> None:
    """Refuse a run whose settings were changed since it was saved, unless that is accepted, and a checkpoint that does
    not fit them; both from plain files and headers, before anything is allocated."""
    for path in newest_first(run.checkpoints):
        try:
            manifest = read_manifest(path)
            check_sizes(path, manifest)
        except CheckpointError:  # whoever loads it says so
            continue
        changed = changed_settings(manifest.meta.get("settings"), run.settings())
        if changed and not accept_changes:
            raise RunError(
                f"settings.toml of {run.path} was changed since its checkpoint was saved: {told(changed)}",
                "put it back, and the run ends as it would have; "
                f"`hotloop resume '{run.path}' --accept-changes` goes on with it as it is now",
            )
        if (words := torso_change(manifest.meta, settings)) and not accept_changes:
            raise RunError(words, f"put it back, or `hotloop resume '{run.path}' --accept-changes`")
        with misfits_named(path):
            specs = spec_from_data(manifest.meta["obs_spec"]), actions_from_data(manifest.meta)
            shapes = read_shapes(path / "learner.safetensors")
            shape = shapes["weights" if "weights" in shapes else "online"]
            require_weights(shape[0] if len(shape) == 1 else -1, settings, *specs)
        return


def changed_settings(saved: Any, now: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Names of settings with their values then and now. Checkpoints of older versions do not hold them: no change."""
    if not isinstance(saved, dict):
        return {}
    try:
        require_shallow(saved)
    except ValueError:
        raise CheckpointError("the settings in the newest checkpoint are none") from None
    before, after = _flat(saved), _flat(now)
    if extension(saved, now):
        before |= {name: after[name] for name in EXTENDED}
    names = sorted(name for name in before.keys() | after.keys() if name not in HARMLESS)
    pairs = {name: (before.get(name), after.get(name)) for name in names}
    return {name: pair for name, pair in pairs.items() if canonical_json(pair[0]) != canonical_json(pair[1])}


def extension(saved: Any, now: Mapping[str, Any]) -> tuple[int, int] | None:
    """For how many env steps the run was when it was saved, and for how many now, where `extend` made the change."""
    if not isinstance(saved, dict):
        return None
    before, after = _flat(saved), _flat(now)
    total, new = before.get("total_env_steps"), after.get("total_env_steps")
    planned = before.get("extended_from") or total
    if isinstance(total, int) and isinstance(new, int) and new > total and after.get("extended_from") == planned:
        return total, new
    return None


def extend(run: Run, settings: RunSettings, total_env_steps: int) -> None:
    """Let a run go on to so many env steps, finished or not; its intervals stay what they were."""
    if total_env_steps < settings.total_env_steps:
        raise RunError(
            f"{run.path} is for {settings.total_env_steps:,} env steps and cannot be cut to {total_env_steps:,}",
            "give a larger `total_env_steps`",
        )
    if total_env_steps > settings.total_env_steps:
        longer = {"total_env_steps": total_env_steps, "extended_from": settings.planned_env_steps}
        run.rewrite_settings(run.settings() | longer)
    if run.finished and (made := run.result()["env_steps"]) < total_env_steps:
        if settings.total_episodes:
            raise RunError(f"{run.path} ended by `total_episodes`, which more env steps do not change")
        run.set_result_aside(made)


def told(changed: Mapping[str, tuple[Any, Any]]) -> str:
    words = [f"`{name}` from {shortened(then)} to {shortened(now)}" for name, (then, now) in changed.items()]
    return "; ".join(words[:5]) + (f" and {len(words) - 5} more" if len(words) > 5 else "")


def _flat(tree: Mapping[str, Any]) -> dict[str, Any]:
    """With defaults in their places and one spelling for each value, where this hotloop understands them."""
    try:
        tree = upgraded(tree)
        return flatten(as_tree(build(class_of(tree), tree | {"trust": False})))
    except HotloopError:
        return flatten(tree)


def require_like(saved: Any, own: Any, path: str = "") -> None:
    """Raise ValueError where something saved is not of the kind that the session has in its place: whatever loads it
    may hand it to machine code, which looks at nothing."""
    if isinstance(own, Mapping):
        if not isinstance(saved, Mapping):
            raise ValueError(f"`{path}` is no table")
        for name in own.keys() & saved.keys():
            require_like(saved[name], own[name], f"{path}/{name}".lstrip("/"))
    elif isinstance(own, np.ndarray):
        _require_array(saved, own, path)
    elif isinstance(own, int) and (isinstance(saved, bool) or not isinstance(saved, int)):
        raise ValueError(f"`{path}` is no whole number")
    elif isinstance(own, float) and (isinstance(saved, bool) or not isinstance(saved, int | float)):
        raise ValueError(f"`{path}` is no number")


def _require_array(saved: Any, own: np.ndarray, path: str) -> None:
    if not isinstance(saved, np.ndarray):
        raise ValueError(f"`{path}` is no array")
    free = 1 if path in FREE_LENGTH else 0
    shape_free = path.startswith(FREE_SHAPE)
    if (
        saved.dtype != own.dtype
        or saved.ndim != own.ndim
        or (not shape_free and saved.shape[free:] != own.shape[free:])
    ):
        raise ValueError(f"`{path}` is {saved.dtype}{list(saved.shape)}, expected {own.dtype}{list(own.shape)}")


def require_counts(counters: Mapping[str, Any]) -> None:
    """Of a run; below what a 64-bit number can hold, with room to go on."""
    for name in (*Counters.__slots__, *(["rollbacks"] if "rollbacks" in counters else [])):
        count = counters[name]
        if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count < LARGEST_COUNT:
            raise ValueError(f"`counters/{name}` is {shortened(count)}")


def require_nanoseconds(phases: Any) -> dict[str, int]:
    if not isinstance(phases, dict) or not all(type(ns) is int and 0 <= ns < LARGEST_COUNT for ns in phases.values()):
        raise ValueError("`phases_ns` is no table of nanoseconds")
    return phases
