"""The word somebody probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(wrong: str, known: Iterable[str]) -> str | None:
    """The known name fewest typing mistakes away, if not too many; a path also matches by its last part."""
    known, limit = list(known), max(1, len(wrong) // 4)
    distances = {name: edits_between(wrong, name, limit) for name in known}
    best = min(distances, key=distances.__getitem__, default=None)
    if best is not None and distances[best] <= limit:
        return best
    by_last_part = {path.rsplit(".", 1)[-1]: path for path in known}
    close = difflib.get_close_matches(wrong.rsplit(".", 1)[-1], by_last_part, n=1, cutoff=0.6)
    return by_last_part[close[0]] if close else None


def edits_between(first: str, second: str, limit: int) -> int:
    """Insertions, deletions, substitutions and swaps that turn one word into the other, if at most `limit`."""
    if abs(len(first) - len(second)) > limit:
        return limit + 1
    before: list[int] = []
    row = list(range(len(second) + 1))
    for i, letter in enumerate(first, start=1):
        last, before, row = before, row, [i]
        for j, other in enumerate(second, start=1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != other))
            if i > 1 and j > 1 and letter == second[j - 2] and first[i - 2] == other:
                cost = min(cost, last[j - 2] + 1)
            row.append(cost)
        if min(row) > limit:
            return limit + 1
    return row[-1]
