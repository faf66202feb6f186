"""The comparison for people: one row per arm, in Markdown and on a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from hotloop.compare.statistics import Interval
from hotloop.compare.summary import ArmSummary
from hotloop.compare.ticks import short_number

Cells = list[str]


def headings(measure: str, threshold: float | None) -> Cells:
    name = measure.replace("_", " ")
    cells = ["arm", "seeds", f"{name} [95 %]", "IQM [95 %]"]
    if threshold is not None:
        aim = short_number(threshold)
        cells += [f"reached {aim}", f"env steps to {aim}", f"training s to {aim}"]
    return [*cells, "training s", "all s", "env steps/s"]


def cells_of(summary: ArmSummary) -> Cells:
    cells = [
        summary.label,
        str(len(summary.runs)),
        _with_interval(summary.mean("score"), summary.mean_interval),
        _with_interval(summary.iqm, summary.iqm_interval),
    ]
    if summary.threshold is not None:
        reached = sum(there is not None for there in summary.reached())
        cells += [f"{reached}/{len(summary.runs)}", _number(summary.to_threshold(0)), _number(summary.to_threshold(1))]
    return cells + [_number(summary.mean(field)) for field in ("training_seconds", "seconds", "env_steps_per_second")]


def as_markdown(summaries: Sequence[ArmSummary], measure: str, threshold: float | None) -> str:
    rows = [headings(measure, threshold), ["---", *["---:"] * (len(headings(measure, threshold)) - 1)]]
    rows += [[_plain(cell) for cell in cells_of(summary)] for summary in summaries]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def as_rich(summaries: Sequence[ArmSummary], measure: str, threshold: float | None) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0))
    for number, heading in enumerate(headings(measure, threshold)):
        table.add_column(heading, justify="right" if number else "left", no_wrap=True)
    for summary in summaries:
        table.add_row(*[cell.replace("[", r"\[") for cell in cells_of(summary)])
    return table


def _with_interval(value: float | None, interval: Interval | None) -> str:
    if value is None or interval is None:
        return _number(value)
    return f"{_number(value)} [{_number(float(interval.low))}, {_number(float(interval.high))}]"


def _number(value: float | None) -> str:
    """Enough digits to compare by: 12,345, 123.4, 1.23."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def _plain(cell: str) -> str:
    """A label must not open a column or a tag."""
    return cell.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")
