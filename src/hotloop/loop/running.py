"""What every training loop has around it: start, log rows, evaluations, checkpoints, signals, the end."""

from __future__ import annotations

import errno
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from hotloop.core.errors import EnvError, HotloopError, NonFiniteError
from hotloop.core.interrupts import Interrupt
from hotloop.core.timer import PhaseTimer
from hotloop.core.types import Array
from hotloop.envs.registry import episode_limit, is_native, is_ours
from hotloop.lanes.nonfinite import first_nonfinite, tensors_of_batch
from hotloop.learners.derived import derived_text
from hotloop.loop.cadence import checkpoint_due, crossed
from hotloop.loop.contract import Progress, ProgressRow
from hotloop.loop.evaluate import EvaluationPlan, env_steps_of
from hotloop.loop.failure import go_back_or_raise
from hotloop.loop.journal import Journal
from hotloop.loop.machine import ITERATION_SECONDS, Overdue, StopSignals, compile_phase, machine_for
from hotloop.loop.rehearsal import rehearsing
from hotloop.loop.session import Session, build_session
from hotloop.loop.watchdog import Watchdog
from hotloop.nets.build import observation_text
from hotloop.runs.directory import Run

Loop = Callable[[Session, Journal, PhaseTimer, StopSignals, Progress], Iterator[ProgressRow]]
Claim = Callable[[Session], Run]
"""Makes or opens the run directory of a session, locked."""
Rows = Generator[ProgressRow, None, dict[str, Any]]
"""Log rows as they come, and the result object at the end."""


class RunStopped(HotloopError):
    """Training was asked to stop by a signal."""

    def __init__(self, run: Run, signal_number: int, env_steps: int, saved_env_steps: int) -> None:
        super().__init__(f"stopped at {env_steps:,} env steps", resume_hint(run, env_steps, saved_env_steps))
        self.run, self.signal_number, self.env_steps = run, signal_number, env_steps


def resume_hint(run: Run, env_steps: int, saved_env_steps: int) -> str:
    """What `hotloop resume` will really do."""
    resume = f"`hotloop resume '{run.path}'`"
    if not saved_env_steps:
        return f"nothing was saved yet: {resume} begins anew, with the same seed"
    if saved_env_steps == env_steps:
        return f"all of it was saved: {resume} continues there"
    again = env_steps - saved_env_steps
    return f"saved at {saved_env_steps:,}: {resume} continues there, and makes the {again:,} since then again"


def rows_with(loop: Loop, settings: Any, claim_run: Claim, progress: Progress, timer: PhaseTimer) -> Rows:
    """Train until the run is finished, from its newest checkpoint if it has one; yields its log rows.

    `claim_run` is asked only once everything is built, so that a mistake in the settings leaves nothing behind. Whoever
    stops asking for rows ends the run as a signal would: saved, to be resumed.
    """
    with own_files_open(settings.env.id), ExitStack() as cleanup, compile_phase(timer, progress.say):
        session, run, journal, stop = _begin(cleanup, settings, claim_run, progress, timer)
        while True:
            try:
                yield from loop(session, journal, timer, stop, progress)
                if not stop.requested:
                    return _finish(session, journal, timer, stop, progress)
                _save_on_stop(session, journal, timer)
                break
            except GeneratorExit:
                _save_on_stop(session, journal, timer)
                progress.say(
                    f"ended at {session.counters.env_steps:,} env steps; {_resume_hint(run, session, journal)}"
                )
                raise
            except Overdue:
                progress.say(f"what was under way at {session.counters.env_steps:,} env steps was given up")
                break
            except Interrupt:
                words = f"stopped at once at {session.counters.env_steps:,} env steps"
                raise Interrupt(f"{words}; {_resume_hint(run, session, journal)}") from None
            except NonFiniteError as error:
                go_back_or_raise(error, run, session, journal, progress.say)
        raise RunStopped(run, stop.requested, session.counters.env_steps, journal.saved_env_steps)


@contextmanager
def own_files_open(env_id: str) -> Iterator[None]:
    """Envs share our process: one that closes files by their numbers closes the run's lock, rows and pipes too."""
    try:
        yield
    except OSError as error:
        if error.errno != errno.EBADF:
            raise
        raise EnvError(
            f"a file that the run had open was closed by other code in this process, most likely by `{env_id}`",
            "let it close only what it opened itself: no `os.closerange`, and no number twice",
        ) from error


def _begin(
    cleanup: ExitStack,
    settings: Any,
    claim_run: Claim,
    progress: Progress,
    timer: PhaseTimer,
) -> tuple[Session, Run, Journal, StopSignals]:
    """The machine set up, all parts built, the run claimed and where it stopped; `cleanup` undoes it in the end."""
    if not is_ours(settings.env.id):
        cleanup.enter_context(Watchdog(settings.env.id))
    cleanup.enter_context(machine_for(settings.torch_threads))
    cleanup.enter_context(rehearsing(settings, progress.say))
    with timer.phase("start-up"):
        session = build_session(settings, timer)
        cleanup.callback(session.close)
        stop = cleanup.enter_context(StopSignals())  # from here on there is something to lose
        run = cleanup.enter_context(claim_run(session))
        journal = Journal(run, session, timer, warn=progress.say)
        cleanup.callback(journal.close)
        journal.begin()
    progress.say(f"{session.learner.choice.name} lane: {session.learner.choice.reason}")
    if words := observation_text(settings.network, session.collector.envs.obs_spec):
        progress.say(words)
    if words := derived_text(settings, session.settings):
        progress.say(f"derived from the run's length and the env: {words}")
    progress.say(f"evaluation: {evaluation_plan(settings).words}")
    return session, run, journal, stop


def _resume_hint(run: Run, session: Session, journal: Journal) -> str:
    return resume_hint(run, session.counters.env_steps, journal.saved_env_steps)


def upkeep(
    session: Session, before: int, journal: Journal, timer: PhaseTimer, stop: StopSignals, progress: Progress
) -> Iterator[ProgressRow]:
    """What is due between two iterations, of which the last one began after `before` env steps."""
    settings, after = session.settings, session.counters.env_steps
    if crossed(before, after, settings.log_every):
        with timer.phase("log"):
            row = log(session, journal, timer, progress)
        yield row  # to `hotloop.iterate`'s caller; `hotloop.train` goes on at once
    if crossed(before, after, settings.evaluation_every):
        with timer.phase("evaluate"):
            evaluate(session, journal, stop)
    if checkpoint_due(settings, before, after) and not session.finished:
        with timer.phase("checkpoint"):
            checkpoint(session, journal)


def log(session: Session, journal: Journal, timer: PhaseTimer, progress: Progress) -> ProgressRow:
    row = session.metrics.row(session.counters) | session.facts()
    journal.log({"event": "progress", **row})
    progress.show(session, timer, row)
    return ProgressRow(row, session, journal.run_path)


def evaluation_plan(settings: Any) -> EvaluationPlan:
    return EvaluationPlan(settings.evaluation, limited=not is_native(settings.env.id))


def evaluate(session: Session, journal: Journal, stop: StopSignals) -> None:
    """Judge the present weights and keep them if they are the best so far, or put it off: it must be affordable."""
    plan, env_steps, longest = evaluation_plan(session.settings), session.counters.env_steps, _longest_episode(session)
    episodes = plan.periodic_episodes(env_steps, session.best.spent, longest)
    if not episodes and session.finished and session.best.env_steps < 0:
        episodes = plan.only_episodes(env_steps, longest)
    if not episodes:
        return
    evaluation = session.evaluate(episodes, stop.check, env_steps)
    session.best.note_played(evaluation)
    session.best.offer(evaluation["mean_return"], env_steps, session.weights())
    journal.log({"event": "evaluation", "env_steps": env_steps, **evaluation})


def _longest_episode(session: Session) -> int:
    """How long an evaluation episode may be: the env's limit, or the longest so far where it has none."""
    limit, most = episode_limit(session.settings.env), session.settings.evaluation.max_episode_steps
    if limit:
        return min(limit, most)
    trained = session.metrics.longest_episode or session.counters.env_steps // session.settings.env.num_envs
    return min(max(trained, session.best.longest, 1), most)


def longest_after_stop(session: Session) -> float:
    """Seconds that a rollout and its update may still take: until there is something to save, if there will be."""
    return ITERATION_SECONDS if session.collector.envs.saves_state else 0.0


def checkpoint(session: Session, journal: Journal) -> None:
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
    if first := first_nonfinite(tensors_of_batch(session.learner.state())):
        raise NonFiniteError(
            f"the learner's `{first}` became NaN or infinite", "a smaller `optimizer.learning_rate` helps"
        )


def _finish(
    session: Session, journal: Journal, timer: PhaseTimer, stop: StopSignals, progress: Progress
) -> dict[str, Any]:
    """Judge the best weights and the last ones on fresh episodes, leave a last checkpoint and the result."""
    _require_finite(session)
    with timer.phase("evaluate"):
        if session.best.judged_at != session.counters.env_steps:
            evaluate(session, journal, stop)
        best, final = _judge(session, stop)
    with timer.phase("checkpoint"):
        state_digest = journal.state_digest()
        journal.save()
    progress.show(session, timer, None)
    return journal.finish(best, final, state_digest)


def _judge(session: Session, stop: StopSignals) -> tuple[dict[str, Any], dict[str, Any]]:
    """The best weights and the last ones on fresh episodes: once where the two are the same."""
    plan, env_steps, longest = evaluation_plan(session.settings), session.counters.env_steps, _longest_episode(session)
    allowance = plan.final_allowance(env_steps, session.best.spent)
    if session.best.env_steps == env_steps:
        both = session.evaluate(plan.final_episodes(allowance, longest), stop.check, "final")
        return both, both
    final = session.evaluate(plan.final_episodes(allowance // 2, longest), stop.check, "final")
    last: Array = session.weights()
    session.load_weights(session.best.parameters)
    left = allowance - env_steps_of(final)
    best = session.evaluate(plan.final_episodes(left, longest), stop.check, "final")
    session.load_weights(last)
    return best, final
