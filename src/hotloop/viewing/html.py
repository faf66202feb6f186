"""An episode as a page: `hotloop watch RUN --html FILE`, for envs whose moments can be told as data.

A played episode of `sfc` as one page that needs nothing else: map with load, chains, acceptance and attention.
"""

from __future__ import annotations

import json
from collections.abc import Generator
from pathlib import Path
from typing import Any

import torch

from hotloop.core.errors import EnvError
from hotloop.core.types import Array, Obs, map_obs
from hotloop.viewing.play import Episode

MOST_MOMENTS = 800
"""Of an episode on a page; a longer one is thinned out."""
HAS_PAGE = ("sfc",)


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


def require_page(env_id: str) -> None:
    if env_id not in HAS_PAGE:
        raise EnvError(f"`{env_id}` has no page", f"these have one: {', '.join(HAS_PAGE)}; `--video` shows the others")


def write_page(moments: Generator[Episode, None, None], watched: Watched, file: Path) -> Episode:
    """Play the first episode to its end and write it as a page."""
    from hotloop.envs.sfc.draw import snapshot
    from hotloop.envs.sfc.tables_kernels import SERVICES

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
    file.write_text(page(taken, [name.replace("_", " ") for name in SERVICES]))
    return last


TEMPLATE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>hotloop: service chains</title>
<style>
body { background: #181c24; color: #c8ccd4; font: 14px system-ui, sans-serif; margin: 24px; }
main { display: grid; grid-template-columns: 420px 1fr; gap: 24px; max-width: 1200px; }
svg { background: #1d222b; border-radius: 6px; width: 100%; }
h2 { font-size: 14px; font-weight: 600; margin: 16px 0 6px; }
input { width: 100%; } table { border-collapse: collapse; width: 100%; } td { padding: 2px 8px 2px 0; }
td.n { text-align: right; font-variant-numeric: tabular-nums; } pre { min-height: 13em; margin: 0; }
.bar { display: flex; width: 160px; height: 10px; background: #3c4454; } .bar i { height: 10px; }
</style>
<h1 style="font-size:18px">Service chains: <span id="now"></span></h1>
<input id="time" type="range" min="0" value="0">
<main><div><h2>network: CPU of the data centres, load of the links</h2><svg id="map" viewBox="0 0 400 400"></svg>
<h2>chains being placed</h2><pre id="chains"></pre></div>
<div><h2>requests by service: satisfied, pending, dropped</h2><table id="services"></table>
<h2>acceptance over time</h2><svg id="acceptance" viewBox="0 0 640 200"></svg>
<div id="keys"></div>
<h2 id="attention-title">attention over time</h2><svg id="attention" viewBox="0 0 640 160"></svg>
<div id="attention-keys"></div></div></main>
<script type="application/json" id="data">DATA</script>
<script>
const data = JSON.parse(document.getElementById("data").textContent), moments = data.moments;
const colours = ["#6e96dc", "#40be78", "#f0be6e", "#eb4c46", "#b07be0", "#58c7c7", "#c8ccd4"];
const make = (kind, attributes, parent, text) => {
  const one = document.createElementNS("http://www.w3.org/2000/svg", kind);
  for (const name in attributes) one.setAttribute(name, attributes[name]);
  if (text !== undefined) one.textContent = text;
  return parent.appendChild(one);
};
const shade = load => load < 0.5 ? "#40be78" : load < 0.85 ? "#f0be6e" : "#eb4c46";
const at = (place, count) => {
  const angle = 2 * Math.PI * place / count - Math.PI / 2;
  return [200 + 150 * Math.cos(angle), 200 + 150 * Math.sin(angle)];
};
function drawMap(moment) {
  const svg = document.getElementById("map"), count = moment.centres.length;
  svg.replaceChildren();
  for (const [one, other, load] of moment.links) {
    const [x1, y1] = at(one, count), [x2, y2] = at(other, count);
    make("line", {x1, y1, x2, y2, stroke: load > 0 ? shade(load) : "#3c4454", "stroke-width": 1 + 8 * load}, svg);
  }
  moment.centres.forEach(([used, cpu], place) => {
    const [cx, cy] = at(place, count), ring = place === moment.visited ? "#f0be6e" : "#3c4454";
    make("circle", {cx, cy, r: 26, fill: "#181c24", stroke: ring, "stroke-width": 3}, svg);
    make("circle", {cx, cy, r: 24 * Math.sqrt(used / cpu), fill: shade(used / cpu)}, svg);
    make("text", {x: cx, y: cy + 44, fill: "#c8ccd4", "text-anchor": "middle", "font-size": 12}, svg,
         `DC ${place}: ${used}/${cpu}`);
  });
}
function drawServices(moment) {
  const table = document.getElementById("services");
  table.replaceChildren();
  moment.services.forEach((counts, index) => {
    const row = table.insertRow(), all = Math.max(1, counts[0] + counts[1] + counts[2]);
    row.insertCell().textContent = data.services[index];
    const bar = document.createElement("div");
    bar.className = "bar";
    [["#40be78", 0], ["#3c4454", 1], ["#eb4c46", 2]].forEach(([colour, which]) => {
      const part = document.createElement("i");
      part.style.background = colour;
      part.style.width = 100 * counts[which] / all + "%";
      bar.appendChild(part);
    });
    row.insertCell().appendChild(bar);
    counts.forEach(count => { const cell = row.insertCell(); cell.className = "n"; cell.textContent = count; });
  });
}
function drawLines(id, keys, names, lines) {
  const svg = document.getElementById(id), box = svg.viewBox.baseVal, last = Math.max(1e-9, moments.at(-1).ms);
  for (const share of [0, 0.5, 1]) {
    const y = 10 + (1 - share) * (box.height - 30);
    make("line", {x1: 40, x2: box.width - 5, y1: y, y2: y, stroke: "#3c4454"}, svg);
    make("text", {x: 34, y: y + 4, fill: "#c8ccd4", "font-size": 11, "text-anchor": "end"}, svg, 100 * share + " %");
  }
  make("text", {x: box.width - 5, y: box.height - 4, fill: "#c8ccd4", "font-size": 11, "text-anchor": "end"}, svg,
       last + " ms");
  lines.forEach((line, index) => {
    const points = line.map((share, i) => share === null ? null :
      `${40 + moments[i].ms / last * (box.width - 45)},${10 + (1 - share) * (box.height - 30)}`).filter(one => one);
    make("polyline", {points: points.join(" "), fill: "none", stroke: colours[index], "stroke-width": 1.5}, svg);
    const key = document.createElement("span");
    key.textContent = "\\u25a0 " + names[index] + "  ";
    key.style.color = colours[index];
    document.getElementById(keys).appendChild(key);
  });
  make("line", {id: id + "-now", y1: 10, y2: box.height - 20, stroke: "#ffffff", "stroke-opacity": 0.5}, svg);
}
function show(index) {
  const moment = moments[index];
  drawMap(moment);
  drawServices(moment);
  const said = one => `${one.service.padEnd(18)} ${one.vnf.padEnd(5)}${one.way.join(" > ")}  for ${one.goal}`;
  document.getElementById("chains").textContent = moment.chains.map(said).join("\\n");
  document.getElementById("now").textContent = `${moment.ms.toFixed(2)} ms`;
  for (const id of ["acceptance", "attention"]) {
    const mark = document.getElementById(id + "-now");
    if (!mark) continue;
    const x = 40 + moment.ms / Math.max(1e-9, moments.at(-1).ms) * 595;
    mark.setAttribute("x1", x);
    mark.setAttribute("x2", x);
  }
}
const share = ([satisfied, , dropped]) => satisfied + dropped ? satisfied / (satisfied + dropped) : null;
const total = services => services.reduce((sum, one) => sum.map((value, i) => value + one[i]), [0, 0, 0]);
drawLines("acceptance", "keys", [...data.services, "all"],
  [...data.services.map((_, index) => moments.map(one => share(one.services[index]))),
   moments.map(one => share(total(one.services)))]);
const parts = Object.keys(moments.at(-1).attention || {});
if (parts.length) {
  const weights = name => moments.map(one => (one.attention || {})[name] ?? null);
  drawLines("attention", "attention-keys", parts, parts.map(weights));
} else for (const id of ["attention-title", "attention"]) document.getElementById(id).remove();
const slider = document.getElementById("time");
slider.max = moments.length - 1;
slider.oninput = () => show(+slider.value);
show(0);
</script></html>
"""


def page(moments: list[dict[str, Any]], services: list[str]) -> str:
    """`moments` are snapshots, each with `attention` where the agent has any; no text in them can leave its quotes."""
    text = json.dumps({"moments": moments, "services": services}, separators=(",", ":"), allow_nan=False)
    return TEMPLATE.replace("DATA", text.replace("<", "\\u003c"), 1)
