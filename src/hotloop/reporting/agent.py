"""The best agent of a run to look at: an episode as a few small pictures, and its network where a graph wires it.

The agent on the page: a strip of pictures that a small script plays, and the drawing of its network.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import numpy as np

from hotloop.core.errors import HotloopError
from hotloop.core.types import Array
from hotloop.loop.agent_files import load_agent
from hotloop.nets.topology.graph import Measures, measure
from hotloop.nets.topology.network import TopologyTorso
from hotloop.presets.registry import RunSettings, settings_of
from hotloop.render.html import Html, data_uri, element, section
from hotloop.render.numbers import measured
from hotloop.render.picture import png_bytes, shrunk
from hotloop.reporting.facts import RunFacts
from hotloop.viewing.draw_network import draw_network
from hotloop.viewing.play import Episode, play_episodes

MOST_FRAMES, MOST_BYTES, MOST_STEPS, LONGEST_SIDE = 100, 1_400_000, 3_000, 544


@dataclass(frozen=True)
class Picture:
    step: int
    total: float  # the return so far
    png: bytes


@dataclass(frozen=True)
class Played:
    pictures: tuple[Picture, ...]
    stats: dict[str, Any]  # return, length, `end`, the workload's own
    fps: float  # env steps per second that look natural
    size: tuple[int, int]  # width, height


@dataclass(frozen=True)
class AgentDrawing:
    svg: str
    measures: Measures


@dataclass(frozen=True)
class AgentView:
    """What there is to see; `missing` says why there is no episode."""

    played: Played | None = None
    drawing: AgentDrawing | None = None
    missing: str = ""


def view_agent(facts: RunFacts, *, frames: bool, trust: bool) -> AgentView:
    """Whatever goes wrong here is told on the page, which is complete without it."""
    if not facts.checkpoints:
        return AgentView(missing="There is no checkpoint that can be used yet, so there is no agent to look at.")
    try:
        settings = settings_of(facts.run, trust, facts.settings)
        agent = load_agent(facts.run, settings)
    except HotloopError as error:
        return AgentView(missing=f"The agent cannot be loaded: {error.message}.")
    drawing = draw(agent, facts.label)
    if not frames:
        return AgentView(None, drawing, "Pictures were not asked for.")
    try:
        return AgentView(play(agent.as_policy(), settings), drawing)
    except Exception as error:  # an env may be anybody's code
        return AgentView(None, drawing, f"No episode can be shown: {_reason(error)}")


def _reason(error: Exception) -> str:
    if not isinstance(error, HotloopError):
        return f"{type(error).__name__}: {error}"
    return f"{error.message} ({error.hint})" if error.hint else error.message


def draw(agent: Any, title: str) -> AgentDrawing | None:
    torso: Any = getattr(getattr(agent, "network", None), "torso", None)
    if not isinstance(torso, TopologyTorso):
        return None
    network = torso.network
    measures = measure(network.graph)
    about = f"{measures.nodes} nodes, {measures.edges} edges, {measures.levels} levels"
    weights, biases = network.weight.detach().numpy(), network.bias.detach().numpy()
    return AgentDrawing(draw_network(network.graph, weights, biases, title, about), measures)


def play(policy: Any, settings: RunSettings) -> Played:
    """The first episode of seed 0, as `hotloop watch` shows it."""
    moments = play_episodes(policy, settings.env, 1, 0, trust=settings.trust, pictures=True)
    with contextlib.closing(moments):
        return _thinned(moments)


def _thinned(moments: Generator[Episode, None, None]) -> Played:
    """Evenly over the episode, its first and last moment among them; painted only where kept so far."""
    taken: list[tuple[int, float, Array]] = []
    every = 1
    for count, episode in enumerate(moments):
        over = bool(episode.end) or count == MOST_STEPS
        if count % every == 0 or over:
            taken.append((episode.length, episode.total, shrunk(episode.scene.frame(), LONGEST_SIDE)))
        if over:
            break
        if len(taken) > 2 * MOST_FRAMES:
            taken, every = taken[::2], 2 * every
    pictures = tuple(Picture(step, total, png_bytes(frame)) for step, total, frame in _evenly(taken, MOST_FRAMES))
    while (size := sum(len(one.png) for one in pictures)) > MOST_BYTES and len(pictures) > 2:
        pictures = tuple(_evenly(list(pictures), max(2, len(pictures) * MOST_BYTES // size)))
    height, width, _ = taken[0][2].shape
    return Played(pictures, episode.as_data(), episode.scene.fps, (width, height))


def _evenly(items: list[Any], at_most: int) -> list[Any]:
    if len(items) <= at_most:
        return items
    return [items[round(place)] for place in np.linspace(0, len(items) - 1, at_most)]


def told(stats: dict[str, Any]) -> str:
    """`return 212, length 212, score 21; terminated`."""
    numbers = [f"{name.replace('_', ' ')} {measured(value)}" for name, value in stats.items()]
    kept = [words for words, name in zip(numbers, stats, strict=True) if name not in ("episode", "end")]
    end = {"stopped": f"cut off after {MOST_STEPS:,} steps"}.get(str(stats.get("end")), str(stats.get("end")))
    return f"{', '.join(kept)}; {end}"


_FASTEST, _SLOWEST = 20.0, 2.0
"""Pictures per second."""


def agent_section(view: AgentView, facts: RunFacts) -> Html:
    if view.played is None:
        return section("The agent", element("p", view.missing, class_="missing"))
    until = "" if facts.status == "finished" else f" up to checkpoint {facts.checkpoints[-1]}"
    note = f"The best agent{until}, acting greedily: the first episode that hotloop watch shows."
    return section("The agent", _player(view.played), element("p", told(view.played.stats), class_="note"), note=note)


def _player(played: Played) -> Html:
    """Without its script it is a strip that can be scrolled."""
    width, height = played.size
    pictures = (
        element(
            "img",
            src=data_uri("image/png", one.png),
            alt=f"step {one.step}",
            width=width,
            height=height,
            data_text=f"step {one.step:,}, return {measured(one.total)}",
        )
        for one in played.pictures
    )
    controls = element(
        "div",
        element("button", "Pause", type="button"),
        element(
            "input", type="range", min=0, max=len(played.pictures) - 1, value=0, aria_label="moment of the episode"
        ),
        element("output", ""),
        class_="controls",
        hidden=True,
    )
    small = max(width, height) < LONGEST_SIDE  # enlarged with sharp edges, as cells of a board should be
    strip = element("div", *pictures, class_="strip small" if small else "strip", tabindex=0)
    return element("div", strip, controls, class_="player", data_delay=str(_delay(played)))


def _delay(played: Played) -> int:
    """Milliseconds between pictures: the env's natural speed, within what can be followed."""
    steps = max(1, played.pictures[-1].step - played.pictures[0].step) / max(1, len(played.pictures) - 1)
    return round(1_000 / min(_FASTEST, max(_SLOWEST, played.fps / steps)))


def network_section(drawing: AgentDrawing | None) -> Html:
    if drawing is None:
        return Html("")
    measures = drawing.measures
    # as a picture of its own: its styles would meet the page's
    picture = element("img", src=data_uri("image/svg+xml", drawing.svg.encode()), alt="the network's graph")
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
    note = "The best weights: color and width of an edge show its weight, the color of a node its bias."
    figure = element("figure", element("div", picture, class_="drawing"))
    return section("The network", figure, element("dl", *pairs, class_="facts"), note=note)
