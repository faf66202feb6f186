"""One trial: its runs as processes of their own, watched through their event rows."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from hotloop.comparison.arms import Arm
from hotloop.comparison.jobs import TrainingJob, job_at, run_jobs
from hotloop.core.errors import RunError, SettingsError
from hotloop.core.places import Place
from hotloop.export.follow import Once, Tail
from hotloop.runs import lock
from hotloop.runs.directory import FAILURE, LOCK, Run
from hotloop.scale.local import LocalPlace
from hotloop.tuning.study import StudyPlan

LOOK_SECONDS = 0.3
_SEED_STEPS = 10**6  # a step of the study is an evaluation of a seed


class Stopped(Exception):
    """The search was asked to stop; the trial is continued later."""


class Pruned(Exception):
    """The trial does worse than the median of the others did at this point."""


class Failed(Exception):
    """A run ended with an error; `nonfinite` where its numbers became NaN or infinite, of which it kept the update."""

    def __init__(self, error: str, nonfinite: bool) -> None:
        super().__init__(error)
        self.nonfinite = nonfinite


class TrialRun:
    """`trial` is optuna's; `guard` is held whenever the study is asked or told something."""

    def __init__(
        self,
        plan: StudyPlan,
        trial: Any,
        words: Sequence[str],
        settings: Mapping[str, Any],
        place: Place,
        stop: threading.Event,
        guard: AbstractContextManager[Any],
    ) -> None:
        self._plan, self._trial, self._stop, self._guard = plan, trial, stop, guard
        self._place = LocalPlace(1) if isinstance(place, LocalPlace) else place  # one run of a trial at a time
        self._arm = Arm(f"trial {trial.number}", plan.source, tuple(words), settings)
        with guard:
            frozen = trial.study.get_trials(deepcopy=False)[trial.number]
            self._reported = set(frozen.intermediate_values)

    def score(self) -> float:
        """The mean over seeds of the best weights' score on fresh episodes. Raises Stopped, Pruned or Failed."""
        scores = [self._train(seed) for seed in range(self._plan.seeds)]
        return sum(scores) / len(scores)

    def _train(self, seed: int) -> float:
        job = self._job(seed)
        watcher = _Watcher(job.path, self._plan.measure)
        looked = 0.0

        def watch() -> None:
            nonlocal looked
            if self._stop.is_set():
                raise Stopped
            if time.monotonic() - looked >= LOOK_SECONDS:
                looked = time.monotonic()
                self._report(seed, watcher.new_scores(), may_prune=True)

        run_jobs([job], self._place, watch)
        if job.status == "failed":
            raise Failed(job.error, nonfinite=(job.path / FAILURE).is_dir())
        self._report(seed, watcher.new_scores(), may_prune=False)
        return score_of(Run.open(job.path).result()["evaluation"], self._plan.measure)

    def _report(self, seed: int, scores: Sequence[tuple[float, int]], may_prune: bool) -> None:
        total = self._arm.settings["total_env_steps"]
        every = self._arm.settings["evaluation"]["every"] or max(1, total // 20)
        for score, env_steps in scores:  # by where they were due: trials may put evaluations off, each its own
            step = seed * _SEED_STEPS + max(0, env_steps // every - 1)
            if step in self._reported:
                continue
            self._reported.add(step)
            with self._guard:
                self._trial.report(score, step)
                hopeless = may_prune and env_steps < total and self._trial.should_prune()
            if hopeless:
                raise Pruned

    def _job(self, seed: int) -> TrainingJob:
        """A folder that came from elsewhere may hold a run of somebody else's env: it must be the run of this trial."""
        job = job_at(self._plan.run_path(self._trial.number, seed), self._arm, seed)
        if job.status != "finished" and lock.is_held(job.path / LOCK):
            raise RunError(f"{job.path} is still being trained by another process", "wait until it is done, or stop it")
        return job


class _Watcher:
    """The evaluations of a run as they come: their score, their env steps."""

    def __init__(self, path: Path, measure: str) -> None:
        self._tail, self._once, self._measure = Tail(Run(path)), Once(), measure

    def new_scores(self) -> list[tuple[float, int]]:
        return [
            (score_of(row, self._measure), row["env_steps"])
            for row in self._tail.new_rows()
            if row.get("event") == "evaluation" and self._once.is_new(row)
        ]


def score_of(evaluation: Any, measure: str) -> float:
    value = evaluation.get(measure)
    if isinstance(value, bool) or not isinstance(value, int | float):
        known = [name for name in evaluation if name.startswith(("mean_", "max_", "min_")) or name.endswith("_rate")]
        raise SettingsError(
            f"the evaluations have no number called `{measure}`", f"`--measure` is one of {', '.join(known)}"
        )
    return float(value)
