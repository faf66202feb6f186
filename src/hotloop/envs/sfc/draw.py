"""A network with its load and its requests as text for a terminal or as a picture, from a saved state."""

from __future__ import annotations

from collections.abc import Mapping

from hotloop.core.types import Array
from hotloop.envs.sfc.picture import picture
from hotloop.envs.sfc.snapshot import chains
from hotloop.envs.sfc.tables_kernels import (
    LINK_CAPACITY,
    RAM_CAPACITY,
    SERVICES,
    STORAGE_CAPACITY,
    UNITS_PER_MS,
    VNFS,
)

State = Mapping[str, Array]
BAR = 10  # characters
MOST_CHAINS = 4
LINKS_IN_A_ROW = 4
CALM, BUSY, FULL, REST = "64;190;120", "240;190;110", "235;76;70", "60;68;84"


def frame(state: State, index: int) -> Array:
    """A picture of env `index`, [height, width, 3] uint8."""
    return picture(state, index)


def text(state: State, index: int, colour: bool = True) -> str:
    """Env `index` for a terminal: its centres, its links, what runs now, and how its requests fare."""
    sections = [_header(state, index), *_centres(state, index, colour), *_links(state, index, colour)]
    sections += ["", *_running(state, index), "", *_services(state, index, colour)]
    return "\n".join(sections)


def acceptance(state: State, index: int) -> float:
    """Of the requests that have ended, the share satisfied; 0 before the first has."""
    satisfied, dropped = int(state["satisfied"][index].sum()), int(state["dropped"][index].sum())
    return satisfied / (satisfied + dropped) if satisfied + dropped else 0.0


def _header(state: State, index: int) -> str:
    now, arrived, rounds = (int(state[name][index]) for name in ("now", "arrived", "rounds"))
    return f"{now / UNITS_PER_MS:7.2f} ms   round {arrived} of {rounds}   acceptance {acceptance(state, index):6.1%}"


def _centres(state: State, index: int, colour: bool) -> list[str]:
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
        load = f"cpu {_bar(1 - free_cpu / cpu, colour)} {cpu - free_cpu:3}/{cpu:<3} ram {ram:4.0%} disk {storage:3.0%}"
        rows.append(f"{mark}DC {place:<2} {load}  {vnfs}".rstrip())
    return rows


def _links(state: State, index: int, colour: bool) -> list[str]:
    shown = []
    count = int(state["num_centres"][index])
    for one in range(count):
        for other in range(one + 1, count):
            load = 1 - state["free_rate"][index, one, other] / LINK_CAPACITY
            text = f"{one:>2}-{other:<2}{state['length'][index, one, other]:5} km{load:5.0%}"
            shown.append(f"\x1b[38;2;{_shade(load)}m{text}\x1b[0m" if colour else text)
    return ["".join(shown[first : first + LINKS_IN_A_ROW]) for first in range(0, len(shown), LINKS_IN_A_ROW)]


def _running(state: State, index: int) -> list[str]:
    """The chains being placed: which VNF of whom runs where, after what."""
    rows = [
        f"{chain['service']:18} {chain['vnf']:4} at {' > '.join(map(str, chain['way']))}  for {chain['goal']}"
        for chain in chains(state, index)
    ]
    return (rows + [""] * MOST_CHAINS)[:MOST_CHAINS]


def _services(state: State, index: int, colour: bool) -> list[str]:
    rows = []
    for service, name in enumerate(SERVICES):
        satisfied, dropped = int(state["satisfied"][index, service]), int(state["dropped"][index, service])
        ended, pending = satisfied + dropped, int(state["all_pending"][index, service])
        share = f"{satisfied / ended:6.1%}" if ended else "     -"
        bar = _bar(satisfied / ended if ended else 0.0, colour, good=True)
        counts = f"{pending:4} pending {satisfied:4} satisfied {dropped:4} dropped"
        rows.append(f"{name.replace('_', ' '):18} {bar} {share}  {counts}")
    return rows


def _bar(share: float, colour: bool, good: bool = False) -> str:
    """A share as ten characters; a load turns red as it fills, an acceptance green."""
    share = min(max(float(share), 0.0), 1.0)
    filled = round(share * BAR)
    if not colour:
        return "#" * filled + "." * (BAR - filled)
    shade = _shade(1 - share if good else share)
    return f"\x1b[38;2;{shade}m{'█' * filled}\x1b[38;2;{REST}m{'█' * (BAR - filled)}\x1b[0m"


def _shade(strain: float) -> str:
    return CALM if strain < 0.5 else BUSY if strain < 0.85 else FULL
