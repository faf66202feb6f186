"""How transitions enter replay and leave it as batches."""

from __future__ import annotations

from hotloop.doctor.finding import Finding, rule
from hotloop.doctor.rules.evidence import (
    Remedy,
    by_cost,
    calls_like,
    function_at,
    number,
    percent,
    places_of,
    sampled_share,
    suggest,
)
from hotloop.doctor.trace import ACT, ENV, EVALUATE, LOG, UPDATE, CallCount, Trace

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
BATCH_SPEEDUP = 15.0
"""`replay-sample` gains 42 to 175 times; wrapping the arrays as tensors again remains."""

REPLAY = (
    "from hotloop.core.types import ArraySpec, EnvStep\n"
    "from hotloop.replay.buffer import Replay\n"
    "from hotloop.replay.n_step import Returns\n"
    "from hotloop.replay.settings import ReplaySettings\n\n"
    "replay = Replay(ReplaySettings(capacity=100_000), ArraySpec((11,)), 256, Returns(gamma=0.99), seed=0)\n"
    "# in the loop\n"
    "after = EnvStep(*(part.cpu().numpy() for part in (next_obs, reward, terminated, truncated, final_obs)))\n"
    "replay.add(obs.cpu().numpy(), action.cpu().numpy(), after)  # all 256 envs\n"
    "batch = replay.sample(batch_size=64, k=1, env_steps=0)  # batch.obs[0], batch.action[0], batch.reward[0], ..."
)
PUSH = Remedy(
    "Store all envs with one call of hotloop's `Replay`; where tensors must leave a device, each leaves it once. It "
    "keeps the same transitions, and batches are draws of its own: other rows of them, each as likely.",
    "for i in range(num_envs):\n"
    "    row = obs[i].cpu().numpy(), action[i].item(), reward[i].item(), final_obs[i].cpu().numpy()\n"
    "    buffer.append((*row, terminated[i].item()))",
    REPLAY,
)
BATCH = Remedy(
    "Keep every field in an array and gather a batch with one call each: the same rows are drawn. hotloop's `Replay` "
    "does so in machine code, k batches at once, with draws of its own.",
    "rows = random.sample(buffer, batch_size)\nstates = torch.tensor(np.array([row[0] for row in rows]))",
    "import random\n\n"
    "import numpy as np\n"
    "import torch\n\n"
    "obs = np.zeros((100_000, 11), np.float32)  # filled as a ring: obs[added % 100_000] = row; one array per field\n"
    "# in the loop\n"
    "index = random.sample(range(min(added, 100_000)), batch_size)\n"
    "states = torch.from_numpy(obs[index])",
)


def store_reads(trace: Trace) -> list[CallCount]:
    """Host reads that neither choose an action nor belong to the update."""
    elsewhere = (ACT, ENV, UPDATE, EVALUATE, LOG)
    return [call for call in calls_like(trace, HOST_READS) if call.phase not in elsewhere]


@rule("STORE001")
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
    return suggest(trace, share, speedup, evidence=evidence, remedy=PUSH, places=places)


def batch_calls(trace: Trace) -> list[CallCount]:
    """Draws of Python rows, with the tensors made of them: those built in the same functions."""
    draws = [call for call in calls_like(trace, DRAWING) if call.phase not in (ENV, ACT, EVALUATE)]
    if not trace.counted.updates or trace.per_update(draws) < 0.9:
        return []
    functions = {function_at(trace, call.where) for call in draws}
    built = [call for call in calls_like(trace, BUILDING) if function_at(trace, call.where) in functions]
    return draws + built if trace.per_update(built) >= 2 else []


@rule("STORE002")
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
    evidence = (
        f"every update draws Python rows ({calls[0].name}{f', of {number(largest)}' if largest else ''}) and makes "
        f"{number(trace.per_update(calls) - 1)} arrays or tensors of them: {percent(share)} of the loop."
    )
    return suggest(trace, share, BATCH_SPEEDUP, evidence=evidence, remedy=BATCH, places=places)
