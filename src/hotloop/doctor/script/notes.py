"""What the reader should know about a recording: what was found, what the recording itself cost, what it missed."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from hotloop.doctor.script.plan import TIMING, Order
from hotloop.doctor.script.sampling import Sampler
from hotloop.doctor.script.watch import Watch


def recording_notes(watch: Watch, sampler: Sampler, order: Order) -> Iterator[str]:
    if not watch.begun:
        yield (
            "no env step was seen: nothing with `step` and `reset` was called"
            " (an env stepped in another process or compiled by JAX cannot be seen); name yours with --env"
        )
        return
    if order.kind != TIMING:
        return
    yield f"envs found: {', '.join(sorted(set(watch.envs.values())))}"
    yield from _overhead(watch, sampler)
    if "torch" not in sys.modules:
        used = next((name for name in ("jax", "tensorflow", "keras") if name in sys.modules), "no PyTorch")
        yield f"{used}: acting and learning cannot be told apart; only env, replay and logging are split off"
    elif not watch.attribution.counts["updates"]:
        yield "no optimiser step was seen in the recorded time"


def _overhead(watch: Watch, sampler: Sampler) -> Iterator[str]:
    loop = max(1e-9, watch.ended - watch.began)
    share = (watch.attribution.recording + sampler.cost) / loop
    seen = f"{watch.events} events, {sampler.looks} samples"
    yield f"recording took {100 * share:.1f} % of the time ({seen}), which is not in the figures"
    how = "the alarm signal" if sampler.by_signal else "a thread, which sees only where the interpreter lock is free"
    yield f"lines sampled by {how} every {1000 * sampler.interval:g} ms; native time is charged to the line that called"
    if sampler.displaced:
        yield "the script uses the alarm signal itself: lines are incomplete"
