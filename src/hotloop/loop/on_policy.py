"""The actor-critic family's training loop (PPO, A2C): all of it, on one screen."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from hotloop.core.timer import PhaseTimer
from hotloop.loop.cadence import anything_due
from hotloop.loop.contract import Progress, ProgressRow
from hotloop.loop.journal import Journal
from hotloop.loop.machine import StopSignals
from hotloop.loop.running import Claim, Rows, longest_after_stop, rows_with, upkeep
from hotloop.loop.session import Session
from hotloop.presets.ppo_settings import PPOSettings


def rows(settings: PPOSettings, claim_run: Claim, progress: Progress, timer: PhaseTimer) -> Rows:
    """Train until the run is finished, from its newest checkpoint if it has one; its log rows as they come."""
    return rows_with(run_loop, settings, claim_run, progress, timer)


def run_loop(
    session: Session, journal: Journal, timer: PhaseTimer, stop: StopSignals, progress: Progress
) -> Iterator[ProgressRow]:
    settings, counters = session.settings, session.counters
    collector, policy, rollout, learner = session.collector, session.policy, session.rollout, session.learner
    store, check = timer.phase("store"), partial(stop.check, longest_after_stop(session))
    while not session.finished and not stop.requested:
        before = counters.copy()
        rollout.clear()
        while not rollout.full:
            _, _, acted, step = collector.advance(policy, rollout.row())  # phases act, env, log
            with store:
                rollout.add(acted, step)
            check()

        with timer.phase("advantage"):
            learner.compute_advantages(rollout.data, collector.obs, rollout.timeouts())  # one pass over [T, N]
        with timer.phase("update"):
            stats = learner.update(rollout.data, check)  # epochs x minibatches
        session.metrics.note_updates(stats)
        counters.iterations += 1

        if anything_due(settings, before.env_steps, counters.env_steps):
            yield from upkeep(session, before.env_steps, journal, timer, stop, progress)  # log, evaluate, checkpoint
        progress.show(session, timer)
