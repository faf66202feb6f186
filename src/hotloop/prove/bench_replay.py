"""Replay against other libraries: both calls interleaved in this process, by the paired timing of `hotloop prove`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hotloop.prove import speed
from hotloop.prove.bench_rows import PeerRow
from hotloop.prove.peers.libraries import Library
from hotloop.prove.peers.replay_libraries import CALLS
from hotloop.prove.peers.replay_work import Call, Work, hotloop_call

WORK = (
    Work("add", 1, 4),
    Work("store", 1, 4),
    Work("add", 256, 11),
    *(Work("sample", *size) for size in ((32, 4), (64, 11), (256, 11))),
    *(Work("prioritised", *size) for size in ((32, 4), (64, 11), (256, 11))),
)


def count_comparisons(libraries: Sequence[Library]) -> int:
    return len(WORK) * sum(library.name in CALLS for library in libraries)


def compare_replays(libraries: Sequence[Library], seconds: float) -> Iterator[tuple[str, PeerRow | None]]:
    """What was compared and what came of it; None where the library cannot do the work."""
    for work in WORK:
        ours = hotloop_call(work)
        for library in libraries:
            make = CALLS.get(library.name)
            if make is None:
                continue
            theirs = make(work)
            row = None if theirs is None else _compare(work, library, (theirs, ours), seconds)
            yield f"{work.name} {library.name}", row


def _compare(work: Work, library: Library, calls: tuple[Call, Call], seconds: float) -> PeerRow:
    for call in calls:
        call()  # what is compiled or loaded at the first call must not shape the samples
    measured = speed.measure(*calls, seconds)
    return PeerRow(
        work=work.name,
        library=library.name,
        version=library.version,
        unit="µs",
        theirs=measured.first_seconds * 1e6,
        hotloop=measured.second_seconds * 1e6,
        ratio=measured.ratio,
        low=measured.low,
        high=measured.high,
    )
