"""A network wired by a graph, as one SVG file: levels from left to right, weights and biases as colours."""

from __future__ import annotations

from html import escape

import numpy as np

from hotloop.core.types import Array
from hotloop.nets.topology.graph import Topology
from hotloop.show.draw_colours import NEGATIVE, POSITIVE, ZERO, colour, limit_of, strength
from hotloop.show.draw_layout import Layout, lay_out

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
    """Faint ones first, so that strong ones lie on top; long ones bend around what they pass."""
    fade = min(1.0, (300 / max(1, len(edges))) ** 0.5)
    lines = []
    for number in np.argsort(np.abs(weights), kind="stable").tolist():
        (source, target), value = edges[number], float(weights[number])
        x1, y1, x2, y2 = (float(place) for end in (source, target) for place in (layout.x[end], layout.y[end]))
        span = x2 - x1
        bend = min(46.0, 0.16 * span) * (1 if (source + target) % 2 else -1) if span > 40 else 0.0
        share = abs(strength(value, limit))
        where = f"M{x1:.1f} {y1:.1f}Q{(x1 + x2) / 2:.1f} {(y1 + y2) / 2 + bend:.1f} {x2:.1f} {y2:.1f}"
        name = escape(f"{graph.nodes[source]} to {graph.nodes[target]}: {value:.4g}")
        lines.append(
            f'<path d="{where}" stroke="{colour(value, limit)}" stroke-width="{0.5 + 1.9 * share:.2f}" '
            f'stroke-opacity="{fade * (0.35 + 0.6 * share):.2f}"><title>{name}</title></path>'
        )
    return lines


def _node_circles(graph: Topology, biases: Array, limit: float, layout: Layout) -> list[str]:
    inputs, outputs = len(graph.inputs), set(graph.output_positions.tolist())
    circles = []
    for place, node in enumerate(graph.nodes):
        x, y = float(layout.x[place]), float(layout.y[place])
        value = None if place < inputs else float(biases[place - inputs])
        fill = 'class="input"' if value is None else f'fill="{colour(value, limit)}"'
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
