"""The evidence about somebody's own code as one HTML page: complete in itself, nothing is fetched, no script."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hotloop.core.errors import ArgumentError
from hotloop.core.program import hotloop_version
from hotloop.proof.difference import Difference
from hotloop.proof.verdict import Proof, cost_rows, summary
from hotloop.render.html import Html, document, element, join, section

HOW = {
    "functions": "Each function is called on its own copy of every input, from one state of all random generators.",
    "envs": "Both envs are played with the same seeds and the same actions; every answer is compared in order.",
    "modules": "The fast network is given the plain one's parameters; both then see the same inputs.",
    "programs": "Both programs run with the same arguments; env calls and updates are compared in order.",
}
RULE = (
    "A number may differ by the tolerance times its own size, or that of the row or column it stands in, and by a few "
    "roundings; marks such as -1e9 are set apart; whole numbers, flags, dtypes, shapes and containers may not differ. "
    "Speed is the median of paired ratios in processor time, with a 95 % interval; only what is equal is timed."
)


def write_page(path: Path, proofs: Sequence[Proof]) -> None:
    try:
        path.write_text(as_html(proofs), encoding="utf-8")
    except OSError as error:
        raise ArgumentError(
            f"`{path}` cannot be written: {error.strerror}", "name a file in a folder that exists"
        ) from error


def as_html(proofs: Sequence[Proof]) -> str:
    title = proofs[0].name if len(proofs) == 1 else summary(proofs)
    subjects = dict.fromkeys(proof.subject for proof in proofs)
    body = [
        element("p", f"hotloop prove {hotloop_version()}", class_="kicker"),
        element("h1", title),
        _contents(proofs),
        *[_of_proof(proof, number) for number, proof in enumerate(proofs)],
        section(
            "How it was compared", element("ul", *[element("li", HOW[one]) for one in subjects], element("li", RULE))
        ),
    ]
    return document(title, *body, kind="comparison proofs", scripted=False)


def _contents(proofs: Sequence[Proof]) -> Html | None:
    """Of several, each with its verdict."""
    if len(proofs) < 2:
        return None
    items = [
        element("li", element("a", proof.name, href=f"#pair-{number}"), f": {proof.verdict}")
        for number, proof in enumerate(proofs)
    ]
    return element("ul", *items)


def _of_proof(proof: Proof, number: int) -> Html:
    kind = {"identical": "good", "to rounding": "good", "different": "bad"}.get(proof.verdict, "open")
    said, difference = proof.headline(), proof.difference
    if difference is not None and not proof.words:
        said = f"different: {_place(difference)} is {difference.plain} in plain, {difference.fast} in fast"
    shown = [(name, _shown(value)) for name, value in proof.evidence.items()]
    columns = [
        _facts("The first difference", _difference_rows(difference)) if difference else None,
        _facts("Compared", [row for row in shown if row[1] != "0"]),
        _facts("Cost", cost_rows(proof.cost)),
    ]
    return element(
        "article",
        element("p", proof.name, element("span", f" against {proof.plain}", class_="faint")),
        element("h2", said[0].upper() + said[1:] + "."),
        element("div", *columns, class_="pair"),
        _shown_by(difference) if difference and difference.reproduction else None,
        _of_tests(proof),
        element("ul", *[element("li", note) for note in proof.notes]) if proof.notes else None,
        class_=f"verdict {kind}",
        id=f"pair-{number}",
    )


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name.replace('_', ' ')} {_shown(one)}" for name, one in value.items())
    return f"{value:,}" if isinstance(value, int) else str(value)


def _place(difference: Difference) -> str:
    return difference.what + (f"[{', '.join(map(str, difference.index))}]" if difference.index else "")


def _difference_rows(difference: Difference) -> list[tuple[str, str]]:
    rows = [("what", _place(difference)), ("where", difference.when), ("kind", difference.kind)]
    rows += [("plain", difference.plain), ("fast", difference.fast)]
    if difference.total > 1:
        rows.append(("entries that differ", f"{difference.differing:,} of {difference.total:,}"))
    if difference.largest_error is not None:
        rows.append(("largest error", f"{difference.largest_error:.3g}"))
    return [row for row in rows if row[1]]


def _shown_by(difference: Difference) -> Html:
    return join([element("h3", "Shown by"), element("pre", element("code", difference.reproduction))])


def _facts(title: str, rows: Sequence[tuple[str, str]]) -> Html | None:
    return element("div", element("h3", title), _rows(rows)) if rows else None


def _rows(rows: Sequence[tuple[str, str]]) -> Html:
    return element(
        "dl", *[element("div", element("dt", name), element("dd", value)) for name, value in rows], class_="facts"
    )


def _of_tests(proof: Proof) -> Html | None:
    """Made instead of equality."""
    if not proof.tests:
        return None
    headings = ("measure", "plain, mean", "fast, mean", "distance", "chance")
    rows = []
    for test in proof.tests:
        numbers = f"{test.plain:.4g}", f"{test.fast:.4g}", f"{test.distance:.2f}", f"{test.chance:.2g}"
        cells = [element("td", cell, data_label=name) for name, cell in zip(headings[1:], numbers, strict=True)]
        rows.append(element("tr", element("th", test.measure, scope="row"), *cells))
    head = element("tr", *[element("th", heading, scope="col") for heading in headings])
    table = element("div", element("table", element("thead", head), element("tbody", *rows)), class_="wide")
    note = "Chance: of as large a distance between two envs that are alike, adjusted for the number of tests."
    return join([element("h3", "Distributions"), element("p", note, class_="note"), table])
