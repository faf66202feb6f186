"""The comparison as one HTML page: complete in itself, nothing is fetched, no script."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hotloop.comparison.measures import Against
from hotloop.comparison.report import CURVES, Comparison, chart_of, notes
from hotloop.comparison.verdict import Contrast
from hotloop.comparison.verdict_text import arm_rows, details, headline, pair_rows
from hotloop.core.program import hotloop_version
from hotloop.render.chart import ON_LIGHT, as_svg
from hotloop.render.html import Html, data_uri, document, element, join, section
from hotloop.render.tables import Rows


def as_html(comparison: Comparison) -> str:
    question, threshold = comparison.question, comparison.threshold
    body = [
        _header(comparison),
        *[_verdict(contrast, threshold) for contrast in comparison.contrasts],
        _failures(comparison),
        section(
            "Learning curves", element("div", *[_figure(comparison, against) for against in CURVES], class_="pair")
        ),
        section("Each arm", _table(arm_rows(comparison.summaries, question.measure, threshold), colored=True)),
        section("Between arms", _table(pair_rows(comparison.contrasts, threshold))),
        section("Settings that differ", _settings(comparison)),
        section("How to read it", element("ul", *[element("li", note) for note in notes(comparison)])),
        section("Do it again", element("pre", element("code", question.command))),
    ]
    return document(_title(comparison), *body, kind="comparison", scripted=False)


def _title(comparison: Comparison) -> str:
    labels = [summary.label for summary in comparison.summaries]
    return labels[0] if len(labels) == 1 else " and ".join([", ".join(labels[:-1]), labels[-1]])


def _header(comparison: Comparison) -> Html:
    question = comparison.question
    counts = sorted({len(summary.runs) for summary in comparison.summaries})
    seeds = " to ".join(map(str, dict.fromkeys([counts[0], counts[-1]])))
    about = f"{question.measure.replace('_', ' ')}, {seeds} {'seed' if counts == [1] else 'seeds'} each"
    return join(
        [
            element("p", f"hotloop compare {hotloop_version()}", class_="kicker"),
            element("h1", _title(comparison)),
            element("p", about, class_="note"),
        ]
    )


def _verdict(contrast: Contrast, threshold: float | None) -> Html:
    kind = {"better": "good", "as good": "good", "worse": "bad", "mixed": "bad"}.get(contrast.learning, "open")
    said = headline(contrast)
    return element(
        "article",
        element("p", contrast.arm, element("span", f" against {contrast.reference}", class_="faint")),
        element("h2", said[0].upper() + said[1:] + "."),
        element("ul", *[element("li", detail) for detail in details(contrast, threshold)]),
        class_=f"verdict {kind}",
    )


def _failures(comparison: Comparison) -> Html:
    rows = [element("li", element("b", job.name), ": ", job.error) for job in comparison.failed]
    return section("Runs that failed", element("ul", *rows)) if rows else Html("")


def _figure(comparison: Comparison, against: Against) -> Html:
    """As a picture of its own: the styles of two drawings on one page would meet."""
    chart = chart_of(comparison, against)
    return element("figure", element("img", src=data_uri("image/svg+xml", as_svg(chart).encode()), alt=chart.spoken))


def _table(rows: Rows, colored: bool = False) -> Html:
    """In rows of its own on a phone: each cell knows its heading."""
    if not rows:
        return Html("")
    heading, *body = rows
    lines = []
    for number, row in enumerate(body):
        mark = element("i", style=f"background:{ON_LIGHT[number % len(ON_LIGHT)]}") if colored else None
        cells = [element("th", mark, row[0], scope="row")]
        cells += [element("td", cell, data_label=name) for name, cell in zip(heading[1:], row[1:], strict=True)]
        lines.append(element("tr", *cells))
    head = element("tr", *[element("th", name, scope="col") for name in heading])
    return element("div", element("table", element("thead", head), element("tbody", *lines)), class_="wide")


def _settings(comparison: Comparison) -> Html:
    rows = comparison.differing_settings
    labels = [summary.label for summary in comparison.summaries]
    if not rows:
        return element("p", "None: the arms differ in their seeds or in where they ran.", class_="note")
    return _table([["setting", *labels], *[[name, *map(_shown, values)] for name, values in rows.items()]])


def _shown(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return " ".join(map(str, value)) or "none"
    return str(value)
