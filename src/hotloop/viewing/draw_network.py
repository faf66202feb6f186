"""A network wired by a graph, as one SVG file: levels from left to right, weights and biases as colors.

Where each node of a graph stands on the page: levels from left to right, neighbors near each other.

Signed numbers as colors: blue below zero, red above, pale near it; readable by color-blind eyes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from hotloop.core.types import Array
from hotloop.nets.topology.graph import Topology
from hotloop.render.picture import Color, mixed

COLUMN, ROW = 26.0, 30.0
MARGIN, TOP, BOTTOM = 44.0, 64.0, 74.0
SWEEPS = 8
MIN_WIDTH, MIN_HEIGHT = 520.0, 150.0
WAVE, WAVE_LEVELS = 80.0, 11.0
"""A deep, thin graph is laid along a wave of this height and length: on a straight line its edges would lie on each
other."""


@dataclass(frozen=True)
class Layout:
    x: Array  # [V]
    y: Array  # [V]
    width: float
    height: float


def lay_out(levels: Sequence[int], edges: Sequence[tuple[int, int]]) -> Layout:
    """Places of nodes given by position, with their levels, and edges between positions."""
    columns = _ordered_columns(levels, edges)
    depth, widest = len(columns), max(map(len, columns))
    thin = depth > 3 * widest
    spread = ROW * (widest - 1) if thin else max(ROW * (widest - 1), MIN_HEIGHT)
    wave = WAVE if thin else 0.0
    column = max(COLUMN if thin else 3.0 * COLUMN, (MIN_WIDTH - 2 * MARGIN) / max(1, depth - 1))
    x, y = np.zeros(len(levels)), np.zeros(len(levels))
    for number, nodes in enumerate(columns):
        gap = spread / (len(nodes) + 1) if not thin else ROW
        bend = wave * math.sin(2 * math.pi * number / WAVE_LEVELS)
        for place, node in enumerate(nodes):
            x[node] = MARGIN + column * number
            y[node] = TOP + wave + spread / 2 + bend + gap * (place - (len(nodes) - 1) / 2)
    height = TOP + spread + 2 * wave + BOTTOM
    return Layout(x, y, max(MIN_WIDTH, 2 * MARGIN + column * (depth - 1)), height)


def _ordered_columns(levels: Sequence[int], edges: Sequence[tuple[int, int]]) -> list[list[int]]:
    """The nodes of each level from top to bottom. A few sweeps move each node to the mean place of its neighbors in
    other levels, which takes most crossings away (Sugiyama et al. 1981)."""
    present = sorted(set(levels))
    columns = [[node for node, level in enumerate(levels) if level == wanted] for wanted in present]
    neighbors: list[list[int]] = [[] for _ in levels]
    for source, target in edges:
        neighbors[source].append(target)
        neighbors[target].append(source)
    place = {node: number - (len(column) - 1) / 2 for column in columns for number, node in enumerate(column)}
    for sweep in range(SWEEPS):
        for column in columns if sweep % 2 == 0 else reversed(columns):
            wish = {node: _mean([place[near] for near in neighbors[node]], place[node]) for node in column}
            column.sort(key=wish.__getitem__)
            place.update({node: number - (len(column) - 1) / 2 for number, node in enumerate(column)})
    return columns


def bend_of(span: float, number: int) -> float:
    """How far down the middle of an edge is pulled that spans so much: long ones bend around what they pass, some of
    them upwards."""
    return min(46.0, 0.16 * span) * (1 if number % 2 else -1) if span > 40 else 0.0


def _mean(values: list[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise


NEGATIVE, ZERO, POSITIVE = (33, 102, 172), (214, 214, 214), (178, 24, 43)


def limit_of(values: Array) -> float:
    """What gets the full color: the 98th percentile of the sizes, so that one outlier does not pale the rest."""
    return float(np.quantile(np.abs(values), 0.98)) if len(values) and np.any(values) else 1.0


def strength(value: float, limit: float) -> float:
    """-1 to 1."""
    return max(-1.0, min(1.0, value / limit))


def shade(value: float, limit: float) -> Color:
    """Red, green and blue, 0 to 255."""
    share = strength(value, limit)
    return mixed(ZERO, POSITIVE if share > 0 else NEGATIVE, abs(share))


def color(value: float, limit: float) -> str:
    return "#{:02x}{:02x}{:02x}".format(*shade(value, limit))


_FONT = "system-ui,-apple-system,Segoe UI,Roboto,Helvetica,Arial,sans-serif"
_BAR = 150


def draw_network(graph: Topology, weights: Array, biases: Array, title: str, subtitle: str) -> str:
    """The text of an SVG file; `weights` [E] and `biases` [V - I] in the graph's own order."""
    position = {node: number for number, node in enumerate(graph.nodes)}
    edges = [(position[source], position[target]) for source, target in graph.edges()]
    layout = lay_out(graph.levels(), edges)
    weight_limit, bias_limit = limit_of(weights), limit_of(biases)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {layout.width:.0f} {layout.height:.0f}" '
        f'width="{layout.width:.0f}" height="{layout.height:.0f}" style="max-width:100%;height:auto" role="img">',
        f"<title>{escape(title)}</title><desc>{escape(subtitle)}</desc>",
        _style(),
        f'<rect class="page" width="{layout.width:.0f}" height="{layout.height:.0f}" rx="6"/>',
        _text(16, 24, title, "title"),
        _text(16, 42, subtitle, "faint"),
        *_edge_lines(edges, graph, weights, weight_limit, layout),
        *_node_circles(graph, biases, bias_limit, layout),
        *_legend(layout, weight_limit, bias_limit),
        "</svg>\n",
    ]
    return "\n".join(parts)


def _edge_lines(
    edges: list[tuple[int, int]], graph: Topology, weights: Array, limit: float, layout: Layout
) -> list[str]:
    """Faint ones first, so that strong ones lie on top."""
    fade = min(1.0, (300 / max(1, len(edges))) ** 0.5)
    lines = []
    for number in np.argsort(np.abs(weights), kind="stable").tolist():
        (source, target), value = edges[number], float(weights[number])
        x1, y1, x2, y2 = (float(place) for end in (source, target) for place in (layout.x[end], layout.y[end]))
        bend = bend_of(x2 - x1, source + target)
        share = abs(strength(value, limit))
        where = f"M{x1:.1f} {y1:.1f}Q{(x1 + x2) / 2:.1f} {(y1 + y2) / 2 + bend:.1f} {x2:.1f} {y2:.1f}"
        name = escape(f"{graph.nodes[source]} to {graph.nodes[target]}: {value:.4g}")
        lines.append(
            f'<path d="{where}" stroke="{color(value, limit)}" stroke-width="{0.5 + 1.9 * share:.2f}" '
            f'stroke-opacity="{fade * (0.35 + 0.6 * share):.2f}"><title>{name}</title></path>'
        )
    return lines


def _node_circles(graph: Topology, biases: Array, limit: float, layout: Layout) -> list[str]:
    inputs, outputs = len(graph.inputs), set(graph.output_positions.tolist())
    circles = []
    for place, node in enumerate(graph.nodes):
        x, y = float(layout.x[place]), float(layout.y[place])
        value = None if place < inputs else float(biases[place - inputs])
        fill = 'class="input"' if value is None else f'fill="{color(value, limit)}"'
        ring = ' class="output"' if place in outputs else ""
        radius = 7 if value is None or place in outputs else 5.5
        told = "input" if value is None else f"bias {value:.4g}"
        name = f"<title>{escape(f'{node}: {told}')}</title>"
        circles.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" {fill}{ring}>{name}</circle>')
        if value is None or place in outputs:
            side = (x - 12, "end") if value is None else (x + 12, "")
            circles.append(_text(side[0], y + 4, str(node)[:5], side[1]))
    return circles


def _legend(layout: Layout, weight_limit: float, bias_limit: float) -> list[str]:
    y = layout.height - 34
    stops = "".join(
        f'<stop offset="{offset}" stop-color="rgb{shade}"/>'
        for offset, shade in ((0, NEGATIVE), (0.5, ZERO), (1, POSITIVE))
    )
    parts = [f'<defs><linearGradient id="scale">{stops}</linearGradient></defs>']
    for start, name, limit in ((16.0, "weight", weight_limit), (16.0 + _BAR + 90, "bias", bias_limit)):
        parts += [
            _text(start, y + 9, name, ""),
            f'<rect x="{start + 48}" y="{y}" width="{_BAR}" height="10" rx="2" fill="url(#scale)"/>',
            _text(start + 48, y + 24, f"-{limit:.2g}", "faint"),
            _text(start + 48 + _BAR / 2, y + 24, "0", "faint middle"),
            _text(start + 48 + _BAR, y + 24, f"{limit:.2g}", "faint end"),
        ]
    return parts


def _text(x: float, y: float, words: str, style: str) -> str:
    named = f' class="{style}"' if style else ""
    return f'<text x="{x:.1f}" y="{y:.1f}"{named}>{escape(words)}</text>'


def _style() -> str:
    light = "text{fill:#24292f}.faint{fill:#57606a}.page{fill:#fff}circle{stroke:#24292f}.input{fill:#fff}"
    dark = "text{fill:#e6edf3}.faint{fill:#9da7b1}.page{fill:#161b22}circle{stroke:#e6edf3}.input{fill:#161b22}"
    return (
        f"<style>text{{font:12px {_FONT}}}.title{{font-size:15px;font-weight:600}}.faint{{font-size:11px}}"
        ".middle{text-anchor:middle}.end{text-anchor:end}path{fill:none}circle{stroke-width:.8}.output{stroke-width:2}"
        f"{light}@media(prefers-color-scheme:dark){{{dark}}}</style>"
    )
