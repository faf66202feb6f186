"""The network as a picture: centres on a circle, filled by their CPU load, links coloured by theirs, and a bar of
accepted, pending and dropped requests for each service."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from hotloop.core.types import Array
from hotloop.envs.sfc.tables_kernels import LINK_CAPACITY, NUM_SERVICES

SKY, EDGE, CALM, BUSY, VISITED, TAKEN, LOST = (
    (24, 28, 36),
    (60, 68, 84),
    (64, 190, 120),
    (235, 76, 70),
    (240, 190, 110),
    (64, 190, 120),
    (235, 76, 70),
)
SIZE = 320  # pixels of the map's side
BARS = 160  # pixels of the bars' width
RADIUS = 22


def picture(state: Mapping[str, Array], index: int) -> Array:
    canvas = np.empty((SIZE, SIZE + BARS, 3))
    canvas[...] = SKY
    count = int(state["num_centres"][index])
    points = [_point(place, count) for place in range(count)]
    for one in range(count):
        for other in range(one + 1, count):
            load = 1 - state["free_rate"][index, one, other] / LINK_CAPACITY
            _line(canvas, points[one], points[other], 1.0 + 3.0 * load, _shade(load, EDGE))
    for place, point in enumerate(points):
        load = 1 - state["free_cpu"][index, place] / state["cpu"][index, place]
        _disc(canvas, point, RADIUS + 3, VISITED if place == state["visited"][index] else EDGE)
        _disc(canvas, point, RADIUS, SKY)
        _disc(canvas, point, RADIUS * math.sqrt(load), _shade(load, CALM))
    for service in range(NUM_SERVICES):
        _service_bar(canvas, state, index, service)
    return canvas.round().astype(np.uint8)


def _point(place: int, count: int) -> tuple[float, float]:
    angle = 2 * math.pi * place / count - math.pi / 2
    reach = SIZE / 2 - RADIUS - 12
    return SIZE / 2 + reach * math.cos(angle), SIZE / 2 + reach * math.sin(angle)


def _shade(load: float, calm: tuple[int, int, int]) -> Array:
    return (1 - load) * np.array(calm) + load * np.array(BUSY)


def _line(canvas: Array, start: tuple[float, float], end: tuple[float, float], width: float, colour: Array) -> None:
    rows, columns = np.mgrid[: canvas.shape[0], : canvas.shape[1]]
    along_x, along_y = end[0] - start[0], end[1] - start[1]
    share = ((columns - start[0]) * along_x + (rows - start[1]) * along_y) / (along_x**2 + along_y**2)
    share = np.clip(share, 0.0, 1.0)
    outside = np.hypot(columns - start[0] - share * along_x, rows - start[1] - share * along_y) - width
    _blend(canvas, outside, colour)


def _disc(canvas: Array, centre: tuple[float, float], radius: float, colour: object) -> None:
    if radius > 0.5:
        rows, columns = np.mgrid[: canvas.shape[0], : canvas.shape[1]]
        _blend(canvas, np.hypot(columns - centre[0], rows - centre[1]) - radius, colour)


def _blend(canvas: Array, outside: Array, colour: object) -> None:
    canvas += np.clip(0.5 - outside, 0.0, 1.0)[..., None] * (np.asarray(colour) - canvas)


def _service_bar(canvas: Array, state: Mapping[str, Array], index: int, service: int) -> None:
    """Accepted from the left, dropped from the right, pending between them."""
    height = SIZE // NUM_SERVICES
    top, left, width = service * height + height // 4, SIZE + 10, BARS - 20
    generated = max(1, int(state["generated"][index, service]))
    taken = round(width * int(state["satisfied"][index, service]) / generated)
    lost = round(width * int(state["dropped"][index, service]) / generated)
    rows = slice(top, top + height // 2)
    canvas[rows, left : left + width] = EDGE
    canvas[rows, left : left + taken] = TAKEN
    canvas[rows, left + width - lost : left + width] = LOST
