"""What became slower since an earlier report, and whether that is more than was allowed.

Two diagnoses side by side on a terminal.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from hotloop.core.errors import HotloopError
from hotloop.doctor.trace import SCHEMA, Trace
from hotloop.doctor.views.against_rows import LEAST_SHARE, UNITS, ComparisonRow, compare_costs
from hotloop.doctor.views.report import report_json
from hotloop.render.numbers import interval, number, times

_STYLES = {"slower": "bold red", "faster": "green", "same": "dim"}
_MOST_LINES = 12
_CAUTION = (
    "An interval knows how much a recording varies within itself, not how recordings of the same code differ from one "
    "another: what is allowed should leave room for that."
)


def render_rows(rows: Sequence[ComparisonRow], notes: Sequence[str] = ()) -> RenderableType:
    whole = [row for row in rows if not row["what"].startswith("line ")]
    lines = [row for row in rows if row["what"].startswith("line ") and row["verdict"] != "same"]
    lines = [row for row in lines if abs(row["adds"]) >= LEAST_SHARE][:_MOST_LINES]
    unit = rows[0]["unit"] if rows else "env step"
    parts: list[RenderableType] = [Text(f"since the older report (us per {unit})", "bold"), _table(whole)]
    if lines:
        parts += [Text("\nlines that changed", "bold"), _table(lines)]
    parts += [Text(""), _conclusion(rows), *(Text(f"- {note}", "yellow") for note in notes)]
    return Group(*parts, Text(_CAUTION, "dim"))


def _table(rows: Sequence[ComparisonRow]) -> RenderableType:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    cells = [_cells(row) for row in rows]
    for place, heading in enumerate(("", "old", "new", "ratio", "95 %", "verdict", "")):
        justify: Literal["left", "right"] = "right" if 0 < place < 5 else "left"
        # Only the source, which comes last, may be shortened: half a number would mislead.
        widest = max((len(row[place]) for row in cells), default=0) if place < 6 else None
        table.add_column(heading, justify=justify, no_wrap=True, overflow="ellipsis", min_width=widest)
    for row in cells:
        table.add_row(*row)
    return Padding(table, (0, 0, 0, 2))


def _cells(row: ComparisonRow) -> list[Text]:
    name = row["what"].removeprefix("phase ").removeprefix("line ")
    ratio = times(row["ratio"]) if row["ratio"] is not None else "new"
    cells = [name, number(row["old"]), number(row["new"]), ratio, interval(row["low"], row["high"])]
    return [*map(Text, cells), Text(row["verdict"], _STYLES[row["verdict"]]), Text(row["source"], "dim")]


def _conclusion(rows: Sequence[ComparisonRow]) -> Text:
    slower = [row["what"] for row in rows if row["verdict"] == "slower" and not row["what"].startswith("line ")]
    return Text(f"slower: {', '.join(slower)}", "bold red") if slower else Text("no phase became slower beyond doubt")


_NEEDED = {"phases": dict, "counts": dict, "timeline": dict, "lines": list, "subject": dict, "machine": dict}
_FACTS = ("processor", "cores", "python", "torch", "torch_threads", "denormals_flushed")
_HINT = "`hotloop doctor --save FILE ...` writes one"


class ReportError(HotloopError):
    """An earlier report that cannot be held against a new one."""


@dataclass(frozen=True)
class TraceComparison:
    rows: tuple[ComparisonRow, ...]
    """The loop first, then phases, then lines."""
    notes: tuple[str, ...] = ()
    """What else differs between the recordings, and may be the reason."""

    def exceeds(self, most: float) -> bool:
        """Whether the loop is slower beyond doubt, and takes more than `most` times as long per env step."""
        loop = self.rows[0]
        return loop["verdict"] == "slower" and (loop["ratio"] or 0.0) > most

    def as_json(self) -> dict[str, Any]:
        return {"rows": list(self.rows), "notes": list(self.notes)}

    def table(self) -> RenderableType:
        return render_rows(self.rows, self.notes)


def require_report(text: str, name: str) -> dict[str, Any]:
    """An earlier report, checked; `name` is what an error calls it."""
    try:
        return _checked(json.loads(text), name)
    except (ValueError, RecursionError):  # the second: nested thousands of levels deep
        raise ReportError(f"{name} is no JSON that a report could be", _HINT) from None


def _checked(report: Any, name: str) -> dict[str, Any]:
    if not isinstance(report, dict) or "schema" not in report:
        raise ReportError(f"{name} is no report of the doctor: it has no `schema`", _HINT)
    if report["schema"] != SCHEMA:
        raise ReportError(f"{name} has schema {report['schema']}, expected {SCHEMA}", f"{_HINT} with this version")
    wrong = [key for key, kind in _NEEDED.items() if not isinstance(report.get(key), kind)]
    if wrong:
        raise ReportError(f"{name} is no report of the doctor: `{wrong[0]}` is missing", _HINT)
    return report


def compare_reports(old: dict[str, Any], new: Trace) -> TraceComparison:
    """Costs per env step, or per update where one of the recordings has no env step."""
    _checked(old, "the old report")
    now = report_json(new, ())
    try:
        unit = next((unit for unit in UNITS if all(sum(one["timeline"][unit]) > 0 for one in (old, now))), None)
        if unit is None:
            raise ReportError("the recordings have neither env steps nor updates in common", "record both for longer")
        rows = compare_costs(old, now, unit)
        return TraceComparison(tuple(rows), (*_differences(old, now), *_doubts(rows)))
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError) as error:
        raise ReportError(f"the old report is damaged: {error!r}", _HINT) from None


def _differences(old: dict[str, Any], new: dict[str, Any]) -> Iterator[str]:
    names = old["subject"].get("name"), new["subject"]["name"]
    if names[0] != names[1]:
        yield f"the old report is of {names[0]}"
    for fact in _FACTS:
        before, after = old["machine"].get(fact), new["machine"].get(fact)
        if before != after:
            yield f"{fact.replace('_', ' ')} was {before}, is {after}"
    loads = [(report["machine"].get("load_average") or [0.0])[0] for report in (old, new)]
    if abs(loads[0] - loads[1]) > 1:
        yield f"the load average was {loads[0]:g}, is {loads[1]:g}: the machine may have had other work"
    steps = sorted(report["counts"].get("env_steps") or 0 for report in (old, new))
    if steps[1] > 1.5 * steps[0]:
        yield f"compared over the first {steps[0]:,} env steps; the longer recording has {steps[1]:,}"


def _doubts(rows: Sequence[ComparisonRow]) -> Iterator[str]:
    """A change of code seldom slows everything down."""
    ratios = [row["ratio"] for row in rows if row["what"].startswith("phase ") and row["ratio"]]
    if len(ratios) >= 3 and min(ratios) > 1.1 and max(ratios) < 2 * min(ratios):
        yield "every phase is slower by a like factor: that looks like the machine rather than the code"
