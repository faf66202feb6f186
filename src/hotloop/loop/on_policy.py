"""The actor-critic family's training loop (PPO, A2C): all of it, on one screen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hotloop.algos.ppo_settings import PPOSettings
from hotloop.core.timer import PhaseTimer
from hotloop.loop.cadence import checkpoint_due, crossed
from hotloop.loop.contract import Progress
from hotloop.loop.journal import Journal
from hotloop.loop.machine import StopSignals
from hotloop.loop.on_policy_session import OnPolicySession, build_on_policy_session
from hotloop.loop.running import checkpoint, evaluate, log, train_with
from hotloop.runs.directory import Run


def train(settings: PPOSettings, claim_run: Callable[[], Run], progress: Progress) -> dict[str, Any]:
    """Train until the run is finished, from its newest checkpoint if it has one; returns the result object."""
    return train_with(build_on_policy_session, run_loop, settings, claim_run, progress)


def run_loop(
    session: OnPolicySession, journal: Journal, timer: PhaseTimer, stop: StopSignals, progress: Progress
) -> None:
    settings, counters = session.settings, session.counters
    collector, policy, rollout, learner = session.collector, session.policy, session.rollout, session.learner
    store = timer.phase("store")
    while not session.finished and not stop.requested:
        before = counters.copy()
        rollout.clear()
        while not rollout.full:
            _, _, step = collector.advance(policy)  # phases act, env; the policy writes into the rollout
            with store:
                rollout.add(step)

        with timer.phase("advantage"):
            learner.compute_advantages(rollout.data, collector.obs, rollout.timeouts())  # one pass over [T, N]
        with timer.phase("update"):
            stats = learner.update(rollout.data)  # epochs x minibatches
        session.metrics.note_updates(stats)
        counters.iterations += 1

        if crossed(before.env_steps, counters.env_steps, settings.log_every):
            with timer.phase("log"):
                log(session, journal, timer, progress)
        if crossed(before.env_steps, counters.env_steps, settings.evaluation_every):
            with timer.phase("evaluate"):
                evaluate(session, journal, stop)
        if checkpoint_due(settings, before.env_steps, counters.env_steps) and not session.finished:
            with timer.phase("checkpoint"):
                checkpoint(session, journal)
        progress.show(session, timer)
