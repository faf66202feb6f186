"""`hotloop.tune`: trials side by side, until there are enough of them or somebody stops the search."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from hotloop.comparison.jobs import most_at_once
from hotloop.core.errors import SettingsError
from hotloop.core.extras import need
from hotloop.core.interrupts import terminate_as_interrupt
from hotloop.core.overrides import Overrides, as_argv
from hotloop.core.places import Place
from hotloop.doctor.facts import usable_cores
from hotloop.presets.registry import class_of, tree_from_argv
from hotloop.runs import lock
from hotloop.runs.files import make_folder
from hotloop.scale.places import Places
from hotloop.tuning.search_result import SearchResult, find, write_findings
from hotloop.tuning.space import check_space, parse_search, words_of
from hotloop.tuning.study import StudyPlan, close_study, open_study, states
from hotloop.tuning.trial import Failed, Pruned, Stopped, TrialRun

Say = Callable[[str], None]
_OURS = {"--seed": "`--seeds N` trains seeds 0 to N - 1", "--run-dir": "`--storage FOLDER` holds the runs"}


def tune(
    preset: str,
    *,
    search: Sequence[str],
    trials: int,
    overrides: Overrides = (),
    seeds: int = 1,
    measure: str = "mean_return",
    prune: bool = True,
    jobs: int = 0,
    on: str = "local",
    trust: bool = False,
    mixed: bool = False,
    storage: str | Path | None = None,
    say: Say | None = None,
) -> SearchResult:
    """Search for better settings: trials are trained as runs of their own, those that do worse than others end early.

        found = hotloop.tune("cartpole-dqn", search=["optimizer.learning_rate=1e-5..1e-2:log", "n_step=1,3"], trials=20)
        print(found.best.values, found.best.value, found.train_command)

    `search` names settings with ranges or lists. `trials` is how many there shall be in all: the same call continues
    what was stopped, and Ctrl-C ends the search with what was found so far (`found.stopped`). Each trial is judged by
    the mean of `measure` over `seeds`; `prune=False` trains every one to its end. `jobs` are trained at once, `on` this
    machine or a cluster as `compare` does; the study stays here, and only this process talks to it. The study,
    the runs and `tune.json` lie in `storage`; `say` is told how it is getting on.
    """
    words = as_argv(overrides)
    _check(words, trials=trials, seeds=seeds, jobs=jobs)
    settings = tree_from_argv(preset, words)
    dimensions = [parse_search(text, class_of(settings)) for text in search]
    check_space(dimensions, preset, words)
    plan = StudyPlan(preset, tuple(words), settings, dimensions, seeds, measure, prune, Path(storage or ""))
    plan = plan if storage else replace(plan, folder=plan.default_folder())
    need("tune", "searching", "optuna")
    places = Places(on, jobs, trust=trust, mixed=mixed, say=say or _say_nothing)
    make_folder(plan.folder)
    held = lock.acquire(plan.folder / "lock")
    try:
        study = open_study(plan)
        try:
            with places:
                stopped = _search(study, plan, trials, jobs, places, say or _say_nothing)
            found = replace(find(study, plan), stopped=stopped)
        finally:
            close_study(study)
        return replace(found, files=tuple(write_findings(found, plan.folder)))
    finally:
        lock.release(held)


def _check(words: Sequence[str], **counts: int) -> None:
    for name, count in counts.items():
        if count < (0 if name == "jobs" else 1):
            raise SettingsError(f"`--{name}` is {count}, expected at least 1")
    for word in words:
        name = word.partition("=")[0].replace("_", "-")
        if name in _OURS:
            raise SettingsError(f"`{name}` is something that tune sets itself", _OURS[name])


def _search(study: Any, plan: StudyPlan, trials: int, jobs: int, places: Places, say: Say) -> bool:
    """Whether it was interrupted."""
    try:
        place = places.open(min(jobs or most_at_once(usable_cores(), plan.settings), trials))
        workers = min(place.workers, trials)
        say(f"{trials} trials in {plan.folder}, {workers} at once")
        Search(study, plan, trials, place, say).run(workers)
    except KeyboardInterrupt:
        return True
    return False


def _say_nothing(text: str) -> None:
    """Progress that nobody asked for."""


class Search:
    """One thread for each process that may train at once; the threads themselves only wait and read."""

    def __init__(self, study: Any, plan: StudyPlan, trials: int, place: Place, say: Say) -> None:
        self._study, self._plan, self._trials, self._place, self._say = study, plan, trials, place, say
        self._stop, self._guard = threading.Event(), threading.RLock()
        self._problems: list[BaseException] = []
        self._states = states()
        self._left = deque(study.get_trials(deepcopy=False, states=(self._states.RUNNING,)))
        """Trials that an earlier search was stopped in."""

    def run(self, workers: int) -> None:
        """Ctrl-C and SIGTERM end the children, which save first, and come out as KeyboardInterrupt."""
        threads = [threading.Thread(target=self._work, name=f"trials {i}") for i in range(workers)]
        with terminate_as_interrupt():
            try:
                for thread in threads:
                    thread.start()
                for thread in threads:
                    while thread.is_alive():
                        thread.join(0.2)
            finally:
                self._stop.set()
                for thread in threads:
                    if thread.ident is not None:
                        thread.join()
        if self._problems:
            raise self._problems[0]

    def _work(self) -> None:
        try:
            while not self._stop.is_set():
                trial = self._next()
                if trial is None:
                    return
                self._run(trial)
        except BaseException as problem:
            self._problems.append(problem)
            self._stop.set()

    def _next(self) -> Any:
        with self._guard:
            if self._left:
                frozen = self._left.popleft()
                self._say(f"trial {frozen.number:3d} goes on")
                trial = _again(self._study, frozen)
            elif self._count() < self._trials:
                trial = self._study.ask()
            else:
                return None
            for dimension in self._plan.dimensions:
                dimension.suggest(trial)
            return trial

    def _count(self) -> int:
        return sum(trial.state != self._states.WAITING for trial in self._study.get_trials(deepcopy=False))

    def _run(self, trial: Any) -> None:
        """What became of it is told to the study and to the user; a stopped one stays open."""
        shown = self._shown(trial)
        words = [*self._plan.words, *words_of(self._plan.dimensions, trial.params)]
        try:
            settings = tree_from_argv(self._plan.source, words)
        except SettingsError as error:  # two settings that do not go together
            return self._failed(trial, error.message, shown, nonfinite=False)
        try:
            value = TrialRun(self._plan, trial, words, settings, self._place, self._stop, self._guard).score()
        except Stopped:
            return None
        except Pruned:
            self._tell(trial, self._states.PRUNED, f"pruned     {shown}")
        except Failed as error:
            self._failed(trial, str(error), shown, error.nonfinite)
        else:
            with self._guard:
                self._study.tell(trial.number, value)
                best = self._study.best_trial.number == trial.number
            self._say(f"trial {trial.number:3d} {value:10.4g} {shown}{'  (best so far)' if best else ''}")

    def _failed(self, trial: Any, error: str, shown: str, nonfinite: bool) -> None:
        """Numbers that ran away say that this is no good place, and the sampler should know."""
        with self._guard:
            trial.set_user_attr("error", error)
        state = self._states.PRUNED if nonfinite else self._states.FAIL
        self._tell(trial, state, f"failed     {shown}: {error.splitlines()[0] if error else ''}")

    def _tell(self, trial: Any, state: Any, text: str) -> None:
        with self._guard:
            self._study.tell(trial.number, state=state)
        self._say(f"trial {trial.number:3d} {text}")

    def _shown(self, trial: Any) -> str:
        return ", ".join(f"{dim.path} {dim.text(trial.params[dim.path])}" for dim in self._plan.dimensions)


def _again(study: Any, frozen: Any) -> Any:
    """A trial that is open in the study, as one that can be reported to."""
    (optuna,) = need("tune", "searching", "optuna")
    return optuna.trial.Trial(study, frozen._trial_id)
