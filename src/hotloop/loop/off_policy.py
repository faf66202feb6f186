"""The training loop of those that learn from replay, DQN's and SAC's families: all of it, on one screen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hotloop.core.timer import PhaseTimer
from hotloop.loop.cadence import anything_due
from hotloop.loop.contract import Progress, ProgressRow
from hotloop.loop.journal import Journal
from hotloop.loop.machine import StopSignals
from hotloop.loop.running import Claim, Rows, rows_with, upkeep
from hotloop.loop.session import Session


def rows(settings: Any, claim_run: Claim, progress: Progress, timer: PhaseTimer) -> Rows:
    """Train until the run is finished, from its newest checkpoint if it has one; its log rows as they come."""
    return rows_with(run_loop, settings, claim_run, progress, timer)


def run_loop(
    session: Session, journal: Journal, timer: PhaseTimer, stop: StopSignals, progress: Progress
) -> Iterator[ProgressRow]:
    settings, counters = session.settings, session.counters
    collector, policy, replay, learner = session.collector, session.policy, session.replay, session.learner
    while not session.finished and not stop.requested:
        before = counters.copy()
        obs, action, _, step = collector.advance(policy)  # phases act, env, log; counts env steps and episodes
        with timer.phase("store"):
            replay.add(obs, action, step)

        for k in session.plan.due(before.env_steps, counters.env_steps) if replay.size else ():
            with timer.phase("sample"):
                batches = replay.sample(learner.rows_per_update, k, counters.env_steps, settings.updates_per_batch)
            with timer.phase("update"):
                stats = learner.update(batches)  # k sequential updates
                if settings.replay.prioritized:  # the one thing that must be read after every update
                    replay.update_priorities(batches.index, stats.td_error_on_host())
            session.metrics.note_updates(stats)
        learner.update_target_if_due(before)
        counters.iterations += 1

        if anything_due(settings, before.env_steps, counters.env_steps):
            yield from upkeep(session, before.env_steps, journal, timer, stop, progress)  # log, evaluate, checkpoint
        progress.show(session, timer)
