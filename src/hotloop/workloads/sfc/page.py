"""A played episode as one page that needs nothing else: map with load, chains, acceptance and attention.

It is what `hotloop watch RUN --html FILE` writes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import torch

from hotloop.core.types import Array, Obs, Policy, map_obs
from hotloop.render.html import Html, document, element
from hotloop.viewing.play import Episode
from hotloop.workloads.sfc.draw import snapshot
from hotloop.workloads.sfc.tables_kernels import SERVICES

MOST_MOMENTS = 800
"""Of an episode on a page; a longer one is thinned out."""


class Watched:
    """A policy that remembers what it last saw, and so what its network paid attention to."""

    def __init__(self, policy: Any) -> None:
        self.policy: Any = policy
        self._torso: Any = getattr(getattr(policy, "network", None), "torso", None)
        self._obs: Obs | None = None

    def act(self, obs: Obs, action_mask: Array | None) -> Array:
        self._obs = obs
        return self.policy.act(obs, action_mask)

    @torch.no_grad()
    def attention(self) -> dict[str, float]:
        """The weight of each part of the last observation; empty before the first, and for other networks."""
        if self._obs is None or not hasattr(self._torso, "attention"):
            return {}
        weights = self._torso.attention(map_obs(torch.from_numpy, self._obs))
        return {name: round(float(values[0]), 4) for name, values in weights.items()}


def write_page(agent: Policy, play: Callable[[Policy], Generator[Episode, None, None]], file: Path) -> Episode:
    """Play the first episode to its end and write it as a page."""
    watched = Watched(agent)
    moments = play(watched)
    taken: list[dict[str, Any]] = []
    every, last = 1, None
    for count, episode in enumerate(moments):
        last = episode
        if count % every == 0 or episode.end:
            taken.append(snapshot(episode.scene.envs.get_state(), 0) | {"attention": watched.attention()})
        if len(taken) > MOST_MOMENTS:
            taken, every = taken[::2], every * 2
        if episode.end:
            break
    moments.close()
    assert last is not None
    file.write_text(page(taken, [name.replace("_", " ") for name in SERVICES]), encoding="utf-8")
    return last


def page(moments: list[dict[str, Any]], services: list[str]) -> str:
    """`moments` are snapshots, each with `attention` where the agent has any; no text in them can leave its quotes."""
    text = json.dumps({"moments": moments, "services": services}, separators=(",", ":"), allow_nan=False)
    network = element(
        "div",
        element("h2", "network: CPU of the data centres, load of the links"),
        element("svg", id="map", viewBox="0 0 400 400"),
        element("h2", "chains being placed"),
        element("pre", id="chains"),
    )
    requests = element(
        "div",
        element("h2", "requests by service: satisfied, pending, dropped"),
        element("table", id="services"),
        _over_time("acceptance", height=200),
        _over_time("attention", height=160),
    )
    return document(
        "hotloop: service chains",
        element("h1", "Service chains: ", element("span", id="now")),
        element("input", id="time", type="range", min=0, value=0, aria_label="moment of the episode"),
        element("div", network, requests, class_="moment"),
        element("script", Html(text.replace("<", "\\u003c")), type="application/json", id="data"),
        kind="episode",
    )


def _over_time(what: str, height: int) -> Html:
    """Curves that the page's script draws, and their names."""
    return element(
        "div",
        element("h2", f"{what} over time"),
        element("svg", id=what, viewBox=f"0 0 640 {height}"),
        element("div", id=f"{what}-keys", class_="keys"),
        id=f"{what}-over-time",
    )
