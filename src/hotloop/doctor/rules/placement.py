"""Where the work is done: a device for a tiny network, copies to it by the row, more workers than cores."""

from __future__ import annotations

from hotloop.doctor.finding import BUT_FOR_DRAWS, IDENTICAL, Finding, Remedy, rule
from hotloop.doctor.rules.beneath import mentioned
from hotloop.doctor.rules.evidence import (
    by_cost,
    calls_like,
    microseconds_text,
    most_expensive,
    number,
    own_microseconds,
    per_env_call,
    places_of,
    sampled_share,
    source_at,
    suggest,
)
from hotloop.doctor.rules.updating import arithmetic_microseconds
from hotloop.doctor.rules.waiting import STARTING_WORKERS, WORTH_A_WORKER_SECONDS, message_seconds
from hotloop.doctor.snippets import LEFT_OPEN, number_or_open
from hotloop.doctor.trace import ACT, ENV, UPDATE, CallCount, Trace
from hotloop.render.numbers import percent

TINY_PARAMETERS = 300_000
CPU_UPDATE_MICROSECONDS = 500.0
"""Calls of one optimizer step of a small network and of what leads to it, on a CPU: its arithmetic comes on top."""
MOST_CPU_GAINS = 8.0
"""36 s on a GPU were 29 s on the CPU for a small DQN; 2 to 3 times were reported elsewhere. More only where updates
were seen to take so much longer."""
COPYING = ("copied:to device", "copied:to host", "copied:between devices")
MADE_THERE = ("torch.tensor", "torch.as_tensor", "torch.FloatTensor", "torch.LongTensor")
COPIES_PER_CALL = 4.0
NEEDED_COPIES = 2.0
"""Observations go there and actions come back: two for each env call are the price of acting there, and a copy costs
the same however small."""
MOST_COPY_GAINS = 16.0
SMALL_COPY = 1 << 16
MOST_CROWDING_GAINS = 3.0

ON_CPU = Remedy(
    "Train a small network on the CPU, with one thread: each operation on a device is a launch of some microseconds, "
    "and each action a copy there and back. The same numbers, up to rounding.",
    'device = "cuda" if torch.cuda.is_available() else "cpu"\nnetwork = network.to(device)',
    'import torch\n\ndevice = "cpu"\ntorch.set_num_threads(1)\nnetwork = network.to(device)',
)
ONE_COPY = Remedy(
    "Keep rows in arrays on the host and copy them together, a batch at a time: each copy costs ten microseconds or "
    "more, however small, and one that comes back waits for all that was queued.",
    "states = torch.stack([torch.tensor(row).to(device) for row in obs])",
    "import torch\n\nstates = torch.from_numpy(obs).to(device)  # obs [N, F]: one copy",
)


def grouped(env_id: str, num_envs: int, workers: int) -> str:
    """What is 0 or empty is left open."""
    each = number_or_open(-(-num_envs // max(1, workers)))
    name = f'"{env_id}"' if env_id else LEFT_OPEN
    return (
        "import hotloop\n\n"
        f"envs = hotloop.vector({name}, num_envs={number_or_open(num_envs)}, workers={workers})"
        f"  # each worker steps {each}\n"
        "obs, _ = envs.reset()\n"
        "# in the loop\n"
        "obs, reward, terminated, truncated, info = envs.step(action)"
    )


def grouped_snippet(trace: Trace, where: str = "") -> str:
    """With the program's envs, and a worker for each core."""
    num_envs, cores = max(1, round(trace.envs_at_once)), int(trace.machine.get("cores") or 2)
    return grouped(trace.setup.env_id, num_envs if num_envs > 1 else 0, cores)


GROUPED = Remedy(
    "As many workers as cores, each with several envs: every worker costs a message and a wake-up per step, and more "
    "than there are cores only take turns. Let each compute with one thread (`torch.set_num_threads(1)` where it "
    "begins).",
    "import gymnasium\n\n"
    'makers = [lambda: gymnasium.make("CartPole-v1")] * 4\n'
    'envs = gymnasium.vector.AsyncVectorEnv(makers, autoreset_mode="SameStep")\n'
    "obs, _ = envs.reset(seed=0)\n"
    "# in the loop\n"
    "obs, reward, terminated, truncated, info = envs.step(action)",
    grouped("CartPole-v1", 4, 2),
    fill=grouped_snippet,
)


@rule(
    "MACHINE007",
    remedy=ON_CPU,
    kind=BUT_FOR_DRAWS,
)
def device_for_a_tiny_network(trace: Trace) -> Finding | None:
    """A small network is trained on a device.

    A device is fast for large batches and large layers; of a small network most of the time goes into launching its
    operations and copying observations there and actions back. Found where most parameters are on a device, there are
    300,000 of them or fewer, and an update takes longer there than its calls and its arithmetic take on a CPU.
    """
    counts = trace.counts
    if counts.device in ("", "cpu") or not counts.updates or not 0 < counts.parameters <= TINY_PARAMETERS:
        return None
    share = trace.share(ACT, UPDATE)
    took = own_microseconds(trace, trace.share(UPDATE), counts.updates)
    steps = max(1.0, counts.optimiser_steps / counts.updates)
    here = CPU_UPDATE_MICROSECONDS * steps + 1.2 * arithmetic_microseconds(trace)
    evidence = (
        f"{number(counts.parameters)} parameters are on `{counts.device}`; an update of {number(counts.batch_size)} "
        f"rows takes {microseconds_text(trace, trace.share(UPDATE), counts.updates)}, where its calls and arithmetic "
        f"take about {number(here)} on one core; acting and updates take {percent(share)} of the loop."
    )
    places = mentioned(trace, "device") or most_expensive(trace, (UPDATE,), ".to(")
    return suggest(
        trace, share, max(1.0, min(MOST_CPU_GAINS, took / here)), evidence=evidence, places=places, relief=0.0
    )


def copies(trace: Trace) -> list[CallCount]:
    """Copies between host and device outside the update, those of tensors made on the device among them."""
    moved = [call for call in calls_like(trace, COPYING) if call.phase != UPDATE and call.largest <= SMALL_COPY]
    if not moved and trace.counts.device in ("", "cpu"):
        return []
    made = [call for call in calls_like(trace, MADE_THERE) if call.phase != UPDATE]
    return moved + [call for call in made if "device=" in source_at(trace, call.where)]


@rule("SYNC003", remedy=ONE_COPY, kind=IDENTICAL)
def copied_by_the_row(trace: Trace) -> Finding | None:
    """Small tensors are copied to a device one by one.

    A copy of a few bytes costs as much as one of a megabyte, and a copy to the host waits until the device has done all
    that was asked of it. Found where four or more copies of 64 kB or less are made for every env call, outside the
    update.
    """
    calls = copies(trace)
    often = per_env_call(trace, calls)
    if often < COPIES_PER_CALL:
        return None
    places = by_cost(trace, places_of(calls))
    share = sampled_share(trace, places)
    largest = max(call.largest for call in calls)
    evidence = (
        f"{number(often)} copies between host and device per call of `step`, of {number(largest)} bytes or fewer, take "
        f"{percent(share)} of the loop."
    )
    return suggest(trace, share, min(MOST_COPY_GAINS, often / NEEDED_COPIES), evidence=evidence, places=places)


@rule(
    "MACHINE008",
    remedy=GROUPED,
    kind=BUT_FOR_DRAWS,
)
def more_workers_than_cores(trace: Trace) -> Finding | None:
    """There are more workers than cores.

    Each worker is sent its action, woken, run and read by itself, and those that find no core wait for one: with eight
    envs in each of two workers there are two messages per step, not sixteen. Found where more worker processes than
    cores have computed, with envs that are worth a process; for cheaper ones see MACHINE003.
    """
    counts, cores = trace.counts, int(trace.machine.get("cores") or 1)
    answers = max(1.0, float(counts.env_steps))
    if counts.workers <= cores or counts.workers < 0.5 * trace.envs_at_once or not counts.worker_seconds:
        return None
    message = message_seconds(trace)
    if counts.worker_seconds / answers - message < WORTH_A_WORKER_SECONDS:
        return None
    saved = answers * message * (1 - cores / counts.workers)
    share = trace.share(ENV) + trace.share("wait")
    evidence = (
        f"{number(counts.workers)} workers step {number(trace.envs_at_once)} envs on {cores} core{'s' * (cores != 1)}; "
        f"for each env step they used {number(1e6 * counts.worker_seconds / answers)} microseconds of processor time, "
        f"some {number(1e6 * message)} of them for its message."
    )
    speedup = min(MOST_CROWDING_GAINS, counts.worker_seconds / max(1e-9, counts.worker_seconds - saved))
    places = mentioned(trace, *STARTING_WORKERS)
    places += most_expensive(trace, (ENV, "wait"))
    return suggest(trace, share, speedup, evidence=evidence, places=places, relief=0.0)
