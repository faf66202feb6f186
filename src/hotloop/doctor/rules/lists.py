"""What is done to lists and states on the way: shifted, popped at the front, deep-copied."""

from __future__ import annotations

from hotloop.doctor.finding import Finding, rule
from hotloop.doctor.rules.evidence import (
    Remedy,
    by_cost,
    calls_like,
    features_at,
    function_at,
    loop_lines,
    microseconds_words,
    number,
    own_microseconds,
    per_env_call,
    percent,
    places_of,
    sampled_share,
    source_at,
    suggest,
)
from hotloop.doctor.trace import CallCount, Trace

ROW_MICROSECONDS = 0.4
"""A row of a reverse pass over Python floats or arrays [N], everything included."""
MOST_INSERT_GAINS = 50.0
POP_FRONT_LENGTH = 500
POP_FRONT_SPEEDUP = 50.0
COPY_SPEEDUP = 15.0
COPIES_PER_CALL = 0.05

ADVANTAGES = Remedy(
    "Compute what does not depend on the order over the whole array, then fill a preallocated array from the back.",
    "advantages, gae = [], 0.0\n"
    "for t in reversed(range(len(rewards))):\n"
    "    delta = rewards[t] + 0.99 * values[t + 1] * (1 - dones[t]) - values[t]\n"
    "    gae = delta + 0.99 * 0.95 * (1 - dones[t]) * gae\n"
    "    advantages.insert(0, gae)",
    "import numpy as np\n\n"
    "value, discount = np.asarray(values), 0.99 * (1 - np.asarray(dones))\n"
    "delta = (np.asarray(rewards) + discount * value[1:] - value[:-1]).tolist()\n"
    "decay = (0.95 * discount).tolist()\n"
    "advantages, gae = np.empty(len(delta)), 0.0\n"
    "for t in range(len(delta) - 1, -1, -1):\n"
    "    advantages[t] = gae = delta[t] + decay[t] * gae",
)
RING = Remedy(
    "Use a ring: `collections.deque(maxlen=...)` drops the oldest by itself, hotloop's `Replay` also samples fast.",
    "memory.append(one)\nif len(memory) > capacity:\n    memory.pop(0)",
    "from collections import deque\n\n"
    "memory = deque(maxlen=capacity)\n"
    "# in the loop\n"
    "memory.append(one)  # the oldest leaves by itself",
)
COPY = Remedy(
    "Copy what changes: an array with `.copy()`, a network with `load_state_dict`; `deepcopy` walks every object.",
    "before = copy.deepcopy(state)",
    "before = state.copy()  # an array of numbers",
)


@rule("STORE003")
def inserted_at_the_front(trace: Trace) -> Finding | None:
    """Advantages or returns are inserted at the front of a list.

    Every insertion moves the whole list, so the cost grows with the square of the rollout, and each row is Python
    arithmetic, often on single-number tensors. Found where `list.insert(0, ...)` runs in a loop on lists of a hundred
    or more.
    """
    calls = [call for call in calls_like(trace, ("list.insert",)) if call.largest >= 100 and _at_front(trace, call)]
    if not calls:
        return None
    lines = {line for call in calls for line in loop_lines(trace, function_at(trace, call.where))}
    share = sampled_share(trace, lines | set(places_of(calls)), {call.phase for call in calls})
    per_env_step = trace.per_env_step(calls[:1])
    rows = per_env_step * trace.counts.env_steps
    evidence = (
        f"`insert(0, ...)` runs {number(trace.per_env_step(calls))} times per env step on lists of up to "
        f"{number(max(call.largest for call in calls))}; the lines around it take "
        f"{percent(share)} of the loop, {microseconds_words(trace, share, rows)} a row."
    )
    speedup = max(1.0, min(MOST_INSERT_GAINS, own_microseconds(trace, share, rows) / ROW_MICROSECONDS))
    return suggest(trace, share, speedup, evidence=evidence, remedy=ADVANTAGES, places=places_of(calls))


def _at_front(trace: Trace, call: CallCount) -> bool:
    return "insert-front" in features_at(trace, call.where) or "insert(0" in source_at(trace, call.where)


@rule("STORE004")
def popped_at_the_front(trace: Trace) -> Finding | None:
    """The oldest entry is popped from the front of a long list.

    `list.pop(0)` moves every entry that remains: microseconds at a thousand, tens of them at a hundred thousand. Found
    where it happens on lists of 500 or more.
    """
    calls = [call for call in calls_like(trace, ("list.pop",)) if call.largest >= POP_FRONT_LENGTH]
    calls = [call for call in calls if "pop-front" in features_at(trace, call.where)]
    if not calls:
        return None
    places = by_cost(trace, places_of(calls))
    share = sampled_share(trace, places)
    evidence = (
        f"`pop(0)` runs {number(trace.per_env_step(calls))} times per env step on a list of up to "
        f"{number(max(call.largest for call in calls))}: {percent(share)} of the loop."
    )
    return suggest(trace, share, POP_FRONT_SPEEDUP, evidence=evidence, remedy=RING, places=places)


@rule("STORE005")
def deep_copies(trace: Trace) -> Finding | None:
    """Objects are deep-copied in the loop.

    `copy.deepcopy` walks every object and keeps a memo of them: hundreds of microseconds for what an array copy does in
    one. Found where it runs for every twentieth call of `step` or more.
    """
    calls = calls_like(trace, ("copy.deepcopy",))
    often = per_env_call(trace, calls)
    if often < COPIES_PER_CALL:
        return None
    places = by_cost(trace, places_of(calls))
    share = sampled_share(trace, places)
    evidence = f"`deepcopy` runs {number(often)} times per call of `step` and takes {percent(share)} of the loop."
    return suggest(trace, share, COPY_SPEEDUP, evidence=evidence, remedy=COPY, places=places)
