"""Every remedy that keeps the computation is run as printed, beside what it replaces, and compared.

Both texts are executed in namespaces that hold the names they use, from the same start. What stands above a line
`# in the loop` is executed once, the rest fifty times, on new inputs each time; where a network learns, an update
follows each. Harnesses of the rules are in `remedy_trials.py` and `remedy_trials_further.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from hotloop.core.verdicts import BUT_FOR_DRAWS, IDENTICAL
from hotloop.core.verdicts import CHANGES_LEARNING as CHANGES
from hotloop.doctor.finding import Finding, Remedy, Rule
from hotloop.doctor.rules import load_rules
from hotloop.doctor.trace import Subject, Trace
from tests.doctor.remedy_trials import TRIALS as FIRST
from tests.doctor.remedy_trials import Trial
from tests.doctor.remedy_trials_further import FURTHER, forget_stand_ins

ROUNDS = 50
TRIALS = FIRST | FURTHER
RULES = load_rules()
KEEPING = [rule for rule in RULES if rule.kind != CHANGES]
NOTHING_TO_RUN = {"MACHINE005": "the pause is taken out and nothing takes its place"}
CHANGED = {"UPDATE005": "fewer updates", "UPDATE009": "another precision"}
LOOP = re.compile(r"^# in the loop.*\n?", re.MULTILINE)


@pytest.fixture(autouse=True)
def stand_ins_forgotten() -> Iterator[None]:
    yield
    forget_stand_ins()


def parts_of(text: str, once: bool) -> tuple[str, str]:
    """What is executed once, and what in the loop."""
    parts = LOOP.split(text)
    return (parts[0], parts[1]) if len(parts) == 2 else (text, "") if once else ("", text)


def played(rule: str, text: str, trial: Trial) -> list[Any]:
    """What a snippet computed in each round."""
    names = trial.start()
    once, loop = (compile(part, rule, "exec") for part in parts_of(text, trial.once))
    exec(once, names)
    trial.ready(names)
    seen = []
    for step in range(ROUNDS):
        trial.feed(names, step)
        exec(loop, names)
        seen.append(trial.read(names))
    trial.close(names)
    return seen


@pytest.mark.parametrize("rule", [rule.code for rule in KEEPING if rule.code not in NOTHING_TO_RUN])
def test_a_remedy_that_keeps_the_computation_computes_what_it_replaces(rule: str, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    remedy, trial = next(one for one in RULES if one.code == rule).remedy, TRIALS[rule]
    before, after = (played(rule, text, trial) for text in (remedy.before, remedy.after))
    assert len(before) == len(after) == ROUNDS
    for step, (plain, fast) in enumerate(zip(before, after, strict=True)):
        compare(plain, fast, trial.tolerance, f"{rule}, round {step}")
    assert len({as_bytes(one) for one in before}) > 1, "nothing happened in the rounds"


@pytest.mark.parametrize(
    "rule",
    [rule for rule in KEEPING if rule.kind == IDENTICAL or (rule.kind == BUT_FOR_DRAWS and rule.code[:5] == "STORE")],
    ids=lambda rule: rule.code,
)
def test_what_is_called_identical_is_compared_bit_by_bit(rule: Rule) -> None:
    assert rule.code in NOTHING_TO_RUN or TRIALS[rule.code].tolerance == 0.0


def compare(plain: Any, fast: Any, tolerance: float, where: str) -> None:
    if isinstance(plain, (list, tuple)) and plain and isinstance(plain[0], np.ndarray):
        for one, other in zip(plain, fast, strict=True):
            compare(one, other, tolerance, where)
    elif tolerance:
        np.testing.assert_allclose(fast, plain, rtol=tolerance, atol=tolerance, err_msg=where)
    else:
        np.testing.assert_array_equal(fast, plain, err_msg=where)


def as_bytes(value: Any) -> bytes:
    parts = value if isinstance(value, (list, tuple)) and value and isinstance(value[0], np.ndarray) else [value]
    return b"".join(np.asarray(part).tobytes() for part in parts)


def test_every_rule_is_run_or_has_its_reason() -> None:
    keeping = {rule.code for rule in KEEPING}
    assert TRIALS.keys() | NOTHING_TO_RUN.keys() == keeping
    assert not TRIALS.keys() & NOTHING_TO_RUN.keys()
    assert {rule.code for rule in RULES} - keeping == CHANGED.keys()
    for rule in RULES:
        assert bool(rule.remedy.after) == (rule.code not in NOTHING_TO_RUN), rule.code


def test_a_finding_gets_the_remedy_and_the_kind_of_its_rule() -> None:
    """`before` is the reader's own line where the rule named one, and the remedy's example otherwise."""

    def judge(trace: Trace) -> Finding:
        return Finding(share=0.5, evidence="half.", expected_gain=2.0, before=trace.subject.name)

    rule = Rule("X001", "Title", "Why", judge, Remedy("Do it.", "slow()", "fast()"), CHANGES, "it rains")
    found = [
        rule.find(Trace(subject=Subject(kind="script", name=own), machine={}, seconds=1.0, phases={}))
        for own in ("", "mine()")
    ]
    example = "# an example of other code than yours; fast stand for your own\nfast()"
    assert [(one.remedy, one.before, one.after, one.kind, one.condition) for one in found if one] == [
        ("Do it.", before, example, CHANGES, "it rains") for before in ("slow()", "mine()")
    ]


def test_the_rate_of_a_late_stretch_leaves_the_warm_up_out() -> None:
    remedy = next(one for one in RULES if one.code == "LOG004").remedy
    rates = []
    for text in (remedy.before, remedy.after):
        names = TRIALS["LOG004"].start()
        exec(text, names)
        rates.append(names["rate"])
    assert rates == pytest.approx([50 / 10.4, 100.0])  # ten steps of a second, forty of a hundredth


def test_the_remedy_that_forgot_its_count_would_be_found_out() -> None:
    """What UPDATE006 once printed: Adam at its first step for ever, and a target that never moves."""
    remedy, trial = next(one for one in RULES if one.code == "UPDATE006").remedy, TRIALS["UPDATE006"]
    forgetful = remedy.after + "\nlearner._counters.updates = 0"
    plain, fast = played("UPDATE006", remedy.before, trial)[-1], played("UPDATE006", forgetful, trial)[-1]
    assert np.linalg.norm(fast - plain) > 0.02 * np.linalg.norm(plain)
