"""The findings on the page, with the user's own source beside the remedy; and the lines that cost most."""

from __future__ import annotations

from collections.abc import Sequence

from hotloop.doctor.finding import Finding
from hotloop.doctor.trace import OUTSIDE, LineCost, Trace
from hotloop.doctor.views.bars import badge
from hotloop.doctor.views.html import Child, Html, element, join, phase_class, prose, section
from hotloop.doctor.views.numbers import number, percent, times
from hotloop.doctor.views.report import dearest
from hotloop.doctor.views.summary import cost_row, source_of

_LEAST_SHARE = 0.005


def finding_cards(trace: Trace, findings: Sequence[Finding]) -> Html:
    if not findings:
        words = "No rule found a cost that could be taken out of this loop."
        return section("Findings", element("p", words, class_="clean"))
    cards = (_card(trace, finding, place) for place, finding in enumerate(findings, start=1))
    note = "The greatest gain first; each gain is for that remedy alone."
    return section("Findings", *cards, note=note)


def _card(trace: Trace, finding: Finding, place: int) -> Html:
    gain = element("div", element("b", times(finding.expected_gain)), element("span", "faster"), class_="gain")
    about = element(
        "p", f"{percent(finding.share)} of the loop ", badge(finding.kind), " ", _code(finding.rule), class_="about"
    )
    title = element("div", element("h3", f"{place}. {finding.title}"), about)
    share = element(
        "div", element("i", style=f"width:{100 * min(1.0, finding.share):.4g}%"), class_="share", aria_hidden="true"
    )
    return element(
        "article",
        element("div", title, gain, class_="top"),
        share,
        element("p", prose(finding.evidence)),
        _places(trace, finding),
        element("p", element("b", "Remedy: "), prose(finding.remedy)),
        _before_after(finding),
        class_="finding",
    )


def _code(rule: str) -> Html:
    return element("span", rule, class_="rule")


def _places(trace: Trace, finding: Finding) -> Html | None:
    wheres = [where for where in (finding.where, *finding.lines) if where]
    rows: list[Child] = []
    for where in wheres:
        source = source_of(trace, where).strip()
        rows.append(element("div", element("span", where, class_="where"), element("code", source), class_="place"))
    return element("div", *rows, class_="places") if rows else None


def _before_after(finding: Finding) -> Html | None:
    sides = [("before", finding.before), ("after", finding.after)]
    blocks = [
        element("figure", element("figcaption", name), element("pre", element("code", code.rstrip())), class_=name)
        for name, code in sides
        if code
    ]
    return element("div", *blocks, class_="sides") if blocks else None


def line_rows(trace: Trace, at_most: int) -> Html | None:
    """The dearest of them, each with a bar in its phase's colour."""
    least = _LEAST_SHARE * trace.loop_seconds
    lines = dearest((line for line in trace.lines if line.phase not in OUTSIDE and line.seconds >= least), at_most)
    if not lines:
        return None
    widest = max(line.seconds for line in lines) or 1.0
    return element("div", *(_line(trace, line, widest) for line in lines), class_="lines")


def _line(trace: Trace, line: LineCost, widest: float) -> Html:
    cost = cost_row(trace, line.phase, line.seconds)
    bar = element("i", class_=phase_class(line.phase), style=f"width:{100 * line.seconds / widest:.4g}%")
    step = f"{number(cost.us_per_env_step)} us / env step" if cost.us_per_env_step is not None else ""
    figures = join([element("b", percent(cost.share)), element("span", step)])
    about = element("div", f"{line.where} in {line.function} · phase {line.phase}", class_="what")
    words = element("div", element("code", line.source.strip()), about, class_="words")
    return element(
        "div", element("div", figures, class_="figure"), element("div", bar, class_="track"), words, class_="line-row"
    )
