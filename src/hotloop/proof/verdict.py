"""What came of holding somebody's fast version against the plain one: a verdict in words, its evidence, its cost.

One type for functions, envs, networks and programs; terminal, JSON and page are made of it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from hotloop.core.verdicts import BUT_FOR_DRAWS, IDENTICAL, TO_ROUNDING, ExitCode
from hotloop.proof.difference import Difference
from hotloop.proof.memory import PeakMemory
from hotloop.proof.speed import Speed
from hotloop.render.numbers import duration, times

Subject = Literal["functions", "envs", "modules", "programs"]
Verdict = Literal["identical", "to rounding", "the same but for draws", "different", "not comparable"]
"""`identical`: the same bits in everything that was compared, and everything was."""


@dataclass(frozen=True)
class SizeCost:
    """Both at one size of input."""

    size: int
    speed: Speed


@dataclass(frozen=True)
class PairCost:
    """Measured only where nothing differs. `unit` is what one second of `speed` divides into: a call, an env step."""

    speed: Speed
    unit: str = "call"
    plain_memory: PeakMemory | None = None
    fast_memory: PeakMemory | None = None
    sizes: tuple[SizeCost, ...] = ()
    rounds: int = 0
    """Of whole programs, where the interval is that from the lowest ratio to the highest."""
    wall_ratio: float | None = None
    clock: str = ""
    """What time it is that was measured, where that is not the processor time of our own process."""

    def growth(self) -> dict[str, float] | None:
        """Time per unit of size at the largest size over that at the smallest: 1 is flat."""
        if len(self.sizes) < 2:
            return None
        small, large = self.sizes[0], self.sizes[-1]
        units = large.size / small.size
        return {
            "from": small.size,
            "to": large.size,
            "plain": large.speed.first_seconds / small.speed.first_seconds / units,
            "fast": large.speed.second_seconds / small.speed.second_seconds / units,
        }

    def as_data(self) -> dict[str, Any]:
        plain, fast = self.plain_memory, self.fast_memory
        both = {"plain": plain, "fast": fast}
        return {
            "speedup": self.speed.ratio,
            "low": self.speed.low,
            "high": self.speed.high,
            "unit": self.unit,
            "seconds": {"plain": self.speed.first_seconds, "fast": self.speed.second_seconds},
            "peak_bytes": {name: one.peak_bytes for name, one in both.items() if one} or None,
            "allocations": {name: one.allocations for name, one in both.items() if one} or None,
            "rounds": self.rounds or None,
            "wall_speedup": self.wall_ratio,
            "clock": self.clock or "processor time",
            "sizes": [{"size": one.size, "speedup": one.speed.ratio} for one in self.sizes],
            "growth": self.growth(),
        }


@dataclass(frozen=True)
class DistributionTest:
    """Whether a measure of two stochastic envs comes from one distribution: `chance` of as large a distance if so."""

    measure: str
    plain: float
    fast: float
    """Means."""
    distance: float
    """The largest distance of the two distribution functions, 0 to 1."""
    chance: float
    """Holm's, over all tests made."""


@dataclass(frozen=True)
class Proof:
    """`hotloop.prove` of code that is not ours."""

    subject: Subject
    name: str
    plain: str
    fast: str
    difference: Difference | None
    evidence: dict[str, Any]
    """What was compared and how often, in the order in which a reader wants it."""
    notes: tuple[str, ...] = ()
    cost: PairCost | None = None
    tests: tuple[DistributionTest, ...] = ()
    """Made instead of equality, where the two draw their random numbers in another order."""
    draws_differently: bool = False
    rounding: bool = False
    """Whether some of what was compared is equal within the tolerance alone, not bit by bit."""
    not_compared: tuple[str, ...] = ()
    """What could not be, in words, and what would decide it."""
    words: str = ""
    """The verdict, where it takes more to say than what differs."""

    @property
    def verdict(self) -> Verdict:
        if self.difference is not None:
            return "different"
        if self.not_compared:
            return "not comparable"
        return BUT_FOR_DRAWS if self.draws_differently else TO_ROUNDING if self.rounding else IDENTICAL

    @property
    def equal(self) -> bool:
        """False for envs that draw in another order too, though nothing tells them apart."""
        return self.verdict in ("identical", "to rounding")

    @property
    def passed(self) -> bool:
        """Whether everything was compared, and nothing that differs was found."""
        return self.exit_code == ExitCode.YES

    @property
    def exit_code(self) -> ExitCode:
        return {"different": ExitCode.NO, "not comparable": ExitCode.UNDECIDED}.get(self.verdict, ExitCode.YES)

    def headline(self) -> str:
        if self.difference is not None:
            return f"different: {self.words or self.difference.sentence()}"
        if self.words:
            return self.words
        counted = _listed([_counted(what, count) for what, count in self.counts()])
        tolerance = self.evidence.get("tolerance") if self.subject == "programs" else None
        within = f" (within {tolerance:g})" if isinstance(tolerance, float) else ""
        same = f"the same to rounding{within}" if self.rounding else "identical"
        if self.not_compared:
            so_far = f"not everything was compared: {same} for {counted}" if counted else "not comparable"
            return "; ".join([so_far, *self.not_compared])
        if self.draws_differently:
            return f"{BUT_FOR_DRAWS}, as far as told: they draw random numbers in another order"
        every = "all " * (self.subject == "programs")
        return f"{same} for {every}{counted}" + (f", {_of_speed(self.cost)}" if self.cost else "")

    def counts(self) -> list[tuple[str, int]]:
        """Of the evidence, what was compared how often."""
        found = self.evidence.items()
        return [
            (what, count) for what, count in found if isinstance(count, int) and not isinstance(count, bool) and count
        ]

    def as_data(self) -> dict[str, Any]:
        return {
            "subject": self.subject,
            "name": self.name,
            "plain": self.plain,
            "fast": self.fast,
            "verdict": self.verdict,
            "headline": self.headline(),
            "difference": self.difference and self.difference.as_data(),
            "evidence": self.evidence,
            "not_compared": list(self.not_compared),
            "tests": [vars(test) for test in self.tests],
            "notes": list(self.notes),
            "cost": self.cost and self.cost.as_data(),
        }


def _of_speed(cost: PairCost) -> str:
    speed = cost.speed
    said = [cost.clock, "one round" if cost.rounds == 1 else ""]
    how = f" ({'; '.join(filter(None, said))})" if any(said) else ""
    if speed.low <= 1.0 <= speed.high:
        return f"about as fast{how}"
    return f"{times(speed.ratio)} {'faster' if speed.ratio > 1 else 'as fast'}{how}"


def _counted(what: str, count: int) -> str:
    return f"{count:,} {what if count != 1 else re.sub(r's(?= |$)', '', what, count=1)}"


def _listed(words: Sequence[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else "".join(words)


def lines(proof: Proof) -> list[str]:
    """For a terminal: the verdict, what shows a difference again, tests, cost, notes."""
    found = [f"{proof.name}: {proof.headline()}"]
    if proof.difference is not None and proof.difference.reproduction:
        found.append(f"  shown by: {proof.difference.reproduction}")
    if proof.rounding and "largest error" in proof.evidence:
        found.append(f"  largest error: {proof.evidence['largest error']} (tolerance: {proof.evidence['tolerance']})")
    for test in proof.tests:
        means = f"mean {test.plain:.4g} and {test.fast:.4g}"
        found.append(f"  {test.measure}: {means}, distance {test.distance:.2f}, chance {test.chance:.2g}")
    found += [f"  {name}: {value}" for name, value in cost_rows(proof.cost)]
    return found + [f"  note: {note}" for note in proof.notes]


def cost_rows(cost: PairCost | None) -> list[tuple[str, str]]:
    """What a reader of the cost wants to know, by name."""
    if cost is None:
        return []
    speed, growth = cost.speed, cost.growth()
    seconds = speed.first_seconds, speed.second_seconds
    interval = f"95 %: {times(speed.low)} to {times(speed.high)}"
    if cost.rounds:
        ends = f"{times(speed.low)} to {times(speed.high)} in {cost.rounds} rounds" if cost.rounds > 1 else "one round"
        interval = f"{cost.clock}; {ends}; {times(cost.wall_ratio)} on the wall"
    rows = [("speed-up", f"{times(speed.ratio)} ({interval})")]
    if cost.unit == "env step":
        rows.append(("env steps per second", f"plain {1 / seconds[0]:,.0f}, fast {1 / seconds[1]:,.0f}"))
    else:
        rows.append((f"time per {cost.unit}", f"plain {_short(seconds[0])}, fast {_short(seconds[1])}"))
    if cost.plain_memory and cost.fast_memory:
        kilobytes = [memory.peak_bytes / 1000 for memory in (cost.plain_memory, cost.fast_memory)]
        rows.append(("peak memory", f"plain {kilobytes[0]:,.1f} kB, fast {kilobytes[1]:,.1f} kB"))
        counts = cost.plain_memory.allocations, cost.fast_memory.allocations
        rows.append(("allocations", f"plain {counts[0]:,}, fast {counts[1]:,}"))
    rows += [(f"speed-up at size {one.size:,}", times(one.speed.ratio)) for one in cost.sizes]
    if growth is not None:
        said = f"plain x{growth['plain']:.2f}, fast x{growth['fast']:.2f} (1 is flat)"
        rows.append((f"time per unit from size {growth['from']:,} to {growth['to']:,}", said))
    return rows


def _short(seconds: float) -> str:
    return f"{1e6 * seconds:.3g} microseconds" if seconds < 1e-3 else duration(seconds)


def summary(proofs: Sequence[Proof]) -> str:
    wrong = sum(proof.verdict == "different" for proof in proofs)
    unknown = sum(proof.verdict == "not comparable" for proof in proofs)
    said = f"{len(proofs) - wrong - unknown} of {len(proofs)} pairs the same" + (f", {wrong} NOT" if wrong else "")
    return said + (f", {unknown} not comparable" if unknown else "")
