"""The same network as pixels: one picture, or the frames of an animation over training."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hotloop.core.types import Array
from hotloop.nets.topology.graph import Topology
from hotloop.viewing.draw_network import BOTTOM, TOP, Layout, lay_out, limit_of, shade, strength

FINER = 2
"""Painted so many times larger and averaged down, which smooths every edge."""
INK, PAPER, TRACK = (36, 41, 47), (255, 255, 255), (224, 228, 232)
MARGIN_TOP, MARGIN_BOTTOM = 24.0, 40.0


@dataclass(frozen=True)
class Limits:
    """The weight and the bias that get the full colour; the same in all frames, or colours would flicker."""

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
        self._strokes: dict[tuple[int, int], Array] = {}
        self._size = (round(self._layout.height / 2) * 2 * FINER, round(self._layout.width / 2) * 2 * FINER)

    def paint(self, weights: Array, biases: Array, limits: Limits, progress: float | None = None) -> Array:
        """[height, width, 3] uint8; `progress` from 0 to 1 draws a bar below."""
        canvas = np.full((*self._size, 3), PAPER, np.float32)
        fade = min(1.0, (300 / max(1, len(self._paths))) ** 0.5)
        for number in np.argsort(np.abs(weights), kind="stable").tolist():
            value = float(weights[number])
            share = abs(strength(value, limits.weight))
            _blend(
                canvas,
                self._stroke(number, 1 + round(4 * share)),
                shade(value, limits.weight),
                fade * (0.35 + 0.6 * share),
            )
        self._paint_nodes(canvas, biases, limits.bias)
        if progress is not None:
            _paint_bar(canvas, progress)
        height, width = (size // FINER for size in self._size)
        return canvas.reshape(height, FINER, width, FINER, 3).mean(axis=(1, 3)).round().astype(np.uint8)

    def _stroke(self, number: int, width: int) -> Array:
        """Pixels of an edge that is `width` halves of a pixel wide; in an animation most come back in every frame."""
        found = self._strokes.get((number, width))
        if found is None:
            found = self._strokes[number, width] = _stroke(self._paths[number], width / 2, self._size)
        return found

    def _paint_nodes(self, canvas: Array, biases: Array, limit: float) -> None:
        inputs, outputs = len(self._graph.inputs), set(self._graph.output_positions.tolist())
        for place in range(len(self._graph.nodes)):
            centre = (float(self._layout.x[place]), float(self._layout.y[place]))
            is_end = place < inputs or place in outputs
            radius = 7.0 if is_end else 5.5
            fill = PAPER if place < inputs else shade(float(biases[place - inputs]), limit)
            _blend(canvas, _disc(centre, radius + (1.2 if place in outputs else 0.5), self._size), INK, 1.0)
            _blend(canvas, _disc(centre, radius - 0.5, self._size), fill, 1.0)


def _cropped(layout: Layout) -> Layout:
    """Without the room that the SVG keeps for words."""
    height = layout.height - TOP - BOTTOM + MARGIN_TOP + MARGIN_BOTTOM
    return Layout(layout.x, layout.y - TOP + MARGIN_TOP, layout.width, height)


def _path(layout: Layout, source: int, target: int) -> Array:
    """Points [n, 2] (x, y) along an edge, half a fine pixel apart; long edges bend around what they pass."""
    start, end = (np.array([layout.x[node], layout.y[node]]) for node in (source, target))
    span = float(end[0] - start[0])
    bend = min(46.0, 0.16 * span) * (1 if (source + target) % 2 else -1) if span > 40 else 0.0
    middle = (start + end) / 2 + np.array([0.0, bend])
    count = int(2 * FINER * (np.abs(end - start).sum() + abs(bend))) + 2
    t = np.linspace(0.0, 1.0, count)[:, None]
    return (1 - t) ** 2 * start + 2 * t * (1 - t) * middle + t**2 * end


def _stroke(points: Array, width: float, size: tuple[int, int]) -> Array:
    """Flat indices of the pixels under a line of that width, each once: a line must not darken itself."""
    reach = np.arange(-(FINER * width - 1) / 2, (FINER * width) / 2 + 0.01, 0.5)
    direction = np.gradient(points, axis=0)
    normal = np.stack([-direction[:, 1], direction[:, 0]], axis=1)
    normal /= np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-9)
    spread = FINER * points[:, None] + reach[None, :, None] * normal[:, None]
    return _flat(spread.reshape(-1, 2), size)


def _disc(centre: tuple[float, float], radius: float, size: tuple[int, int]) -> Array:
    reach = int(FINER * radius) + 2
    offsets = np.stack(np.meshgrid(*[np.arange(-reach, reach + 1)] * 2), axis=-1).reshape(-1, 2)
    inside = offsets[(offsets**2).sum(axis=1) <= (FINER * radius) ** 2]
    return _flat(FINER * np.array(centre) + inside, size)


def _flat(points: Array, size: tuple[int, int]) -> Array:
    x, y = points.round().astype(np.int64).T
    inside = (x >= 0) & (x < size[1]) & (y >= 0) & (y < size[0])
    return np.unique(y[inside] * size[1] + x[inside]).astype(np.int32)


def _blend(canvas: Array, pixels: Array, colour: tuple[int, int, int], opacity: float) -> None:
    flat = canvas.reshape(-1, 3)
    flat[pixels] += opacity * (np.array(colour, np.float32) - flat[pixels])


def _paint_bar(canvas: Array, progress: float) -> None:
    height, width, _ = canvas.shape
    left, right, bottom = 20 * FINER, width - 20 * FINER, height - 12 * FINER
    canvas[bottom : bottom + 4 * FINER, left:right] = TRACK
    canvas[bottom : bottom + 4 * FINER, left : left + round(progress * (right - left))] = INK
