"""Charts of a trace: growth, timeline, bars, whiskers and the flame graph.

Plots whose shapes stretch with the page while their words keep their size: SVG below, HTML labels around it.

Bars and whiskers of the page, placed in percent so that they fit any width.

A flame graph by phase: what was sampled, widest where most time went. The page's script adds zooming.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from hotloop.core.verdicts import CHANGES_LEARNING
from hotloop.doctor.experiments import Ratio, measured_by
from hotloop.doctor.trace import OUTSIDE, PHASES, PROCESSOR, UPDATE, WALL, Experiment, Growth, Slice, StackCost, Trace
from hotloop.doctor.views.summary import CostRow, cost_row, merged, phase_rows, update_rows
from hotloop.render.html import Child, Html, element, join, phase_class, prose, table
from hotloop.render.numbers import duration, interval, number, percent, times
from hotloop.render.plots import Axes, dots, hover, legend, line, plot

_MOST_SLICES = 90
_OVER = {"run": "env steps into the run", "replay fill": "transitions in the replay", "num_envs": "envs at once"}


def growth_plot(growth: Growth) -> Html:
    points = growth.points
    if len(points) < 2:
        return Html("")
    names = _OVER.get(growth.over, growth.over), _unit(growth.what)
    places, costs = zip(*points, strict=True)
    axes = Axes(places[0], places[-1], 0.0, 1.1 * max(costs), *names)
    shapes = join([line(axes, places, costs, "line"), dots(axes, places, costs, "dots")])
    spoken = f"{growth.what} over {growth.over}: {number(points[0][1])} at first, {number(points[-1][1])} at last"
    # Longer episodes are mostly what learning is for.
    grown = "grew" if growth.ratio > 1.1 else "fell" if growth.ratio < 0.9 else "flat"
    grown = "flat" if "per episode" in growth.what else grown
    title = element("h3", f"{growth.what} over {growth.over} ", element("b", times(growth.ratio), class_=grown))
    return element("div", title, plot(axes, shapes, spoken), class_="growth")


def _unit(what: str) -> str:
    if "per episode" in what:
        return what
    if "per " in what:
        return f"us, {what}"
    return "us per env step" if what == "env step" else f"{what}, us per env step"


def timeline_plot(trace: Trace) -> Html:
    """Cost of one env step through the run, by phase; of one update where there is no env step."""
    per = "env step" if trace.counts.env_steps else "update"
    slices = list(_countable(merged(trace.timeline, _MOST_SLICES), per))
    if len(slices) < 2:
        return Html("")
    costs = [1e6 * one.seconds / _count(one, per) for one in slices]
    high, cut = _top(costs)
    end = slices[-1].start_seconds + slices[-1].seconds
    axes = Axes(slices[0].start_seconds, end, 0.0, high, "seconds into the loop", f"us per {per}")
    shapes = join([*_layers(axes, slices, per), *(_hover(axes, one, per) for one in slices)])
    spoken = f"us per {per}: {number(costs[0])} in the first slice, {number(costs[-1])} in the last"
    beyond = f"{cut} of {len(costs)} slices reach beyond the plot, up to {number(max(costs))} us." if cut else ""
    names = _ordered({name for one in slices for name, seconds in one.phases.items() if seconds > 0})
    return join([plot(axes, shapes, spoken), legend(names), element("p", beyond, class_="note") if beyond else None])


def _count(one: Slice, per: str) -> int:
    return one.env_steps if per == "env step" else one.updates


def _countable(slices: Sequence[Slice], per: str) -> Iterator[Slice]:
    """A slice in which nothing was counted (one long update) is joined to the ones after it."""
    waiting: list[Slice] = []
    for one in slices:
        waiting.append(one)
        if _count(one, per):
            yield from merged(waiting, 1)
            waiting = []


def _top(costs: Sequence[float]) -> tuple[float, int]:
    """Where the axis ends, and how many slices reach beyond it: a single hiccup must not flatten all others."""
    middle = sorted(costs)[len(costs) // 2]
    beyond = sum(cost > 3 * middle for cost in costs)
    if beyond and beyond <= len(costs) / 10 and max(costs) > 4 * middle:
        return 3 * middle, beyond
    return 1.05 * max(costs), 0


def _ordered(names: Iterable[str]) -> list[str]:
    return sorted(names, key=lambda name: PHASES.index(name) if name in PHASES else len(PHASES))


def _layers(axes: Axes, slices: Sequence[Slice], per: str) -> Iterator[Html]:
    floors = [0.0] * len(slices)
    for name in _ordered({name for one in slices for name in one.phases}):
        path = []
        for place, one in enumerate(slices):
            top = floors[place] + 1e6 * one.phases.get(name, 0.0) / _count(one, per)
            left, right = axes.x(one.start_seconds), axes.x(one.start_seconds + one.seconds)
            path.append(
                f"M{left:.4g} {axes.y(floors[place]):.4g}V{axes.y(top):.4g}H{right:.4g}V{axes.y(floors[place]):.4g}z"
            )
            floors[place] = top
        yield element("path", class_=phase_class(name), d="".join(path))


def _hover(axes: Axes, one: Slice, per: str) -> Html:
    parts = sorted(one.phases.items(), key=lambda item: -item[1])
    costs = "\n".join(f"{name} {number(1e6 * seconds / _count(one, per))}" for name, seconds in parts if seconds > 0)
    total = f"{number(1e6 * one.seconds / _count(one, per))} us per {per}"
    words = f"at {duration(one.start_seconds)}: {total}, {one.env_steps:,} env steps, {one.updates:,} updates\n{costs}"
    return hover(axes, one.start_seconds, one.start_seconds + one.seconds, words)


_PARTS = ("u-forward", "u-backward", "u-optimiser", "u-rest")


def phase_bars(trace: Trace) -> Html:
    """One bar of the whole loop, the update's parts right below the update, and the table they are drawn from."""
    loop = [row for row in phase_rows(trace) if row.name not in OUTSIDE and row.seconds > 0]
    parts = update_rows(trace)
    whole = _stacked([(row, phase_class(row.name)) for row in loop])
    return join([whole, _update_bar(loop, parts), _costs(trace, loop, parts)])


def _update_bar(loop: Sequence[CostRow], parts: Sequence[CostRow]) -> Html | None:
    names = [row.name for row in loop]
    if UPDATE not in names or not any(part.seconds > 0 for part in parts):
        return None
    styles = zip(parts, _PARTS, strict=False)
    return join(
        [element("p", "and of the update", class_="label"), _stacked([pair for pair in styles if pair[0].seconds > 0])]
    )


def _stacked(rows: Sequence[tuple[CostRow, str]]) -> Html:
    total = sum(row.seconds for row, _ in rows) or 1.0
    pieces = (_piece(row, style, row.seconds / total) for row, style in rows)
    return element("div", *pieces, class_="stacked", role="img", aria_label="; ".join(_spoken(row) for row, _ in rows))


def _piece(row: CostRow, style: str, width: float) -> Html:
    words = f"{row.name}: {duration(row.seconds)}, {percent(row.share)} of the loop"
    label = element("span", row.name, element("small", percent(row.share)))
    return element("div", label, class_=f"piece {style}", style=f"width:{100 * width:.4g}%", title=words)


def _spoken(row: CostRow) -> str:
    return f"{row.name} {percent(row.share)}"


def _costs(trace: Trace, loop: Sequence[CostRow], parts: Sequence[CostRow]) -> Html:
    rows: list[list[Child]] = []
    widest = max((row.share for row in loop), default=1.0)
    for row in loop:
        rows.append(_cells(row, phase_class(row.name), widest))
        if row.name == UPDATE:
            rows += [_cells(part, f"part {style}", widest) for part, style in zip(parts, _PARTS, strict=False)]
    rows.append(_cells(cost_row(trace, "the loop", trace.loop_seconds), "total", widest))
    rows += [_cells(row, phase_class(row.name), widest) for row in phase_rows(trace) if row.name in OUTSIDE]
    return table(["phase", "", "share", "seconds", "us / env step", "us / update"], rows, class_="costs")


def _cells(row: CostRow, style: str, widest: float) -> list[Child]:
    swatch = bar = None
    if style != "total":
        swatch = element("i", class_=f"swatch {style}", aria_hidden="true")
        bar = element("i", class_=style, style=f"width:{100 * row.share / widest:.4g}%")
    label = element("span", swatch, row.name, class_=style.split()[0])
    costs = [f"{row.seconds:.2f}", number(row.us_per_env_step), number(row.us_per_update)]
    return [label, element("div", bar, class_="track"), percent(row.share) if row.share else "-", *costs]


@dataclass(frozen=True)
class RatioScale:
    """Ratios on a line from 0 to 100, in logarithms: twice as fast and twice as slow are equally far from 1."""

    low: float
    high: float

    @classmethod
    def around(cls, ratios: Sequence[float]) -> RatioScale:
        ends = [math.log(ratio) for ratio in (*ratios, 0.9, 1.1) if ratio > 0]
        room = 0.06 * (max(ends) - min(ends))
        return cls(min(ends) - room, max(ends) + room)

    def place(self, ratio: float) -> float:
        return min(100.0, max(0.0, 100 * (math.log(max(ratio, 1e-9)) - self.low) / (self.high - self.low)))


def whiskers(experiments: Sequence[Experiment], clock: str = WALL) -> Html:
    """One row per experiment: a dot and its interval by the report's clock, and a line where nothing changes."""
    if not experiments:
        return Html("")
    ratios = [measured_by(one, clock) for one in experiments]
    scale = RatioScale.around([end for ratio in ratios for end in ratio])
    rows = (_experiment(one, ratio, scale) for one, ratio in zip(experiments, ratios, strict=True))
    return element("div", *rows, class_="whiskers")


def _experiment(one: Experiment, ratio: Ratio, scale: RatioScale) -> Html:
    name = element("div", element("b", one.name), element("span", prose(one.what), class_="what"), class_="name")
    second = None
    if one.processor:
        named, other = ("processor", PROCESSOR) if ratio.value == one.ratio else ("wall-clock", WALL)
        beside = measured_by(one, other)
        second = element("span", f"{named} {times(beside.value)} {interval(beside.low, beside.high)}", class_="what")
    told = f" {interval(ratio.low, ratio.high)}"
    shown = element("div", element("b", times(ratio.value)), told, second, class_="ratio")
    return element("div", name, _whisker(ratio, scale), shown, badge(one.kind), class_="experiment")


def _whisker(ratio: Ratio, scale: RatioScale) -> Html:
    style = "faster" if ratio.low > 1 else "slower" if ratio.high < 1 else "unclear"
    reach = f"left:{scale.place(ratio.low):.4g}%;width:{scale.place(ratio.high) - scale.place(ratio.low):.4g}%"
    marks = [
        element("i", class_="one", style=f"left:{scale.place(1.0):.4g}%"),
        element("i", class_="reach", style=reach),
        element("i", class_="dot", style=f"left:{scale.place(ratio.value):.4g}%"),
    ]
    spoken = f"{times(ratio.value)} {interval(ratio.low, ratio.high)}"
    return element("div", *marks, class_=f"axis {style}", role="img", aria_label=spoken)


def badge(kind: str) -> Html:
    return element("span", kind, class_="badge learning" if kind == CHANGES_LEARNING else "badge keeps")


_DEEPEST, _MOST_BOXES, _ROW = 48, 700, 21


@dataclass
class ChartBox:
    name: str
    phase: str
    seconds: float = 0.0
    children: dict[str, ChartBox] = field(default_factory=dict)

    def child(self, name: str, phase: str) -> ChartBox:
        return self.children.setdefault(name, ChartBox(name, phase))


@dataclass(frozen=True)
class Placed:
    box: ChartBox
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


def grow_tree(stacks: Sequence[StackCost]) -> ChartBox:
    """Phases below the root, then frames, outermost first; equal beginnings share a box."""
    root = ChartBox("the loop", "")
    for stack in sorted(stacks, key=lambda stack: stack.phase):
        box = root
        box.seconds += stack.seconds
        for name in (stack.phase, *stack.frames[:_DEEPEST]):
            box = box.child(name, stack.phase)
            box.seconds += stack.seconds
    return root


def visible(root: ChartBox) -> list[Placed]:
    """The boxes wide enough to matter, as few as a page can carry."""
    boxes = list(_placed(root, root.seconds, 0, 0.0))
    if len(boxes) <= _MOST_BOXES:
        return boxes
    # A parent is never narrower than its child, so that what is kept hangs together.
    narrowest = sorted((placed.width for placed in boxes), reverse=True)[_MOST_BOXES]
    return [placed for placed in boxes if placed.width > narrowest or not placed.depth]


def _placed(box: ChartBox, total: float, depth: int, left: float) -> Iterator[Placed]:
    yield Placed(box, depth, left, box.seconds / total)
    for child in sorted(box.children.values(), key=lambda child: -child.seconds):
        yield from _placed(child, total, depth + 1, left)
        left += child.seconds / total


def _drawn(placed: Placed, total: float) -> Html:
    box = placed.box
    place = f"left:{100 * placed.left:.4g}%;width:{100 * placed.width:.4g}%;top:{_ROW * placed.depth}px"
    words = f"{box.name}\n{duration(box.seconds)}, {percent(box.seconds / total)} of what was sampled"
    style = f"{phase_class(box.phase)} d{min(placed.depth, 3)}" if placed.depth else "root"
    return element("div", box.name, class_=style, style=place, title=words)
