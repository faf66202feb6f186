"""The diagnosis on one screen: where the time goes, what to do first, which lines are the most expensive.

`text.py` says everything; this says what fits into about 45 lines of 100 columns for a simple script.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from hotloop.doctor.finding import Finding
from hotloop.doctor.hottest import hottest_functions, hottest_lines, unexplained, whose_lines
from hotloop.doctor.trace import OUTSIDE, PROCESSOR, UPDATE, Trace
from hotloop.doctor.views.summary import (
    CHANGING,
    CostRow,
    condition_text,
    cost_row,
    keeps_text,
    phase_rows,
    source_of,
    update_rows,
    verdict,
)
from hotloop.doctor.views.text import (
    begins_changing,
    below_findings,
    experiment_rows,
    matrix_speed_text,
    plain_table,
    section,
    subject_line,
    unexplained_text,
)
from hotloop.render.numbers import block_bar, duration, number, percent, times

LEAST_SHARE = 0.01
"""Phases and lines below this are left to the page and the JSON."""
MOST_LINES, MOST_FUNCTIONS, IN_FULL = 10, 5, 2
"""Findings beyond the second are told in a line each."""
LONGEST_SNIPPET = 12
_BAR = 8


def render_screen(trace: Trace, findings: Sequence[Finding]) -> RenderableType:
    parts: list[RenderableType] = [subject_line(trace), Text(verdict(trace, findings), "bold")]
    parts += section(_heading(trace), [_phases(trace), *matrix_speed_text(trace)])
    parts += list(_findings(trace, findings))
    parts += _asked_for(trace, findings)
    parts += _hottest(trace, findings)
    parts += [Text(f"note: {note}", "dim") for note in urgent_notes(trace)]
    return Group(*parts)


def _heading(trace: Trace) -> str:
    clock = "processor time: the machine was busy with others" if trace.clock == PROCESSOR else "wall-clock"
    start_up = [row for row in phase_rows(trace) if row.name in OUTSIDE and row.seconds >= 0.05]
    outside = ", ".join(f"{row.name} {duration(row.seconds)}" for row in start_up)
    return f"where the time goes ({clock}; beside it {outside})" if outside else f"where the time goes ({clock})"


def _phases(trace: Trace) -> Table:
    """A row for each phase above one percent; the parts of the update in one line under it."""
    measured = bool(trace.processor)
    shown = plain_table("phase", "seconds", *["processor"] * measured, "share", "us/env step", "us/update", "")
    shown.columns[0].no_wrap = True
    for row in [row for row in phase_rows(trace) if row.name not in OUTSIDE and row.share >= LEAST_SHARE]:
        _add(shown, row, row.name, measured)
        parts = update_rows(trace) if row.name == UPDATE else []
        for part in [part for part in parts if part.share >= LEAST_SHARE]:
            _add(shown, part, f"  {part.name}", measured, "dim")
    _add(shown, cost_row(trace, "the loop", trace.loop_seconds), "the loop", measured, "bold")
    return shown


def _add(shown: Table, row: CostRow, name: str, measured: bool, style: str = "") -> None:
    processor = ["" if row.processor_seconds is None else f"{row.processor_seconds:.2f}"] * measured
    costs = [f"{row.seconds:.2f}", *processor, percent(row.share), number(row.us_per_env_step)]
    bar = Text(block_bar(row.share, _BAR), "cyan")
    shown.add_row(Text(name), *costs, number(row.us_per_update), bar, style=style)


def _findings(trace: Trace, findings: Sequence[Finding]) -> Iterator[RenderableType]:
    if findings:
        words = "in the order to try them" if len(findings) > 1 else ""
        count = f"{len(findings)} finding{'s' * (len(findings) > 1)}"
        yield Text(f"\n{', '.join(filter(None, [count, words]))}", "bold")
    for place, finding in enumerate(findings, start=1):
        if begins_changing(findings, place):
            yield Text(CHANGING, "magenta")
        yield _title(finding, place)
        if finding.condition:
            yield Padding(Text(condition_text(finding), "dim"), (0, 0, 0, 3))
        if place <= IN_FULL:
            yield Padding(_body(trace, finding, snippet=place == 1), (0, 0, 0, 3))
    for words in below_findings(trace, findings):
        yield Text(words, "green")


def _title(finding: Finding, place: int) -> Text:
    words = Text(f"{place}. {finding.title}", "bold")
    words.append(f"  {times(finding.gain)}", "bold yellow")
    words.append(f", {percent(finding.share)} of the loop, ", "not bold default")
    words.append(keeps_text(finding), "green" if finding.keeps else "magenta")
    return words.append(f"  {finding.rule}", "not bold dim")


def _body(trace: Trace, finding: Finding, snippet: bool) -> Table:
    shown = Table.grid(padding=(0, 2, 0, 0))
    shown.add_column(style="dim", no_wrap=True)
    shown.add_column()
    if finding.where:
        where = Text(finding.where, "cyan")
        source = source_of(trace, finding.where).strip()
        shown.add_row("edit", where.append(f"  {source}", "default") if source else where)
    shown.add_row("seen", Text(finding.evidence))
    shown.add_row("do", Text(finding.remedy))
    after = finding.after.strip()
    if snippet and after and after.count("\n") < LONGEST_SNIPPET:
        shown.add_row("", Text(after, "green"))
    return shown


def _asked_for(trace: Trace, findings: Sequence[Finding]) -> list[RenderableType]:
    """Experiments that were asked for; thread counts are compared anyway and stand in the findings."""
    asked = trace.untried or any(one.processor for one in trace.experiments)
    return experiment_rows(trace, findings) if asked else []


def _hottest(trace: Trace, findings: Sequence[Finding]) -> list[RenderableType]:
    lines = [place for place in hottest_lines(trace, MOST_LINES) if place.share >= LEAST_SHARE]
    if not lines:
        return []
    whose = whose_lines(trace)
    shown = Table.grid(padding=(0, 2, 0, 0), expand=True)
    shown.add_column(justify="right", no_wrap=True, width=5)
    shown.add_column(no_wrap=True, width=max(len(place.where) for place in lines))
    shown.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
    for place in lines:
        shown.add_row(percent(place.share), Text(place.where, "cyan"), Text(place.source))
    functions = [place for place in hottest_functions(trace, MOST_FUNCTIONS) if place.share >= LEAST_SHARE]
    told = ", ".join(f"{place.function} {percent(place.share)}" for place in functions)
    parts = [*section(f"hottest lines {whose}", [shown]), Padding(Text(f"by function: {told}"), (0, 0, 0, 2))]
    return parts + [Text(f"unexplained: {unexplained_text(place)}", "yellow") for place in unexplained(trace, findings)]


def urgent_notes(trace: Trace) -> list[str]:
    """Those that change how the rest is to be read."""
    words = ("busy with other", "could not be", "no optimizer step", "no env step", "incomplete", "missing", "cannot")
    told = (*words, "not counted")  # a further run that could not be made
    return [note for note in trace.notes if any(word in note for word in told)]
