"""What the env asks again and again: graph libraries for neighbours, `sorted` for a few."""

from __future__ import annotations

import re

from hotloop.doctor.finding import Finding, rule
from hotloop.doctor.rules.evidence import (
    Remedy,
    by_cost,
    calls_like,
    number,
    per_env_call,
    percent,
    places_of,
    sampled_share,
    source_at,
    suggest,
)
from hotloop.doctor.rules.searching import ENUMERATING, enumeration_share
from hotloop.doctor.trace import ENV, UPDATE, CallCount, Trace

GRAPH_SPEEDUP = 10.0
SORT_SPEEDUP = 8.0
SORTED_THEN_CUT = re.compile(r"sorted\(.*\)\s*\[\s*:?[\w.]+\s*\]|sorted\(.*\)\s*\[\s*:")

GRAPH = Remedy(
    "Read the graph into arrays or lists once, outside the loop, and again when it changes; ask those inside it.",
    "for neighbour in graph.neighbors(node):\n    visit(neighbour)",
    "neighbours = {node: list(graph.neighbors(node)) for node in graph}\n"
    "# in the loop\n"
    "for neighbour in neighbours[node]:\n"
    "    visit(neighbour)",
)
SORT = Remedy(
    "Select instead of sorting: `numpy.argpartition` finds the k smallest in one pass, `min` the smallest. Among equal "
    "ones it takes any; where the earlier must win, `hotloop.envs.durotaxis.selection.leftmost` does what a stable "
    "sort does.",
    "few = sorted(range(len(x)), key=lambda node: x[node])[:k]",
    "import numpy as np\n\n"
    "few = np.argpartition(x, k - 1)[:k]  # in any order, which is often enough\n"
    "few = few[np.argsort(x[few])].tolist()",
)


def graph_calls(trace: Trace) -> list[CallCount]:
    """Calls of a graph library in the env that do not enumerate paths."""
    calls = calls_like(trace, ("networkx.*", "igraph.*", "dgl.*", "graph_tool.*"), (ENV,))
    return [call for call in calls if call.name not in ENUMERATING]


@rule("ENV003")
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
    return suggest(trace, share, GRAPH_SPEEDUP, evidence=evidence, remedy=GRAPH, places=places)


@rule("ENV004")
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
    return suggest(trace, share, SORT_SPEEDUP, evidence=evidence, remedy=SORT, places=places)


def _is_cut(trace: Trace, call: CallCount) -> bool:
    return bool(SORTED_THEN_CUT.search(source_at(trace, call.where)))
