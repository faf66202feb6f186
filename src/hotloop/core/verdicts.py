"""What our verdicts and exit codes mean: the same words in doctor, prove and compare, in text and in JSON.

docs/verdicts.md is this file for readers.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, Literal

Keeps = Literal["identical", "to rounding", "the same but for draws", "changes learning"]
"""What a change keeps of a computation."""

IDENTICAL: Final = "identical"
"""The same bits."""
TO_ROUNDING: Final = "to rounding"
"""The same sums in another order: equal within the tolerance that is printed."""
BUT_FOR_DRAWS: Final = "the same but for draws"
"""Random numbers are drawn in another order, each outcome as likely as before; all else is kept."""
CHANGES_LEARNING: Final = "changes learning"
"""Another computation: fewer updates, a staler target, other numbers. Only a learning curve can judge it."""

TRIED, NOT_TRIED = "tried here", "not tried"
"""Whether what is said of a program was seen on that program, or is known from others only."""


class ExitCode(IntEnum):
    """Of every verb. Signals keep the shell's numbers: 130 Ctrl-C, 143 SIGTERM, 137 killed, 141 the reader left."""

    YES = 0
    """The same, as good, finished: what was asked for is so, or was done."""
    NO = 1
    """Different, worse (where asked for), failed."""
    MISTAKE = 2
    """The user's: one sentence and a hint on stderr; under `--json` also `{"schema", "error", "hint"}` on stdout."""
    UNDECIDED = 3
    """Not decided, not comparable, or not everything was seen; what would decide it is said."""
    OVER_BUDGET = 4
    """A loop is slower than `--budget` or `--against` allows."""
