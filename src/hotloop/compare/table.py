"""The comparison for people: one row per arm, and one per pair, in Markdown and on a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from hotloop.compare.numbers import number, percent, times, with_interval
from hotloop.compare.summary import ArmSummary
from hotloop.compare.ticks import short_number
from hotloop.compare.verdict import Contrast
from hotloop.core.terminal import printable

Cells = list[str]
Rows = list[Cells]
"""The first holds the headings."""


def arm_rows(summaries: Sequence[ArmSummary], measure: str, threshold: float | None) -> Rows:
    name = measure.replace("_", " ")
    heading = ["arm", "seeds", f"{name} [95 %]", "over the run [95 %]"]
    if threshold is not None:
        aim = short_number(threshold)
        heading += [f"reached {aim}", f"env steps to {aim}", f"training s to {aim}"]
    heading += ["env steps/s", "training s", "all s"]
    return [heading, *[_arm_cells(summary) for summary in summaries]]


def _arm_cells(summary: ArmSummary) -> Cells:
    cells = [summary.label, str(len(summary.runs)), with_interval(summary.score), with_interval(summary.area)]
    if summary.threshold is not None:
        cells += [
            f"{summary.arrived}/{len(summary.runs)}",
            with_interval(summary.env_steps_to),
            with_interval(summary.seconds_to),
        ]
    return [
        *cells,
        number(summary.rate.value),
        number(summary.mean("training_seconds")),
        number(summary.mean("seconds")),
    ]


def pair_rows(contrasts: Sequence[Contrast], threshold: float | None) -> Rows:
    """Every arm against the first; ratios above 1 are in the arm's favour."""
    if not contrasts:
        return []
    area = any(measure.name == "area" for contrast in contrasts for measure in contrast.measures)
    heading = [f"against {contrasts[0].reference}", "difference [95 %]", "better in"]
    heading += ["over the run [95 %]", "better in"] if area else []
    if threshold is not None:
        heading += [f"sooner at {short_number(threshold)}, by s", "by env steps"]
    return [[*heading, "env steps/s"], *[_pair_cells(contrast, area, threshold) for contrast in contrasts]]


def _pair_cells(contrast: Contrast, area: bool, threshold: float | None) -> Cells:
    cells = [contrast.arm]
    for name in ("final score", "area")[: 1 + area]:
        found = [measure for measure in contrast.measures if measure.name == name]
        cells += [with_interval(found[0].difference), percent(found[0].improvement)] if found else ["-", "-"]
    if threshold is not None:
        cells += [times(contrast.seconds_ratio), times(contrast.env_steps_ratio)]
    return [*cells, times(contrast.rate_ratio)]


def as_markdown(rows: Rows) -> str:
    if not rows:
        return ""
    heading, *body = [[plain(cell) for cell in row] for row in rows]
    lines = [heading, ["---", *["---:"] * (len(heading) - 1)], *body]
    return "".join(f"| {' | '.join(row)} |\n" for row in lines)


def as_rich(rows: Rows) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0))
    for place, heading in enumerate(rows[0]):
        table.add_column(Text(printable(heading)), justify="right" if place else "left", no_wrap=True)
    for row in rows[1:]:
        table.add_row(*[Text(printable(cell)) for cell in row])
    return table


def plain(cell: str) -> str:
    """A label must not open a column or a tag."""
    return cell.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")
