"""The doctor's own errors inside somebody's program: swallowed, noted, and what made them switched off.

Only `Exception` is ours: an interrupt, an exit or the doctor's own bound that arrives while our code runs must go on.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

MOST = 20


class Faults:
    """What went wrong in us: `where: Type: message (file:line)`, each once."""

    def __init__(self) -> None:
        self.noted: list[str] = []

    def note(self, where: str, error: BaseException) -> None:
        try:
            frames = traceback.extract_tb(error.__traceback__)
            last = frames[-1] if frames else None
            place = f" ({last.filename.rpartition('/')[2]}:{last.lineno})" if last else ""
            text = f"{where}: {type(error).__name__}: {error}{place}"
        except Exception:  # an error whose own words fail
            text = where
        if len(self.noted) < MOST and text not in self.noted:
            self.noted.append(text)

    def guarded(self, where: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The same function; after its first error it does nothing."""
        working = [True]

        def guarded(*args: Any, **keywords: Any) -> Any:
            if not working[0]:
                return None
            try:
                return function(*args, **keywords)
            except Exception as error:
                working[0] = False
                self.note(where, error)
                return None

        return guarded
