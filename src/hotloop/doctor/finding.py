"""A finding: one diagnosed cost, with evidence and remedy; and the registry of the rules that make them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple

from hotloop.doctor.trace import Trace

EXACT, CHANGES_LEARNING = "exact", "changes-learning"


class Remedy(NamedTuple):
    """What to do, with the code that people typically have and the code that takes its place."""

    text: str
    before: str = ""
    after: str = ""


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
    kind: str = EXACT
    rule: str = ""
    title: str = ""
    lines: tuple[str, ...] = field(default=())
    """Further places, most expensive first."""

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
    kind: str = EXACT
    """Whether the remedy computes the same, or changes what is learned."""

    def find(self, trace: Trace) -> Finding | None:
        """The finding as readers see it; its `before` is their own line where the function named one."""
        found = self.judge(trace)
        if found is None:
            return None
        return replace(
            found,
            rule=self.code,
            title=self.title,
            evidence=found.evidence[:1].upper() + found.evidence[1:],
            remedy=self.remedy.text,
            before=found.before or self.remedy.before,
            after=self.remedy.after,
            kind=self.kind,
        )


RULES: dict[str, Rule] = {}


def rule(code: str, remedy: Remedy, kind: str = EXACT) -> Callable[[RuleFunction], RuleFunction]:
    """Register a rule under `code` with what to do about its findings; its docstring is what users read about it."""

    def register(judge: RuleFunction) -> RuleFunction:
        if code in RULES:
            raise ValueError(f"two rules are called {code}")
        title, _, explanation = inspect.getdoc(judge).partition("\n")  # type: ignore[union-attr]
        RULES[code] = Rule(code, title.rstrip("."), explanation.strip(), judge, remedy, kind)
        return judge

    return register


RELIEF = 0.5
"""What stands beside a large cost gets faster too when it goes: code and data no longer push each other out of the
caches. Over the slow scripts of our tests the rest took up to 1.6 times as long beside a disease of 70 % as
without it."""


def expected_gain(share: float, speedup: float = float("inf"), relief: float = RELIEF) -> float:
    """How many times faster the whole becomes if `share` of it becomes `speedup` times faster: Amdahl, and relief."""
    gone = share * (1 - 1 / speedup)
    rest = (1 - share) / (1 + relief * gone)
    return 1 / max(1e-9, rest + share / speedup)


def findings(trace: Trace, rules: Iterable[Rule] | None = None) -> list[Finding]:
    """What every rule has to say, the greatest expected gain first."""
    found = [rule.find(trace) for rule in (RULES.values() if rules is None else rules)]
    return sorted((one for one in found if one is not None), key=lambda one: -one.expected_gain)
