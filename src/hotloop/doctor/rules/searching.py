"""Searches inside the env step: flood fills, enumerated paths, graph libraries, sorting for a few.

What the env asks again and again: graph libraries for neighbors, `sorted` for a few.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from hotloop.doctor.finding import IDENTICAL, Finding, Remedy, rule
from hotloop.doctor.rules.evidence import (
    by_cost,
    calls_like,
    file_of,
    function_at,
    function_of,
    function_share,
    loop_lines,
    number,
    per_env_call,
    places_of,
    sampled_share,
    source_at,
    suggest,
)
from hotloop.doctor.trace import ENV, UPDATE, CallCount, StackCost, Trace
from hotloop.render.numbers import percent

QUEUES = ("deque.popleft", "deque.pop", "list.pop", "heapq.heappop")
QUEUE_READS_OF_A_SEARCH = 4.0
"""Per env step. An env that moves a body or an event queue takes one or two; a search takes one per cell."""
SEARCH_SPEEDUP = 50.0
"""Machine code over Python: 50 to 100 times for a loop over cells; our bit-parallel fill gains 1,382 times."""


ENUMERATING = (
    "networkx.all_simple_paths",
    "networkx.all_simple_edge_paths",
    "networkx.all_shortest_paths",
    "networkx.shortest_simple_paths",
    "networkx.simple_cycles",
)
RECURSIONS_OF_AN_ENUMERATION = 20.0
ENUMERATION_SPEEDUP = 50.0


ENTRY_POINTS = ("step", "reset", "<module>", "main", "train", "")


SEARCH = Remedy(
    "Search with machine code over arrays (a numba kernel), or for many boards at once. hotloop's batched `Snake` "
    "fills boards bit-parallel, every game in one call.",
    "queue, seen = deque([start]), {start}\n"
    "while queue:\n"
    "    x, y = queue.popleft()\n"
    "    for cell in ((x + 1, y), (x - 1, y), (x, y + 1), (x, y - 1)):\n"
    "        if free[cell] and cell not in seen:\n"
    "            seen.add(cell)\n"
    "            queue.append(cell)\n"
    "room = len(seen)",
    "import numba\n"
    "import numpy as np\n\n\n"
    "@numba.njit\n"
    "def fill(free, x, y):  # free [H, W] bool, walls all around\n"
    "    seen, queue, first, last = np.zeros_like(free), np.empty((free.size, 2), np.int64), 0, 1\n"
    "    queue[0, 0], queue[0, 1], seen[x, y] = x, y, True\n"
    "    while first < last:\n"
    "        for dx, dy in ((1, 0), (-1, 0), (0, 1), (0, -1)):\n"
    "            x, y = queue[first, 0] + dx, queue[first, 1] + dy\n"
    "            if free[x, y] and not seen[x, y]:\n"
    "                queue[last, 0], queue[last, 1], seen[x, y], last = x, y, True, last + 1\n"
    "        first += 1\n"
    "    return last\n\n\n"
    "# in the loop\n"
    "room = fill(free, *start)",
)
SHORTEST = (
    "import networkx\n\n\n"
    "def length_of(a, b, edge):\n"
    "    return edge[...]  # the attribute of your own edges whose sum is the length; 1 where steps are counted\n\n\n"
    "shortest = dict(networkx.all_pairs_dijkstra_path(graph, weight=length_of))\n"
    "# in the loop\n"
    "path = shortest[a][b]"
)
PATHS = Remedy(
    "Ask for the one path that is wanted, not for all: Dijkstra once per graph, kept until the graph changes. Of paths "
    "that are equally short it may take another.",
    "path = min(networkx.all_simple_paths(graph, a, b), key=length)",
    "import networkx\n\n"
    'shortest = dict(networkx.all_pairs_dijkstra_path(graph, weight="km"))\n'
    "# in the loop\n"
    "path = shortest[a][b]",
    fill=lambda trace, where: SHORTEST,
)


def search_calls(trace: Trace) -> list[CallCount]:
    """Where items are taken from a queue again and again; not where one is, once per env step."""
    calls = calls_like(trace, QUEUES, (ENV,))
    calls = [call for call in calls if call.count >= calls[0].count / 10]
    return calls if trace.per_env_step(calls) >= QUEUE_READS_OF_A_SEARCH else []


def search_share(trace: Trace) -> float:
    """The functions that search, whole; of `step` itself only its loops."""
    functions = {function_at(trace, call.where) for call in search_calls(trace)}
    apart = {function for function in functions if _short(function[1]) not in ENTRY_POINTS}
    inline = [line for function in functions - apart for line in loop_lines(trace, function)]
    return min(trace.share(ENV), function_share(trace, apart, (ENV,)) + sampled_share(trace, inline, (ENV,)))


def _short(function: str) -> str:
    return function.rpartition(".")[2]


@rule(
    "ENV001",
    remedy=SEARCH,
    kind=IDENTICAL,
    condition="the machine code visits the cells that your search visits, and only what it returns is wanted",
)
def python_search(trace: Trace) -> Finding | None:
    """The env step searches in Python.

    A breadth-first search or flood fill takes a cell from a queue, looks at its neighbors and appends them: about a
    microsecond each in Python, some nanoseconds in machine code. Found where one env step takes four or more items
    from a queue.
    """
    calls = search_calls(trace)
    if not calls:
        return None
    share = search_share(trace)
    name = function_at(trace, calls[0].where)[1] or "the search"
    evidence = (
        f"{number(trace.per_env_step(calls))} items are taken from a queue ({calls[0].name}) per env step; "
        f"`{name}` takes {percent(share)} of the loop."
    )
    places = places_of(calls)
    return suggest(trace, share, SEARCH_SPEEDUP, evidence=evidence, places=places)


def enumeration_calls(trace: Trace) -> list[CallCount]:
    often = [call for call in _recursive_calls(trace) if per_env_call(trace, [call]) >= RECURSIONS_OF_AN_ENUMERATION]
    return calls_like(trace, ENUMERATING) + often


def _recursive_calls(trace: Trace) -> list[CallCount]:
    """Functions of the env that call themselves: counted so, or seen twice in one stack (through a comprehension)."""
    counted = calls_like(trace, ("recursive:*",), (ENV,))
    seen = {call.where for call in counted}
    for call in calls_like(trace, ("user:*",), (ENV,)):
        function = (file_of(call.where), call.name.removeprefix("user:"))
        if call.where not in seen and any(
            _times_in(stack, function) > 1 for stack in trace.stacks if stack.phase == ENV
        ):
            counted.append(replace(call, name=f"recursive:{function[1]}"))
    return counted


def _times_in(stack: StackCost, function: tuple[str, str]) -> int:
    return sum(function_of(frame) == function for frame in stack.frames)


def enumeration_share(trace: Trace, beside: Sequence[str] = ()) -> float:
    """The functions that enumerate, whole, for they also weigh what they find; of `step` itself only the line.

    Lines named `beside` are counted with them.
    """
    calls = enumeration_calls(trace)
    functions = {function_at(trace, call.where) for call in calls}
    apart = {function for function in functions if _short(function[1]) not in ENTRY_POINTS}
    return sampled_share(trace, [*places_of(calls), *beside], (), apart)


@rule(
    "ENV002",
    remedy=PATHS,
    kind=IDENTICAL,
    condition="only the shortest path is wanted, its length is a sum over edges of no negative one, no two paths "
    "are equally short, and the graph stays as it is",
)
def enumerated_paths(trace: Trace) -> Finding | None:
    """All paths are enumerated to find one.

    The number of simple paths grows like the factorial of the number of nodes (1,957 between two of eight that are all
    connected); the shortest needs one Dijkstra, and does not change until the graph does. Found where a library
    enumerates paths in the loop, or a function of yours calls itself twenty times or more per call of `step`.
    """
    calls = enumeration_calls(trace)
    if not calls:
        return None
    share = enumeration_share(trace)
    name = calls[0].name.removeprefix("recursive:")
    times = "calls itself" if calls[0].name.startswith("recursive:") else "is called"
    per = number(per_env_call(trace, calls[:1]))
    evidence = f"`{name}` {times} {per} times per call of `step` and takes {percent(share)} of the loop."
    return suggest(trace, share, ENUMERATION_SPEEDUP, evidence=evidence, places=places_of(calls))


GRAPH_SPEEDUP = 10.0
SORT_SPEEDUP = 8.0
SORTED_THEN_CUT = re.compile(r"sorted\(.*\)\s*\[\s*:?[\w.]+\s*\]|sorted\(.*\)\s*\[\s*:")


GRAPH = Remedy(
    "Read the graph into arrays or lists once, outside the loop, and again when it changes; ask those inside it.",
    "for neighbor in graph.neighbors(node):\n    visit(neighbor)",
    "neighbors = {node: list(graph.neighbors(node)) for node in graph}\n"
    "# in the loop\n"
    "for neighbor in neighbors[node]:\n"
    "    visit(neighbor)",
)
SORT = Remedy(
    "Select instead of sorting: `numpy.argpartition` finds the k smallest in one pass, `min` the smallest. Among equal "
    "ones it takes any; where the earlier must win, `hotloop.workloads.durotaxis.baselines.leftmost` does what a "
    "stable sort does.",
    "few = sorted(range(len(x)), key=lambda node: x[node])[:k]",
    "import numpy as np\n\n"
    "few = np.argpartition(x, k - 1)[:k]  # in any order, which is often enough\n"
    "few = few[np.argsort(x[few])].tolist()",
)


def graph_calls(trace: Trace) -> list[CallCount]:
    """Calls of a graph library in the env that do not enumerate paths."""
    calls = calls_like(trace, ("networkx.*", "igraph.*", "dgl.*", "graph_tool.*"), (ENV,))
    return [call for call in calls if call.name not in ENUMERATING]


@rule("ENV003", remedy=GRAPH, kind=IDENTICAL, condition="the graph stays as it is until it is read again")
def graph_library_in_env(trace: Trace) -> Finding | None:
    """The env step asks a graph library.

    A look-up in NetworkX is a Python call through views and dictionaries of dictionaries: microseconds for what an
    array answers in nanoseconds. Found where the env makes at least one such call per step.
    """
    calls = graph_calls(trace)
    if per_env_call(trace, calls) < 1:
        return None
    places = by_cost(trace, places_of(calls))
    share = enumeration_share(trace, places) - enumeration_share(trace)
    evidence = (
        f"{number(per_env_call(trace, calls))} calls of a graph library per call of `step` "
        f"(most often `{calls[0].name}`) take {percent(share)} of the loop."
    )
    return suggest(trace, share, GRAPH_SPEEDUP, evidence=evidence, places=places)


@rule("ENV004", remedy=SORT, kind=IDENTICAL, condition="no two of the keys are equal")
def sorted_for_a_few(trace: Trace) -> Finding | None:
    """Everything is sorted to take a few.

    Sorting n items with a key calls the key n times in Python and compares n log n times; a partial selection over an
    array passes once. Found where the result of `sorted` is cut on the same line, once per call of `step` or update.
    """
    calls = [call for call in calls_like(trace, ("builtins.sorted",)) if _is_cut(trace, call)]
    often = max(per_env_call(trace, calls), trace.per_update([call for call in calls if call.phase == UPDATE]))
    if often < 0.9:
        return None
    places = by_cost(trace, places_of(calls))
    share = sampled_share(trace, places)
    evidence = (
        f"`sorted` is called {number(often)} times per call of `step` or update for its first few: "
        f"{percent(share)} of the loop."
    )
    return suggest(trace, share, SORT_SPEEDUP, evidence=evidence, places=places)


def _is_cut(trace: Trace, call: CallCount) -> bool:
    return bool(SORTED_THEN_CUT.search(source_at(trace, call.where)))
