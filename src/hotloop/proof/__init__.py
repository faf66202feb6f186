"""Proof: every fast path is held equal to a plain program first, then timed against it. Start at `case.py`."""
