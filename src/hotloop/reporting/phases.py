"""Where the run's time went: in all, and through the run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from hotloop.doctor.trace import PHASES
from hotloop.render.html import Child, Html, element, join, phase_class, section, table
from hotloop.render.numbers import count, duration, number, percent, shortened
from hotloop.render.plots import Axes, hover, plot
from hotloop.reporting.facts import PhaseInterval, RunFacts, Series, phases_of, stretches
from hotloop.reporting.learning import small_plot

APART = ("start-up", "compile")
"""Once per run or per machine, so no part of the shares."""
_MOST_PHASES = 16
_REST = "other phases"


def phase_shares(facts: RunFacts) -> Html:
    totals = _totals(facts)
    if not totals:
        words = "The log has no row with phases yet."
        return section("Where the time went", element("p", words, class_="missing"))
    parts = [_few_phases(part, totals) for part in stretches(facts.rows)]
    body = [_bar(totals), _through(parts, totals), _table(totals, facts.env_steps), _speed(parts)]
    note = "Shares of the loop: start-up and the compiling of kernels, which happen once, stand apart."
    return section("Where the time went", *body, note=note)


def _totals(facts: RunFacts) -> dict[str, float]:
    """Seconds of each phase in all, in the order of a loop."""
    rows = [facts.result, *reversed(facts.rows)]
    seconds: dict[str, float] = next((found for row in rows if (found := phases_of(row))), {})
    largest = sorted(seconds, key=lambda name: -seconds[name])[:_MOST_PHASES]
    totals = {name: seconds[name] for name in _ordered(largest) if seconds[name] > 0}
    rest = sum(seconds.values()) - sum(totals.values())
    return totals | ({_REST: rest} if len(seconds) > _MOST_PHASES and rest > 0 else {})


def _few_phases(part: PhaseInterval, totals: dict[str, float]) -> PhaseInterval:
    phases = dict.fromkeys(totals, 0.0)
    for name, seconds in part.phases.items():
        kept = name if name in totals else _REST
        phases[kept] = phases.get(kept, 0.0) + seconds
    return PhaseInterval(part.start, part.end, phases)


def _ordered(names: Iterable[str]) -> list[str]:
    return sorted(names, key=lambda name: PHASES.index(name) if name in PHASES else len(PHASES))


def _loop(phases: dict[str, float]) -> dict[str, float]:
    return {name: seconds for name, seconds in phases.items() if name not in APART}


def _bar(totals: dict[str, float]) -> Html:
    loop = _loop(totals)
    whole = sum(loop.values()) or 1.0
    pieces = (_piece(name, seconds, seconds / whole) for name, seconds in loop.items())
    spoken = "; ".join(f"{shortened(name)} {percent(seconds / whole)}" for name, seconds in loop.items())
    return element("div", *pieces, class_="stacked", role="img", aria_label=spoken)


def _piece(name: str, seconds: float, share: float) -> Html:
    label = element("span", shortened(name), element("small", percent(share)))
    hint = f"{shortened(name)}: {duration(seconds)}, {percent(share)} of the loop"
    return element("div", label, class_=f"piece {phase_class(name)}", style=f"width:{100 * share:.4g}%", title=hint)


def _through(parts: Sequence[PhaseInterval], totals: dict[str, float]) -> Html | None:
    parts = [part for part in parts if sum(_loop(part.phases).values()) > 0]
    if len(parts) < 2:
        return None
    axes = Axes(parts[0].start, parts[-1].end, 0.0, 1.0, "env steps", "share of the loop, through the run", True)
    names = list(_loop(totals))
    shapes: list[Child] = [*_layers(axes, parts, names), *(_words(axes, part) for part in parts)]
    first, last = (_loop(parts[place].phases) for place in (0, -1))
    spoken = f"shares of phases: mostly {max(first, key=first.__getitem__)} at first, "
    spoken += f"mostly {max(last, key=last.__getitem__)} at last"
    keys = (element("span", element("i", class_=f"swatch {phase_class(name)}"), shortened(name)) for name in names)
    return element(
        "div", plot(axes, join(shapes), shortened(spoken)), element("div", *keys, class_="legend"), class_="through"
    )


def _layers(axes: Axes, parts: Sequence[PhaseInterval], names: Sequence[str]) -> Iterator[Html]:
    """One area per phase, in steps: a share holds for its whole stretch."""
    wholes = [sum(_loop(part.phases).values()) for part in parts]
    floors = [0.0] * len(parts)
    for name in names:
        tops = [
            min(1.0, floor + part.phases.get(name, 0.0) / whole)
            for floor, part, whole in zip(floors, parts, wholes, strict=True)
        ]
        there = "".join(_step(axes, part, top) for part, top in zip(parts, tops, strict=True))
        back = "".join(
            f"H{axes.x(part.end):.4g}V{axes.y(floor):.4g}H{axes.x(part.start):.4g}"
            for part, floor in zip(reversed(parts), reversed(floors), strict=True)
        )
        yield element("path", class_=phase_class(name), d=f"M0 {axes.y(tops[0]):.4g}{there}{back}z")
        floors = tops


def _step(axes: Axes, part: PhaseInterval, top: float) -> str:
    return f"V{axes.y(top):.4g}H{axes.x(part.end):.4g}"


def _words(axes: Axes, part: PhaseInterval) -> Html:
    loop = _loop(part.phases)
    whole = sum(loop.values())
    largest = sorted(loop.items(), key=lambda item: -item[1])
    told = "\n".join(f"{shortened(name)} {percent(seconds / whole)}" for name, seconds in largest if seconds > 0)
    return hover(axes, part.start, part.end, f"{count(part.start)} to {count(part.end)} env steps\n{told}")


def _table(totals: dict[str, float], env_steps: int) -> Html:
    loop = _loop(totals)
    whole = sum(loop.values()) or 1.0
    ordered = sorted(loop, key=lambda name: -loop[name]) + [name for name in totals if name in APART]
    widest = max(loop.values(), default=1.0) or 1.0
    rows: list[list[Child]] = []
    for name in ordered:
        share = loop[name] / whole if name in loop else None
        swatch = element("i", class_=f"swatch {phase_class(name)}", aria_hidden="true")
        bar = None
        if share is not None:
            bar = element("i", class_=phase_class(name), style=f"width:{100 * loop[name] / widest:.4g}%")
        each = number(1e6 * totals[name] / env_steps) if env_steps and share is not None else "-"
        told = "apart" if share is None else percent(share)
        label = element("span", swatch, shortened(name))
        rows.append([label, element("div", bar, class_="track"), told, f"{totals[name]:.2f}", each])
    return table(["phase", "", "share", "seconds", "us / env step"], rows, class_="costs")


def _speed(parts: Sequence[PhaseInterval]) -> Html | None:
    timed = [
        (part.end, (part.end - part.start) / part.training_seconds) for part in parts if part.training_seconds > 1e-6
    ]
    if len(timed) < 2:
        return None
    one = Series("env steps per second", [end for end, _ in timed], [], [rate for _, rate in timed])
    return element("div", small_plot(one, "of training, in each stretch of the run"), class_="speed")
