"""A flame graph by phase: what was sampled, widest where most time went. The page's script adds zooming."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from hotloop.doctor.trace import OUTSIDE, StackCost, Trace
from hotloop.doctor.views.html import Html, element, join, phase_class
from hotloop.doctor.views.numbers import duration, percent

_DEEPEST, _MOST_BOXES, _ROW = 48, 700, 21


@dataclass
class Box:
    name: str
    phase: str
    seconds: float = 0.0
    children: dict[str, Box] = field(default_factory=dict)

    def child(self, name: str, phase: str) -> Box:
        return self.children.setdefault(name, Box(name, phase))


@dataclass(frozen=True)
class Placed:
    box: Box
    depth: int
    left: float
    """Share of the whole to the left of it."""
    width: float


def flame_graph(trace: Trace) -> Html:
    root = grow_tree([stack for stack in trace.stacks if stack.phase not in OUTSIDE])
    if root.seconds <= 0:
        return Html("")
    boxes = visible(root)
    height = _ROW * (1 + max(placed.depth for placed in boxes))
    drawn = join(_drawn(placed, root.seconds) for placed in boxes)
    spoken = "Flame graph of the sampled stacks by phase; the lines below it hold the same in words."
    reset = element("button", "show all", type="button", class_="reset", hidden=True)
    graph = element("div", drawn, class_="flame", style=f"height:{height}px", role="img", aria_label=spoken)
    return join([reset, graph])


def grow_tree(stacks: Sequence[StackCost]) -> Box:
    """Phases below the root, then frames, outermost first; equal beginnings share a box."""
    root = Box("the loop", "")
    for stack in sorted(stacks, key=lambda stack: stack.phase):
        box = root
        box.seconds += stack.seconds
        for name in (stack.phase, *stack.frames[:_DEEPEST]):
            box = box.child(name, stack.phase)
            box.seconds += stack.seconds
    return root


def visible(root: Box) -> list[Placed]:
    """The boxes wide enough to matter, as few as a page can carry."""
    boxes = list(_placed(root, root.seconds, 0, 0.0))
    if len(boxes) <= _MOST_BOXES:
        return boxes
    # A parent is never narrower than its child, so that what is kept hangs together.
    narrowest = sorted((placed.width for placed in boxes), reverse=True)[_MOST_BOXES]
    return [placed for placed in boxes if placed.width > narrowest or not placed.depth]


def _placed(box: Box, total: float, depth: int, left: float) -> Iterator[Placed]:
    yield Placed(box, depth, left, box.seconds / total)
    for child in sorted(box.children.values(), key=lambda child: -child.seconds):
        yield from _placed(child, total, depth + 1, left)
        left += child.seconds / total


def _drawn(placed: Placed, total: float) -> Html:
    box = placed.box
    place = f"left:{100 * placed.left:.4g}%;width:{100 * placed.width:.4g}%;top:{_ROW * placed.depth}px"
    hover = f"{box.name}\n{duration(box.seconds)}, {percent(box.seconds / total)} of what was sampled"
    style = f"{phase_class(box.phase)} d{min(placed.depth, 3)}" if placed.depth else "root"
    return element("div", box.name, class_=style, style=place, title=hover)
