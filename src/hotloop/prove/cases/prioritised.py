"""Prioritised replay: draw a batch, set its new priorities, over and over."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from hotloop.core.types import Array, Batch
from hotloop.prove.case import Built, Case, Growth
from hotloop.prove.cases.tape import Tape
from hotloop.prove.cases.transitions import (
    BETA,
    CAPACITY,
    FILL_ENVS,
    SEED,
    SMALL_CAPACITY,
    add_plain,
    fill,
    make_replay,
    make_steps,
)
from hotloop.prove.equivalence import SEQUENCE, Equality, Snapshot, compare_sequences, compare_snapshots
from hotloop.prove.reference.prioritised import PrioritisedReplay
from hotloop.replay.buffer import Replay

TOLERANCE = 1e-6
"""Of the importance weights, which are float32."""
ADD_EVERY = 10
"""Rounds of the check between two that store new rows."""


def prioritised_cases(small: bool) -> list[Case]:
    return [
        Case(
            family="replay-prioritised",
            size=f"b{batch}",
            build=partial(_build, batch, small),
            tolerance=TOLERANCE,
            is_default=batch != 256,
        )
        for batch in (32, 64, 256)
    ]


def _pair(capacity: int) -> tuple[Replay, PrioritisedReplay]:
    replay, plain = make_replay(FILL_ENVS, capacity, prioritised=True), PrioritisedReplay(capacity)
    fill(capacity, replay, plain)
    return replay, plain


def _draw_and_set(replay: Replay, batch_size: int, errors: Array) -> Callable[[], Batch]:
    def call() -> Batch:
        batch = replay.sample(batch_size, 1, 0)
        replay.update_priorities(batch.index, errors)
        return batch

    return call


def _build(batch_size: int, small: bool) -> Built:
    capacity = SMALL_CAPACITY if small else CAPACITY
    replay, plain = _pair(capacity)
    errors = np.random.default_rng(0).random((1, batch_size)).astype(np.float32)

    tape = Tape(SEED)

    def reference() -> Any:
        batch, weights, indices = plain.sample(batch_size, BETA, tape)
        plain.update_priorities(indices, errors[0])
        return batch, weights, indices

    def compare_draws(batch: Batch, drawn: Any) -> Equality:
        (obs, *_), weights, indices = drawn
        fast = {name: getattr(batch, name)[0] for name in ("index", "weight", "obs")}
        return compare_snapshots(fast, {"index": indices, "weight": weights, "obs": obs}, "of a timed call")

    def growth() -> Growth:
        few = make_replay(FILL_ENVS, SMALL_CAPACITY, prioritised=True)
        fill(SMALL_CAPACITY, few)
        small, large = (_draw_and_set(rows, batch_size, errors) for rows in (few, replay))
        return Growth(small, large, 1.0, f"{SMALL_CAPACITY:,} rows", f"{capacity:,}")

    return Built(
        reference=reference,
        fast=_draw_and_set(replay, batch_size, errors),
        compare=compare_draws,
        calls=4,
        further=partial(_check, batch_size),
        tape=tape,
        growth=growth,
    )


def _check(batch_size: int) -> Equality:
    """The plain program draws with our own random numbers: the same rows must come, with the same weights."""
    replay, plain = _pair(SMALL_CAPACITY)
    tape, rng = Tape(SEED), np.random.default_rng(1)
    errors = rng.random((SEQUENCE + 1, 1, batch_size)).astype(np.float32)
    new_rows = make_steps(FILL_ENVS, SEQUENCE // ADD_EVERY + 1, seed=2)

    def fast(j: int) -> Snapshot:
        batch = replay.sample(batch_size, 1, 0)
        seen = {name: getattr(batch, name)[0].copy() for name in ("index", "weight", "obs")}
        replay.update_priorities(batch.index, errors[j])
        if j % ADD_EVERY == 0:
            replay.add(*new_rows[j // ADD_EVERY])
        return seen

    def reference(j: int) -> Snapshot:
        (obs, *_), weights, indices = plain.sample(batch_size, BETA, tape)
        plain.update_priorities(indices, errors[j][0])
        if j % ADD_EVERY == 0:
            add_plain(plain, *new_rows[j // ADD_EVERY])
        return {"index": indices, "weight": weights, "obs": obs}

    return compare_sequences(fast, reference)
