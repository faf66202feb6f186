"""From the plain JSON that the recorder leaves to a trace.

The recorder runs in somebody else's process and may be damaged there: what is missing or strange costs its own part.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from statistics import median
from typing import Any

from hotloop.core.intervals import median_interval
from hotloop.doctor.experiments import LEAST_PAIRS, judge_trials
from hotloop.doctor.trace import (
    CallCount,
    Counts,
    Experiment,
    LineCost,
    Mention,
    OperatorCost,
    Setup,
    Slice,
    StackCost,
    StoredArray,
    Subject,
    Trace,
    Untried,
)

ROWS: dict[str, type] = {
    "calls": CallCount,
    "lines": LineCost,
    "stacks": StackCost,
    "timeline": Slice,
    "operators": OperatorCost,
    "mentions": Mention,
    "stored": StoredArray,
    "beneath": LineCost,
    "warm_up": Slice,
    "late": StackCost,
}


def trace_of(data: Mapping[str, Any], subject: Subject, machine: Mapping[str, Any]) -> Trace:
    """`subject` has the script's name and arguments, the data say how it ended; `machine` is what the parent knows."""
    rows: dict[str, Any] = {name: tuple(_made(kind, row) for row in data.get(name, ())) for name, kind in ROWS.items()}
    tried = list(judge_trials(data.get("trials", ())))
    ended = {name: value for name, value in data.get("subject", {}).items() if name in ("ending", "exit_code", "error")}
    return Trace(
        subject=replace(subject, **ended),
        machine={**machine, **data.get("machine", {})},
        seconds=float(data.get("seconds", 0.0)),
        phases=dict(data.get("phases", {})),
        update_parts=dict(data.get("update_parts", {})),
        processor=dict(data.get("processor", {})),
        setup=_made(Setup, data.get("setup", {})),
        loops={where: tuple(heads) for where, heads in data.get("loops", {}).items()},
        made=dict(data.get("made", {})),
        makers={what: tuple(maker) for what, maker in data.get("makers", {}).items()},
        sources=dict(data.get("sources", {})),
        counts=_made(Counts, data.get("counts", {})),
        counted=_made(Counts, data.get("counted", {})),
        experiments=(
            *_experiments(data.get("experiments", ())),
            *(one for one in tried if isinstance(one, Experiment)),
        ),
        untried=tuple(one for one in tried if isinstance(one, Untried)),
        notes=(*data.get("notes", ()), *(_fault_note(fault) for fault in data.get("faults", ()))),
        **rows,
    )


def _made(kind: type, row: Mapping[str, Any]) -> Any:
    """By field name; what the dataclass does not know is left out."""
    known = {field.name for field in fields(kind)}
    return kind(**{name: tuple(v) if isinstance(v, list) else v for name, v in row.items() if name in known})


def _fault_note(fault: str) -> str:
    return f"a part of the recorder failed and was switched off, the script was not touched: {fault}"


def _experiments(rows: Sequence[Mapping[str, Any]]) -> Iterator[Experiment]:
    for row in rows:
        found = one_experiment(row["name"], row["what"], row["kind"], row["pairs"])
        if found is not None:
            yield found


def one_experiment(name: str, what: str, kind: str, paired: Sequence[float]) -> Experiment | None:
    """The median of paired ratios with its interval; None where there are too few to tell."""
    if len(paired) < LEAST_PAIRS:
        return None
    low, high = median_interval(paired)
    return Experiment(name=name, what=what, kind=kind, ratio=median(paired), low=low, high=high)
