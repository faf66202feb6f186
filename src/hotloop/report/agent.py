"""The best agent of a run to look at: an episode as a few small pictures, and its network where a graph wires it."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import numpy as np

from hotloop.algos.registry import RunSettings
from hotloop.core.errors import HotloopError
from hotloop.core.types import Array
from hotloop.loop.agent import load_agent
from hotloop.nets.topology.measures import Measures, measure
from hotloop.nets.topology.torso import TopologyTorso
from hotloop.report.again import settings_of
from hotloop.report.facts import RunFacts
from hotloop.report.numbers import measured
from hotloop.show.draw_network import draw_network
from hotloop.show.play import Episode, play_episodes
from hotloop.show.png import png_bytes

MOST_FRAMES, MOST_BYTES, MOST_STEPS, LONGEST_SIDE = 100, 1_400_000, 3_000, 480


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
class Drawing:
    svg: str
    measures: Measures


@dataclass(frozen=True)
class AgentView:
    """What there is to see; `missing` says why there is no episode."""

    played: Played | None = None
    drawing: Drawing | None = None
    missing: str = ""


def view_agent(facts: RunFacts, *, frames: bool, trust: bool) -> AgentView:
    """Whatever goes wrong here is told on the page, which is complete without it."""
    if not facts.checkpoints:
        return AgentView(missing="There is no checkpoint that can be used yet, so there is no agent to look at.")
    try:
        settings = settings_of(facts, trust)
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


def draw(agent: Any, title: str) -> Drawing | None:
    torso: Any = getattr(getattr(agent, "network", None), "torso", None)
    if not isinstance(torso, TopologyTorso):
        return None
    network = torso.network
    measures = measure(network.graph)
    about = f"{measures.nodes} nodes, {measures.edges} edges, {measures.levels} levels"
    weights, biases = network.weight.detach().numpy(), network.bias.detach().numpy()
    return Drawing(draw_network(network.graph, weights, biases, title, about), measures)


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
            taken.append((episode.length, episode.total, _small(episode.scene.frame())))
        if over:
            break
        if len(taken) > 2 * MOST_FRAMES:
            taken, every = taken[::2], 2 * every
    pictures = tuple(Picture(step, total, png_bytes(frame)) for step, total, frame in _evenly(taken, MOST_FRAMES))
    while sum(len(one.png) for one in pictures) > MOST_BYTES and len(pictures) > 2:
        pictures = tuple(_evenly(list(pictures), len(pictures) // 2))
    height, width, _ = taken[0][2].shape
    return Played(pictures, episode.as_data(), episode.scene.fps, (width, height))


def _evenly(items: list[Any], at_most: int) -> list[Any]:
    if len(items) <= at_most:
        return items
    return [items[round(place)] for place in np.linspace(0, len(items) - 1, at_most)]


def _small(frame: Array) -> Array:
    """Averaged down by a whole factor until it fits a page."""
    factor = -(-max(frame.shape[:2]) // LONGEST_SIDE)
    if factor == 1:
        return np.ascontiguousarray(frame)
    height, width = (size // factor for size in frame.shape[:2])
    blocks = frame[: height * factor, : width * factor].reshape(height, factor, width, factor, 3)
    return blocks.mean(axis=(1, 3)).round().astype(np.uint8)


def told(stats: dict[str, Any]) -> str:
    """`return 212, length 212, score 21; terminated`."""
    numbers = [f"{name.replace('_', ' ')} {measured(value)}" for name, value in stats.items()]
    kept = [words for words, name in zip(numbers, stats, strict=True) if name not in ("episode", "end")]
    end = {"stopped": f"cut off after {MOST_STEPS:,} steps"}.get(str(stats.get("end")), str(stats.get("end")))
    return f"{', '.join(kept)}; {end}"
