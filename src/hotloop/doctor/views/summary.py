"""What every view says about a trace: the phases with their costs, the verdict, the counts that matter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hotloop.core.verdicts import NOT_TRIED
from hotloop.doctor.clocks import processor_seconds
from hotloop.doctor.experiments import confirmed, measured_by
from hotloop.doctor.finding import LEAST_GAIN, SPEED_TRIED, Finding, together
from hotloop.doctor.trace import (
    LEAST_ENV_STEPS,
    LEAST_UPDATES,
    OUTSIDE,
    UPDATE_PARTS,
    CallCount,
    Experiment,
    Slice,
    Trace,
    Untried,
)
from hotloop.render.numbers import duration, number, percent, times

_SPOKEN = {
    "act": "acting",
    "env": "the environment",
    "store": "storing transitions",
    "sample": "sampling batches",
    "advantage": "computing advantages",
    "store-and-sample": "the replay",
    "update": "the update",
    "log": "logging",
    "evaluate": "evaluation",
    "checkpoint": "writing checkpoints",
    "other": "code outside every known phase",
    "wait": "waiting",
}
_ENDINGS = {
    "finished": "finished",
    "limit": "stopped at the doctor's limit",
    "interrupted": "interrupted",
    "crashed": "crashed",
    "exited": "exited",
}
CHANGING = "what changes learning is no speed-up by itself: `hotloop compare` judges it by its curves"
"""Stands above the findings that are no speed-up by themselves."""


@dataclass(frozen=True)
class CostRow:
    """One phase, or one part of the update."""

    name: str
    seconds: float
    """By the clock of the trace."""
    share: float
    """Of loop time; zero for start-up, which is no part of the loop."""
    us_per_env_step: float | None
    us_per_update: float | None
    processor_seconds: float | None = None
    """What the loop's own thread computed meanwhile; None where that was not measured."""


def phase_rows(trace: Trace) -> list[CostRow]:
    """The most expensive first, what is no part of the loop last."""
    names = sorted(trace.phases, key=lambda name: (name in OUTSIDE, -trace.phases[name]))
    return [
        replace(cost_row(trace, name, trace.phases[name]), processor_seconds=processor_seconds(trace, name))
        for name in names
    ]


def update_rows(trace: Trace) -> list[CostRow]:
    known = [name for name in UPDATE_PARTS if name in trace.update_parts]
    return [cost_row(trace, name, trace.update_parts[name]) for name in dict.fromkeys([*known, *trace.update_parts])]


def cost_row(trace: Trace, name: str, seconds: float) -> CostRow:
    if name in OUTSIDE:
        return CostRow(name, seconds, 0.0, None, None)
    share = seconds / trace.loop_seconds if trace.loop_seconds > 0 else 0.0
    return CostRow(name, seconds, share, _us(seconds, trace.counts.env_steps), _us(seconds, trace.counts.updates))


def _us(seconds: float, count: int) -> float | None:
    return 1e6 * seconds / count if count else None


def rate(trace: Trace, count: int) -> float:
    """Per second of loop time."""
    return count / trace.loop_seconds if trace.loop_seconds > 0 else 0.0


def ending(trace: Trace) -> str:
    subject = trace.subject
    words = _ENDINGS.get(subject.ending, subject.ending)
    if subject.ending != "finished" and subject.exit_code is not None:
        words += f" with code {subject.exit_code}"
    return f"{words} ({subject.error})" if subject.error else words


def verdict(trace: Trace, findings: Sequence[Finding]) -> str:
    """The whole diagnosis in one sentence."""
    loop = [row for row in phase_rows(trace) if row.name not in OUTSIDE and row.seconds > 0]
    unseen = trace.counts.unseen_updates
    if not loop or not (trace.counts.env_steps or trace.counts.updates):
        learned = f"but {unseen:,} optimizer steps were" if unseen else "and no update was"
        begins = f"No env step was seen in {duration(trace.seconds)}, {learned} seen"
        failed = f" The program {ending(trace)}." if trace.subject.ending == "crashed" else ""
        return f"{begins}: there is no loop to judge.{failed}"
    first = loop[0]
    where = f"{percent(first.share)} of the loop is {_SPOKEN.get(first.name, first.name)}"
    if not trace.counts.env_steps:
        where = f"No env step was seen; {where}"
    if trace.subject.ending == "crashed":
        where = f"The program {ending(trace)}; what was seen before: {where}"
    little = too_little_text(trace)
    if not findings and little:
        return f"{where}. {little}"
    changing = max((one.gain for one in findings if not one.keeps), default=0.0)
    apart = f"Beside it, {times(changing)} that changes learning: ask `hotloop compare`." if changing else ""
    return " ".join(filter(None, [f"{where}; {_kept_text(trace, findings)}.", apart, little]))


def _kept_text(trace: Trace, findings: Sequence[Finding]) -> str:
    """What is gained without another computation."""
    keeping = [one for one in findings if one.keeps and one.gain >= LEAST_GAIN]
    if not keeping:
        return "nothing was found that could be taken out of it" + " and keep the computation" * bool(findings)
    words = "findings that keep" if len(keeping) > 1 else "the one finding that keeps"
    gain = times(together(keeping, trace))
    number = f"{len(keeping)} {words}" if len(keeping) > 1 else words
    return f"{number} the computation would make it {gain} faster ({how_known(keeping)})"


def how_known(keeping: Sequence[Finding]) -> str:
    """Whether what they gain was tried here, and how many of them keep the computation on a condition alone."""
    tried = sum(one.tried == SPEED_TRIED for one in keeping)
    known = SPEED_TRIED if tried == len(keeping) else f"speed of {tried} tried here, the others predicted"
    known = known if tried else f"predicted, {NOT_TRIED}"
    open_ones = sum(bool(one.condition) for one in keeping)
    if not open_ones:
        return known
    whose = "its condition holds" if len(keeping) == 1 else "the condition of one holds"
    if open_ones > 1:
        whose = f"the conditions of {open_ones} hold"
    return f"{known}; if {whose}"


def keeps_text(finding: Finding) -> str:
    """`to rounding, not tried`: what the remedy keeps, and whether anybody has looked at it here."""
    on_condition = " on a condition" * bool(finding.condition)
    return f"{finding.kind}{on_condition}, {finding.tried}"


def condition_text(finding: Finding) -> str:
    return f"keeps the computation if {finding.condition}" if finding.condition else ""


def too_little_text(trace: Trace) -> str:
    """Why there is no all-clear; empty where enough was seen."""
    if not trace.too_little:
        return ""
    counts = trace.counts
    if counts.unseen_updates:
        return "Learning runs in another thread than the envs, and only theirs is timed."
    if not counts.env_steps:
        needed = f"{counts.updates:,} updates, where {LEAST_UPDATES} are needed; a longer --seconds shows more."
        return f"Too little was seen to say more: no env step and {needed}"
    learns = bool(counts.updates or counts.optimiser)
    updates = f" and {counts.updates:,} update{'s' * (counts.updates != 1)}" if learns else ""
    return (
        f"Too little was seen to say more: {counts.env_steps:,} env steps{updates}, where {LEAST_ENV_STEPS} "
        f"{'and ' + str(LEAST_UPDATES) + ' ' if learns else ''}are needed; a longer --seconds shows more."
    )


def together_text(trace: Trace, findings: Sequence[Finding]) -> str:
    """What all findings gain that keep the computation; empty where there are not two of them."""
    keeping = [one for one in findings if one.keeps]
    if len(keeping) < 2:
        return ""
    gain = times(together(keeping, trace))
    return f"findings that keep the computation, together: {gain} faster ({how_known(keeping)})"


def facts(trace: Trace) -> list[tuple[str, str]]:
    """The counts a reader checks a loop by; those that are zero everywhere are left out."""
    counts = trace.counts
    rows: list[tuple[str, float | str, str]] = [
        ("env steps", counts.env_steps, f"{counts.env_steps:,}"),
        ("episodes", counts.episodes, f"{counts.episodes:,}"),
        ("updates", counts.updates, f"{counts.updates:,}"),
        ("optimizers", counts.optimisers > 1, f"{counts.optimisers}, {counts.optimiser_steps:,} steps"),
        ("env steps per episode", counts.episodes, number(counts.env_steps / max(1, counts.episodes))),
        ("envs at once", counts.env_calls, number(trace.envs_at_once)),
        ("updates per env step", counts.updates, number(counts.updates / max(1, counts.env_steps))),
        ("updates at once", counts.update_bursts, number(counts.updates / max(1, counts.update_bursts))),
        ("forwards per env call", counts.act_forwards, number(counts.act_forwards / max(1, counts.env_calls))),
        ("forwards per update", counts.update_forwards, number(counts.update_forwards / max(1, counts.updates))),
        ("backwards per update", counts.backwards, number(counts.backwards / max(1, counts.updates))),
        ("acting forwards with gradients", counts.act_forwards_with_grad, f"{counts.act_forwards_with_grad:,}"),
        ("needless gradient forwards", counts.unneeded_grad_forwards, f"{counts.unneeded_grad_forwards:,}"),
        ("batch size", counts.batch_size, f"{counts.batch_size:,}"),
        ("parameters", counts.parameters, f"{counts.parameters:,} in {counts.parameter_tensors:,} tensors"),
        ("optimizer", counts.optimiser, counts.optimiser),
        ("float64 parameters", counts.double_parameters, f"{counts.double_parameters:,}"),
        ("denormal values", counts.denormal_values, f"{counts.denormal_values:,}"),
    ]
    rows += [("waiting for others", counts.waiting_seconds, duration(counts.waiting_seconds))]
    rows += [("computed by worker processes", counts.worker_seconds, duration(counts.worker_seconds))]
    rows += [("garbage collection", counts.gc_seconds, f"{duration(counts.gc_seconds)} in {counts.gc_collections:,}")]
    return [(label, shown) for label, value, shown in rows if value]


def machine_facts(trace: Trace) -> list[tuple[str, str]]:
    """In words: `memory_bytes` 33500000000 reads as memory 33.5 GB."""
    rows = []
    for name, value in trace.machine.items():
        if name.endswith("_bytes") and isinstance(value, int | float):
            name, value = name.removesuffix("_bytes"), f"{value / 1e9:.1f} GB"
        rows.append((name.replace("_", " "), _plain(value)))
    return rows


def _plain(value: object) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(_plain, value))
    return "yes" if value is True else "no" if value is False else "-" if value is None else str(value)


def frequent_calls(trace: Trace, at_most: int) -> list[CallCount]:
    """Library calls, by how often one line made them; the user's own functions are left to the lines."""
    calls = [call for call in trace.calls if not call.name.startswith(("user:", "recursive:"))]
    return sorted(calls, key=lambda call: -call.count)[:at_most]


def source_of(trace: Trace, where: str) -> str:
    """What stands on a line, if the sampler saw it, or it stands around one that was seen."""
    lines = (*trace.lines, *trace.beneath)
    return next((line.source for line in lines if line.where == where), trace.sources.get(where, ""))


def merged(slices: Sequence[Slice], at_most: int) -> list[Slice]:
    """The same timeline in at most so many slices."""
    size = max(1, -(-len(slices) // at_most))
    return [_joined(slices[start : start + size]) for start in range(0, len(slices), size)]


def _joined(slices: Sequence[Slice]) -> Slice:
    names = dict.fromkeys(name for one in slices for name in one.phases)
    return Slice(
        start_seconds=slices[0].start_seconds,
        seconds=sum(one.seconds for one in slices),
        env_steps=sum(one.env_steps for one in slices),
        episodes=sum(one.episodes for one in slices),
        updates=sum(one.updates for one in slices),
        phases={name: sum(one.phases.get(name, 0.0) for one in slices) for name in names},
    )


def experiment_text(trace: Trace, one: Experiment, findings: Sequence[Finding]) -> str:
    """What was changed; and where a finding had promised a gain for it, predicted and measured side by side."""
    finding, found = confirmed(one, findings), measured_by(one, trace.clock)
    if finding is None:
        return one.what
    held = "confirms" if found.low > 1 else "does not confirm" if found.high < 1 else "neither confirms nor refutes"
    promise = f"predicted {times(finding.expected_gain)}, measured {times(found.value)}"
    return f"{one.what} ({held} {finding.rule}: {promise})"


def tried_text(trace: Trace, finding: Finding) -> str:
    """The other way round: what experiments say of a finding."""
    tried = [(one, measured_by(one, trace.clock)) for one in trace.experiments if confirmed(one, [finding])]
    return "; ".join(
        f"`{one.name}` {times(found.value)} ({found.low:.2f} to {found.high:.2f}), predicted "
        f"{times(finding.expected_gain)}"
        for one, found in tried
    )


def untried_text(one: Untried) -> str:
    return one.reason if one.reason.startswith("not tried") else f"does not apply: {one.reason}"
