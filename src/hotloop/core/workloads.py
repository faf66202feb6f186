"""Workloads: what one problem brings along, of ours or of anybody's package. All come in through this door.

A workload is an object `Workload` that says its envs, presets, drawings and verbs. Ours are listed here; those of other
packages are entry points of the group `hotloop.workloads` (`maze = "hotloop_maze:workload"` in their pyproject.toml).
An entry point is code that the user has installed with pip, so it is imported without being asked for; a file or module
that is only named in settings is not (`--trust`).

Nothing is imported before it is needed: `hotloop --help` knows the names alone, a list of presets or env ids loads the
`Workload` objects, an env, a drawing or a verb is loaded when it is used.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from hotloop.core.children import steady_path
from hotloop.core.errors import HotloopError
from hotloop.core.terminal import say

GROUP = "hotloop.workloads"
OURS = {name: f"hotloop.workloads.{name}:workload" for name in ("snake", "sfc", "durotaxis", "topology")}
"""In a table, since a source tree that was never installed has no entry points."""


@dataclass(frozen=True, kw_only=True)
class Workload:
    """What one problem brings along: batched envs, drawings, presets, verbs. Named as an entry point of the group
    `hotloop.workloads`, it comes in as ours do; `docs/workloads.md` says how.

        workload = hotloop.Workload(name="maze", about="Ways out of a maze.", envs={"maze": "hotloop_maze.env:Maze"})

    Code is named as `module:Name` and imported when it is used.
    """

    name: str
    """Of the workload, and of its verbs on the command line: `hotloop maze solve`."""
    about: str = ""
    """One sentence."""
    envs: Mapping[str, str] = field(default_factory=dict)
    """Env id -> class of a batched env, called as `Class(num_envs, seeds, **options)`, with `max_episode_steps` among
    the options, and `dict_obs` where its observations have parts; or what makes one `gymnasium.Env`."""
    drawings: Mapping[str, str] = field(default_factory=dict)
    """Env id -> module that draws it (`hotloop.viewing.scenes` says with which functions)."""
    presets: Path | None = None
    """Folder of TOML files, one for each preset."""
    verbs: Mapping[str, str] = field(default_factory=dict)
    """Verb -> function that takes the words after it and returns an exit code; its docstring says what it does."""


PACKAGE = Path(__file__).parents[1]
HOUSE = Workload(
    name="hotloop",
    envs={"cartpole": "hotloop.envs.cartpole:CartPole"},
    drawings={"cartpole": "hotloop.envs.cartpole_draw"},
    presets=PACKAGE / "presets",
)
"""What is always there: settings for any env, and for Gymnasium's."""


@cache
def workload_places() -> dict[str, str]:
    """Name of every workload -> `module:Name` of its object. A name of ours stays ours, and what lies in the current
    folder, which may be a run that somebody sent, is not installed."""
    from importlib.metadata import distributions

    points = (point for one in distributions(path=steady_path(sys.path)) for point in one.entry_points)
    others = {point.name: point.value for point in points if point.group == GROUP and point.name not in OURS}
    return OURS | dict(sorted(others.items()))


@cache
def workloads() -> tuple[Workload, ...]:
    """All that can be loaded, the house first. What cannot be loaded, or brings what is there already, is named on
    stderr and left out: it must not keep the others from working."""
    found = [HOUSE]
    for name in workload_places():
        try:
            one = workload_named(name)
        except HotloopError as error:
            say(f"{error.message}; it is left out")
            continue
        if one is not None and not (clash := _clash(one, found)):
            found.append(one)
        elif one is not None:
            say(f"the workload `{name}` brings {clash}; it is left out")
    return tuple(found)


def workload_named(name: str) -> Workload | None:
    """None where there is none, or where the folder of one of ours is away; raises where it cannot be loaded."""
    place = workload_places().get(name)
    if place is None:
        return None
    try:
        found = import_place(place)
    except Exception as error:  # anybody's code
        if name in OURS and isinstance(error, ModuleNotFoundError) and error.name == place.partition(":")[0]:
            return None
        raise HotloopError(
            f"the workload `{name}` ({place}) cannot be loaded: {type(error).__name__}: {error}",
            "mend its package, or uninstall it",
        ) from error
    if not isinstance(found, Workload):
        raise HotloopError(
            f"the workload `{name}` ({place}) is a {type(found).__name__}", "it must be a `hotloop.Workload`"
        )
    if found.name != name:
        raise HotloopError(
            f"the workload `{name}` ({place}) calls itself `{found.name}`", "give the entry point and it one name"
        )
    return found


def _clash(one: Workload, others: list[Workload]) -> str:
    """What two of them bring: the meaning of an env's or a preset's name must not depend on what else is installed."""
    for other in others:
        if taken := one.envs.keys() & other.envs.keys():
            return f"the env `{min(taken)}`, as `{other.name}` does"
        if taken := _preset_names(one) & _preset_names(other):
            return f"the preset `{min(taken)}`, as `{other.name}` does"
    return ""


def _preset_names(workload: Workload) -> set[str]:
    return {file.stem for file in preset_files(workload)}


def preset_files(workload: Workload) -> list[Path]:
    return [] if workload.presets is None else sorted(workload.presets.glob("*.toml"))


def env_places() -> dict[str, str]:
    """Id of every env of a workload -> `module:Class`."""
    return {env_id: place for workload in workloads() for env_id, place in workload.envs.items()}


def drawings() -> dict[str, str]:
    """Id of every env that is drawn from its state -> the module that draws it."""
    return {env_id: place for workload in workloads() for env_id, place in workload.drawings.items()}


def import_place(place: str) -> Any:
    """What `module:Name` or `module` names."""
    module, _, name = place.partition(":")
    found = importlib.import_module(module)
    return getattr(found, name) if name else found
