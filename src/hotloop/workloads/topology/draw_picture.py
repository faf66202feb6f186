"""The same network as pixels: one picture, or the frames of an animation over training."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hotloop.core.types import Array
from hotloop.nets.topology.graph import Topology
from hotloop.render.picture import Box, Canvas
from hotloop.viewing.draw_network import BOTTOM, TOP, Layout, bend_of, lay_out, limit_of, shade, strength

INK, PAPER, TRACK = (36, 41, 47), (255, 255, 255), (224, 228, 232)
MARGIN_TOP, MARGIN_BOTTOM = 24.0, 40.0


@dataclass(frozen=True)
class Limits:
    """The weight and the bias that get the full color; the same in all frames, or colors would flicker."""

    weight: float
    bias: float


def limits_of(weights: Array, biases: Array) -> Limits:
    return Limits(limit_of(weights), limit_of(biases))


class NetworkPainter:
    """Paints one graph with any weights [E] and biases [V - I]; places are worked out once."""

    def __init__(self, graph: Topology) -> None:
        place = {node: number for number, node in enumerate(graph.nodes)}
        edges = [(place[source], place[target]) for source, target in graph.edges()]
        self._graph = graph
        self._layout = _cropped(lay_out(graph.levels(), edges))
        self._paths = [_path(self._layout, source, target) for source, target in edges]
        self._size = round(self._layout.width / 2) * 2, round(self._layout.height / 2) * 2

    def paint(self, weights: Array, biases: Array, limits: Limits, progress: float | None = None) -> Array:
        """[height, width, 3] uint8; `progress` from 0 to 1 draws a bar below."""
        canvas = Canvas(*self._size, PAPER)
        fade = min(1.0, (300 / max(1, len(self._paths))) ** 0.5)
        for number in np.argsort(np.abs(weights), kind="stable").tolist():
            value = float(weights[number])
            share = abs(strength(value, limits.weight))
            ribbon = _ribbon(self._paths[number], 0.5 + 2.0 * share)
            canvas.area(ribbon, shade(value, limits.weight), fade * (0.35 + 0.6 * share))
        self._paint_nodes(canvas, biases, limits.bias)
        if progress is not None:
            left, right, bottom = 20, self._size[0] - 20, self._size[1] - 12
            track = Box(left, bottom, right, bottom + 4)
            canvas.fill(track, TRACK)
            canvas.fill(track._replace(right=left + progress * track.width), INK)
        return canvas.finished()

    def _paint_nodes(self, canvas: Canvas, biases: Array, limit: float) -> None:
        inputs, outputs = len(self._graph.inputs), set(self._graph.output_positions.tolist())
        for place in range(len(self._graph.nodes)):
            centre = (float(self._layout.x[place]), float(self._layout.y[place]))
            is_end = place < inputs or place in outputs
            radius = 7.0 if is_end else 5.5
            fill = PAPER if place < inputs else shade(float(biases[place - inputs]), limit)
            canvas.disc(centre, radius + (1.2 if place in outputs else 0.5), INK)
            canvas.disc(centre, radius - 0.5, fill)


def _cropped(layout: Layout) -> Layout:
    """Without the room that the SVG keeps for words."""
    height = layout.height - TOP - BOTTOM + MARGIN_TOP + MARGIN_BOTTOM
    return Layout(layout.x, layout.y - TOP + MARGIN_TOP, layout.width, height)


def _path(layout: Layout, source: int, target: int) -> Array:
    """Points [n, 2] (x, y) along an edge, some pixels apart."""
    start, end = (np.array([layout.x[node], layout.y[node]]) for node in (source, target))
    bend = bend_of(float(end[0] - start[0]), source + target)
    middle = (start + end) / 2 + np.array([0.0, bend])
    t = np.linspace(0.0, 1.0, 24 if bend else 2)[:, None]
    return (1 - t) ** 2 * start + 2 * t * (1 - t) * middle + t**2 * end


def _ribbon(points: Array, width: float) -> Array:
    """The outline of a line, so that it is painted in one piece: parts that meet would darken each other."""
    direction = np.gradient(points, axis=0)
    normal = np.stack([-direction[:, 1], direction[:, 0]], axis=1)
    normal *= width / 2 / np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-9)
    return np.concatenate([points + normal, (points - normal)[::-1]])
