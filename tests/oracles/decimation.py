"""The lowest and the highest point of each pixel, one point at a time."""

from __future__ import annotations

from collections.abc import Sequence


def lowest_and_highest(
    points: Sequence[tuple[float, float]], width: int, low: float, high: float
) -> list[tuple[float, float]]:
    """Of points ordered by x, those within [low, high]; of equal values the first."""
    pixels: dict[int, list[int]] = {}
    for place, (x, _) in enumerate(points):
        if low <= x <= high:
            pixel = 0 if high <= low else min(width - 1, int((x - low) / (high - low) * width))
            pixels.setdefault(pixel, []).append(place)
    kept: set[int] = set()
    for places in pixels.values():
        kept.add(min(places, key=lambda place: (points[place][1], place)))
        kept.add(min(places, key=lambda place: (-points[place][1], place)))
    return [points[place] for place in sorted(kept)]
