"""The agent on the page: a strip of pictures that a small script plays, and the drawing of its network."""

from __future__ import annotations

import base64

from hotloop.doctor.views.html import Html, element, section
from hotloop.report.agent import AgentView, Drawing, Played, told
from hotloop.report.facts import RunFacts
from hotloop.report.numbers import measured

_FASTEST, _SLOWEST = 20.0, 2.0
"""Pictures per second."""


def agent_section(view: AgentView, facts: RunFacts) -> Html:
    if view.played is None:
        return section("The agent", element("p", view.missing, class_="missing"))
    until = "" if facts.status == "finished" else f" up to checkpoint {facts.checkpoints[-1]}"
    note = f"The best agent{until}, acting greedily: the first episode that hotloop watch shows."
    return section("The agent", _player(view.played), element("p", told(view.played.stats), class_="note"), note=note)


def void(tag: str, **attributes: str | float | bool | None) -> Html:
    """An element without an end."""
    return Html(element(tag, **attributes).removesuffix(f"</{tag}>"))


def data_uri(kind: str, data: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


def _player(played: Played) -> Html:
    """Without its script it is a strip that can be scrolled."""
    width, height = played.size
    pictures = (
        void(
            "img",
            src=data_uri("image/png", one.png),
            alt=f"step {one.step}",
            width=width,
            height=height,
            data_words=f"step {one.step:,}, return {measured(one.total)}",
        )
        for one in played.pictures
    )
    controls = element(
        "div",
        element("button", "Pause", type="button"),
        void("input", type="range", min=0, max=len(played.pictures) - 1, value=0, aria_label="moment of the episode"),
        element("output", ""),
        class_="controls",
        hidden=True,
    )
    strip = element("div", *pictures, class_="strip", tabindex=0)
    return element("div", strip, controls, class_="player", data_delay=str(_delay(played)))


def _delay(played: Played) -> int:
    """Milliseconds between pictures: the env's natural speed, within what can be followed."""
    steps = max(1, played.pictures[-1].step - played.pictures[0].step) / max(1, len(played.pictures) - 1)
    return round(1_000 / min(_FASTEST, max(_SLOWEST, played.fps / steps)))


def network_section(drawing: Drawing | None) -> Html:
    if drawing is None:
        return Html("")
    measures = drawing.measures
    # as a picture of its own: its styles would meet the page's
    picture = void("img", src=data_uri("image/svg+xml", drawing.svg.encode()), alt="the network's graph")
    facts = [
        ("nodes", f"{measures.nodes} in {measures.levels} levels, at most {measures.widest_level} in one"),
        ("edges", f"{measures.edges} ({measures.parameters} parameters with the biases)"),
        ("clustering", f"{measures.clustering:.3f} (random graphs: {measures.random_clustering:.3f})"),
        ("path length", f"{measures.path_length:.2f} (random graphs: {measures.random_path_length:.2f})"),
        (
            "small-worldness",
            "not defined" if measures.sigma is None else f"{measures.sigma:.2f} (above 1: small world)",
        ),
    ]
    pairs = (element("div", element("dt", name), element("dd", value)) for name, value in facts)
    note = "The best weights: colour and width of an edge show its weight, the colour of a node its bias."
    figure = element("figure", element("div", picture, class_="drawing"))
    return section("The network", figure, element("dl", *pairs, class_="facts"), note=note)
