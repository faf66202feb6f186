"""What the loop keeps in memory: pages read from disk, graphs that nobody drops, frames held larger than need be."""

from __future__ import annotations

import gc
import mmap
import os
import re
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from types import GetSetDescriptorType
from typing import Any

from .hooks import bases_of
from .originals import open_file
from .passes import Pass
from .places import SourcePlaces
from .sources import assignment

try:
    from resource import RUSAGE_SELF, getrusage
except ImportError:  # not on Windows: faults are not counted there
    getrusage = None  # type: ignore[assignment]

LEAST_BYTES = 4_000_000
"""Smaller arrays are no matter."""
MOST_SAMPLED = 20_000
FEW = 20
TOUCHED_PAGES, TIMES_TOUCHED = 1_024, 5
MOST_ARRAYS = 50
REPLAY_NAME = re.compile(r"replay|rollout|memory|buffer|frames|ring|store|storage|dataset", re.IGNORECASE)
LEAST_AXES = 3
"""Frames have rows and columns, in a first axis of transitions."""


class Memory(Pass):
    """Faults and resident memory while the loop ran; live graphs and large arrays when it ended."""

    def __init__(self, places: SourcePlaces) -> None:
        self.places = places
        self._before: tuple[int, int, int] | None = None
        self._after: tuple[int, int, int] | None = None
        self._path = ""
        self._awake = self._asleep = self._computed = 0.0

    def begin(self) -> None:
        self._before, self._computed = usage(), -time.process_time()
        self._path = f"/proc/self/task/{threading.get_native_id()}/schedstat"
        self._awake = self.watch.clock() - awake(self._path)

    def steady(self) -> None:
        self.begin()

    def stop(self) -> None:
        self._after = usage()
        if self._path:
            self._computed += time.process_time()
            slept = self.watch.clock() - awake(self._path) - self._awake
            self._asleep = slept if slept > 0 else 0.0  # not a number where nothing is told

    def add_to(self, trace: dict[str, Any]) -> None:
        if self._before is None or self._after is None:
            return
        major, minor, resident = (after - before for after, before in zip(self._after, self._before))
        trace["counts"].update(major_faults=major, minor_faults=minor, resident_growth=resident)
        objects = gc.get_objects()
        trace["counts"].update(
            asleep_seconds=self._asleep, page_seconds=page_seconds(), computed_seconds=self._computed
        )
        graphs = live_graphs(objects)
        trace["counts"].update(live_graphs=len(graphs), graph_holder=holder(graphs, objects))
        trace["stored"] = [dict(row, where=self._where(row.pop("kind"), row["name"])) for row in stored_arrays(objects)]

    def _where(self, kind: type, name: str) -> str:
        """Where an attribute is first given its value, in the class itself or a base."""
        attribute = name.rpartition(".")[2]
        for base in bases_of(kind):
            file = getattr(sys.modules.get(str(base.__module__)), "__file__", None)
            line = assignment(file, base.__name__, attribute) if isinstance(file, str) else 0
            if line:
                return self.places.where(str(file), line)
        return ""


def usage() -> tuple[int, int, int]:
    """Major faults, minor faults, resident bytes; zeros where the system does not tell."""
    if getrusage is None:
        return 0, 0, 0
    used = getrusage(RUSAGE_SELF)
    try:
        with open_file("/proc/self/statm") as text:
            resident = int(text.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        resident = 0
    return used.ru_majflt, used.ru_minflt, resident


def page_seconds() -> float:
    """What a page costs that this process has not had before, by touching some; without the wait for a core. The least
    of several, since other programs that ask for memory meanwhile make it five times as much."""
    size, taken = mmap.PAGESIZE, []
    for _ in range(TIMES_TOUCHED):
        with mmap.mmap(-1, TOUCHED_PAGES * size) as fresh:
            start = time.process_time()
            for place in range(0, TOUCHED_PAGES * size, size):
                fresh[place] = 1
            taken.append((time.process_time() - start) / TOUCHED_PAGES)
    return min(taken)


def awake(path: str) -> float:
    """Seconds that a thread has computed or was ready to; infinite where the system does not tell, so that it never
    slept."""
    try:
        with open_file(path) as text:
            computed, ready = text.read().split()[:2]
    except (OSError, ValueError):
        return float("inf")
    return (int(computed) + int(ready)) / 1e9


def live_graphs(objects: list[Any]) -> list[Any]:
    """Tensors that hold the graph they were computed by."""
    torch = sys.modules.get("torch")
    kind = torch.Tensor if torch is not None else None
    return [one for one in objects if type(one) is kind and one.grad_fn is not None]


def holder(graphs: list[Any], objects: list[Any]) -> str:
    """The name, of an attribute or a variable, of the longest list or deque that holds one of them."""
    if not graphs:
        return ""
    looked = {id(one) for one in graphs}
    lists = [one for one in objects if type(one) in (list, deque) and len(one) >= FEW and one is not objects]
    kept = [one for one in lists if one is not graphs and id(one[0]) in looked and id(one[-1]) in looked]
    for container in sorted(kept, key=len, reverse=True):
        for names in gc.get_referrers(container):
            names = names if isinstance(names, dict) else getattr(names, "__dict__", {})
            name = next((key for key, value in names.items() if value is container and isinstance(key, str)), "")
            if name:
                return str(name)
    return ""


def stored_arrays(objects: list[Any]) -> Iterator[dict[str, Any]]:
    """Large float arrays that are attributes of objects, with what their numbers would fit into."""
    numpy = sys.modules.get("numpy")
    found = 0
    wanted: dict[type, bool] = {}
    for one in objects if numpy is not None else ():
        kind = type(one)
        if kind not in wanted:
            wanted[kind] = holds_transitions(kind)
        if not wanted[kind]:
            continue
        held = object.__getattribute__(one, "__dict__")
        arrays = {name: value for name, value in held.items() if _is_large(numpy, value)}
        for name, value in arrays.items():
            if found < MOST_ARRAYS:
                found += 1
                yield dict(
                    kind=kind,
                    name=f"{kind.__name__}.{name}",
                    dtype=str(value.dtype),
                    shape=[int(length) for length in value.shape],
                    bytes=int(value.nbytes),
                    fits=fits(numpy, value),
                    twin=next((other for other in arrays if other > name and shifted(numpy, value, arrays[other])), ""),
                )


def holds_transitions(kind: type) -> bool:
    """By the name of its class: objects of others are not touched, since to look at some changes them."""
    name = type.__dict__["__name__"].__get__(kind)
    own = (vars(base).get("__dict__") for base in bases_of(kind))
    return bool(REPLAY_NAME.search(name)) and any(isinstance(one, GetSetDescriptorType) for one in own)


def _is_large(numpy: Any, value: Any) -> bool:
    return isinstance(value, numpy.ndarray) and value.ndim >= LEAST_AXES and value.nbytes >= LEAST_BYTES


def fits(numpy: Any, array: Any) -> str:
    """`uint8` where the numbers looked at are whole ones from 0 to 255, and some are not 0; otherwise nothing."""
    if array.dtype.kind != "f":
        return ""
    flat = array.reshape(-1)
    some = flat[:: max(1, flat.size // MOST_SAMPLED)]
    whole = (some >= 0).all() and (some <= 255).all() and (some == numpy.floor(some)).all()
    return "uint8" if whole and (some > 1).any() else ""


def shifted(numpy: Any, one: Any, other: Any) -> bool:
    """Whether row i + 1 of one array is row i of the other, for most rows looked at: frames that are stored twice."""
    if one.shape != other.shape or one.dtype != other.dtype or len(one) < 4:
        return False
    rows = range(0, len(one) - 1, max(1, len(one) // 64))
    used = [row for row in rows if one[row].any()]
    same = sum(bool(numpy.array_equal(one[row + 1], other[row])) for row in used)
    return len(used) >= 2 and same > 0.8 * len(used)
