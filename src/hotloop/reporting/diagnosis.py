"""What `hotloop doctor` found, from the JSON it printed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hotloop.core.errors import RunError
from hotloop.doctor.finding import Finding
from hotloop.doctor.trace import LineCost, Subject, Trace
from hotloop.doctor.views.page import finding_cards
from hotloop.render.html import Html, element, join, section
from hotloop.render.numbers import number_of, shortened
from hotloop.runs.files import read_json_table

DOCTOR = "doctor.json"
"""Its usual name in a run's folder."""
_MOST_FINDINGS, _LONGEST_CODE = 30, 4_000
_TEXTS = ("evidence", "where", "remedy", "before", "after", "kind", "rule", "title")


@dataclass(frozen=True)
class RunDiagnosis:
    verdict: str
    findings: tuple[Finding, ...]
    trace: Trace  # only the lines that findings name


def read_diagnosis(path: Path) -> RunDiagnosis:
    """Raises RunError where it is no report of the doctor's."""
    data = read_json_table(path)
    found = data.get("findings")
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise RunError(f"{path} has no list of findings", "give what `hotloop doctor ... --json` printed")
    lines = tuple(_lines(data.get("lines")))
    subject = Subject(kind="script", name="")
    trace = Trace(subject=subject, machine={}, seconds=0.0, phases={}, lines=lines)
    return RunDiagnosis(_text(data.get("verdict")), tuple(map(_finding, found[:_MOST_FINDINGS])), trace)


def _finding(data: dict[str, Any]) -> Finding:
    lines = data.get("lines")
    texts: dict[str, Any] = {name: _text(data.get(name)) for name in _TEXTS}
    return Finding(
        share=number_of(data.get("share")) or 0.0,
        expected_gain=number_of(data.get("expected_gain")) or 1.0,
        lines=tuple(map(_text, lines[:20])) if isinstance(lines, list) else (),
        port=data.get("port") is True,
        **texts,
    )


def _lines(rows: Any) -> Iterable[LineCost]:
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, dict):
            where, source = _text(row.get("where")), _text(row.get("source"))
            yield LineCost(where=where, function="", source=source, phase="", seconds=0.0)


def _text(value: Any) -> str:
    return value[:_LONGEST_CODE] if isinstance(value, str) else ""


def diagnosis_section(diagnosis: RunDiagnosis | None) -> Html:
    if diagnosis is None:
        return Html("")
    verdict = section("The doctor", element("p", shortened(diagnosis.verdict) or "No verdict.", class_="verdict"))
    return join([verdict, finding_cards(diagnosis.trace, diagnosis.findings)])
