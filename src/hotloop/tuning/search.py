"""Trials side by side, until there are enough of them or somebody stops the search."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from hotloop.core.errors import SettingsError
from hotloop.core.interrupts import terminate_as_interrupt
from hotloop.export.follow import need
from hotloop.tuning.space import Resolve, words_of
from hotloop.tuning.study import Plan, states
from hotloop.tuning.trial import Failed, Pruned, Stopped, TrialRun

Say = Callable[[str], None]


class Search:
    """One thread for each process that may train at once; the threads themselves only wait and read."""

    def __init__(self, study: Any, plan: Plan, trials: int, resolve: Resolve, say: Say) -> None:
        self._study, self._plan, self._trials, self._resolve, self._say = study, plan, trials, resolve, say
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
            settings = self._resolve(self._plan.source, words)
        except SettingsError as error:  # two settings that do not go together
            return self._failed(trial, error.message, shown)
        try:
            value = TrialRun(self._plan, trial, words, settings, self._stop, self._guard).score()
        except Stopped:
            return
        except Pruned:
            self._tell(trial, self._states.PRUNED, f"pruned     {shown}")
        except Failed as error:
            self._failed(trial, str(error), shown)
        else:
            with self._guard:
                self._study.tell(trial.number, value)
                best = self._study.best_trial.number == trial.number
            self._say(f"trial {trial.number:3d} {value:10.4g} {shown}{'  (best so far)' if best else ''}")

    def _failed(self, trial: Any, error: str, shown: str) -> None:
        """Numbers that ran away say that this is no good place, and the sampler should know."""
        with self._guard:
            trial.set_user_attr("error", error)
        state = self._states.PRUNED if "NaN" in error else self._states.FAIL
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
