"""A run as one HTML page: complete in itself, nothing is fetched, and nothing that the run says can run."""

from __future__ import annotations

from collections.abc import Sequence

from hotloop.render.html import Html, document, element, section
from hotloop.render.numbers import shortened, shown
from hotloop.reporting.agent import AgentView, agent_section, network_section
from hotloop.reporting.diagnosis import RunDiagnosis, diagnosis_section
from hotloop.reporting.facts import RunFacts
from hotloop.reporting.learning import curves, evaluation, reward_terms, statistics
from hotloop.reporting.phases import phase_shares
from hotloop.reporting.reproduce import again_section, settings_section
from hotloop.reporting.state import header


def page(facts: RunFacts, view: AgentView, diagnosis: RunDiagnosis | None, notes: Sequence[str]) -> str:
    body = [
        header(facts),
        _notes(notes),
        curves(facts),
        evaluation(facts),
        reward_terms(facts),
        agent_section(view, facts),
        network_section(view.drawing),
        statistics(facts),
        phase_shares(facts),
        diagnosis_section(diagnosis),
        settings_section(facts),
        again_section(facts, topology=view.drawing is not None),
        _environment(facts),
    ]
    return document(f"{shortened(facts.label)}: hotloop report", *body, kind="report")


def _notes(notes: Sequence[str]) -> Html:
    if not notes:
        return Html("")
    items = element("ul", *(element("li", shortened(note)) for note in notes))
    return element("div", element("b", "Not everything could be read"), items, class_="warning", role="note")


def _environment(facts: RunFacts) -> Html:
    about = facts.about
    rows = [
        ("started", about.get("started")),
        ("hotloop", about.get("hotloop")),
        *facts.machine.items(),
        ("lane", facts.lane.get("lane")),
        ("why that lane", facts.lane.get("reason")),
        ("precision", facts.result.get("precision")),
        ("digest of the final state", facts.result.get("digest")),
        ("checkpoints", ", ".join(facts.checkpoints[-6:]) or "none that can be used"),
        ("folder", str(facts.run.path)),
    ]
    told = [(name, value) for name, value in rows[:40] if value is not None]
    pairs = (element("div", element("dt", _spaced(name)), element("dd", shown(value))) for name, value in told)
    return section("Environment", element("dl", *pairs, class_="facts"))


def _spaced(name: str) -> str:
    return shortened(str(name)).replace("_", " ")
