"""Small real programs, each slow for one reason, run through the recorder: the first finding names it, on its line.

The healthy twin is the same program after the named remedy (`--healthy`): the finding is gone. Gains are compared by
`tests/slow_scripts/check.py`, since times are no matter for an assertion.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from hotloop.doctor.finding import Finding, findings
from hotloop.doctor.recorder.meters import usable_cores
from hotloop.doctor.rules import load_rules
from hotloop.doctor.script import ScriptPlan, record_script
from tests.slow_scripts.check import LONG, NEAR_LINES, NEED_CORES, lines_off, table

SLOW_SCRIPTS = Path(__file__).parents[1] / "slow_scripts"
REFERENCE = Path(__file__).parents[2] / "src" / "hotloop" / "proof" / "reference"
RULES = load_rules()
TABLE = table()
MOST_IMPORTANT = ("env_flood_fill", "store_push", "update_names")
MEASURED_THREADS = ("MACHINE001", "MACHINE002")


@cache
def diagnosis(script: str, seconds: float, rule: str, *arguments: str) -> tuple[Finding, ...]:
    threads = rule in MEASURED_THREADS
    plan = ScriptPlan(seconds=seconds, counting_seconds=5.0, threads=threads, threads_seconds=8.0)
    return tuple(findings(record_script(Path(script), arguments, plan, lambda text: None)))


def is_named_first(script: Path, rule: str, text: str, *arguments: str, seconds: float = 4.0) -> None:
    found = diagnosis(str(script), seconds, rule, *arguments)
    told = [(one.rule, one.where, one.evidence) for one in found]
    assert found, "no finding"
    assert found[0].rule == rule, told
    off = lines_off(script, text, found[0].where)
    assert off is not None, told
    assert off <= NEAR_LINES, told


def is_not_found(script: Path, rule: str) -> None:
    found = diagnosis(str(script), 4.0, rule, *LONG, "--healthy")
    assert rule not in [one.rule for one in found], [(one.rule, one.evidence) for one in found]


def test_every_rule_has_a_slow_script_and_every_script_is_in_the_table() -> None:
    assert {rule for _, rule, _ in TABLE} == {rule.code for rule in RULES}
    scripts = {path.stem for path in SLOW_SCRIPTS.glob("*.py")} - {"training", "check"}
    assert scripts == {name for name, _, _ in TABLE}
    for name, _, text in TABLE:
        files = (SLOW_SCRIPTS / f"{name}.py", SLOW_SCRIPTS / "training.py")
        assert text, name
        assert any(text in file.read_text() for file in files), name


@pytest.mark.parametrize(("name", "rule", "text"), [row for row in TABLE if row[0] in MOST_IMPORTANT])
def test_the_first_finding_names_a_well_known_cause(name: str, rule: str, text: str) -> None:
    is_named_first(SLOW_SCRIPTS / f"{name}.py", rule, text, *LONG)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "rule", "text"), TABLE)
def test_the_first_finding_names_the_cause_on_its_line(name: str, rule: str, text: str) -> None:
    if rule in NEED_CORES and usable_cores() < 2:
        pytest.skip("not run: it needs two cores")
    is_named_first(SLOW_SCRIPTS / f"{name}.py", rule, text, *LONG)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "rule"), [row[:2] for row in TABLE])
def test_the_finding_is_gone_after_the_remedy(name: str, rule: str) -> None:
    is_not_found(SLOW_SCRIPTS / f"{name}.py", rule)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "rule", "text", "arguments"),
    [
        ("snake_dqn.py", "ENV001", "popleft()", ("--flood-fill",)),
        ("snake_dqn.py", "UPDATE005", "loss.backward()", ("--updates-per-step", "64")),
        ("snake_dqn.py", "STORE001", "[i].", ("--updates-per-step", "1")),
    ],
)
def test_the_plain_reference_program_is_slow_for_the_known_cause(
    script: str, rule: str, text: str, arguments: tuple[str, ...]
) -> None:
    is_named_first(REFERENCE / script, rule, text, *arguments, seconds=15.0)  # PyTorch's first update takes a second
