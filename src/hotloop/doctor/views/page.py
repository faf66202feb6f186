"""The diagnosis as one HTML page: complete in itself, nothing is fetched, and nothing from the script can run."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from pathlib import Path

from hotloop.doctor.finding import Finding
from hotloop.doctor.trace import Growth, Trace
from hotloop.doctor.views.bars import phase_bars, whiskers
from hotloop.doctor.views.charts import growth_plot, timeline_plot
from hotloop.doctor.views.flame import flame_graph
from hotloop.doctor.views.html import Html, element, join, section, table
from hotloop.doctor.views.numbers import duration, number, percent
from hotloop.doctor.views.page_findings import finding_cards, line_rows
from hotloop.doctor.views.summary import ending, facts, frequent_calls, machine_facts, rate, verdict

_STYLE = Path(__file__).with_name("page.css")
_SCRIPT = Path(__file__).with_name("page.js")
_LINES, _CALLS = 25, 20


def page(trace: Trace, findings: Sequence[Finding]) -> str:
    body = [
        _header(trace, findings),
        section("Where the time goes", phase_bars(trace), note="Shares of the loop; start-up stands apart."),
        finding_cards(trace, findings),
        section(
            "Through the run", timeline_plot(trace), note="Each column is a stretch of the run. Hover for numbers."
        ),
        _growth(trace.growth),
        _experiments(trace),
        section("Flame graph", flame_graph(trace), note="Sampled stacks, by phase. Click a box to look into it."),
        section("Hottest lines", line_rows(trace, _LINES), note="Time of a line and of all it called."),
        element("div", _counted(trace), _calls(trace), _operators(trace), _machine(trace), class_="columns"),
        _notes(trace),
    ]
    return "<!doctype html>\n" + element(
        "html", _head(trace), element("body", element("main", *body), _script()), lang="en"
    )


def _head(trace: Trace) -> Html:
    return element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_policy()),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", f"{trace.subject.name}: hotloop doctor"),
        element("style", Html(_STYLE.read_text(encoding="utf-8"))),
    )


def _policy() -> str:
    """The browser itself refuses every request, and every script but ours."""
    digest = hashlib.sha256(_SCRIPT.read_text(encoding="utf-8").encode()).digest()
    script = f"'sha256-{base64.b64encode(digest).decode()}'"
    return f"default-src 'none'; style-src 'unsafe-inline'; script-src {script}; base-uri 'none'; form-action 'none'"


def _script() -> Html:
    return element("script", Html(_SCRIPT.read_text(encoding="utf-8")))


def _header(trace: Trace, findings: Sequence[Finding]) -> Html:
    counts, subject = trace.counts, trace.subject
    command = element("code", " ".join([subject.name, *subject.arguments]))
    figures = [
        ("env steps / s", number(rate(trace, counts.env_steps))),
        ("us / env step", number(1e6 * trace.loop_seconds / counts.env_steps) if counts.env_steps else "-"),
        ("updates / env step", number(counts.updates / counts.env_steps) if counts.env_steps else "-"),
        ("loop", duration(trace.loop_seconds)),
        ("start-up", duration(trace.seconds - trace.loop_seconds)),
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


def _experiments(trace: Trace) -> Html:
    note = (
        "The same loop with one thing changed, run in turns with the unchanged one, or with what it names; "
        "right of the line is faster."
    )
    return section("Experiments", whiskers(trace.experiments), note=note)


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
