from __future__ import annotations

import json

import pytest
from rich.console import Console

from hotloop.proof import speed
from hotloop.proof.case import Case, Programs, TwoSizes
from hotloop.proof.case_rows import draw, keep, read_kept
from hotloop.proof.equivalence import Equality
from hotloop.proof.run import prove_case
from hotloop.proof.speed import Speed

KEYS = ["case", "kind", "equal", "verdict", "max_error", "tolerance", "speedup", "low", "high", "seconds", "peak_bytes"]


@pytest.fixture(autouse=True)
def _few_samples(monkeypatch):
    """What is timed here is no matter; how, is `test_paired_speed.py`'s."""
    monkeypatch.setattr(speed, "SAMPLE_SECONDS", 1e-4)
    monkeypatch.setattr(speed, "WARM_UP_SECONDS", 1e-3)


def make_case(error: float, changes=False, growth=None) -> Case:
    def build() -> Programs:
        return Programs(lambda: [0] * 1000, lambda: None, lambda fast, plain: Equality(error, "loss"), growth=growth)

    return Case("family", "n1", build, variant="variant", lane="eager", changes_learning=changes, tolerance=1e-3)


def test_a_row_has_the_promised_keys_and_is_json():
    row = prove_case(make_case(1e-4), seconds=0.01).as_data()
    assert list(row) == [*KEYS, "allocations", "growth"]
    assert json.loads(json.dumps(row)) == row
    assert row["case"] == "family/variant/eager/n1"
    assert row["equal"] is True
    assert (row["kind"], row["verdict"]) == ("to rounding", "to rounding")
    assert row["low"] <= row["speedup"] <= row["high"]
    assert row["peak_bytes"]["reference"] >= 8000  # a list of a thousand pointers
    assert row["peak_bytes"]["fast"] < 8000
    assert set(row["allocations"]) == {"fast", "reference"}


def test_a_case_that_is_not_equal_has_no_speed():
    row = prove_case(make_case(1e-2), seconds=0.01)
    data = row.as_data()
    assert row.equal is False
    assert data["max_error"] == 1e-2
    assert [data[name] for name in (*KEYS[6:], "allocations", "growth")] == [None] * 7


def test_the_calls_that_are_compared_are_the_calls_that_are_timed(monkeypatch):
    """And in that order: the first call of each is compared, whatever else is checked, then the same two are timed."""
    made: list[str] = []

    def reference() -> int:
        made.append("reference")
        return 1

    def fast() -> int:
        made.append("fast")
        return 2

    def compare(mine: int, theirs: int) -> Equality:
        made.append(f"{mine} against {theirs}")
        return Equality(0.0, "")

    class Playing:
        def end(self) -> None:
            made.append("the tape ends")

    def measure(first, second, seconds, clock):
        assert (first, second) == (reference, fast)
        made.append("timed")
        return Speed(1.0, 1.0, 1.0, 1.0, 1.0)

    monkeypatch.setattr(speed, "measure", measure)
    built = Programs(reference, fast, compare, further=lambda: Equality(0.0, ""), tape=Playing())
    prove_case(Case("family", "n1", lambda: built), seconds=0.01)
    assert made[:5] == ["fast", "reference", "2 against 1", "the tape ends", "timed"]


def test_every_call_of_several_is_compared():
    numbers = iter(range(6))
    built = Programs(lambda: next(numbers), lambda: next(numbers), lambda mine, theirs: Equality(theirs, ""), calls=3)
    assert built.check().max_error == 5


def test_a_wrong_answer_of_a_timed_call_is_not_outweighed_by_a_further_check():
    built = Programs(int, int, lambda mine, theirs: Equality(1.0, "loss"), further=lambda: Equality(0.0, ""))
    assert prove_case(Case("family", "n1", lambda: built), seconds=0.01).equal is False


def test_an_infinite_error_is_null_in_json():
    assert prove_case(make_case(float("inf")), seconds=0.01).as_data()["max_error"] is None


def test_equality_is_null_where_it_is_not_promised_and_the_speed_is_still_told():
    data = prove_case(make_case(0.5, changes=True), seconds=0.01).as_data()
    assert data["equal"] is None
    assert (data["kind"], data["verdict"]) == ("changes learning", "changes learning")
    assert data["max_error"] == 0.5
    assert data["speedup"] > 0


def test_growth_is_time_per_unit():
    def growth() -> TwoSizes:
        return TwoSizes(lambda: sum(range(500)), lambda: sum(range(5000)), 10.0, "N 500", "5000")

    data = prove_case(make_case(0.0, growth=growth), seconds=0.01).as_data()
    assert data["growth"]["from"] == "N 500"
    assert data["growth"]["to"] == "5000"
    assert data["growth"]["factor"] > 0


def test_the_table_shows_every_number_in_full():
    rows = [prove_case(make_case(error), seconds=0.01) for error in (1e-4, 1e-2)]
    console = Console(width=240, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(draw(rows))
    console.file.close()
    text = console.export_text()
    assert "…" not in text
    assert "1.0e-04" in text
    assert "different" in text


def test_a_kept_row_takes_the_place_of_the_old_one_and_a_new_one_stands_with_its_family(tmp_path):
    path = tmp_path / "kept.json"

    def kept(name: str, speedup: float, *known: str) -> None:
        cases = [Case(*known_name.split("/"), lambda: None) for known_name in (*known, name)]  # type: ignore[arg-type]
        keep(path, {"case": name, "speedup": speedup}, cases)

    kept("b/1", 2.0)
    kept("gone/1", 3.0)
    kept("a/1", 4.0)
    kept("b/2", 5.0, "b/1")
    kept("b/1", 6.0, "b/2")
    kept("gone/2", 7.0)
    rows = [(row["case"], row["speedup"]) for row in read_kept(path).values()]
    assert rows == [("b/1", 6.0), ("b/2", 5.0), ("gone/2", 7.0), ("a/1", 4.0)]
