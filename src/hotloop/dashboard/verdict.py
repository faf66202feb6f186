"""Two chosen arms, judged as `hotloop compare` judges them: the same seeds, the same rule, the same words."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hotloop.core.errors import HotloopError
from hotloop.dashboard.arms import Arm, arms_of
from hotloop.dashboard.curves import chosen
from hotloop.dashboard.library import Item, Library

if TYPE_CHECKING:
    from hotloop.comparison.report import Comparison

MOST_SEEDS = 64
"""Of an arm: what `hotloop compare` computes for so many is a second's work."""


def judge(library: Library, ids: Sequence[str], measure: str = "mean_return") -> dict[str, Any]:
    """The verdict on the second of two arms against the first, or why there is none."""
    arms = arms_of(chosen(library, ids))
    if len(arms) != 2:
        return {"missing": f"A verdict is about two arms; {len(arms)} are chosen."}
    finished = [_finished(arm) for arm in arms]
    for arm, items in zip(arms, finished, strict=True):
        if not items:
            return {"missing": f"No run of {arm.label} is finished, so nothing can be judged yet."}
    try:
        comparison = _compare(library, arms, finished, measure)
        return _as_data(library, arms, finished, comparison, measure)
    except HotloopError as error:
        return {"missing": error.message}


def _finished(arm: Arm) -> list[Item]:
    """One run of each seed; a log has no result that could be judged."""
    by_seed = {item.about.get("seed"): item for item in arm.items if item.status == "finished"}
    return list(by_seed.values())[:MOST_SEEDS]


def _compare(library: Library, arms: Sequence[Arm], finished: Sequence[Sequence[Item]], measure: str) -> Comparison:
    from hotloop.comparison.arms import Arm as ComparedArm  # here, since most pages are opened without a verdict
    from hotloop.comparison.jobs import TrainingJob
    from hotloop.comparison.report import Question, collect

    jobs = []
    for arm, items in zip(arms, finished, strict=True):
        paths = tuple(library.path_of(item) for item in items)
        compared = ComparedArm(arm.label, arm.label, (), items[0].about.get("settings", {}), paths)
        jobs += [
            TrainingJob(compared, int(item.about.get("seed") or 0), path, (), status="finished")
            for item, path in zip(items, paths, strict=True)
        ]
    seeds = max(map(len, finished))
    return collect(Question(_command(library, arms, finished, measure), measure, None, seeds, 1, 1), jobs)


def _as_data(
    library: Library, arms: Sequence[Arm], finished: Sequence[Sequence[Item]], comparison: Comparison, measure: str
) -> dict[str, Any]:
    from hotloop.comparison.verdict_text import details, sentence

    found = comparison.contrasts
    if not found:
        return {"missing": "The runs cannot be compared: one arm has nothing that could be read."}
    left_out = [len(arm.items) - len(items) for arm, items in zip(arms, finished, strict=True)]
    notes = [
        f"{count} runs of {arm.label} are not finished and left out."
        for arm, count in zip(arms, left_out, strict=True)
        if count
    ]
    return {
        "sentence": sentence(found[0]),
        "learning": found[0].learning,
        "details": [*details(found[0], comparison.threshold), *notes],
        "command": _command(library, arms, finished, measure),
    }


def _command(library: Library, arms: Sequence[Arm], finished: Sequence[Sequence[Item]], measure: str) -> str:
    words = []
    for number, items in enumerate(finished):
        paths = shlex.join(str(library.path_of(item)) for item in items)
        words.append(f"{'ab'[number]}={paths}")
    more = [] if measure == "mean_return" else ["--measure", measure]
    return shlex.join(["hotloop", "compare", *words, *more])


def differences(library: Library, ids: Sequence[str]) -> dict[str, Any]:
    """The chosen arms that say their settings, and for each setting in which they differ its value in each; settings
    that not all of them have (another algorithm's) are apart."""
    arms = [arm for arm in arms_of(chosen(library, ids)) if arm.items[0].kind == "run"]
    trees = [arm.items[0].about.get("settings", {}) for arm in arms]
    names = dict.fromkeys(name for tree in trees for name in tree if name not in ("seed", "run_dir", "trust"))
    rows: dict[bool, list[dict[str, Any]]] = {True: [], False: []}
    for name in names:
        values = [tree.get(name) for tree in trees]
        if any(value != values[0] or type(value) is not type(values[0]) for value in values):
            rows[all(name in tree for tree in trees)].append({"setting": name, "values": values})
    return {"arms": [arm.label for arm in arms], "rows": rows[True], "partial": rows[False]}
