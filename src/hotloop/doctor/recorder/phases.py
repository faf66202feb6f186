"""The names of phases: where loop time goes. The recorder writes them, `doctor/trace.py` and the rules read them."""

from __future__ import annotations

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
