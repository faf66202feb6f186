"""What the loop keeps in memory: frames larger than need be, graphs that nobody drops, pages on disk."""

from __future__ import annotations

from hotloop.doctor.clocks import crowding_text, gain_by_the_wall
from hotloop.doctor.finding import IDENTICAL, Finding, Remedy, rule
from hotloop.doctor.rules.beneath import mentioned
from hotloop.doctor.rules.evidence import SAVED_ENTIRELY, most_expensive, number, suggest
from hotloop.doctor.snippets import LEFT_OPEN
from hotloop.doctor.trace import PROCESSOR, SAMPLE, STORE, STORE_AND_SAMPLE, StoredArray, Trace
from hotloop.render.numbers import percent

SIZES = {"float64": 8, "float32": 4, "float16": 2}
FRAMES_SPEEDUP = {8: 2.0, 4: 1.5, 2: 1.2}
"""By bytes per number: what is written and gathered shrinks by more, making floats of the batch remains."""
TWICE_SPEEDUP = 1.3
LEAST_GRAPHS = 100
GRAPHS_PER_UPDATE = 0.5
LEAST_MAJOR_FAULTS = 100
FAULT_SECONDS = 25e-6
"""Processor time of the system for a page from disk, beside the wait for it."""


def bytes_of(trace: Trace) -> str:
    """With the shape of the largest array that could be smaller."""
    arrays = [one for one in trace.stored if one.fits or one.twin]
    shape = str(max(arrays, key=lambda one: one.bytes).shape) if arrays else LEFT_OPEN
    return (
        "import numpy as np\n\n"
        f"frames = np.zeros({shape}, np.uint8)\n"
        "# in the loop\n"
        "frames[i] = frame\n"
        "batch = frames[rows] / 255.0  # as you scale them now"
    )


BYTES = Remedy(
    "Keep frames as the bytes that they were, and make floats of the drawn rows only: an eighth or a quarter of the "
    "memory. Where an array holds the next frames as well, take row i + 1 of the first instead.",
    "frames = np.zeros((1000, 84, 84))  # float64\n# in the loop\nframes[i] = frame\nbatch = frames[rows] / 255.0",
    "import numpy as np\n\n"
    "frames = np.zeros((1000, 84, 84), np.uint8)\n"
    "# in the loop\n"
    "frames[i] = frame\n"
    "batch = frames[rows] / 255.0",
    fill=lambda trace, where: bytes_of(trace),
)
DETACHED = Remedy(
    "Keep the number, not the tensor: `loss.item()`, or `loss.detach()` where it must stay on its device. A tensor "
    "that was computed with gradients keeps everything it was computed from.",
    "losses.append(loss)",
    "losses.append(loss.detach())",
)
FITTING = Remedy(
    "Make the replay fit into memory: fewer rows, bytes instead of floats, each frame once; close what else fills it. "
    'A replay that must be on disk is drawn from in sorted order, or through hotloop\'s `Replay(memory="disk")`.',
    "batch = stored[rows]",
    "import numpy as np\n\norder = np.argsort(rows)\n"
    "batch = np.empty_like(stored, shape=(len(rows), *stored.shape[1:]))\n"
    "batch[order] = stored[rows[order]]  # the disk is read in one direction",
)


@rule("STORE009", remedy=BYTES, kind=IDENTICAL, condition="later frames are bytes too")
def frames_held_too_large(trace: Trace) -> Finding | None:
    """Frames are held in floats, or twice.

    A frame of bytes kept as float64 takes eight times the memory, and as much more to write and to gather; kept as
    this frame and as the one before, twice that again. Found where an array of 4 MB or more with three axes or more
    holds nothing but whole numbers from 0 to 255 in floats, or the rows of another one later.
    """
    arrays = [one for one in trace.stored if one.fits or one.twin]
    if not arrays:
        return None
    largest = max(arrays, key=lambda one: one.bytes)
    held, needed = sum(one.bytes for one in arrays), sum(_needed(one) for one in arrays)
    share = trace.share(STORE, SAMPLE, STORE_AND_SAMPLE)
    speedup = FRAMES_SPEEDUP.get(SIZES.get(largest.dtype, 1), 1.0) if largest.fits else 1.0
    speedup *= TWICE_SPEEDUP if any(one.twin for one in arrays) else 1.0
    twice = ", the same frames in two of them" if any(one.twin for one in arrays) else ""
    evidence = (
        f"`{largest.name}` holds {largest.dtype} where {largest.fits or largest.dtype} holds the same{twice}: "
        f"{number(held / 1e6)} MB instead of {number(needed / 1e6)}; storing and sampling take {percent(share)} of the "
        "loop."
    )
    return suggest(trace, share, speedup, evidence=evidence, places=[largest.where] if largest.where else [])


def _needed(one: StoredArray) -> float:
    size = one.bytes / SIZES.get(one.dtype, 1) if one.fits else one.bytes
    return size / 2 if one.twin else size


@rule("GROW002", remedy=DETACHED, kind=IDENTICAL, condition="no later backward goes through what is kept")
def graphs_kept_alive(trace: Trace) -> Finding | None:
    """Graphs of old updates are kept alive.

    A loss in a list, a hidden state or a return that was never detached keeps every tensor that it was computed from:
    memory grows with each update until the machine swaps or the run dies. Found where, when the loop had ended, there
    were a hundred tensors or more with their graphs, one for every second update at least. What it costs before that
    is the memory that has to be found anew each time.
    """
    counts = trace.counts
    if counts.live_graphs < max(LEAST_GRAPHS, GRAPHS_PER_UPDATE * counts.updates) or not counts.updates:
        return None
    if counts.resident_growth <= 0:
        return None
    share = min(1.0, counts.minor_faults * counts.page_seconds / max(1e-9, counts.computed_seconds))
    places = mentioned(trace, f"append:{counts.graph_holder}") if counts.graph_holder else []
    evidence = (
        f"{number(counts.live_graphs)} tensors with their graphs were alive after {number(counts.updates)} updates; "
        f"memory grew by {number(counts.resident_growth / 1e6)} MB "
        f"({number(counts.resident_growth / 1e3 / counts.updates)} kB an update), which took about {percent(share)} of "
        "the loop so far."
    )
    return suggest(trace, share, SAVED_ENTIRELY, evidence=evidence, places=places, least=1.0, relief=0.0)


@rule("MACHINE006", remedy=FITTING, kind=IDENTICAL)
def pages_from_disk(trace: Trace) -> Finding | None:
    """Memory is read from disk.

    A replay that does not fit is swapped out, or mapped from a file that the system cannot hold: each page that is
    touched waits for the disk, a tenth of a millisecond or ten. Found where a hundred pages or more had to be read
    while the loop ran, and the loop waited; on a busy machine the gain is told by the wall clock.
    """
    counts = trace.counts
    if counts.major_faults < LEAST_MAJOR_FAULTS or trace.loop_seconds <= 0:
        return None
    waited = min(max(0.0, counts.asleep_seconds - counts.waiting_seconds), trace.loop_seconds)
    faults = FAULT_SECONDS * counts.major_faults
    share = min(1.0, (waited + faults) / trace.loop_seconds)
    evidence = (
        f"{number(counts.major_faults)} pages of memory had to be read from disk in {trace.loop_seconds:.1f} s of the "
        f"loop, which slept {percent(waited / trace.loop_seconds)} of that time."
    )
    if trace.clock == PROCESSOR:
        slept = min(counts.asleep_seconds, trace.loop_seconds)
        computes = max(0.0, trace.loop_seconds - slept - faults)
        share = 1 - 1 / max(1.0, gain_by_the_wall(trace, computes, slept - waited))
        evidence += crowding_text(trace)
    places = most_expensive(trace, (STORE, SAMPLE, STORE_AND_SAMPLE))
    return suggest(trace, share, SAVED_ENTIRELY, evidence=evidence, places=places, relief=0.0)
