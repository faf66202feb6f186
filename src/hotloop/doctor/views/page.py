"""The diagnosis as one HTML page: complete in itself, nothing is fetched, and nothing from the script can run.

The findings on the page, with the user's own source beside the remedy; and the lines that cost most.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hotloop.doctor.finding import Finding
from hotloop.doctor.hottest import hottest_functions, shown_lines, unexplained, whose_lines
from hotloop.doctor.roofline import roofline
from hotloop.doctor.trace import OUTSIDE, PROCESSOR, START_UP, Growth, LineCost, Trace
from hotloop.doctor.views.charts import badge, flame_graph, growth_plot, phase_bars, timeline_plot, whiskers
from hotloop.doctor.views.report import most_expensive
from hotloop.doctor.views.summary import (
    CHANGING,
    condition_text,
    cost_row,
    ending,
    experiment_text,
    facts,
    frequent_calls,
    machine_facts,
    rate,
    source_of,
    too_little_text,
    tried_text,
    untried_text,
    verdict,
)
from hotloop.doctor.views.text import begins_changing, below_findings, unexplained_text
from hotloop.render.html import Child, Html, document, element, join, phase_class, prose, section, table
from hotloop.render.numbers import duration, number, percent, times

_LEAST_SHARE = 0.005


def finding_cards(trace: Trace, findings: Sequence[Finding]) -> Html:
    if not findings:
        words = too_little_text(trace) or "No rule found a cost that could be taken out of this loop."
        return section("Findings", element("p", words, class_="about" if trace.too_little else "clean"))
    cards: list[Html] = []
    for place, finding in enumerate(findings, start=1):
        cards += [element("p", prose(_sentence(CHANGING)), class_="about")] * begins_changing(findings, place)
        cards.append(_card(trace, finding, place))
    note = "In the order to try them; each gain is for that remedy alone."
    below = (element("p", prose(words), class_="about") for words in below_findings(trace, findings))
    return section("Findings", *cards, *below, note=note)


def _card(trace: Trace, finding: Finding, place: int) -> Html:
    gain = element("div", element("b", times(finding.gain)), element("span", "faster"), class_="gain")
    kept = badge(finding.kind), f" {finding.tried} "
    rule = element("span", finding.rule, class_="rule")
    about = element("p", f"{percent(finding.share)} of the loop ", *kept, rule, class_="about")
    title = element("div", element("h3", f"{place}. {finding.title}"), about)
    share = element(
        "div", element("i", style=f"width:{100 * min(1.0, finding.share):.4g}%"), class_="share", aria_hidden="true"
    )
    return element(
        "article",
        element("div", title, gain, class_="top"),
        share,
        element("p", prose(finding.evidence)),
        _tried(trace, finding),
        _places(trace, finding),
        element("p", element("b", "Remedy: "), prose(finding.remedy)),
        element("p", prose(_sentence(condition_text(finding)))) if finding.condition else None,
        _before_after(finding),
        class_="finding",
    )


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."


def _tried(trace: Trace, finding: Finding) -> Html | None:
    words = tried_text(trace, finding)
    return element("p", element("b", "Measured: "), prose(words)) if words else None


def _places(trace: Trace, finding: Finding) -> Html | None:
    wheres = dict.fromkeys(where for where in (finding.where, *finding.lines) if where)
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
    """The most expensive of them, each with a bar in its phase's color."""
    least = _LEAST_SHARE * trace.loop_seconds
    lines = most_expensive((line for line in _by_place(trace) if line.seconds >= least), at_most)
    if not lines:
        return None
    widest = max(line.seconds for line in lines) or 1.0
    return element("div", *(_line(trace, line, widest) for line in lines), class_="lines")


def _by_place(trace: Trace) -> list[LineCost]:
    """A line once for each phase: forwards, backwards and what is between them are one cost of it."""
    found: dict[tuple[str, str], LineCost] = {}
    for line in shown_lines(trace):
        if line.phase not in OUTSIDE:
            before = found.get((line.where, line.phase))
            found[line.where, line.phase] = replace(line, seconds=line.seconds + (before.seconds if before else 0.0))
    return list(found.values())


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


_LINES, _CALLS = 25, 20


def page(trace: Trace, findings: Sequence[Finding]) -> str:
    body = [
        _header(trace, findings),
        section("Where the time goes", phase_bars(trace), _matrix_speed(trace), note=_clock_note(trace)),
        finding_cards(trace, findings),
        section(
            "Through the run", timeline_plot(trace), note="Each column is a stretch of the run. Hover for numbers."
        ),
        _growth(trace.growth),
        _experiments(trace, findings),
        section("Flame graph", flame_graph(trace), note="Sampled stacks, by phase. Click a box to look into it."),
        section("Hottest lines", line_rows(trace, _LINES), _unexplained(trace, findings), note=_lines_note(trace)),
        section("Hottest functions", _functions(trace), note="The lines of a function together, and what they called."),
        element("div", _counted(trace), _calls(trace), _operators(trace), _machine(trace), class_="columns"),
        _notes(trace),
    ]
    return document(f"{trace.subject.name}: hotloop doctor", *body, kind="doctor")


def _clock_note(trace: Trace) -> str:
    busy = " Processor time: the machine was busy with other programs." if trace.clock == PROCESSOR else ""
    return f"Shares of the loop; start-up stands apart.{busy}"


def _header(trace: Trace, findings: Sequence[Finding]) -> Html:
    counts, subject = trace.counts, trace.subject
    command = element("code", " ".join([subject.name, *subject.arguments]))
    figures = [
        ("env steps / s", number(rate(trace, counts.env_steps))),
        ("us / env step", number(1e6 * trace.loop_seconds / counts.env_steps) if counts.env_steps else "-"),
        ("updates / env step", number(counts.updates / counts.env_steps) if counts.env_steps else "-"),
        ("loop", duration(trace.loop_seconds)),
        ("start-up", duration(trace.phases.get(START_UP, 0.0))),
        ("findings", str(len(findings))),
    ]
    shown = (element("div", element("dd", value), element("dt", label)) for label, value in figures)
    return element(
        "header",
        element("p", "hotloop doctor", class_="kicker"),
        element("h1", verdict(trace, findings)),
        element("p", command, f" {ending(trace)} after {duration(trace.seconds)}", class_="subject"),
        element("dl", *shown, class_="figures"),
    )


def _growth(growths: Sequence[Growth]) -> Html:
    plots = [plot for plot in map(growth_plot, growths) if plot]
    note = "Does it get slower? The ratio is the cost at the end over the cost at the beginning."
    return section("Growth", element("div", *plots, class_="growths") if plots else None, note=note)


def _experiments(trace: Trace, findings: Sequence[Finding]) -> Html:
    note = (
        "The same loop with one thing changed, run in turns with the unchanged one, or with what it names; "
        "right of the line is faster."
    )
    told = [replace(one, what=experiment_text(trace, one, findings)) for one in trace.experiments]
    untried = element("ul", *(element("li", element("b", one.name), " ", untried_text(one)) for one in trace.untried))
    return section("Experiments", whiskers(told, trace.clock), untried if trace.untried else None, note=note)


def _matrix_speed(trace: Trace) -> Html | None:
    found = roofline(trace)
    return None if found is None else element("p", found.sentence(), class_="about")


def _lines_note(trace: Trace) -> str:
    note = "Time of a line and of all it called."
    return f"{note} Lines {whose_lines(trace)}." if trace.beneath else note


def _functions(trace: Trace) -> Html | None:
    rows = [
        [element("code", place.function), element("span", place.where, class_="what"), percent(place.share)]
        for place in hottest_functions(trace)
    ]
    return table(["function", "its most expensive line", "share"], rows) if rows else None


def _unexplained(trace: Trace, findings: Sequence[Finding]) -> Html | None:
    """Own places that no rule explains: a share, and no promise."""
    rows = [element("li", unexplained_text(place)) for place in unexplained(trace, findings)]
    return element("div", element("p", "No rule explains:", class_="about"), element("ul", *rows)) if rows else None


def _counted(trace: Trace) -> Html:
    return section("Counted", _definitions(facts(trace)))


def _machine(trace: Trace) -> Html:
    return section("Machine", _definitions(machine_facts(trace)))


def _definitions(rows: Sequence[tuple[str, str]]) -> Html | None:
    pairs = (element("div", element("dt", label), element("dd", value)) for label, value in rows)
    return element("dl", *pairs, class_="facts") if rows else None


def _calls(trace: Trace) -> Html:
    rows = [
        [
            join([element("code", call.name), element("span", f"{call.where} ({call.phase})", class_="what")]),
            number(trace.per_env_step([call])),
            number(trace.per_update([call])),
            f"{call.largest:,}" if call.largest else "",
        ]
        for call in frequent_calls(trace, _CALLS)
    ]
    headings = ["call", "per env step", "per update", "length"]
    return section("Calls", table(headings, rows, class_="calls") if rows else None)


def _operators(trace: Trace) -> Html:
    rows = [
        [element("code", one.name), f"{one.calls:,}", f"{one.seconds:.2f}", percent(one.share)]
        for one in trace.operators[:_CALLS]
    ]
    note = "Seen by PyTorch's own profiler in a run of its own."
    return section(
        "Torch operators", table(["operator", "calls", "seconds", "share"], rows) if rows else None, note=note
    )


def _notes(trace: Trace) -> Html:
    return section("Notes", element("ul", *(element("li", note) for note in trace.notes)) if trace.notes else None)
