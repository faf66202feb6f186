"""How transitions enter replay and leave it as batches.

What is done to lists and states on the way: shifted, popped at the front, deep-copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from hotloop.doctor.finding import BUT_FOR_DRAWS, IDENTICAL, TO_ROUNDING, Finding, Remedy, rule
from hotloop.doctor.port import envs_of
from hotloop.doctor.rules.evidence import (
    by_cost,
    calls_like,
    features_at,
    function_at,
    loop_lines,
    microseconds_text,
    number,
    own_microseconds,
    per_env_call,
    places_of,
    sampled_share,
    source_at,
    suggest,
)
from hotloop.doctor.snippets import LEFT_OPEN, number_or_open, shape_text
from hotloop.doctor.trace import ACT, ENV, EVALUATE, LOG, UPDATE, CallCount, Trace
from hotloop.render.numbers import percent

HOST_READS = ("Tensor.item", "Tensor.cpu", "Tensor.numpy", "Tensor.tolist")
READS_PER_TRANSITION = 2.0
MANY_ENVS = 8
PUSH_SPEEDUP, PUSH_SPEEDUP_FEW_ENVS = 40.0, 4.0
"""One call for 256 envs gains 475 times on reads one by one; what makes the arrays for it remains."""
DRAWING = ("random.sample", "random.*.sample", "random.choices", "random.*.choices")
BUILDING = (
    "torch.tensor",
    "torch.stack",
    "torch.cat",
    "torch.as_tensor",
    "torch.FloatTensor",
    "torch.LongTensor",
    "torch.from_numpy",
    "numpy.array",
    "numpy.stack",
    "numpy.asarray",
    "numpy.vstack",
    "numpy.concatenate",
)
MOST_BATCH_GAINS, LEAST_BATCH_GAINS = 15.0, 3.0
GATHER_MICROSECONDS, ROW_DRAWN = 15.0, 0.6
"""What a batch of five arrays takes, and each number that `random.sample` draws for it."""


def replay_of(capacity: int, obs: Sequence[int], num_envs: int, gamma: float, batch_size: int) -> str:
    """What is 0 or empty is left open."""
    length, envs = number_or_open(capacity, "_"), number_or_open(num_envs)
    return (
        "import hotloop\n\n"
        f"replay = hotloop.Replay({length}, obs={shape_text(obs)}, num_envs={envs}, gamma={number_or_open(gamma)})\n"
        "# in the loop\n"
        f"replay.add(obs, action, reward, final_obs, terminated, truncated)  # all {envs} envs, on any device\n"
        f"batch = replay.sample({number_or_open(batch_size)})  # batch.obs, batch.action, batch.reward, "
        "batch.discount, ...; batch.torch(): tensors"
    )


def replay_snippet(trace: Trace, where: str = "") -> str:
    """With the observation, envs, discount and batch that were recorded."""
    setup, counts = trace.setup, trace.counts
    num_envs = envs_of(trace) if counts.env_calls else 0
    return replay_of(setup.replay_capacity, setup.obs_shape, num_envs, setup.gamma, counts.batch_size)


def rows_of(capacity: int, obs: Sequence[int]) -> str:
    """By names where sizes were not seen."""
    length = f"{capacity:_}" if capacity else "capacity"
    shape = ", ".join(map(str, (length, *(obs or ("*obs_shape",)))))
    return (
        "import random\n\n"
        "import numpy as np\n"
        "import torch\n\n"
        f"obs = np.zeros(({shape}), np.float32)  # filled as a ring: obs[added % {length}] = row; each field so\n"
        "# in the loop\n"
        f"index = random.sample(range(min(added, {length})), batch_size)\n"
        "states = torch.from_numpy(obs[index])"
    )


REPLAY = replay_of(100_000, (11,), 256, 0.99, 64)
PUSH = Remedy(
    "Store all envs with one call of hotloop's `Replay`; where tensors must leave a device, each leaves it once. It "
    "keeps the same transitions, and batches are draws of its own: other rows of them, each as likely.",
    "for i in range(num_envs):\n"
    "    row = obs[i].cpu().numpy(), action[i].item(), reward[i].item(), final_obs[i].cpu().numpy()\n"
    "    buffer.append((*row, terminated[i].item()))",
    REPLAY,
    port=True,
    fill=replay_snippet,
)
BATCH = Remedy(
    "Keep every field in an array and gather a batch with one call each: the same rows are drawn. hotloop's `Replay` "
    "does so in machine code, k batches at once, with draws of its own.",
    "rows = random.sample(buffer, batch_size)\nstates = torch.tensor(np.array([row[0] for row in rows]))",
    rows_of(0, ()),
    fill=lambda trace, where: rows_of(trace.setup.replay_capacity, trace.setup.obs_shape),
)


def store_reads(trace: Trace) -> list[CallCount]:
    """Host reads that neither choose an action nor belong to the update."""
    elsewhere = (ACT, ENV, UPDATE, EVALUATE, LOG)
    return [call for call in calls_like(trace, HOST_READS) if call.phase not in elsewhere]


@rule(
    "STORE001",
    remedy=PUSH,
    kind=BUT_FOR_DRAWS,
)
def pushed_one_by_one(trace: Trace) -> Finding | None:
    """Transitions are read from tensors and stored one by one.

    Indexing a tensor, `.cpu()`, `.numpy()` and `.item()` cost about a microsecond each, and on a GPU each waits for the
    device; for 256 envs and five fields that is thousands of calls per step. Found where two or more host reads per
    env step happen between acting and updating.
    """
    calls = store_reads(trace)
    per_env_step = trace.per_env_step(calls)
    if per_env_step < READS_PER_TRANSITION:
        return None
    places = by_cost(trace, places_of(calls))
    share = sampled_share(trace, places)
    names = ", ".join(sorted({call.name.removeprefix("Tensor.") for call in calls}))
    evidence = (
        f"{number(per_env_step)} host reads ({names}) per env step while storing, "
        f"{number(per_env_step * trace.envs_at_once)} per call of `step`: {percent(share)} of the loop."
    )
    speedup = PUSH_SPEEDUP if trace.envs_at_once >= MANY_ENVS else PUSH_SPEEDUP_FEW_ENVS
    return suggest(trace, share, speedup, evidence=evidence, places=places)


def batch_calls(trace: Trace) -> list[CallCount]:
    """Draws of Python rows, with the tensors made of them: those built in the same functions."""
    draws = [call for call in calls_like(trace, DRAWING) if call.phase not in (ENV, ACT, EVALUATE)]
    if not trace.counted.updates or trace.per_update(draws) < 0.9:
        return []
    functions = {function_at(trace, call.where) for call in draws}
    built = [call for call in calls_like(trace, BUILDING) if function_at(trace, call.where) in functions]
    return draws + built if trace.per_update(built) >= 2 else []


@rule(
    "STORE002",
    remedy=BATCH,
    kind=BUT_FOR_DRAWS,
    condition="rows fit the arrays' type",
)
def batch_from_python_rows(trace: Trace) -> Finding | None:
    """Every batch is put together from Python rows.

    Drawing rows from a deque walks it (its middle is not reached at once), and stacking them copies row by row through
    Python. Found where every update draws rows with `random.sample` and builds two or more tensors of them.
    """
    calls = batch_calls(trace)
    if not calls:
        return None
    places = places_of(calls)
    share = sampled_share(trace, places)
    largest = max(call.largest for call in calls)
    built = [call for call in calls if not any(fnmatchcase(call.name, pattern) for pattern in DRAWING)]
    evidence = (
        f"every update draws Python rows ({calls[0].name}{f', of {number(largest)}' if largest else ''}) and makes "
        f"arrays or tensors of them ({number(trace.per_update(built))} or more): {percent(share)} of the loop."
    )
    took = own_microseconds(trace, share, trace.counts.updates)
    speedup = took / (GATHER_MICROSECONDS + ROW_DRAWN * trace.counts.batch_size)
    speedup = max(LEAST_BATCH_GAINS, min(MOST_BATCH_GAINS, speedup))
    return suggest(trace, share, speedup, evidence=evidence, places=places, relief=0.0)


ROW_MICROSECONDS = 0.4
"""A row of a reverse pass over Python floats or arrays [N], everything included."""
MOST_INSERT_GAINS = 50.0
POP_FRONT_LENGTH = 500
POP_FRONT_SPEEDUP = 50.0
COPY_SPEEDUP = 15.0
COPIES_PER_CALL = 0.05


IN_AN_ARRAY = (
    "import numpy as np\n\n"
    "value, discount = np.asarray(values), 0.99 * (1 - np.asarray(dones))\n"
    "delta = (np.asarray(rewards) + discount * value[1:] - value[:-1]).tolist()\n"
    "decay = (0.95 * discount).tolist()\n"
    "advantages, gae = np.empty(len(delta)), 0.0\n"
    "for t in range(len(delta) - 1, -1, -1):\n"
    "    advantages[t] = gae = delta[t] + decay[t] * gae"
)


def advantages_of(trace: Trace) -> str:
    """With the program's discount; lambda is not recorded."""
    return IN_AN_ARRAY.replace("0.99", number_or_open(trace.setup.gamma)).replace("0.95", LEFT_OPEN)


ADVANTAGES = Remedy(
    "Compute what does not depend on the order over the whole array, then fill a preallocated array from the back.",
    "advantages, gae = [], 0.0\n"
    "for t in reversed(range(len(rewards))):\n"
    "    delta = rewards[t] + 0.99 * values[t + 1] * (1 - dones[t]) - values[t]\n"
    "    gae = delta + 0.99 * 0.95 * (1 - dones[t]) * gae\n"
    "    advantages.insert(0, gae)",
    IN_AN_ARRAY,
    fill=lambda trace, where: advantages_of(trace),
)
RING = Remedy(
    "Use a ring: `collections.deque(maxlen=...)` drops the oldest by itself, hotloop's `Replay` also samples fast.",
    "memory.append(one)\nif len(memory) > capacity:\n    memory.pop(0)",
    "from collections import deque\n\n"
    "memory = deque(maxlen=capacity)\n"
    "# in the loop\n"
    "memory.append(one)  # the oldest leaves by itself",
)
COPY = Remedy(
    "Copy what changes: an array with `.copy()`, a network with `load_state_dict`; `deepcopy` walks every object.",
    "before = copy.deepcopy(state)",
    "before = state.copy()  # an array of numbers",
)


@rule("STORE003", remedy=ADVANTAGES, kind=TO_ROUNDING)
def inserted_at_the_front(trace: Trace) -> Finding | None:
    """Advantages or returns are inserted at the front of a list.

    Every insertion moves the whole list, so the cost grows with the square of the rollout, and each row is Python
    arithmetic, often on single-number tensors. Found where `list.insert(0, ...)` runs in a loop on lists of a hundred
    or more.
    """
    calls = [call for call in calls_like(trace, ("list.insert",)) if call.largest >= 100 and _at_front(trace, call)]
    if not calls:
        return None
    lines = {line for call in calls for line in loop_lines(trace, function_at(trace, call.where))}
    share = sampled_share(trace, lines | set(places_of(calls)), {call.phase for call in calls})
    per_env_step = trace.per_env_step(calls[:1])
    rows = per_env_step * trace.counts.env_steps
    evidence = (
        f"`insert(0, ...)` runs {number(trace.per_env_step(calls))} times per env step on lists of up to "
        f"{number(max(call.largest for call in calls))}; the lines around it take "
        f"{percent(share)} of the loop, {microseconds_text(trace, share, rows)} a row."
    )
    speedup = max(1.0, min(MOST_INSERT_GAINS, own_microseconds(trace, share, rows) / ROW_MICROSECONDS))
    return suggest(trace, share, speedup, evidence=evidence, places=places_of(calls))


def _at_front(trace: Trace, call: CallCount) -> bool:
    return "insert-front" in features_at(trace, call.where) or "insert(0" in source_at(trace, call.where)


@rule("STORE004", remedy=RING, kind=IDENTICAL)
def popped_at_the_front(trace: Trace) -> Finding | None:
    """The oldest entry is popped from the front of a long list.

    `list.pop(0)` moves every entry that remains: microseconds at a thousand, tens of them at a hundred thousand. Found
    where it happens on lists of 500 or more.
    """
    calls = [call for call in calls_like(trace, ("list.pop",)) if call.largest >= POP_FRONT_LENGTH]
    calls = [call for call in calls if "pop-front" in features_at(trace, call.where)]
    if not calls:
        return None
    places = by_cost(trace, places_of(calls))
    share = sampled_share(trace, places)
    evidence = (
        f"`pop(0)` runs {number(trace.per_env_step(calls))} times per env step on a list of up to "
        f"{number(max(call.largest for call in calls))}: {percent(share)} of the loop."
    )
    return suggest(trace, share, POP_FRONT_SPEEDUP, evidence=evidence, places=places)


@rule("STORE005", remedy=COPY, kind=IDENTICAL, condition="what is copied holds no further object that changes")
def deep_copies(trace: Trace) -> Finding | None:
    """Objects are deep-copied in the loop.

    `copy.deepcopy` walks every object and keeps a memo of them: hundreds of microseconds for what an array copy does in
    one. Found where it runs for every twentieth call of `step` or more.
    """
    calls = calls_like(trace, ("copy.deepcopy",))
    often = per_env_call(trace, calls)
    if often < COPIES_PER_CALL:
        return None
    places = by_cost(trace, places_of(calls))
    share = sampled_share(trace, places)
    evidence = f"`deepcopy` runs {number(often)} times per call of `step` and takes {percent(share)} of the loop."
    return suggest(trace, share, COPY_SPEEDUP, evidence=evidence, places=places)
