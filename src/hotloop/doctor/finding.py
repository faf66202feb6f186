"""A finding: one diagnosed cost, with evidence and remedy; and the registry of the rules that make them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from math import prod
from typing import Any, NamedTuple

from hotloop.core.verdicts import BUT_FOR_DRAWS as BUT_FOR_DRAWS
from hotloop.core.verdicts import CHANGES_LEARNING as CHANGES_LEARNING
from hotloop.core.verdicts import IDENTICAL as IDENTICAL
from hotloop.core.verdicts import NOT_TRIED, TRIED, Keeps
from hotloop.core.verdicts import TO_ROUNDING as TO_ROUNDING
from hotloop.doctor.experiments import tried_ratio
from hotloop.doctor.roofline import arithmetic_share
from hotloop.doctor.snippets import with_foreign_names
from hotloop.doctor.trace import (
    ACT,
    CHECKPOINT,
    ENV,
    EVALUATE,
    LOG,
    SAMPLE,
    STORE,
    STORE_AND_SAMPLE,
    UPDATE,
    Trace,
)

SPEED_TRIED = f"speed {TRIED}"
"""An experiment made the change on this program and timed it; what it computes was not compared."""


class Remedy(NamedTuple):
    """What to do, with the code that people typically have and the code that takes its place."""

    text: str
    before: str = ""
    after: str = ""
    """An example; what a reader sees is `written`."""
    port: bool = False
    """Whether it hands a part of the program over to hotloop, rather than mending it where it stands."""
    takes_over: bool = False
    """Whether it replaces, in place, what other remedies would mend in the same part of the loop; a port does too."""
    fill: Callable[[Trace, str], str] | None = None
    """`after` with the sizes and settings of the program that was recorded, and its line at `where`; None where it
    holds none. What was not recorded stands there as `...`."""

    def written(self, trace: Trace, where: str = "") -> str:
        return self.fill(trace, where) if self.fill is not None else self.after


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What costs time, how it is known, and what to do about it. A rule's function gives share, evidence, places and
    gain; the rest is the rule's own and filled in by `Rule.find`."""

    share: float
    """The part of loop time it takes, 0 to 1."""
    evidence: str
    """A sentence with the measured numbers."""
    where: str = ""
    """`file.py:line` of the user's own source, where one line can be named."""
    remedy: str = ""
    before: str = ""
    """A line or a few of code as they stand, typically; shown beside `after`."""
    after: str = ""
    expected_gain: float
    """How many times faster the whole loop would be, by Amdahl from the measured share."""
    kind: Keeps = TO_ROUNDING
    condition: str = ""
    """What must hold for the remedy to keep that much, and was not looked at; empty where nothing is left open."""
    tried: str = NOT_TRIED
    """Or SPEED_TRIED."""
    measured_gain: float | None = None
    """How many times faster the loop was with the remedy, where that was tried."""
    rule: str = ""
    title: str = ""
    lines: tuple[str, ...] = field(default=())
    """Further places, most expensive first."""
    port: bool = False
    """Whether the remedy hands a part of the program over to hotloop."""
    takes_over: bool = False
    """Whether it replaces, in place, what other remedies would mend in the same part of the loop."""

    @property
    def keeps(self) -> bool:
        """Whether the remedy keeps the computation: the same bits, or the same up to rounding."""
        return self.kind != CHANGES_LEARNING

    @property
    def gain(self) -> float:
        """As measured, where it was, otherwise as expected."""
        return self.expected_gain if self.measured_gain is None else max(1.0, self.measured_gain)

    @property
    def saved(self) -> float:
        """The part of loop time that is gone with the remedy."""
        return 1 - 1 / self.expected_gain

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


RuleFunction = Callable[[Trace], Finding | None]


@dataclass(frozen=True)
class Rule:
    code: str
    title: str
    """The first line of the function's docstring."""
    explanation: str
    """The rest of it: why it costs, and the remedy. `docs/findings.md` is made of these."""
    judge: RuleFunction
    remedy: Remedy
    kind: Keeps
    """What the remedy keeps of the computation."""
    condition: str = ""
    """What must hold for that and no recording shows; reads on from "keeps the computation if"."""

    def find(self, trace: Trace) -> Finding | None:
        """The finding as readers see it; its `before` is their own line where the function named one. Where a library
        runs the loop, the remedy is the setting of that library which decides."""
        found = self.judge(trace)
        if found is None:
            return None
        knob = knob_of(trace, self.code)
        remedy = knob.remedy if knob else self.remedy
        made = trace.made.get(knob.made_by, "") if knob else ""
        own, where = (trace.sources.get(made, ""), made) if made else (found.before, found.where)
        return replace(
            found,
            rule=self.code,
            title=self.title,
            evidence=found.evidence[:1].upper() + found.evidence[1:],
            where=where,
            lines=tuple(
                one for one in dict.fromkeys((found.where, *found.lines)) if one not in ("", made or found.where)
            ),
            remedy=remedy.text,
            before=remedy.before if knob and not made else own or remedy.before,
            after=with_foreign_names(remedy.written(trace, found.where), trace, remedy.fill is None),
            kind=self.kind,
            condition=found.condition or self.condition,
            port=remedy.port,
            takes_over=remedy.takes_over,
        )


RULES: dict[str, Rule] = {}


class Knob(NamedTuple):
    """The setting of a library that decides what a rule found, for programs that only call the library's loop."""

    library: str
    """Or ANY: for those of which no setting is known."""
    rule: str
    made_by: str
    """What the setting is given to: a key of `Trace.made`, whose line is the one to edit."""
    remedy: Remedy
    algorithms: tuple[str, ...] = ()
    """Classes that have it; empty: all."""


KNOBS: list[Knob] = []
ANY = "*"


def knob_of(trace: Trace, rule: str) -> Knob | None:
    setup = trace.setup
    if not setup.library:
        return None
    known = sorted(KNOBS, key=lambda knob: knob.library == ANY)
    fitting = (knob for knob in known if knob.rule == rule and knob.library in (setup.library, ANY))
    return next((one for one in fitting if not one.algorithms or setup.algorithm in one.algorithms), None)


def rule(code: str, remedy: Remedy, kind: Keeps, condition: str = "") -> Callable[[RuleFunction], RuleFunction]:
    """Register a rule under `code` with what to do about its findings; its docstring is what users read about it."""

    def register(judge: RuleFunction) -> RuleFunction:
        if code in RULES:
            raise ValueError(f"two rules are called {code}")
        title, _, explanation = inspect.getdoc(judge).partition("\n")  # type: ignore[union-attr]
        RULES[code] = Rule(code, title.rstrip("."), explanation.strip(), judge, remedy, kind, condition)
        return judge

    return register


RELIEF = 0.5
"""What stands beside a large cost gets faster too when it goes: code and data no longer push each other out of the
caches. Over the slow scripts of our tests the rest took up to 1.6 times as long beside a cost of 70 % as
without it."""


def expected_gain(share: float, speedup: float = float("inf"), relief: float = RELIEF) -> float:
    """How many times faster the whole becomes if `share` of it becomes `speedup` times faster: Amdahl, and relief."""
    gone = share * (1 - 1 / speedup)
    rest = (1 - share) / (1 + relief * gone)
    return 1 / max(1e-9, rest + share / speedup)


LEAST_GAIN = 1.02
"""Below it nobody would edit a line."""
PROMISE_NOTHING = ("LOG004",)
"""Rules that find a wrong figure, not a slow loop: told whatever they gain."""
MOST_TOUCHED, ROUNDED = 0.995, 0.01
PHASES_OF = {
    "ENV": (ENV,),
    "ACT": (ACT,),
    "STORE": (STORE, SAMPLE, STORE_AND_SAMPLE),
    "UPDATE": (UPDATE,),
    "LOG": (LOG, EVALUATE, CHECKPOINT),
}
"""What the findings of a group are about, besides the phases of the lines that they name."""
HALF = 0.5
"""A remedy in place that gains at least so much of what a port to hotloop gains comes before it."""


def findings(trace: Trace, rules: Iterable[Rule] | None = None) -> list[Finding]:
    """What every rule has to say: first what keeps the computation, then what changes learning, each with the greatest
    expected gain first; but a port to hotloop stands below what can be fixed in place for at least half of its gain.
    """
    found = [rule.find(trace) for rule in (RULES.values() if rules is None else rules)]
    possible = [_within_arithmetic(one, trace) for one in found if one is not None]
    worth = [one for one in possible if one.expected_gain >= LEAST_GAIN or one.rule in PROMISE_NOTHING]
    return ranked((_as_tried(one, trace) for one in worth), in_library=bool(trace.beneath))


def _as_tried(finding: Finding, trace: Trace) -> Finding:
    """With what an experiment measured of the very change."""
    ratio = tried_ratio(trace, finding.rule)
    return finding if ratio is None else replace(finding, tried=SPEED_TRIED, measured_gain=ratio.value)


def _within_arithmetic(finding: Finding, trace: Trace) -> Finding:
    """What computes the same cannot gain more on updates than leaves their matrix products; that is said."""
    arithmetic = arithmetic_share(trace)
    if not finding.keeps or _group(finding) != "UPDATE" or not arithmetic or finding.takes_over:
        return finding
    concerned = max(finding.share, trace.share(UPDATE, SAMPLE, STORE_AND_SAMPLE))
    most = expected_gain(max(0.0, min(1.0, concerned) - arithmetic))
    if finding.expected_gain <= most:
        return finding
    why = f" The matrix products by themselves take {arithmetic:.0%} of the loop: more than this gain is not possible."
    return replace(finding, expected_gain=most, evidence=finding.evidence + why)


def ranked(found: Iterable[Finding], in_library: bool = False) -> list[Finding]:
    """What keeps the computation first. Then by the loop time saved; of a port half of it counts, so that it falls
    behind remedies in place. Where a library runs the loop there is no line to put a port: it comes last."""
    weight = 0.0 if in_library else HALF
    return sorted(
        found,
        key=lambda one: (not one.keeps, -one.saved * (weight if one.port else 1.0), one.port, -one.expected_gain),
    )


def together(found: Iterable[Finding], trace: Trace) -> float:
    """How many times faster the loop becomes by all findings that keep the computation: what each leaves of the time,
    multiplied; never more than leaves what none of them touches.

    Where their times lie apart it becomes faster still; where they overlap, they are counted as if they did by chance.
    What takes over a part of the loop (a port) does so instead of what could be fixed inside it: whichever gains more
    counts.
    """
    keeping = [one for one in found if one.keeps]
    whole = [one for one in keeping if one.takes_over or one.port]
    fixed = [one for one in keeping if one not in whole]
    replaced = {_group(one) for one in whole}
    with_whole = whole + [one for one in fixed if _group(one) not in replaced]
    return max(_product(chosen, trace) for chosen in (fixed, with_whole))


def _product(found: Sequence[Finding], trace: Trace) -> float:
    gains = [one.gain for one in found]
    touched = min(sum(one.share for one in found), _share_of_phases(found, trace), MOST_TOUCHED)
    return max([1.0, *gains, min(prod(gains), 1 / (1 - touched))])


def _share_of_phases(found: Sequence[Finding], trace: Trace) -> float:
    """Of the loop, all phases that these findings are about."""
    phases: set[str] = set()
    for one in found:
        where = {one.where, *one.lines}
        its = {*PHASES_OF.get(_group(one), ()), *(line.phase for line in trace.lines if line.where in where)}
        if trace.share(*its) < one.share - ROUNDED:
            return 1.0
        phases |= its
    return trace.share(*phases)


def _group(finding: Finding) -> str:
    """`UPDATE` of UPDATE006."""
    return finding.rule.rstrip("0123456789")
