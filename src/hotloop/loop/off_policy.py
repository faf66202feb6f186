"""The DQN family's training loop: all of it, on one screen."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, Protocol

import numpy as np

from hotloop.algos.dqn_settings import DQNSettings
from hotloop.core.errors import HotloopError, NumbersError
from hotloop.core.types import Array
from hotloop.doctor.timer import PhaseTimer
from hotloop.loop.cadence import crossed
from hotloop.loop.compile_phase import compile_phase
from hotloop.loop.journal import Journal
from hotloop.loop.machine import machine_for
from hotloop.loop.session import Session, build_session
from hotloop.loop.stopping import Overdue, StopSignals
from hotloop.runs.directory import Run


class Progress(Protocol):
    """Shows how a run is getting on; never part of what it computes."""

    def show(self, session: Session, timer: PhaseTimer, row: dict[str, Any] | None = None) -> None: ...

    def say(self, text: str) -> None: ...


class RunStopped(HotloopError):
    """Training was asked to stop by a signal."""

    def __init__(self, run: Run, signal_number: int, env_steps: int, saved_env_steps: int) -> None:
        saved = f"saved at {saved_env_steps:,}" if saved_env_steps else "nothing saved yet"
        super().__init__(f"stopped at {env_steps:,} env steps, {saved}", f"`hotloop resume '{run.path}'` continues")
        self.run, self.signal_number, self.env_steps = run, signal_number, env_steps


def train(settings: DQNSettings, claim_run: Callable[[], Run], progress: Progress) -> dict[str, Any]:
    """Train until the run is finished, from its newest checkpoint if it has one; returns the result object.

    `claim_run` gives the locked run directory; it is asked only once everything is built, so that a mistake in the
    settings leaves nothing behind.
    """
    timer = PhaseTimer()
    with ExitStack() as cleanup, compile_phase(timer, progress.say):
        cleanup.enter_context(machine_for(settings.threads))
        with timer.phase("start-up"):
            session = build_session(settings, timer)
            cleanup.callback(session.close)
            stop = cleanup.enter_context(StopSignals())  # from here on there is something to lose
            run = cleanup.enter_context(claim_run())
            journal = Journal(run, session, timer, warn=progress.say)
            cleanup.callback(journal.close)
            journal.begin()
        progress.say(f"{session.learner.choice.name} lane: {session.learner.choice.reason}")
        try:
            run_loop(session, journal, timer, stop, progress)
            if not stop.requested:
                return _finish(session, journal, timer, stop, progress)
            _save_on_stop(session, journal, timer)
        except Overdue:
            progress.say("the evaluation under way was given up; the run resumes from its last checkpoint")
        raise RunStopped(run, stop.requested, session.counters.env_steps, journal.saved_env_steps)


def run_loop(session: Session, journal: Journal, timer: PhaseTimer, stop: StopSignals, progress: Progress) -> None:
    settings, counters = session.settings, session.counters
    collector, policy, replay, learner = session.collector, session.policy, session.replay, session.learner
    while not session.finished and not stop.requested:
        before = counters.copy()
        obs, action, step = collector.advance(policy)  # phases act, env; counts env steps and episodes
        with timer.phase("store"):
            replay.add(obs, action, step)

        for k in session.plan.due(before.env_steps, counters.env_steps) if replay.size else ():
            with timer.phase("sample"):
                batches = replay.sample(learner.rows_per_update, k, counters.env_steps, settings.updates_per_batch)
            with timer.phase("update"):
                stats = learner.update(batches, counters)  # k sequential updates
                if settings.replay.prioritised:  # the one thing that must be read after every update
                    replay.update_priorities(batches.index, stats.td_error_on_host())
            session.metrics.note_updates(stats)
            counters.updates += k
        learner.follow(before, counters)
        counters.iterations += 1

        if crossed(before.env_steps, counters.env_steps, settings.log_every):
            with timer.phase("log"):
                _log(session, journal, timer, progress)
        if crossed(before.env_steps, counters.env_steps, settings.evaluation_every):
            with timer.phase("evaluate"):
                _evaluate(session, journal, stop)
        if crossed(before.env_steps, counters.env_steps, settings.checkpoint_every) and not session.finished:
            with timer.phase("checkpoint"):
                _checkpoint(session, journal)
        progress.show(session, timer)


def _log(session: Session, journal: Journal, timer: PhaseTimer, progress: Progress) -> None:
    row = session.metrics.row(session.counters) | {"epsilon": session.policy.epsilon}
    journal.log({"event": "progress", **row})
    progress.show(session, timer, row)


def _evaluate(session: Session, journal: Journal, stop: StopSignals) -> None:
    """Judge the present weights, and keep them if they are the best so far."""
    env_steps = session.counters.env_steps
    evaluation = session.evaluate(session.settings.evaluation.episodes, stop.check, env_steps)
    session.best.offer(evaluation["mean_return"], env_steps, session.learner.lane.parameters())
    journal.log({"event": "evaluation", "env_steps": env_steps, **evaluation})


def _checkpoint(session: Session, journal: Journal) -> None:
    _require_finite(session)
    if not session.collector.envs.saves_state:
        session.recreate_envs()  # in every run, so that a resumed one does the same
    journal.save()


def _save_on_stop(session: Session, journal: Journal, timer: PhaseTimer) -> None:
    """Save at once where the envs can; otherwise the last scheduled checkpoint is where the run resumes."""
    _require_finite(session)
    if session.collector.envs.saves_state:
        with timer.phase("checkpoint"):
            journal.save()


def _require_finite(session: Session) -> None:
    """Nothing that is not a number is saved or judged."""
    session.metrics.require_finite(session.counters)
    if not np.isfinite(session.learner.lane.parameters()).all():
        raise NumbersError("the network's weights became NaN or infinite", "a smaller `optimiser.lr` helps")


def _finish(
    session: Session, journal: Journal, timer: PhaseTimer, stop: StopSignals, progress: Progress
) -> dict[str, Any]:
    """Judge the best weights and the last ones on fresh episodes, leave a last checkpoint and the result."""
    _require_finite(session)
    episodes = session.settings.evaluation.final_episodes
    with timer.phase("evaluate"):
        if session.best.judged_at != session.counters.env_steps:
            _evaluate(session, journal, stop)
        final = session.evaluate(episodes, stop.check, "final")
        last: Array = session.learner.lane.parameters()
        session.learner.lane.load_parameters(session.best.parameters)
        best = session.evaluate(episodes, stop.check, "final")
        session.learner.lane.load_parameters(last)
    with timer.phase("checkpoint"):
        state_digest = journal.state_digest()
        journal.save()
    progress.show(session, timer, None)
    return journal.finish(best, final, state_digest)
