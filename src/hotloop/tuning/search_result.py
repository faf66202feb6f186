"""What a search found: the best trial, all trials, what mattered, and learning curves."""

from __future__ import annotations

import json
import shlex
import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hotloop.comparison.measures import Against, RunMeasures, learning_curve, read_measures
from hotloop.core.errors import HotloopError
from hotloop.core.extras import need
from hotloop.core.program import hotloop_version
from hotloop.render.chart import Chart, Frame, as_svg, lay_out
from hotloop.render.numbers import time_unit
from hotloop.render.tables import Rows
from hotloop.runs.files import SCHEMA, finite_or_null, write_file
from hotloop.tuning.space import words_of
from hotloop.tuning.study import StudyPlan, states

MOST_CURVES = 6
CURVES: dict[Against, str] = {"env_steps": "curve-env-steps", "seconds": "curve-seconds"}


@dataclass(frozen=True)
class TrialRow:
    number: int
    state: str  # finished, pruned, failed, or open (the search was stopped)
    value: float | None
    last: float | None  # its latest evaluation
    values: dict[str, str]  # setting -> as it was trained
    words: list[str]
    seconds: float | None
    is_preset: bool
    error: str

    def as_data(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "words"}


@dataclass(frozen=True)
class SearchResult:
    plan: StudyPlan
    rows: Sequence[TrialRow]
    importance: dict[str, float] | None
    stopped: bool = False  # by Ctrl-C, before there were enough trials
    files: tuple[str, ...] = ()  # what was written, beside the study and the runs

    @property
    def ranked(self) -> list[TrialRow]:
        """Finished trials, the best first."""
        finished = [row for row in self.rows if row.state == "finished" and row.value is not None]
        return sorted(finished, key=lambda row: -(row.value or 0.0))

    @property
    def best(self) -> TrialRow | None:
        return self.ranked[0] if self.ranked else None

    @property
    def train_command(self) -> str | None:
        if self.best is None:
            return None
        return shlex.join(["hotloop", "train", self.plan.source, *self.plan.words, *self.best.words])

    @property
    def compare_command(self) -> str | None:
        """Whether the best trial is better, or was lucky."""
        if self.best is None or self.best.is_preset:
            return None
        own = shlex.join([self.plan.source, *self.plan.words])
        best = shlex.join([self.plan.source, *self.plan.words, *self.best.words])
        return shlex.join(["hotloop", "compare", f"preset={own}", f"tuned={best}", "--seeds", "8"])

    def as_data(self) -> dict[str, Any]:
        """What `tune.json` holds; numbers that are not finite are null."""
        data = {
            "hotloop": hotloop_version(),
            "source": self.plan.source,
            "measure": self.plan.measure,
            "seeds": self.plan.seeds,
            "best": self.best.as_data() if self.best else None,
            "train": self.train_command,
            "compare": self.compare_command,
            "importance": self.importance,
            "trials": [row.as_data() for row in self.rows],
        }
        return dict(finite_or_null(data))

    def table(self) -> Rows:
        """All trials, those that were finished first, the best of them at the top."""
        plan = self.plan
        heading = ["trial", "", plan.measure.replace("_", " "), *[dimension.path for dimension in plan.dimensions]]
        unranked = [row for row in self.rows if row not in self.ranked]
        return [heading, *[self._cells(row) for row in [*self.ranked, *unranked]]]

    def _cells(self, row: TrialRow) -> list[str]:
        state = f"{row.state}{', preset' if row.is_preset else ''}"
        score = row.value if row.value is not None else row.last
        shown = "-" if score is None else f"{score:.4g}{'' if row.value is not None else ' so far'}"
        return [str(row.number), state, shown, *[row.values.get(dim.path, "-") for dim in self.plan.dimensions]]

    def conclusions(self) -> list[str]:
        """What mattered, what failed, the best trial and what to do with it: lines for a terminal."""
        lines = []
        if self.importance:
            parts = ", ".join(f"{name} {share:.0%}" for name, share in self.importance.items())
            lines.append(f"\nwhat told good trials from the others: {parts}")
        lines += [f"failed: trial {row.number}: {row.error}" for row in self.rows if row.error]
        if self.best is None:
            lines.append("\nno trial was finished")
        else:
            lines.append(f"\nbest: trial {self.best.number}, {self.plan.measure} {self.best.value:.4g}")
            lines.append(str(self.train_command))
        if self.compare_command:
            lines.append(f"\nThe best of many is partly luck; this tells how much:\n{self.compare_command}")
        return [*lines, f"\n{self.plan.folder}: {', '.join(self.files)}, study.db, and the runs"]


def find(study: Any, plan: StudyPlan) -> SearchResult:
    waiting = states().WAITING
    rows = [_row(trial, plan) for trial in study.get_trials(deepcopy=False) if trial.state != waiting]
    return SearchResult(plan, rows, _importance(study, len(plan.dimensions)))


def _row(trial: Any, plan: StudyPlan) -> TrialRow:
    error = trial.user_attrs.get("error", "")
    names = {"COMPLETE": "finished", "PRUNED": "pruned", "FAIL": "failed", "RUNNING": "open"}
    given = [dimension for dimension in plan.dimensions if dimension.path in trial.params]
    values = {dimension.path: dimension.text(trial.params[dimension.path]) for dimension in given}
    steps = trial.intermediate_values
    duration = trial.duration
    return TrialRow(
        number=trial.number,
        state="failed" if error else names[trial.state.name],
        value=trial.value if trial.state == states().COMPLETE else None,  # of a pruned one: its last evaluation
        last=steps[max(steps)] if steps else None,
        values=values,
        words=words_of(given, trial.params),
        seconds=duration.total_seconds() if duration is not None else None,
        is_preset=bool(trial.user_attrs.get("preset")),
        error=error,
    )


def _importance(study: Any, dimensions: int) -> dict[str, float] | None:
    """How much each setting told good trials from the others; None where there are too few trials to say."""
    finished = study.get_trials(deepcopy=False, states=(states().COMPLETE,))
    if dimensions < 2 or len(finished) < 8:
        return None
    (importance,) = need("tune", "searching", "optuna.importance")
    with warnings.catch_warnings(), suppress(ValueError, RuntimeError):
        warnings.simplefilter("ignore")
        found = importance.get_param_importances(study, evaluator=importance.PedAnovaImportanceEvaluator())
        return {name: float(share) for name, share in found.items()}
    return None


def write_findings(findings: SearchResult, folder: Path) -> list[str]:
    """`tune.json`, and learning curves of the best trials where there are any; the names of what was written."""
    data = {"schema": SCHEMA, **findings.as_data()}
    write_file(folder / "tune.json", json.dumps(data, indent=2, allow_nan=False).encode() + b"\n")
    names = ["tune.json"]
    runs = _measures(findings)
    for against, name in CURVES.items():
        chart = _chart(findings, runs, against)
        if chart is not None:
            write_file(folder / f"{name}.svg", as_svg(chart).encode())
            names.append(f"{name}.svg")
    return names


def _measures(findings: SearchResult) -> dict[str, list[RunMeasures]]:
    """Of the best trials, and of the preset wherever it stands."""
    shown = [row for place, row in enumerate(findings.ranked) if place < MOST_CURVES or row.is_preset]
    found: dict[str, list[RunMeasures]] = {}
    for row in shown:
        label = f"trial {row.number}{' (preset)' if row.is_preset else ''}"
        with suppress(HotloopError):  # a run that somebody removed is left out
            plan = findings.plan
            paths = [plan.run_path(row.number, seed) for seed in range(plan.seeds)]
            found[label] = [read_measures(path, plan.measure) for path in paths]
    return found


def _chart(findings: SearchResult, runs: dict[str, list[RunMeasures]], against: Against) -> Chart | None:
    found = [learning_curve(label, measures, against) for label, measures in runs.items()]
    curves = [curve for curve in found if curve is not None]
    if not curves:
        return None
    seeds = findings.plan.seeds
    title = f"{findings.plan.measure.replace('_', ' ').capitalize()} of the best trials"
    subtitle = "one seed each" if seeds == 1 else f"mean of {seeds} seeds, band: 95 % bootstrap interval"
    if against == "env_steps":
        return lay_out(curves, Frame(title, subtitle, "env steps"))
    unit, scale = time_unit(max(float(curve.x[-1]) for curve in curves))
    return lay_out(curves, Frame(title, subtitle, f"{unit} of training", x_scale=scale))
