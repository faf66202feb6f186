from __future__ import annotations

import json
import os

import pytest

from hotloop.cli import prove as verb
from hotloop.core.errors import SettingsError
from hotloop.core.program import ONE_THREAD
from hotloop.proof import registry, speed
from hotloop.proof.case import Built, Case
from hotloop.proof.equivalence import Equality
from hotloop.proof.registry import Registry


@pytest.fixture(autouse=True)
def _few_samples(monkeypatch):
    """What is timed here is no matter; how, is `test_paired_speed.py`'s."""
    monkeypatch.setattr(speed, "SAMPLE_SECONDS", 1e-4)
    monkeypatch.setattr(speed, "WARM_UP_SECONDS", 1e-3)


@pytest.fixture(autouse=True)
def _same_environment(monkeypatch):
    for name in (*ONE_THREAD, "KINETO_LOG_LEVEL", "TORCH_CPP_LOG_LEVEL"):
        monkeypatch.setenv(name, os.environ.get(name, "1"))


@pytest.fixture
def planted(monkeypatch):
    """Two cases instead of the real ones: one equal, one not."""

    def plant(name: str, error: float) -> Case:
        return Case(name, "n1", lambda: Built(int, int, lambda *_: Equality(error, "loss")), is_default=error == 0.0)

    cases = [plant("right", 0.0), plant("wrong", 1.0)]
    monkeypatch.setattr(registry, "build_registry", lambda: Registry(cases))


@pytest.mark.usefixtures("planted")
def test_equal_cases_exit_with_zero_and_print_rows(capsys):
    assert verb.run(["--own", "--json", "--seconds", "0.01"]) == 0
    rows = json.loads(capsys.readouterr().out)["cases"]
    assert [(row["case"], row["equal"]) for row in rows] == [("right/n1", True)]


@pytest.mark.usefixtures("planted")
def test_without_names_it_explains_itself_and_runs_nothing(capsys, monkeypatch):
    monkeypatch.setattr(registry, "FAMILIES", {"right": (None, "what it is about"), "gone": (None, "has no cases")})
    monkeypatch.setattr("hotloop.proof.run.prove_case", lambda *_: pytest.fail("nothing was named"))
    assert verb.run([]) == 2
    said = capsys.readouterr().out
    assert "hotloop prove --script old.py --against new.py" in said
    assert "right: what it is about" in said
    assert "gone" not in said
    with pytest.raises(SettingsError, match="nothing was named"):
        verb.run(["--json"])


@pytest.mark.usefixtures("planted")
def test_a_case_that_is_not_equal_exits_with_one_and_prints_no_speed(capsys):
    assert verb.run(["--json", "--full", "--seconds", "0.01"]) == 1
    output = capsys.readouterr()
    rows = {row["case"]: row for row in json.loads(output.out)["cases"]}
    assert rows["wrong/n1"]["equal"] is False
    assert rows["wrong/n1"]["speedup"] is None
    assert rows["right/n1"]["speedup"] > 0
    assert "wrong/n1: loss" in output.err


@pytest.mark.usefixtures("planted")
def test_the_table_goes_to_stdout_and_the_progress_to_stderr(capsys):
    verb.run(["wrong", "--seconds", "0.01"])
    output = capsys.readouterr()
    assert "0 of 1 cases equal, 1 NOT" in output.out
    assert "wrong/n1" in output.err


@pytest.mark.usefixtures("planted")
def test_rows_are_kept_in_a_file_as_they_come(capsys, tmp_path):
    path = tmp_path / "kept.json"
    verb.run(["right", "--json", "--seconds", "0.01", "--keep", str(path)])
    capsys.readouterr()
    verb.run(["--full", "--json", "--seconds", "0.01", "--keep", str(path)])
    rows = json.loads(capsys.readouterr().out)["cases"]
    assert json.loads(path.read_text()) == rows
    assert [row["case"] for row in rows] == ["right/n1", "wrong/n1"]


@pytest.mark.usefixtures("planted")
def test_quiet_says_nothing_on_stderr(capsys):
    verb.run(["right", "--quiet", "--seconds", "0.01"])
    assert capsys.readouterr().err == ""


def test_list_names_the_families_and_marks_the_default_set(capsys):
    assert verb.run(["--list"]) == 0
    text = capsys.readouterr().out
    assert "replay-add: storing one transition of each of N envs" in text
    assert "  * replay-add/n256" in text


@pytest.mark.usefixtures("planted")
@pytest.mark.parametrize("text", ["[1", "[[]]", '{"a": 1}'])
def test_a_file_of_something_else_is_not_overwritten(tmp_path, text):
    path = tmp_path / "other.json"
    path.write_text(text)
    with pytest.raises(SettingsError, match="does not hold rows"):
        verb.run(["--keep", str(path)])
    assert path.read_text() == text


@pytest.mark.usefixtures("planted")
def test_a_folder_that_is_not_there_is_said_before_anything_runs(tmp_path):
    with pytest.raises(SettingsError, match="no such folder"):
        verb.run(["--keep", str(tmp_path / "nowhere" / "kept.json")])


def test_seconds_must_be_above_zero():
    with pytest.raises(SettingsError, match="seconds"):
        verb.run(["--seconds", "0"])


def test_one_real_case_runs_from_the_command_line(capsys):
    assert verb.run(["target-polyak/eager/64x64", "--json", "--seconds", "0.01", "--quiet"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["cases"]
    assert row["equal"] is True
    assert row["growth"]["to"] == "512x512"
