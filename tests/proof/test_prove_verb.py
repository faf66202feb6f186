from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from hotloop.cli import prove as verb
from hotloop.core.errors import HotloopError, SettingsError
from hotloop.core.program import ONE_THREAD
from hotloop.proof import speed

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _few_samples(monkeypatch):
    """What is timed here is no matter; how, is `test_paired_speed.py`'s."""
    monkeypatch.setattr(speed, "SAMPLE_SECONDS", 1e-4)
    monkeypatch.setattr(speed, "WARM_UP_SECONDS", 1e-3)


@pytest.fixture(autouse=True)
def _same_environment(monkeypatch):
    for name in (*ONE_THREAD, "KINETO_LOG_LEVEL", "TORCH_CPP_LOG_LEVEL"):
        monkeypatch.setenv(name, os.environ.get(name, "1"))


CASES = """
from functools import partial

import hotloop
from hotloop.proof.equivalence import Equality


def build(error):
    return hotloop.Programs(int, int, lambda *_: Equality(error, "loss"))


@hotloop.cases("what it is about")
def planted():
    errors = {"right": 0.0, "wrong": 1.0}
    return [hotloop.Case(name, "n1", partial(build, error), quick=not error) for name, error in errors.items()]
"""


@pytest.fixture
def planted(tmp_path):
    """A file of two cases: one equal, one not."""
    path = tmp_path / "planted.py"
    path.write_text(CASES)
    return str(path)


def test_equal_cases_exit_with_zero_and_print_rows(planted, capsys):
    assert verb.run([planted, "--quick", "--json", "--seconds", "0.01"]) == 0
    rows = json.loads(capsys.readouterr().out)["cases"]
    assert [(row["case"], row["equal"]) for row in rows] == [("right/n1", True)]


def test_without_names_it_explains_itself_and_runs_nothing(capsys, monkeypatch):
    monkeypatch.setattr("hotloop.proof.run.prove_case", lambda *_: pytest.fail("nothing was named"))
    assert verb.run([]) == 2
    said = capsys.readouterr().out
    assert "hotloop prove --script old.py --against new.py" in said
    assert "hotloop prove benchmarks --list" in said
    with pytest.raises(SettingsError, match="nothing was named"):
        verb.run(["--json"])


def test_a_case_that_is_not_equal_exits_with_one_and_prints_no_speed(planted, capsys):
    assert verb.run([planted, "--json", "--seconds", "0.01"]) == 1
    output = capsys.readouterr()
    rows = {row["case"]: row for row in json.loads(output.out)["cases"]}
    assert rows["wrong/n1"]["equal"] is False
    assert rows["wrong/n1"]["speedup"] is None
    assert rows["right/n1"]["speedup"] > 0
    assert "wrong/n1: loss" in output.err


def test_the_table_goes_to_stdout_and_the_progress_to_stderr(planted, capsys):
    verb.run([f"{planted}::wrong", "--seconds", "0.01"])
    output = capsys.readouterr()
    assert "0 of 1 cases equal, 1 NOT" in output.out
    assert "wrong/n1" in output.err


def test_rows_are_kept_in_a_file_as_they_come(planted, capsys, tmp_path):
    path = tmp_path / "kept.json"
    verb.run([f"{planted}::right", "--json", "--seconds", "0.01", "--keep", str(path)])
    capsys.readouterr()
    verb.run([planted, "--json", "--seconds", "0.01", "--keep", str(path)])
    rows = json.loads(capsys.readouterr().out)["cases"]
    assert json.loads(path.read_text()) == rows
    assert [row["case"] for row in rows] == ["right/n1", "wrong/n1"]


def test_quiet_says_nothing_on_stderr(planted, capsys):
    verb.run([f"{planted}::right", "--quiet", "--seconds", "0.01"])
    assert capsys.readouterr().err == ""


def test_list_names_the_families_and_marks_the_small_set(planted, capsys):
    assert verb.run([planted, "--list"]) == 0
    text = capsys.readouterr().out
    assert "right: what it is about" in text
    assert "  * right/n1" in text
    assert "    wrong/n1" in text
    assert verb.run([planted, "--list", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["cases"][0] == {"case": "right/n1", "kind": "identical", "default": True}
    assert found["pairs"] == []


def test_our_own_cases_are_listed_and_proved_from_a_checkout(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    assert verb.run(["benchmarks", "--list"]) == 0
    text = capsys.readouterr().out
    assert "replay-add: storing one transition of each of N envs" in text
    assert "  * replay-add/n256" in text


@pytest.mark.parametrize("text", ["[1", "[[]]", '{"a": 1}'])
def test_a_file_of_something_else_is_not_overwritten(planted, tmp_path, text):
    path = tmp_path / "other.json"
    path.write_text(text)
    with pytest.raises(SettingsError, match="does not hold rows"):
        verb.run([planted, "--keep", str(path)])
    assert path.read_text() == text


def test_a_folder_that_is_not_there_is_said_before_anything_runs(planted, tmp_path):
    with pytest.raises(SettingsError, match="no such folder"):
        verb.run([planted, "--keep", str(tmp_path / "nowhere" / "kept.json")])


def test_seconds_must_be_above_zero():
    with pytest.raises(SettingsError, match="seconds"):
        verb.run(["--seconds", "0"])


def test_one_real_case_runs_from_the_command_line(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    assert verb.run(["benchmarks/update.py::target-polyak/eager/64x64", "--json", "--seconds", "0.01", "--quiet"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["cases"]
    assert row["equal"] is True
    assert row["growth"]["to"] == "512x512"


def test_answers_are_compared_by_themselves_where_a_case_says_no_other_way(tmp_path, capsys):
    path = tmp_path / "by_themselves.py"
    path.write_text(
        "import hotloop\n\n"
        "def build(fast):\n    return hotloop.Programs(lambda: {'loss': 1.0, 'q': [2.0]}, lambda: fast)\n\n"
        "@hotloop.cases('answers')\n"
        "def answers():\n"
        "    fast = {'same': {'loss': 1.0, 'q': [2.0]}, 'other': {'loss': 1.0, 'q': [3.0]}, 'less': {'loss': 1.0}}\n"
        "    return [hotloop.Case(name, '1', lambda answer=answer: build(answer)) for name, answer in fast.items()]\n\n"
        "@hotloop.cases('nothing')\n"
        "def nothing():\n"
        "    return [hotloop.Case('nothing', '1', lambda: hotloop.Programs(lambda: None, lambda: None))]\n"
    )
    words = ["--json", "--seconds", "0.01", "--quiet"]
    assert verb.run([*(f"{path}::{name}" for name in ("same", "other", "less")), *words]) == 1
    rows = json.loads(capsys.readouterr().out)["cases"]
    assert [(row["verdict"], row["max_error"]) for row in rows] == [
        ("identical", 0.0),
        ("different", 0.5),
        ("different", None),
    ]
    with pytest.raises(HotloopError, match="nothing was compared"):
        verb.run([f"{path}::nothing", *words])
