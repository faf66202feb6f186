"""One finding on a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from hotloop.doctor.finding import EXACT, Finding
from hotloop.doctor.trace import Trace
from hotloop.doctor.views.numbers import percent, times
from hotloop.doctor.views.summary import KINDS, source_of


def finding_block(trace: Trace, finding: Finding, place: int) -> RenderableType:
    return Padding(Group(_title(finding, place), Padding(_body(trace, finding), (0, 0, 0, 3))), (0, 0, 1, 0))


def _title(finding: Finding, place: int) -> Text:
    words = Text(f"{place}. {finding.title}", "bold")
    words.append(f"  {finding.rule}", "not bold dim")
    words.append(f"\n   {times(finding.expected_gain)} faster", "bold yellow")
    words.append(f", {percent(finding.share)} of the loop, ", "not bold default")
    return words.append(KINDS.get(finding.kind, finding.kind), "green" if finding.kind == EXACT else "magenta")


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
    if finding.before:
        yield "before", Text(finding.before.rstrip(), "red")
    if finding.after:
        yield "after", Text(finding.after.rstrip(), "green")


def _labels(finding: Finding) -> list[str]:
    return ["where", *[""] * len(finding.lines)]
