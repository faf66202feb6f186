"""What the optimiser, its parameters and the reading of results cost."""

from __future__ import annotations

from hotloop.doctor.finding import CHANGES_LEARNING, Finding, rule
from hotloop.doctor.rules.evidence import (
    Remedy,
    calls_like,
    dearest,
    number,
    own_microseconds,
    percent,
    places_of,
    sampled_share,
    suggest,
)
from hotloop.doctor.rules.forwards import MANY_TENSORS, is_walked
from hotloop.doctor.rules.storing import BUILDING, HOST_READS, batch_calls
from hotloop.doctor.rules.updating import arithmetic_microseconds
from hotloop.doctor.trace import ACT, ENV, EVALUATE, SAMPLE, UPDATE, Trace

FUSED_SPEEDUP = 3.0
TINY_TENSOR = 64
DOUBLE_COSTS = 4.0
"""Half the numbers per instruction, twice the memory: four times the ideal arithmetic of float32, measured."""
MOST_FLAT_GAINS, TENSORS_IN_ONE_CALL = 15.0, 20
READS_PER_UPDATE = 4.0
READ_SPEEDUP = 20.0
TENSORS_PER_ENV_STEP = 3.0
TENSOR_SPEEDUP = 4.0

FUSED = Remedy(
    "Ask for the fused optimiser: one call for all parameters.",
    "optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)",
    "import torch\n\noptimizer = torch.optim.Adam(network.parameters(), lr=1e-3, fused=True)",
)
FLAT = Remedy(
    "Keep parameters in a few large tensors, and index into them: the optimiser pays per tensor, not per number.",
    "weights = torch.nn.ParameterList(numbers)  # 300 tensors of one number",
    "import torch\n\nweights = torch.nn.Parameter(torch.stack(list(numbers)))  # weights[17] as before",
)
READS = Remedy(
    "Read once per update: keep losses and errors in tensors and copy them to the host together.",
    "for i in range(batch_size):\n    priorities[i] = error[i].item()",
    "priorities[:] = error.detach().cpu().numpy()  # one read",
)
FLOAT32 = Remedy(
    "Compute in float32: half the memory traffic and twice the numbers per instruction.",
    "network = network.double()\nq = network(obs.double())",
    "network = network.float()\nq = network(obs.float())",
)
SMALL = Remedy(
    "Keep what the envs return in arrays and make one tensor of it per step, or per update: `torch.from_numpy` of an "
    "array shares its memory (add `.clone()` where the envs will write into it again).",
    "states = torch.stack([torch.tensor(row) for row in obs])",
    "import torch\n\nstates = torch.from_numpy(obs)  # no copy",
)


@rule("UPDATE007")
def optimiser_not_fused(trace: Trace) -> Finding | None:
    """The optimiser steps through its parameters one by one.

    PyTorch's default on a CPU makes about ten calls for every parameter tensor; `fused=True` makes one for all. Found
    where Adam, AdamW or SGD is not fused and the optimiser takes a tenth of the loop or more.
    """
    name = trace.counts.optimiser
    share = trace.part_share("optimiser")
    if name.split(" ")[0] not in ("Adam", "AdamW", "SGD") or "fused" in name or share < 0.1:
        return None
    tensors = number(trace.counts.parameter_tensors)
    evidence = f"`{name}` over {tensors} tensors is not fused and takes {percent(share)} of the loop."
    places = dearest(trace, (UPDATE,), ".step(")
    return suggest(trace, share, FUSED_SPEEDUP, evidence=evidence, remedy=FUSED, places=places)


@rule("UPDATE008")
def many_parameter_tensors(trace: Trace) -> Finding | None:
    """The network is hundreds of tiny parameters.

    Forward, gradient, moments and step are computed per tensor, at several microseconds each, whatever their size.
    Found where an optimiser holds a hundred tensors or more of 64 numbers or fewer on average. Where they are walked by
    name (UPDATE001), only the optimiser counts here.
    """
    counts = trace.counts
    if counts.parameter_tensors < 2 * MANY_TENSORS or counts.parameters > TINY_TENSOR * counts.parameter_tensors:
        return None
    share = trace.part_share("optimiser") if is_walked(trace) else trace.share(ACT, UPDATE)
    evidence = (
        f"{number(counts.parameters)} parameters lie in {number(counts.parameter_tensors)} tensors; "
        f"what goes through them takes {percent(share)} of the loop."
    )
    speedup = max(1.0, min(MOST_FLAT_GAINS, counts.parameter_tensors / TENSORS_IN_ONE_CALL))
    return suggest(trace, share, speedup, evidence=evidence, remedy=FLAT, places=dearest(trace, (UPDATE,), ".step("))


@rule("SYNC001")
def host_reads_in_the_update(trace: Trace) -> Finding | None:
    """Numbers are read from tensors one by one in the update.

    Every `.item()` costs a microsecond on a CPU and waits for all that was queued on a GPU. Found where an update makes
    four or more host reads.
    """
    calls = calls_like(trace, HOST_READS, (UPDATE,))
    per_update = trace.per_update(calls)
    if not trace.counted.updates or per_update < READS_PER_UPDATE:
        return None
    share = sampled_share(trace, places_of(calls), (UPDATE,))
    evidence = f"{number(per_update)} host reads per update take {percent(share)} of the loop."
    return suggest(trace, share, READ_SPEEDUP, evidence=evidence, remedy=READS, places=places_of(calls))


@rule("UPDATE009")
def double_precision(trace: Trace) -> Finding | None:
    """The network computes in float64.

    Usually because numpy's default slipped through; it doubles what the arithmetic costs. Found where half of the
    parameters or more are float64, weighed by the part of an update that is arithmetic.
    """
    counts = trace.counts
    if not counts.updates or 2 * counts.double_parameters < max(1, counts.parameters):
        return None
    share = trace.share(UPDATE)
    took = own_microseconds(trace, share, counts.updates)
    arithmetic = min(0.9, DOUBLE_COSTS * arithmetic_microseconds(trace) / max(took, 1e-9))
    evidence = (
        f"{number(counts.double_parameters)} of {number(counts.parameters)} parameters are float64; "
        f"arithmetic is about {percent(arithmetic)} of an update, and updates {percent(share)} of the loop."
    )
    gain_of_update = 1 / (1 - arithmetic / 2)
    places = dearest(trace, (UPDATE,))
    return suggest(
        trace, share, gain_of_update, evidence=evidence, remedy=FLOAT32, places=places, kind=CHANGES_LEARNING
    )


@rule("SYNC002")
def small_tensors(trace: Trace) -> Finding | None:
    """Small tensors are made for every env step.

    A tensor of one number costs more than a microsecond to make, and one of a list copies it element by element. Found
    where three or more tensors are made per env step outside the update.
    """
    batches = set(places_of(batch_calls(trace)))
    calls = [
        call
        for call in calls_like(trace, [name for name in BUILDING if name.startswith("torch.")])
        if call.phase not in (ENV, UPDATE, SAMPLE, EVALUATE) and call.where not in batches
    ]
    per_env_step = trace.per_env_step(calls)
    if per_env_step < TENSORS_PER_ENV_STEP:
        return None
    share = sampled_share(trace, places_of(calls))
    evidence = (
        f"{number(per_env_step)} tensors are made per env step (most often with `{calls[0].name}`): "
        f"{percent(share)} of the loop."
    )
    return suggest(trace, share, TENSOR_SPEEDUP, evidence=evidence, remedy=SMALL, places=places_of(calls))
