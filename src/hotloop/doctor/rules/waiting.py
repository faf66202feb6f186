"""Time in which the loop's thread computes nothing: it waits for worker processes, or sleeps."""

from __future__ import annotations

from hotloop.doctor.clocks import crowding, crowding_text, gain_by_the_wall
from hotloop.doctor.finding import IDENTICAL, Finding, Remedy, rule
from hotloop.doctor.rules.beneath import mentioned
from hotloop.doctor.rules.evidence import (
    SAVED_ENTIRELY,
    by_cost,
    calls_like,
    most_expensive,
    number,
    places_of,
    sampled_share,
    suggest,
)
from hotloop.doctor.trace import ENV, EVALUATE, PROCESSOR, WAIT, CallCount, Trace
from hotloop.render.numbers import percent

WAITING = (
    "multiprocessing.*.recv",
    "multiprocessing.*.poll",
    "multiprocessing.*.get",
    "multiprocessing.*.map",
    "concurrent.*.result",
    "concurrent.*.map",
    "queue.*.get",
    "ray.get",
    "ray.wait",
    "gymnasium.AsyncVectorEnv.step*",
    "stable_baselines3.SubprocVecEnv.*",
)
LEAST_WAITING = 0.15
STARTING_WORKERS = (
    *("AsyncVectorEnv", "SubprocVecEnv"),
    *(f"{owner}.{name}" for owner in ("multiprocessing", "mp", "context", "ctx") for name in ("Process", "Pool")),
)
"""Names by which workers are started: the line to edit."""
MESSAGE_SECONDS, BUSY_MESSAGE_SECONDS, MOST_MESSAGE_SECONDS = 30e-6, 200e-6, 250e-6
"""What a worker spends on receiving, answering and waking up, beside stepping its env: on a quiet core (Gymnasium's
took 25 microseconds for a CartPole that costs 5, ours 41 for an env of 15), and on a machine that is busy with other
programs, whose caches are cold (240 for a CartPole of 18). And how long a message and its answer take at most."""
WORTH_A_WORKER_SECONDS = 100e-6
"""A step that computes for longer gains from a second core, however long it stood in the queue for one: from there on
`ENV010` asks for workers."""
MOST_WORKER_SPEEDUP = 16.0
LEAST_STEPPED = 1 / 6
"""Of what a worker computes, what is the env's step where the rest is messages: of CartPole, as cheap as envs get, 5 of
30 microseconds."""
WAITING_RELIEF = 0.8
"""A loop that sleeps wakes with cold caches: acting took 1.8 times as long between two waits as without them."""

WORKERS = Remedy(
    "Step cheap envs in this process: a message to a worker and back costs 50 to 100 microseconds. Keep workers for "
    "envs that cost more than that, and let each step several.",
    "envs = gymnasium.vector.AsyncVectorEnv(makers)",
    "import gymnasium\n\nenvs = gymnasium.vector.SyncVectorEnv(makers)",
)
SLEEP = Remedy("Take the pause out of training; keep it where someone watches.", "time.sleep(0.01)", "")


@rule("MACHINE003", remedy=WORKERS, kind=IDENTICAL, condition="the envs share nothing: no object, no random generator")
def waiting_for_workers(trace: Trace) -> Finding | None:
    """The loop waits for worker processes.

    Sending an action to another process and waiting for its answer costs more than a cheap env's step. Found where
    at least 15 % of the loop is spent on lines that receive from workers, and what the workers computed would take
    less time here: with envs that are worth a process of their own there is no finding. On a busy machine an answer
    also waits until worker and loop get the core, which goes too: the gain is told by the wall clock there.
    """
    calls = [call for call in calls_like(trace, WAITING) if call.phase != EVALUATE]
    places = by_cost(trace, places_of(calls)) or most_expensive(trace, (ENV,))
    waiting = trace.counts.waiting_seconds / trace.loop_seconds if trace.loop_seconds > 0 else 0.0
    # A line that steps the envs may do all else too: `model.learn(...)`.
    waited = max(sampled_share(trace, places, () if calls else (ENV, WAIT)), waiting)
    if waited < LEAST_WAITING or not (calls or trace.counts.worker_seconds):
        return None
    # Where an env step is mostly waiting, sending and putting the answers together goes with it.
    share = max(waited, trace.share(ENV)) if waited > 0.5 * trace.share(ENV) else waited
    seconds, answers = share * trace.loop_seconds, _answers(trace, calls)
    if trace.machine.get("cores", 1) > 1 and _step_seconds(trace, answers) > WORTH_A_WORKER_SECONDS:
        return None
    speedup = min(MOST_WORKER_SPEEDUP, seconds / max(1e-9, _seconds_of_the_envs(trace, answers, seconds)))
    evidence = (
        f"The loop waits for answers of workers {percent(waited)} of its time; for each of {number(answers)} answers "
        f"they used {number(1e6 * trace.counts.worker_seconds / answers)} microseconds of processor time, messages "
        "included."
    )
    places = [*mentioned(trace, *STARTING_WORKERS), *places]
    if trace.clock == PROCESSOR:
        gone = 1 - 1 / max(1.0, _gain_without_workers(trace, share, answers))
        evidence += crowding_text(trace)
        return suggest(trace, gone, SAVED_ENTIRELY, evidence=evidence, places=places, relief=0.0)
    return suggest(trace, share, speedup, evidence=evidence, places=places, relief=WAITING_RELIEF)


def _answers(trace: Trace, calls: list[CallCount]) -> float:
    """One for each env step, unless the script receives them itself, where they were counted."""
    received = [call for call in calls if call.name.endswith(".recv")]
    return max(1.0, trace.counts.env_steps * (trace.per_env_step(received) if received else 1.0))


def message_seconds(trace: Trace) -> float:
    return BUSY_MESSAGE_SECONDS if trace.clock == PROCESSOR else MESSAGE_SECONDS


def _step_seconds(trace: Trace, answers: float) -> float:
    """What a worker computed for each answer, without the message."""
    return max(0.0, trace.counts.worker_seconds / answers - message_seconds(trace))


def _seconds_of_the_envs(trace: Trace, answers: float, seconds: float) -> float:
    """What the envs of workers would cost here: what they computed, and how long they slept, without the messages."""
    computed = answers * _step_seconds(trace, answers)
    return computed + max(0.0, seconds - computed - answers * MOST_MESSAGE_SECONDS)


def _gain_without_workers(trace: Trace, share: float, answers: float) -> float:
    """On a busy machine: an answer waits until the worker and then the loop get the core, and all of that goes. What is
    left is computed here, the envs' steps too, and stands in the queue by itself."""
    counts = trace.counts
    beside = (1 - share) * trace.loop_seconds / (1 + WAITING_RELIEF * share)
    stepped = max(answers * _step_seconds(trace, answers), LEAST_STEPPED * counts.worker_seconds)
    slept = max(0.0, counts.asleep_seconds - crowding(trace) * counts.worker_seconds - answers * MOST_MESSAGE_SECONDS)
    return gain_by_the_wall(trace, beside + stepped, slept)


@rule("MACHINE005", remedy=SLEEP, kind=IDENTICAL, condition="nothing that the loop needs happens during the pause")
def sleeping(trace: Trace) -> Finding | None:
    """The loop sleeps.

    A pause that was there to watch the agent, or to wait for something, stays in training. Found where `time.sleep`
    takes a part of the loop.
    """
    calls = calls_like(trace, ("time.sleep",))
    if not calls:
        return None
    places = by_cost(trace, places_of(calls))
    share = sampled_share(trace, places)
    evidence = (
        f"`time.sleep` runs {number(trace.per_env_step(calls))} times per env step: {percent(share)} of the loop."
    )
    return suggest(trace, share, SAVED_ENTIRELY, evidence=evidence, places=places, relief=0.0)
