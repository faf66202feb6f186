"""What files and folders hold for `hotloop prove`, and how some of it is named."""

from __future__ import annotations

import itertools
import shutil
from pathlib import Path

import pytest

from hotloop.core.errors import ArgumentError, SettingsError
from hotloop.proof import speed
from hotloop.proof.case import Case
from hotloop.proof.case_files import PairsAndCases, find
from hotloop.proof.run import prove_case


@pytest.fixture(autouse=True)
def _few_samples(monkeypatch):
    monkeypatch.setattr(speed, "SAMPLE_SECONDS", 1e-4)
    monkeypatch.setattr(speed, "WARM_UP_SECONDS", 1e-3)


def case(name: str, quick: bool = False, unavailable: str = "") -> Case:
    family, variant, lane, size = name.split("/")
    build = lambda: None  # noqa: E731
    return Case(family, size, build, variant, lane, quick=quick, unavailable=unavailable)  # type: ignore[arg-type]


NAMES = [
    "dqn-update/dqn/eager/b32",
    "dqn-update/dqn/native/b32",
    "dqn-update/double/native/b32",
    "dqn-update/double/native/b256",
    "q-loss/forward/native/b32",
]
COMPILED = case("dqn-update/dqn/compiled/b32", unavailable="there is no C++ compiler")
FOUND = PairsAndCases(cases=[*(case(name, name == NAMES[0]) for name in NAMES), COMPILED])


def chosen(name: str) -> list[str]:
    return [found.name for found in FOUND.named(name).runnable(quick=False)]


def test_of_the_small_set_what_is_marked_runs():
    assert [found.name for found in FOUND.runnable(quick=True)] == NAMES[:1]


def test_everything_runs_but_what_cannot():
    assert [found.name for found in FOUND.runnable(quick=False)] == NAMES
    assert FOUND.not_available() == ["compiled lane not available: there is no C++ compiler"]


def test_a_family_is_all_of_it():
    assert chosen("dqn-update") == NAMES[:4]


def test_a_whole_name_is_one_case():
    assert chosen("dqn-update/double/native/b32") == [NAMES[2]]


def test_leading_parts_choose_all_below_them():
    assert chosen("dqn-update/double") == NAMES[2:4]


def test_parts_may_be_left_out():
    assert chosen("dqn-update/native") == NAMES[1:4]
    assert chosen("dqn-update/native/b256") == [NAMES[3]]


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("dqn-updat", "dqn-update"),
        ("q_loss", "q-loss"),
        ("dqn-update/duoble", "dqn-update/double"),
        ("dqn-update/double/nativ/b32", "dqn-update/double/native/b32"),
    ],
)
def test_a_typo_is_answered_with_the_right_name(wrong, right):
    with pytest.raises(SettingsError, match=f"no case `{wrong}`") as error:
        chosen(wrong)
    assert error.value.hint == f"did you mean `{right}`?"


def test_a_lane_that_is_not_there_says_why():
    with pytest.raises(SettingsError, match="`dqn-update/dqn/compiled/b32` cannot run here") as error:
        chosen("dqn-update/dqn/compiled/b32")
    assert error.value.hint == "there is no C++ compiler"


PAIRS = """
import numpy as np
import hotloop

@hotloop.pair(np.sum, np.arange(5.0))
def fast(x):
    return x.sum()
"""
CASES = """
import hotloop
from {neighbor} import NUMBER

@hotloop.cases("adding up")
def sums():
    return [hotloop.Case("sum", f"n{{n}}", lambda: hotloop.Programs(lambda: NUMBER, lambda: NUMBER)) for n in (1, 2)]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A package of three files, one of which has nothing to prove and cannot be run."""
    package = tmp_path / f"marked_{next(NUMBERS)}"
    package.mkdir()
    (package / "__init__.py").write_text("NUMBER = 3\n")
    (package / "a_pairs.py").write_text(PAIRS)
    (package / "cases.py").write_text(CASES.format(neighbor=package.name))
    (package / "other.py").write_text("raise SystemExit\n")
    return package


NUMBERS = itertools.count()


def test_a_folder_is_its_marked_files_and_a_file_of_a_package_knows_its_neighbors(folder):
    found = find([str(folder)])
    assert [pair.title for pair in found.pairs] == ["fast"]
    assert [case.name for case in found.cases] == ["sum/n1", "sum/n2"]
    assert found.about == {"sum": "adding up"}
    assert prove_case(found.cases[0], seconds=0.01).verdict == "identical"


def test_what_is_named_twice_is_found_once(folder):
    found = find([f"{folder}::sum", f"{folder}/cases.py::sum/n2", f"{folder}::fast", str(folder)])
    assert [case.name for case in found.cases] == ["sum/n1", "sum/n2"]
    assert len(found.pairs) == 1


def test_a_name_that_is_no_file_is_answered_with_where_our_own_cases_are(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ArgumentError, match="no file or folder `dqn-update`") as error:
        find(["dqn-update"])
    assert "hotloop prove benchmarks::dqn-update" in error.value.hint


def test_a_file_is_loaded_from_where_it_was_named(folder, tmp_path):
    """Two packages of one name: the second is not taken for the first."""
    find([str(folder)])
    other = tmp_path / "elsewhere" / folder.name
    shutil.copytree(folder, other)
    with pytest.raises(ArgumentError, match="another"):
        find([str(other)])
