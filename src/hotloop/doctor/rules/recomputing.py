"""What is computed or compiled again although nothing has changed."""

from __future__ import annotations

from hotloop.doctor.finding import IDENTICAL, TO_ROUNDING, Finding, Remedy, rule
from hotloop.doctor.rules.beneath import lines_above, mentioned, share_of, stacks_in
from hotloop.doctor.rules.evidence import (
    SAVED_ENTIRELY,
    by_cost,
    calls_like,
    number,
    places_of,
    suggest,
)
from hotloop.doctor.trace import ACT, UPDATE, Trace
from hotloop.render.numbers import percent

COMPILING = (("torch/_dynamo/convert_frame.py", "*"),)
LEAST_COMPILATIONS = 5
"""Fewer are the first ones of every run."""
LEAST_REPEATED = 0.2
"""Of the forwards or backwards of one phase."""

ONE_SHAPE = Remedy(
    "Give compiled code inputs of one shape, filled up with rows that are left out again, or compile with "
    "`dynamic=True`: for each new shape everything is compiled anew, and after eight of them PyTorch stops compiling "
    "without a word.",
    "fast = torch.compile(network, dynamic=False)\n# in the loop\nq = fast(obs)",
    "import torch\n\n"
    "fast = torch.compile(network, dynamic=False)\n"
    "# in the loop\n"
    "padded = torch.cat([obs, obs.new_zeros(64 - len(obs), obs.shape[1])])  # 64: the largest batch\n"
    "q = fast(padded)[: len(obs)]",
)
KEPT = Remedy(
    "Keep the answer of the first forward: weights and inputs are the same until the optimizer steps. One backward of "
    "the sum of all losses takes the place of several through the same graph.",
    "value = network(obs).max(dim=1)[0].mean()\nloss = ((network(obs) - y) ** 2).mean()",
    "q = network(obs)\nvalue = q.max(dim=1)[0].mean()\nloss = ((q - y) ** 2).mean()",
)


@rule("UPDATE013", remedy=ONE_SHAPE, kind=TO_ROUNDING, condition="no layer looks at several rows together")
def compiled_again(trace: Trace) -> Finding | None:
    """Compiled code is compiled again and again.

    `torch.compile` specializes on shapes, types and Python values: a batch of another size, or a number that changes,
    compiles everything anew, for a tenth of a second to a minute. Found where five graphs or more were compiled
    while the loop ran.
    """
    stacks = stacks_in(trace, COMPILING)
    share = share_of(trace, stacks)
    if trace.counts.compilations < LEAST_COMPILATIONS:
        return None
    evidence = (
        f"{number(trace.counts.compilations)} graphs were compiled in {trace.loop_seconds:.1f} s of the loop, which "
        f"took {percent(share)} of it."
    )
    places = [*mentioned(trace, "torch.compile"), *lines_above(trace, stacks, COMPILING)]
    return suggest(trace, share, SAVED_ENTIRELY, evidence=evidence, places=places, relief=0.0)


@rule(
    "UPDATE014",
    remedy=KEPT,
    kind=IDENTICAL,
    condition="each backward starts from the same gradients, and their sum is what is wanted",
)
def computed_again(trace: Trace) -> Finding | None:
    """The same forward or backward is computed again.

    A network that is asked twice for the same rows with the same weights answers the same: once for the loss, once for
    a statistic, once for the log. Found where a fifth or more of the forwards between two optimizer steps, or between
    two env calls, repeat an earlier one, byte by byte. What a library's loop computes again is the library's to mend.
    """
    if trace.beneath:
        return None
    counted = trace.counted
    forwards = {ACT: counted.act_forwards, UPDATE: counted.update_forwards}
    share = 0.0
    places: list[str] = []
    words: list[str] = []
    for phase, total in forwards.items():
        calls = calls_like(trace, ("repeated:forward",), (phase,))
        again = sum(call.count for call in calls)
        if total and again >= LEAST_REPEATED * total:
            share += again / total * (trace.part_share("forward") if phase == UPDATE else trace.share(ACT))
            places += places_of(calls)
            words.append(f"{number(again)} of {number(total)} forwards while the loop {VERBS[phase]}")
    backwards = calls_like(trace, ("repeated:backward",))
    again = sum(call.count for call in backwards)
    if counted.backwards and again >= LEAST_REPEATED * counted.backwards:
        share += again / counted.backwards * trace.part_share("backward")
        places += places_of(backwards)
        words.append(f"{number(again)} of {number(counted.backwards)} backwards")
    evidence = f"{' and '.join(words)} repeat an earlier one with the same weights: {percent(share)} of the loop."
    return suggest(trace, share, SAVED_ENTIRELY, evidence=evidence, places=by_cost(trace, places)) if words else None


VERBS = {ACT: "acts", UPDATE: "learns"}
