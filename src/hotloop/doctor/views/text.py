"""The diagnosis on a terminal: what was looked at, where the time goes, what to do about it.

One finding on a terminal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from hotloop.doctor.experiments import measured_by
from hotloop.doctor.finding import Finding
from hotloop.doctor.hottest import CodeLocation, hottest_functions, hottest_lines, unexplained, whose_lines
from hotloop.doctor.port import port_command
from hotloop.doctor.roofline import roofline
from hotloop.doctor.trace import OUTSIDE, PROCESSOR, UPDATE, Growth, Trace
from hotloop.doctor.views.summary import (
    CHANGING,
    CostRow,
    condition_text,
    cost_row,
    ending,
    experiment_text,
    facts,
    frequent_calls,
    keeps_text,
    phase_rows,
    rate,
    source_of,
    together_text,
    too_little_text,
    untried_text,
    update_rows,
    verdict,
)
from hotloop.render.numbers import block_bar, duration, interval, number, percent, sparkline, times


def finding_block(trace: Trace, finding: Finding, place: int) -> RenderableType:
    return Padding(Group(_finding_title(finding, place), Padding(_body(trace, finding), (0, 0, 0, 3))), (0, 0, 1, 0))


def _finding_title(finding: Finding, place: int) -> Text:
    words = Text(f"{place}. {finding.title}", "bold")
    words.append(f"  {finding.rule}", "not bold dim")
    words.append(f"\n   {times(finding.gain)} faster", "bold yellow")
    words.append(f", {percent(finding.share)} of the loop, ", "not bold default")
    return words.append(keeps_text(finding), "green" if finding.keeps else "magenta")


def _body(trace: Trace, finding: Finding) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column()
    for label, shown in _rows(trace, finding):
        table.add_row(label, shown)
    return table


def _rows(trace: Trace, finding: Finding) -> Iterator[tuple[str, Text]]:
    yield "evidence", Text(finding.evidence)
    for label, where in zip(_labels(finding), filter(None, [finding.where, *finding.lines]), strict=False):
        place = Text(where, "cyan")
        source = source_of(trace, where)
        yield label, place.append(f"  {source.strip()}", "default") if source else place
    yield "remedy", Text(finding.remedy)
    if finding.condition:
        yield "if", Text(condition_text(finding))
    if finding.before:
        yield "before", Text(finding.before.rstrip(), "red")
    if finding.after:
        yield "after", Text(finding.after.rstrip(), "green")


def _labels(finding: Finding) -> list[str]:
    return ["where", *[""] * len(finding.lines)]


_BAR, _CALLS, _OPERATORS = 18, 6, 10


def render_text(trace: Trace, findings: Sequence[Finding]) -> RenderableType:
    parts: list[RenderableType] = [subject_line(trace), Text(verdict(trace, findings), "bold"), *_time(trace)]
    parts += [*section("counted", _facts(trace)), *_calls(trace), *_operators(trace)]
    parts += [*_growth(trace.growth), *experiment_rows(trace, findings)]
    parts += [*_findings(trace, findings), *_hottest(trace, findings)]
    parts += section("notes", [Text(f"- {note}", "dim") for note in trace.notes]) if trace.notes else []
    return Group(*parts)


def subject_line(trace: Trace) -> Text:
    """What was looked at, for how long, and how much of it there was."""
    counts, subject = trace.counts, trace.subject
    words = Text(" ".join([subject.name, *subject.arguments]), "bold cyan")
    words.append(f"  {ending(trace)} after {duration(trace.seconds)}", "not bold default")
    made = f": {counts.env_steps:,} env steps, {counts.updates:,} updates"
    words.append(made + f", {rate(trace, counts.env_steps):,.0f} env steps/s", "not bold default")
    return words


def section(name: str, body: Iterable[RenderableType]) -> list[RenderableType]:
    return [Text(f"\n{name}", "bold"), *(Padding(part, (0, 0, 0, 2)) for part in body)]


def _time(trace: Trace) -> list[RenderableType]:
    table = plain_table("phase", "seconds", "share", "us/env step", "us/update", "")
    phases = phase_rows(trace)
    for row in [row for row in phases if row.name not in OUTSIDE]:
        _add(table, row, row.name)
        for part in update_rows(trace) if row.name == UPDATE else []:
            _add(table, part, f"  {part.name}", "dim")
    _add(table, cost_row(trace, "the loop", trace.loop_seconds), "the loop", "bold")
    for row in [row for row in phases if row.name in OUTSIDE]:
        _add(table, row, row.name)
    return section("where the time goes", [table, *matrix_speed_text(trace)])


def matrix_speed_text(trace: Trace) -> list[RenderableType]:
    """How near its updates come to what the cores can multiply, where that was counted."""
    found = roofline(trace)
    return [] if found is None else [Text(found.sentence(), "yellow" if found.near else "")]


def _add(table: Table, row: CostRow, name: str, style: str = "") -> None:
    share = percent(row.share) if row.share else "-"
    costs = [f"{row.seconds:.2f}", share, number(row.us_per_env_step), number(row.us_per_update)]
    table.add_row(Text(name), *costs, Text(block_bar(row.share, _BAR), "cyan"), style=style)


def plain_table(*headings: str, left: int = 1) -> Table:
    """The last column is left-justified too: a bar, or words."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for place, heading in enumerate(headings):
        at_side = place < left or place == len(headings) - 1
        table.add_column(heading, justify="left" if at_side else "right", overflow="fold")
    return table


def _facts(trace: Trace) -> list[RenderableType]:
    return [Text(", ".join(f"{label} {shown}" for label, shown in facts(trace)))]


def _calls(trace: Trace) -> list[RenderableType]:
    calls = frequent_calls(trace, _CALLS)
    if not calls:
        return []
    table = plain_table("call", "per env step", "per update", "where", "phase")
    for call in calls:
        counts = [number(trace.per_env_step([call])), number(trace.per_update([call]))]
        name = f"{call.name} ({call.largest:,} long)" if call.largest else call.name
        table.add_row(Text(name), *counts, Text(call.where), Text(call.phase))
    return [Text(""), Padding(table, (0, 0, 0, 2))]


def _operators(trace: Trace) -> list[RenderableType]:
    if not trace.operators:
        return []
    table = plain_table("operator", "calls", "seconds", "share", "")
    for one in trace.operators[:_OPERATORS]:
        bar = Text(block_bar(one.share, _BAR), "cyan")
        table.add_row(Text(one.name), f"{one.calls:,}", f"{one.seconds:.2f}", percent(one.share), bar)
    return section("torch operators (shares of all operators)", [table])


def _growth(growths: Sequence[Growth]) -> list[RenderableType]:
    if not growths:
        return []
    table = plain_table("cost of", "over", "first", "last", "ratio", "", left=2)
    for growth in growths:
        costs = [cost for _, cost in growth.points]
        ends = [number(costs[0]), number(costs[-1])] if costs else ["-", "-"]
        table.add_row(Text(growth.what), Text(growth.over), *ends, times(growth.ratio), sparkline(costs))
    return section("growth (microseconds, unless it says otherwise)", [table])


def experiment_rows(trace: Trace, findings: Sequence[Finding]) -> list[RenderableType]:
    """What was tried, by wall-clock and by processor time; what was changed, and what findings had promised for it; and
    what does not apply."""
    if not trace.experiments and not trace.untried:
        return []
    measured = any(one.processor for one in trace.experiments)
    table = plain_table("change", "speed", "95 %", *["processor", "95 %"] * measured, "kind")
    for one in trace.experiments:
        told = measured_by(one, trace.clock)
        style = "green" if told.low > 1 else "red" if told.high < 1 else "dim"
        shown = [Text(times(one.ratio), style), Text(interval(one.low, one.high))]
        if measured:
            ratio = measured_by(one, PROCESSOR) if one.processor else None
            shown += [Text(times(ratio.value)), Text(interval(ratio.low, ratio.high))] if ratio else [Text(), Text()]
        table.add_row(Text(one.name), *shown, Text(one.kind))
    words = Table.grid(padding=(0, 2, 0, 0))
    for one in trace.experiments:
        words.add_row(Text(one.name, "dim"), Text(experiment_text(trace, one, findings), "dim"))
    for untried in trace.untried:
        words.add_row(Text(untried.name), Text(untried_text(untried)))
    rows: list[RenderableType] = [table] if trace.experiments else []
    return section("experiments (against the loop as it is, or what they name)", [*rows, words])


def _hottest(trace: Trace, findings: Sequence[Finding]) -> list[RenderableType]:
    parts: list[RenderableType] = []
    for name, places in (("lines", hottest_lines(trace)), ("functions", hottest_functions(trace))):
        table = plain_table("share", "us/env step", "where", "", left=0)
        for place in places:
            cost = number(cost_row(trace, place.phase, place.seconds).us_per_env_step)
            words = f"{place.function}: {place.source}" if place.source else place.function
            table.add_row(percent(place.share), cost, Text(place.where, "cyan"), Text(words))
        whose = whose_lines(trace)
        parts += section(f"hottest {name} {whose}", [table]) if places else []
    left = [Text(f"unexplained: {unexplained_text(place)}", "yellow") for place in unexplained(trace, findings)]
    return parts + section("no rule explains", left) if left else parts


def unexplained_text(place: CodeLocation) -> str:
    """No rule knows why, so nothing is promised."""
    what = f"{place.where}  {place.source}" if place.source else f"{place.function} ({place.where})"
    return f"{percent(place.share)} of the loop, {what}"


def _findings(trace: Trace, findings: Sequence[Finding]) -> list[RenderableType]:
    if not findings:
        words = too_little_text(trace) or "no findings: no rule found a cost that could be taken out of this loop"
        return [Text(f"\n{words}", "bold yellow" if trace.too_little else "bold green")]
    heading = Text(f"\n{len(findings)} finding{'s' if len(findings) > 1 else ''}, the greatest gain first", "bold")
    blocks: list[RenderableType] = []
    for place, finding in enumerate(findings, start=1):
        blocks += [Text(f"{CHANGING}\n", "magenta")] * begins_changing(findings, place)
        blocks.append(finding_block(trace, finding, place))
    return [heading, *blocks, *(Text(words, "bold green") for words in below_findings(trace, findings))]


def begins_changing(findings: Sequence[Finding], place: int) -> bool:
    """Whether those that change learning begin at this place, from 1."""
    return not findings[place - 1].keeps and (place == 1 or findings[place - 2].keeps)


def below_findings(trace: Trace, findings: Sequence[Finding]) -> list[str]:
    """What all of them gain together; and the whole training as a command of ours, once."""
    command = port_command(trace)
    return [
        *filter(None, [together_text(trace, findings)]),
        *([f"a training of these sizes by hotloop: `{command}`"] * bool(command)),
    ]
