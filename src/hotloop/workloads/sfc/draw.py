"""A network with its load and its requests from a saved state: as a picture, as plain data for a page, and as text for
a terminal.

The picture has centres on a circle, filled by their CPU load, links colored by theirs, and a bar of accepted, pending
and dropped requests for each service.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hotloop.core.types import Array, Policy
from hotloop.render.picture import Box, Canvas, mixed
from hotloop.workloads.sfc.layout_kernels import RUNS
from hotloop.workloads.sfc.tables_kernels import (
    FIRST_SLOT,
    LINK_CAPACITY,
    NUM_SERVICES,
    RAM_CAPACITY,
    SERVICES,
    SLOTS_PER_ROUND,
    STORAGE_CAPACITY,
    UNITS_PER_MS,
    VNFS,
)

if TYPE_CHECKING:
    from hotloop.viewing.play import Episode

State = Mapping[str, Array]
FPS = 50
"""Env steps per second that look natural."""
SKY, EDGE, VISITED, TAKEN, LOST = (24, 28, 36), (60, 68, 84), (240, 190, 110), (64, 190, 120), (235, 76, 70)
SIZE = 320  # pixels of the map's side
BARS = 160  # pixels of the bars' width
RADIUS = 22


def measures(first: State, now: State) -> dict[str, float]:
    """The acceptance of env 0 so far."""
    return {"acceptance": acceptance(now, 0)}


def write_page(agent: Policy, play: Callable[[Policy], Generator[Episode, None, None]], file: Path) -> Episode:
    from hotloop.workloads.sfc import page  # which needs PyTorch

    return page.write_page(agent, play, file)


def frame(state: State, index: int) -> Array:
    """A picture of env `index`, [height, width, 3] uint8."""
    canvas = Canvas(SIZE + BARS, SIZE, SKY)
    count = int(state["num_centres"][index])
    points = [_point(place, count) for place in range(count)]
    for one in range(count):
        for other in range(one + 1, count):
            load = 1 - state["free_rate"][index, one, other] / LINK_CAPACITY
            canvas.line(np.array([points[one], points[other]]), mixed(EDGE, LOST, load), 2.0 + 6.0 * load)
    for place, point in enumerate(points):
        load = 1 - state["free_cpu"][index, place] / state["cpu"][index, place]
        canvas.disc(point, RADIUS + 3, VISITED if place == state["visited"][index] else EDGE)
        canvas.disc(point, RADIUS, SKY)
        if load > 0:
            canvas.disc(point, RADIUS * math.sqrt(load), mixed(TAKEN, LOST, load))
    for service in range(NUM_SERVICES):
        _service_bar(canvas, state, index, service)
    return canvas.finished()


def _point(place: int, count: int) -> tuple[float, float]:
    angle = 2 * math.pi * place / count - math.pi / 2
    reach = SIZE / 2 - RADIUS - 12
    return SIZE / 2 + reach * math.cos(angle), SIZE / 2 + reach * math.sin(angle)


def _service_bar(canvas: Canvas, state: State, index: int, service: int) -> None:
    """Accepted from the left, dropped from the right, pending between them."""
    height = SIZE // NUM_SERVICES
    top, left, width = service * height + height // 4, SIZE + 10, BARS - 20
    generated = max(1, int(state["generated"][index, service]))
    taken = width * int(state["satisfied"][index, service]) / generated
    lost = width * int(state["dropped"][index, service]) / generated
    bar = Box(left, top, left + width, top + height // 2)
    canvas.fill(bar, EDGE)
    canvas.fill(bar._replace(right=left + taken), TAKEN)
    canvas.fill(bar._replace(left=bar.right - lost), LOST)


def snapshot(state: State, index: int) -> dict[str, Any]:
    """Time, load of centres and links, the chains being placed, and how the requests of each service fare."""
    count = int(state["num_centres"][index])
    pairs = [(one, other) for one in range(count) for other in range(one + 1, count)]
    return {
        "ms": int(state["now"][index]) / UNITS_PER_MS,
        "visited": int(state["visited"][index]),
        "centres": [
            [int(state["cpu"][index, place] - state["free_cpu"][index, place]), int(state["cpu"][index, place])]
            for place in range(count)
        ],
        "links": [
            [one, other, round(1 - int(state["free_rate"][index, one, other]) / LINK_CAPACITY, 3)]
            for one, other in pairs
        ],
        "services": np.stack([state[name][index] for name in ("satisfied", "all_pending", "dropped")], 1).tolist(),
        "chains": chains(state, index),
    }


def chains(state: State, index: int) -> list[dict[str, Any]]:
    """The requests that a VNF runs for now: whose, which VNF, and the centres from its source to there."""
    found = []
    for row in np.flatnonzero(state["ends"][index]):
        slot = int(state["runs_slot"][index, row])
        if state["state"][index, slot] == RUNS:
            bundle = bundle_of_slot(slot)
            placed = state["where"][index, slot, : state["placed"][index, slot]].tolist()
            found.append(
                {
                    "service": SERVICES[bundle % NUM_SERVICES].replace("_", " "),
                    "vnf": VNFS[int(state["runs_vnf"][index, row])].upper(),
                    "way": [int(state["source"][index, bundle]), *placed],
                    "goal": int(state["destination"][index, bundle]),
                }
            )
    return found


def bundle_of_slot(slot: int) -> int:
    service = int((slot % SLOTS_PER_ROUND >= FIRST_SLOT).sum()) - 1
    return slot // SLOTS_PER_ROUND * NUM_SERVICES + service


BAR = 10  # characters
MOST_CHAINS = 4
LINKS_IN_A_ROW = 4
CALM, BUSY, FULL, REST = "64;190;120", "240;190;110", "235;76;70", "60;68;84"


def text(state: State, index: int, color: bool = True) -> str:
    """Env `index` for a terminal: its centres, its links, what runs now, and how its requests fare."""
    sections = [_header(state, index), *_centres(state, index, color), *_links(state, index, color)]
    sections += ["", *_running(state, index), "", *_services(state, index, color)]
    return "\n".join(sections)


def acceptance(state: State, index: int) -> float:
    """Of the requests that have ended, the share satisfied; 0 before the first has."""
    satisfied, dropped = int(state["satisfied"][index].sum()), int(state["dropped"][index].sum())
    return satisfied / (satisfied + dropped) if satisfied + dropped else 0.0


def _header(state: State, index: int) -> str:
    now, arrived, rounds = (int(state[name][index]) for name in ("now", "arrived", "rounds"))
    return f"{now / UNITS_PER_MS:7.2f} ms   round {arrived} of {rounds}   acceptance {acceptance(state, index):6.1%}"


def _centres(state: State, index: int, color: bool) -> list[str]:
    """One line each: load, and busy of installed VNFs by their first letters."""
    rows = []
    for place in range(state["num_centres"][index]):
        cpu, free_cpu = int(state["cpu"][index, place]), int(state["free_cpu"][index, place])
        ram = 1 - state["free_ram"][index, place] / RAM_CAPACITY
        storage = 1 - state["free_storage"][index, place] / STORAGE_CAPACITY
        counts = zip(VNFS, state["installed"][index, place], state["idle"][index, place], strict=True)
        vnfs = " ".join(
            f"{name[0].upper()} {all_of - idle}/{all_of}" if all_of else " " * 5 for name, all_of, idle in counts
        )
        mark = ">" if place == state["visited"][index] else " "
        load = f"cpu {_bar(1 - free_cpu / cpu, color)} {cpu - free_cpu:3}/{cpu:<3} ram {ram:4.0%} disk {storage:3.0%}"
        rows.append(f"{mark}DC {place:<2} {load}  {vnfs}".rstrip())
    return rows


def _links(state: State, index: int, color: bool) -> list[str]:
    shown = []
    count = int(state["num_centres"][index])
    for one in range(count):
        for other in range(one + 1, count):
            load = 1 - state["free_rate"][index, one, other] / LINK_CAPACITY
            text = f"{one:>2}-{other:<2}{state['length'][index, one, other]:5} km{load:5.0%}"
            shown.append(f"\x1b[38;2;{_shade(load)}m{text}\x1b[0m" if color else text)
    return ["".join(shown[first : first + LINKS_IN_A_ROW]) for first in range(0, len(shown), LINKS_IN_A_ROW)]


def _running(state: State, index: int) -> list[str]:
    """The chains being placed: which VNF of whom runs where, after what."""
    rows = [
        f"{chain['service']:18} {chain['vnf']:4} at {' > '.join(map(str, chain['way']))}  for {chain['goal']}"
        for chain in chains(state, index)
    ]
    return (rows + [""] * MOST_CHAINS)[:MOST_CHAINS]


def _services(state: State, index: int, color: bool) -> list[str]:
    rows = []
    for service, name in enumerate(SERVICES):
        satisfied, dropped = int(state["satisfied"][index, service]), int(state["dropped"][index, service])
        ended, pending = satisfied + dropped, int(state["all_pending"][index, service])
        share = f"{satisfied / ended:6.1%}" if ended else "     -"
        bar = _bar(satisfied / ended if ended else 0.0, color, good=True)
        counts = f"{pending:4} pending {satisfied:4} satisfied {dropped:4} dropped"
        rows.append(f"{name.replace('_', ' '):18} {bar} {share}  {counts}")
    return rows


def _bar(share: float, color: bool, good: bool = False) -> str:
    """A share as ten characters; a load turns red as it fills, an acceptance green."""
    share = min(max(float(share), 0.0), 1.0)
    filled = round(share * BAR)
    if not color:
        return "#" * filled + "." * (BAR - filled)
    shade = _shade(1 - share if good else share)
    return f"\x1b[38;2;{shade}m{'█' * filled}\x1b[38;2;{REST}m{'█' * (BAR - filled)}\x1b[0m"


def _shade(strain: float) -> str:
    return CALM if strain < 0.5 else BUSY if strain < 0.85 else FULL
