"""From a run's directory to its page."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hotloop.core.errors import HotloopError
from hotloop.doctor.views.report import json_safe
from hotloop.reporting.agent import AgentView, view_agent
from hotloop.reporting.diagnosis import DOCTOR, Diagnosis, read_diagnosis
from hotloop.reporting.facts import RunFacts, read_facts
from hotloop.reporting.page import page
from hotloop.reporting.state import as_data, sentence


@dataclass(frozen=True)
class Report:
    html: str
    data: dict[str, Any]  # what `hotloop report --json` prints, but for the file
    sentence: str  # the run in one line


def make_report(
    run_dir: str | Path, *, frames: bool = True, doctor: str | Path | None = None, trust: bool = False
) -> Report:
    """The page of a run, finished or not; `doctor` names a report of `hotloop doctor --json` to include.

    Raises RunError where there is no run, or where `doctor` is given and cannot be read. Whatever else is missing or
    damaged is told on the page.
    """
    facts = read_facts(Path(run_dir))
    diagnosis, problem = _diagnosis(facts, doctor)
    view = view_agent(facts, frames=frames, trust=trust)
    notes = [*facts.notes, *([problem] if problem else [])]
    html = page(facts, view, diagnosis, notes)
    return Report(html, json_safe(as_data(facts) | _seen(view, diagnosis) | {"notes": notes}), sentence(facts))


def _diagnosis(facts: RunFacts, given: str | Path | None) -> tuple[Diagnosis | None, str]:
    if given is not None:
        return read_diagnosis(Path(given)), ""
    path = facts.run.path / DOCTOR
    if not path.exists():
        return None, ""
    try:
        return read_diagnosis(path), ""
    except HotloopError as error:
        return None, f"{error.message}; the doctor's findings are left out."


def _seen(view: AgentView, diagnosis: Diagnosis | None) -> dict[str, Any]:
    return {
        "frames": len(view.played.pictures) if view.played else 0,
        "episode": view.played.stats if view.played else None,
        "agent": view.missing or "shown",
        "findings": len(diagnosis.findings) if diagnosis else None,
    }
