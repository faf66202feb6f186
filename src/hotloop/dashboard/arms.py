"""Runs that differ by their seed alone are one arm: one row of the table, one curve with a band.

Logs of other programs do not say their settings: those whose names differ in a last number alone (`PPO_1`, `PPO_2`)
are taken for seeds.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hotloop.comparison.statistics import bootstrap_interval, interquartile_mean
from hotloop.dashboard.index import Index, fingerprint
from hotloop.dashboard.library import Item
from hotloop.render.numbers import shown

_NUMBERED = re.compile(r"^(.*?)[-_ .]*(?:seed[-_ ]*)?\d+$", re.DOTALL)
_CLEANRL = re.compile(r"^(.+__.+)__\d+__\d{9,}$", re.DOTALL)
"""`ENV__SCRIPT__SEED__TIME`"""
_SEED_FOLDER = re.compile(r"seed[-_]?\d+")
_MOST_WORDS, _LONGEST = 3, 60
MOST_VARIED = 60
_NOT_SHOWN = ("run_dir", "trust", "seed")
_UPKEEP = ("checkpoint.", "evaluation.", "log")


@dataclass(frozen=True)
class Arm:
    key: str
    label: str
    items: tuple[Item, ...]


def key_of(item: Item) -> str:
    if item.kind == "run":
        return str(item.about.get("settings_key") or item.id)
    return fingerprint([item.kind, _without_number(item.place)])


def _without_number(place: str) -> str:
    """The place of a log with the number of its seed left out: in its folder's name, or in its file's."""
    folder, _, name = place.rpartition("/")
    if cleanrl := _CLEANRL.match(name):
        return f"{folder}/{cleanrl[1]}"
    stem, dot, ending = name.partition(".")
    if dot and not _NUMBERED.match(stem):  # `ppo_1/progress.csv`
        inner = _NUMBERED.match(folder)
        return f"{inner[1] if inner else folder}/{name}"
    found = _NUMBERED.match(stem)
    return f"{folder}/{found[1] if found else stem}{dot}{ending}"


def arms_of(items: Iterable[Item]) -> list[Arm]:
    """In the order in which their first run comes; the runs of each by seed."""
    groups: dict[str, list[Item]] = {}
    for item in items:
        groups.setdefault(key_of(item), []).append(item)
    labels = _labels(groups)
    return [Arm(key, labels[key], tuple(sorted(group, key=_by_seed))) for key, group in groups.items()]


def _by_seed(item: Item) -> tuple[float, str]:
    seed = item.about.get("seed")
    return (float(seed) if isinstance(seed, int) else float("inf")), item.place


def _labels(groups: Mapping[str, Sequence[Item]]) -> dict[str, str]:
    """The run's own label, with the settings that tell it from other arms of that label."""
    first = {key: group[0] for key, group in groups.items()}
    names = {key: _name(item) for key, item in first.items()}
    for name in {name for name in names.values() if list(names.values()).count(name) > 1}:
        alike = [key for key in names if names[key] == name]
        telling = _telling([first[key] for key in alike])
        for number, key in enumerate(alike):
            words = [f"{setting} {shown(first[key].about['settings'].get(setting))}" for setting in telling]
            told = ", ".join(words) or f"number {number + 1}"
            names[key] = f"{name} ({told})"
    return {key: name if len(name) <= 2 * _LONGEST else name[: 2 * _LONGEST - 1] + "…" for key, name in names.items()}


def _telling(items: Sequence[Item]) -> list[str]:
    """The settings that tell these arms apart, no more than are needed."""
    chosen: list[str] = []
    apart: set[tuple[str, str]] = {("", "")}
    for name in varied_settings(items):
        values = [repr(item.about.get("settings", {}).get(name)) for item in items]
        kept = [repr([item.about.get("settings", {}).get(one) for one in chosen]) for item in items]
        finer = set(zip(kept, values, strict=True))
        if len(finer) > len(apart):
            chosen, apart = [*chosen, name], finer
        if len(chosen) == _MOST_WORDS or len(apart) == len(items):
            break
    return chosen


def _name(item: Item) -> str:
    """Of a comparison's runs the folder of their arm; of others the label of the run; of logs where they lie."""
    folder, _, last = item.place.rpartition("/")
    if item.kind != "run":
        place = _without_number(item.place) or item.place
        return place.strip("/")[-_LONGEST:] or item.kind
    if folder and _SEED_FOLDER.fullmatch(last):
        return folder.rpartition("/")[2]
    return str(item.about.get("label") or last)


def varied_settings(items: Iterable[Item], most: int = MOST_VARIED) -> list[str]:
    """Names of settings in which runs differ, those with the fewest values first: by what people group. Then those that
    only some runs have (another algorithm's), and last what changes how a run is kept, not what it learns."""
    values: dict[str, set[str]] = {}
    count: dict[str, int] = {}
    trees = {
        str(item.about.get("settings_key")): item.about.get("settings", {}) for item in items if item.kind == "run"
    }
    for tree in trees.values():
        for name, value in tree.items():
            if name not in _NOT_SHOWN:
                values.setdefault(name, set()).add(repr(value))
                count[name] = count.get(name, 0) + 1
    varied = [name for name, found in values.items() if len(found) > 1 or count[name] < len(trees)]
    return sorted(varied, key=lambda name: (name.startswith(_UPKEEP), len(values[name]) == 1, len(values[name])))[:most]


def shared_settings(items: Iterable[Item]) -> dict[str, Any]:
    """Settings with one value in all runs: a row does not repeat them."""
    trees = [item.about.get("settings", {}) for item in items if item.kind == "run"]
    shared = dict(trees[0]) if trees else {}
    for tree in trees[1:]:
        for name in [name for name, value in shared.items() if tree.get(name, _NOT_SHOWN) != value]:
            del shared[name]
    return {name: value for name, value in shared.items() if name not in _NOT_SHOWN}


def score_of(item: Item) -> tuple[float | None, str]:
    """What a run is judged by so far, and what that is: `fresh` episodes once it is finished, else the `latest`
    evaluation, else the mean return in `training`."""
    about = item.about
    if (value := about.get("judged", {}).get("mean_return")) is not None and item.status != "running":
        return value, "fresh"
    last = about.get("last", {})
    for event, word in (("evaluation", "latest"), ("progress", "training")):
        if (value := last.get(event, {}).get("mean_return")) is not None:
            return value, word
    return None, ""


def arm_score(index: Index, arm: Arm) -> dict[str, Any]:
    """The interquartile mean over seeds with its 95 % interval, as `hotloop compare` gives it."""
    judged = [score_of(item) for item in arm.items]
    scores = tuple(score for score, _ in judged if score is not None)
    if not scores:
        return {"value": None, "interval": None}
    interval = None
    if len(scores) > 1:
        resolve = all(word == "fresh" for _, word in judged)
        make = functools.partial(_interval, scores)
        interval = index.kept(f"iqm:{fingerprint(list(scores))}", make) if resolve else make()
    return {"value": float(interquartile_mean(np.array(scores))), "interval": interval}


@functools.lru_cache(maxsize=512)
def _interval(scores: tuple[float, ...]) -> list[float] | None:
    found = bootstrap_interval([np.array(scores)], interquartile_mean)
    return None if found is None else [float(found.low), float(found.high)]
