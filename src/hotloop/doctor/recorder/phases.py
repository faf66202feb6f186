"""The names of phases: where loop time goes. The recorder writes them, `doctor/trace.py` and the rules read them."""

from __future__ import annotations

START_UP, ACT, ENV, STORE, SAMPLE = "start-up", "act", "env", "store", "sample"
UPDATE, LOG, EVALUATE, CHECKPOINT, OTHER = "update", "log", "evaluate", "checkpoint", "other"
STORE_AND_SAMPLE = "store-and-sample"
"""A foreign script's replay cannot always be told apart into the two."""
RECORDING = "recording"
"""The doctor's own work between two events of a script."""
PHASES = (START_UP, ACT, ENV, STORE, SAMPLE, STORE_AND_SAMPLE, UPDATE, LOG, EVALUATE, CHECKPOINT, OTHER, RECORDING)
OUTSIDE = (START_UP, RECORDING)
"""No part of the loop."""
UPDATE_PARTS = ("forward", "backward", "optimiser", "rest")
