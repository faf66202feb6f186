"""How the rows of a batch are drawn: by priority, without replacement, from a copy, through a loader."""

from __future__ import annotations

import re

from hotloop.doctor.finding import BUT_FOR_DRAWS, TO_ROUNDING, Finding, Remedy, rule
from hotloop.doctor.rules.beneath import lines_above, share_of, stacks_in
from hotloop.doctor.rules.evidence import (
    by_cost,
    callers_of,
    calls_like,
    file_of,
    function_share,
    number,
    own_microseconds,
    sampled_share,
    suggest,
)
from hotloop.doctor.snippets import number_or_open, shape_text
from hotloop.doctor.trace import ACT, ENV, EVALUATE, OUTSIDE, CallCount, LineCost, Trace
from hotloop.render.numbers import percent

ELSEWHERE = (ACT, ENV, EVALUATE, *OUTSIDE)
NAMED_PRIORITY = re.compile(r"prio|\btd_?err", re.IGNORECASE)
OVER_ALL = re.compile(r"\b(?:max|min|sum|array|asarray|tensor|cumsum|amax)\s*\(|\*\*")
WEIGHTED_DRAW = re.compile(r"\bchoices?\s*\(.*\b(?:p|weights)\s*=")
LEAST_SCAN_MICROSECONDS = 30.0
"""Below that a priority is looked up or a batch's are put together: what costs more goes through all of them."""
TREE_MICROSECONDS = 100.0
"""A batch drawn or written through a sum tree in numpy, log2(n) operations for all rows together."""
MOST_TREE_GAINS = 40.0
A_TREE = re.compile(r"user:(?:.*\.)?\w*tree\w*\.\w+$", re.IGNORECASE)
"""Methods of a class that is called a tree: SumTree, SegmentTree, MinTree."""
WALKS_PER_UPDATE = 8.0
"""Calls of them: a tree that takes all rows of a batch at once is called a few times."""
ARRAY_MICROSECONDS = 40.0
"""A batch drawn by `cumsum` and `searchsorted` (13 from 4,096 priorities, 47 from 16,384), and its new ones written."""
DRAWN_MICROSECONDS = 60.0
"""`random.sample(range(n), 64)` and the index made of it."""
DISTINCT = re.compile(r"replace\s*=\s*False|permutation\([^\[]*\)\s*\[\s*:")
LEAST_SHUFFLE_MICROSECONDS = 100.0
WHOLE = re.compile(
    r"(?:\b(?:np|numpy|torch|jnp)\.(?:array|asarray|stack|vstack|concatenate|tensor|as_tensor|cat|FloatTensor)"
    r"|\blist|\bcopy\.copy|\bdeepcopy)\(\s*(?:list\(\s*)?self\.[\w.]+\s*[,)]|\bself\.[\w.]+\.(?:copy|clone)\(\)"
)
LEAST_COPY_MICROSECONDS = 100.0
COPIES_PER_UPDATE = 0.5
COPY_SPEEDUP = 60.0
"""What is left is a gather of the batch's rows from each array: some microseconds for tens of thousands of rows."""
COPY_RELIEF = 1.0
"""Megabytes that are copied leave nothing of the rest in the caches: beside a copy of 90 % of the loop it took twice as
long as without."""
LOADER = (("torch/utils/data/dataloader.py", "*"),)
"""Libraries collate rows of their own replay with the functions beside it, without a loader."""
LOADER_CALLS = ("torch.*DataLoader*", "torch.*Sampler*")
LOADER_SPEEDUP = 12.0
"""256 rows in 0.1 ms instead of 1.2: a loader fetches row by row, and stacks them again."""


def tree_of(trace: Trace) -> str:
    """With the rows, the observation and the batch that were recorded."""
    setup = trace.setup
    rows = f"{number_or_open(setup.replay_capacity, '_')}, obs={shape_text(setup.obs_shape)}"
    return (
        "import hotloop\n\n"
        f"replay = hotloop.Replay({rows}, prioritized=True, alpha=...)\n"
        "# in the loop\n"
        "replay.add(obs, action, reward, next_obs, terminated, truncated)  # as likely as the likeliest so far\n"
        f"batch = replay.sample({number_or_open(trace.counts.batch_size)})\n"
        "replay.update_priorities(batch.index, td_error)"
    )


def ring_of(trace: Trace) -> str:
    """By names where sizes were not seen."""
    setup = trace.setup
    length = f"{setup.replay_capacity:_}" if setup.replay_capacity else "capacity"
    shape = ", ".join(map(str, (length, *(setup.obs_shape or ("*obs_shape",)))))
    return (
        "import numpy as np\n\n"
        f"obs = np.zeros(({shape}), np.float32)  # filled as a ring: obs[added % {length}] = row; one array per field\n"
        "# in the loop\n"
        f"index = rng.integers(min(added, {length}), size=batch_size)\n"
        "states = obs[index]"
    )


TREE = Remedy(
    "Keep the sum of the priorities in a tree and the largest in a variable: a draw or a change then costs log2(n) "
    "steps instead of n. hotloop's `Replay` has both, in machine code; its draws are its own, as likely.",
    "p = np.array(priorities) / sum(priorities)\n"
    "index = np.random.choice(len(p), batch_size, p=p)\n"
    "batch = [buffer[i] for i in index]\n"
    "buffer.append(row)\n"
    "priorities.append(max(priorities))",
    "import hotloop\n\n"
    "replay = hotloop.Replay(100_000, obs=(11,), prioritized=True, alpha=0.6)\n"
    "# in the loop\n"
    "replay.add(obs, action, reward, next_obs, terminated, truncated)  # as likely as the likeliest so far\n"
    "batch = replay.sample(64)\n"
    "replay.update_priorities(batch.index, td_error)",
    fill=lambda trace, where: tree_of(trace),
)
ALL_LEAVES = Remedy(
    "Keep the priorities in an array, and find all rows of a batch with two calls of NumPy: a walk through a tree "
    "takes log2(n) steps of Python for each row. The same rows are drawn for the same numbers. Beyond some hundred "
    "thousand rows the sum takes longer: hotloop's `Replay(prioritized=True)` has a tree in machine code.",
    "index = [tree.find(mass) for mass in masses]\n"
    "for i, priority in zip(index, new_priorities):\n"
    "    tree.update(i, priority)",
    "import numpy as np\n\n"
    "priorities = np.zeros(capacity)  # priorities[row] = priority, where a row is stored\n"
    "# in the loop\n"
    'index = np.searchsorted(np.cumsum(priorities), masses, side="right")\n'
    "priorities[index] = new_priorities",
)
SAMPLED = Remedy(
    "`random.sample(range(n), k)` draws k different rows in k steps; `np.random.choice(n, k, replace=False)` shuffles "
    "all n for it. Other rows are drawn, each as likely.",
    "index = np.random.choice(n, batch_size, replace=False)",
    "import random\n\nindex = random.sample(range(n), batch_size)",
)
RING_ARRAYS = Remedy(
    "Keep every field in an array that is filled as a ring, and take the drawn rows of it: only they are copied.",
    "index = rng.integers(len(buffer), size=batch_size)\nstates = np.array(buffer)[index]",
    "import numpy as np\n\n"
    "obs = np.zeros((100_000, 11), np.float32)  # filled as a ring: obs[added % 100_000] = row; one array per field\n"
    "# in the loop\n"
    "index = rng.integers(min(added, 100_000), size=batch_size)\n"
    "states = obs[index]",
    fill=lambda trace, where: ring_of(trace),
)
PERMUTED = Remedy(
    "Index the tensors with a permutation that is cut into minibatches: a loader fetches every row for itself. The "
    "same rows in an order of its own.",
    "batches = list(DataLoader(TensorDataset(obs, action), batch_size=64, shuffle=True))",
    "import torch\n\nbatches = [(obs[rows], action[rows]) for rows in torch.randperm(len(obs)).split(64)]",
)


def priority_lines(trace: Trace) -> list[LineCost]:
    """Lines that go through all priorities: for their largest, their sum or an array of them, or to draw by them."""
    lines = [line for line in trace.lines if line.phase not in ELSEWHERE]
    named = [line for line in lines if NAMED_PRIORITY.search(line.source) and OVER_ALL.search(line.source)]
    return named + [line for line in lines if line not in named and WEIGHTED_DRAW.search(line.source)]


def _runs(trace: Trace, where: str) -> float:
    """How often a line ran in the recorded time, by what was counted on it; once per update where nothing tells."""
    most = max((call.count for call in trace.calls if call.where == where), default=0)
    scale = trace.counts.env_steps / max(1, trace.counted.env_steps)
    return max(1.0, most * scale if most else trace.counts.updates)


@rule("STORE006", remedy=TREE, kind=BUT_FOR_DRAWS)
def all_priorities(trace: Trace) -> Finding | None:
    """All priorities are gone through for a row or a batch.

    `max(priorities)` for every row stored, their sum or `choice(p=...)` for every batch: the cost grows with the
    replay. Found where lines that do so take 30 microseconds or more each time.
    """
    costs = {line.where: 0.0 for line in priority_lines(trace)}
    for where in costs:
        costs[where] = own_microseconds(trace, sampled_share(trace, [where]), _runs(trace, where))
    places = by_cost(trace, [where for where, cost in costs.items() if cost >= LEAST_SCAN_MICROSECONDS])
    if not places:
        return None
    share = sampled_share(trace, places)
    evidence = (
        f"{len(places)} line{'s' if len(places) > 1 else ''} that go through all priorities take {percent(share)} of "
        f"the loop, {number(max(costs[where] for where in places))} microseconds at a time."
    )
    events = max(1.0, trace.counts.env_calls + 2.0 * trace.counts.updates)
    speedup = own_microseconds(trace, share, events) / TREE_MICROSECONDS
    return suggest(trace, share, max(1.0, min(MOST_TREE_GAINS, speedup)), evidence=evidence, places=places)


@rule("STORE011", remedy=ALL_LEAVES, kind=TO_ROUNDING)
def walked_leaf_by_leaf(trace: Trace) -> Finding | None:
    """A sum tree is walked in Python, leaf by leaf.

    Each row of a batch is found, and each new priority written, by log2(n) steps of Python: thousands for a batch.
    Found where methods of a class that is called a tree are called eight times per update or more, and take a part of
    the loop.
    """
    walks = [call for call in calls_like(trace, ("user:*",)) if A_TREE.match(call.name) and call.phase not in ELSEWHERE]
    functions = {(file_of(call.where), call.name.removeprefix("user:")) for call in walks}
    often = trace.per_update(walks)
    if not trace.counts.updates or often < WALKS_PER_UPDATE:
        return None
    share = function_share(trace, functions)
    cost = own_microseconds(trace, share, trace.counts.updates)
    evidence = (
        f"{number(often)} calls of a tree's methods per update (most often `{walks[0].name.removeprefix('user:')}`) "
        f"take {number(cost)} microseconds: {percent(share)} of the loop."
    )
    lines = [line.where for line in trace.lines if (file_of(line.where), line.function) in functions]
    speedup = max(1.0, min(MOST_TREE_GAINS, cost / ARRAY_MICROSECONDS))
    places = [*callers_of(trace, functions), *by_cost(trace, lines)]  # where all rows could be asked for at once
    return suggest(trace, share, speedup, evidence=evidence, places=places)


@rule("STORE007", remedy=SAMPLED, kind=BUT_FOR_DRAWS)
def drawn_without_replacement(trace: Trace) -> Finding | None:
    """A few rows are drawn by shuffling all of them.

    `np.random.choice(n, k, replace=False)` and `permutation(n)[:k]` make and shuffle all n numbers for the k that are
    wanted: milliseconds at a hundred thousand. Found where that takes 100 microseconds of every update or more.
    """
    lines = [line for line in trace.lines if line.phase not in ELSEWHERE and DISTINCT.search(line.source)]
    places = by_cost(trace, [line.where for line in lines])
    share = sampled_share(trace, places)
    cost = own_microseconds(trace, share, trace.counts.updates)
    if not trace.counts.updates or cost < LEAST_SHUFFLE_MICROSECONDS:
        return None
    evidence = (
        f"{number(cost)} microseconds per update to draw a few rows by shuffling all: {percent(share)} of the loop."
    )
    return suggest(trace, share, cost / DRAWN_MICROSECONDS, evidence=evidence, places=places)


@rule(
    "STORE008",
    remedy=RING_ARRAYS,
    kind=BUT_FOR_DRAWS,
    condition="rows fit the arrays' type",
)
def whole_buffer_copied(trace: Trace) -> Finding | None:
    """The whole buffer is copied for every batch.

    `np.array(self.states)[index]` or `random.sample(list(self.memory), k)` copies everything that is stored for the
    few rows that are wanted, and ever more of it. Found where updates copy a container of the object's own whole, for
    100 microseconds or more.
    """
    lines = [line for line in trace.lines if line.phase not in ELSEWHERE and WHOLE.search(line.source)]
    lines = [line for line in lines if not NAMED_PRIORITY.search(line.source)]
    places = by_cost(trace, [line.where for line in lines if _copies(trace, line)])
    share = sampled_share(trace, places)
    cost = own_microseconds(trace, share, trace.counts.updates)
    if not places or cost < LEAST_COPY_MICROSECONDS:
        return None
    evidence = f"{number(cost)} microseconds per update to copy whole containers: {percent(share)} of the loop."
    return suggest(trace, share, COPY_SPEEDUP, evidence=evidence, places=places, relief=COPY_RELIEF)


def growing_share(trace: Trace) -> float:
    """What these rules explain of a loop that gets slower while its replay fills."""
    found = [judge(trace) for judge in (all_priorities, drawn_without_replacement, whole_buffer_copied)]
    return sum(one.share for one in found if one is not None)


def _copies(trace: Trace, line: LineCost) -> bool:
    """Whether it ran often enough: a rollout that is copied once and learned from whole is no waste."""
    calls: list[CallCount] = [call for call in trace.calls if call.where == line.where]
    return trace.counts.updates > 0 and (not calls or trace.per_update(calls) >= COPIES_PER_UPDATE)


@rule(
    "STORE010",
    remedy=PERMUTED,
    kind=BUT_FOR_DRAWS,
)
def through_a_loader(trace: Trace) -> Finding | None:
    """Batches come through a DataLoader.

    A loader takes every row from its data set by itself and stacks them again, draws a seed and makes its samplers
    anew for every pass: a millisecond for 256 rows that lie in tensors already. Found where updates take their
    batches from one.
    """
    stacks = stacks_in(trace, LOADER)
    places = lines_above(trace, stacks, LOADER)
    share = share_of(trace, stacks)
    if not places or not trace.counts.updates:
        return None
    calls = calls_like(trace, LOADER_CALLS)
    often = f"{number(trace.per_update(calls))} calls of a loader per update; " if calls else ""
    evidence = f"{often}fetching rows one by one and stacking them takes {percent(share)} of the loop."
    return suggest(trace, share, LOADER_SPEEDUP, evidence=evidence, places=places)
