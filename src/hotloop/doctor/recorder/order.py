"""What parent and child agree on: the note that says what one child has to do, and the names of phases, which the
recorder writes and `doctor/trace.py` and the rules read."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from typing import Any

START_UP, ACT, ENV, STORE, SAMPLE = "start-up", "act", "env", "store", "sample"
UPDATE, LOG, EVALUATE, CHECKPOINT, OTHER = "update", "log", "evaluate", "checkpoint", "other"
STORE_AND_SAMPLE = "store-and-sample"
"""A foreign script's replay cannot always be told apart into the two."""
WAIT = "wait"
"""The loop's thread slept, or waited for another process, a file or a device; whatever it was that it waited in."""
RECORDING = "recording"
"""The doctor's own work between two events of a script."""
QUEUED = "queued"
"""The loop could have gone on, but other programs had the core. Split off where the machine was busy with them."""
PHASES = (
    *(START_UP, ACT, ENV, STORE, SAMPLE, STORE_AND_SAMPLE, UPDATE, LOG),
    *(EVALUATE, CHECKPOINT, OTHER, WAIT, RECORDING, QUEUED),
)
OUTSIDE = (START_UP, RECORDING, QUEUED)
"""No part of the loop."""
UPDATE_PARTS = ("forward", "backward", "optimiser", "rest")
UPDATES_OF_A_ROLLOUT = 8
"""So many at once, after many env calls, learn from a rollout; replay gives a few each time."""

TIMING, COUNTING, THREADS, OPERATORS = "timing", "counting", "threads", "operators"
EPISODES = "episodes"
"""A whole training, followed for the episodes that it ends."""
EXPERIMENTS = "experiments"
"""Changes tried on the running program, by turns with the program as it is."""
IDENTICAL, TO_ROUNDING, CHANGES_LEARNING = "identical", "to rounding", "changes learning"
"""The words of `core/verdicts.py`, which a child cannot import: it has the standard library alone."""
KEEPING, NO_CHANGE = "keeping", "none"
"""With CHANGES_LEARNING: which changes one run of experiments tries; those that keep the computation, or none."""
FINGERPRINTS, PACE = "fingerprints", "pace"
"""A whole program, followed for what it computes; for how long it takes."""
KINDS = (TIMING, COUNTING, THREADS, OPERATORS, EPISODES, EXPERIMENTS, FINGERPRINTS, PACE)


@dataclass(frozen=True)
class Order:
    """Written by the parent, read by the child; a new field has a default."""

    script: str
    """As the user wrote it."""
    kind: str
    """One of KINDS."""
    seconds: float
    """Loop time to watch."""
    result: str
    """Where the trace goes. Beside it, with an ending added: `.begun` when the loop has begun, `.so-far` what was seen
    by then; and `.stop`, with which the parent asks the child to end."""
    module: str = ""
    """Its dotted name, where it is run as `python -m` does."""
    arguments: tuple[str, ...] = ()
    env_steps: int | None = None
    """Stop after so many, whichever comes first."""
    lead_seconds: float = 0.0
    """Loop time that may pass before what this run is for begins: the warm-up, at which nothing is counted."""
    env_classes: tuple[str, ...] = ()
    """Envs to watch besides what is found."""
    patience: float = 180.0
    """Seconds to wait for the first env step."""
    alone_after: float = 0.0
    """Seconds of optimizer rounds without an env step after which these are the loop. 0: an env step is waited for."""
    overtime: float = 3.0
    """Seconds beyond its bound that a loop may go without an env call, at which it would be stopped tidily."""
    interval: float = 0.01
    """Seconds between two stack samples."""
    skip_env_steps: int = 0
    """Count calls only after so many env steps: the warm-up is not the loop."""
    warm_updates: int = 0
    """The steady state begins after so many updates; 0: with the first env step."""
    after_env_steps: int = 0
    """The steady state begins after so many env steps, where this is not 0."""
    late_seconds: float = 0.0
    """How long to go on after the window with samples of the stack alone, for what comes late."""
    update_share: float = 1.0
    """The part of loop time that updates take."""
    learns: bool = True
    """Whether updates were seen in the timing run."""
    burst_seconds: float = 0.0
    """How long the updates between two env calls take together."""
    flush_denormals: bool = False
    """Whether the thread comparison also tries flushing denormals."""
    changes: str = NO_CHANGE
    """Of experiments: which changes are tried; none: the program is timed as it is."""
    lines: str = ""
    """Where a run that is followed to its end puts what it sees on the way."""
    near: bool = False
    """Whether fingerprints shall say how far apart two values are."""
    look_at: str = ""
    """The event to keep the values of, as it is written in `lines`: the program ends there."""
    look_for: str = ""
    """Which of its values: a field of an env call, or a parameter."""

    def as_json(self) -> str:
        return json.dumps(asdict(self))


def read_order(text: str) -> Order:
    data: dict[str, Any] = json.loads(text)
    known = {field.name for field in fields(Order)}
    values: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in data.items()}
    return Order(**{name: value for name, value in values.items() if name in known})
