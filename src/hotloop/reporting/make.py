"""`hotloop.report`: from a run's directory to its page."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hotloop.core.errors import HotloopError
from hotloop.doctor.views.report import json_safe
from hotloop.reporting.agent import AgentView, view_agent
from hotloop.reporting.diagnosis import DOCTOR, RunDiagnosis, read_diagnosis
from hotloop.reporting.facts import RunFacts, read_facts
from hotloop.reporting.page import page
from hotloop.reporting.state import as_data, sentence
from hotloop.runs.files import write_file

USUAL_NAME = "report.html"


@dataclass(frozen=True)
class Report:
    html: str
    data: dict[str, Any]  # what `hotloop report --json` prints
    sentence: str  # the run in one line
    file: Path | None = None  # where the page was written


def report(
    run_dir: str | Path,
    *,
    html: str | Path | None = None,
    frames: bool = True,
    doctor: str | Path | None = None,
    trust: bool = False,
    write: bool = True,
) -> Report:
    """Write one self-contained HTML page of a run, finished or not, to `html` or into the run as `report.html`.

        made = hotloop.report("runs/cartpole-dqn-20260101-120000", html="cartpole.html")
        print(made.sentence, made.file)
        made.data  # what `hotloop report --json` prints
        page = hotloop.report("runs/cartpole-dqn-20260101-120000", write=False).html

    `frames=False` plays no episode for pictures of the agent. `doctor` names a report of `hotloop doctor --json` to
    show too; `RUN/doctor.json` is shown where it is there. Without `trust` no code of the run's env is imported.
    With `write=False` the page is made and no file is written.
    """
    made = make_report(run_dir, frames=frames, doctor=doctor, trust=trust)
    if not write:
        return made
    file = Path(html) if html else Path(run_dir) / USUAL_NAME
    content = made.html.encode()
    write_file(file, content)
    return replace(made, file=file, data={"page": str(file), "bytes": len(content), **made.data})


def make_report(
    run_dir: str | Path, *, frames: bool = True, doctor: str | Path | None = None, trust: bool = False
) -> Report:
    """The page of a run as `report` writes it; `doctor` names a report of `hotloop doctor --json` to include.

    Raises RunError where there is no run, or where `doctor` is given and cannot be read. Whatever else is missing or
    damaged is told on the page.
    """
    facts = read_facts(Path(run_dir))
    diagnosis, problem = _diagnosis(facts, doctor)
    view = view_agent(facts, frames=frames, trust=trust)
    notes = [*facts.notes, *([problem] if problem else [])]
    html = page(facts, view, diagnosis, notes)
    return Report(html, json_safe(as_data(facts) | _seen(view, diagnosis) | {"notes": notes}), sentence(facts))


def _diagnosis(facts: RunFacts, given: str | Path | None) -> tuple[RunDiagnosis | None, str]:
    if given is not None:
        return read_diagnosis(Path(given)), ""
    path = facts.run.path / DOCTOR
    if not path.exists():
        return None, ""
    try:
        return read_diagnosis(path), ""
    except HotloopError as error:
        return None, f"{error.message}; the doctor's findings are left out."


def _seen(view: AgentView, diagnosis: RunDiagnosis | None) -> dict[str, Any]:
    return {
        "frames": len(view.played.pictures) if view.played else 0,
        "episode": view.played.stats if view.played else None,
        "agent": view.missing or "shown",
        "findings": len(diagnosis.findings) if diagnosis else None,
    }
