"""`hotloop prove` on code of the user's: files of pairs, envs, networks; exit codes, JSON, the page, the examples."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hotloop.cli import prove as verb
from hotloop.core.errors import HotloopError, SettingsError
from hotloop.core.program import ONE_THREAD
from hotloop.proof import speed
from hotloop.proof.case_files import found_in
from hotloop.proof.function_pairs import check_pair

EXAMPLES = Path(__file__).parents[2] / "examples" / "pairs"
EXPECTED = {
    "activation_rows": {"rows written in place": "gradients", "rows in a list": ""},
    "leftmost": {
        "argpartition as it comes": "result",
        "argpartition, sorted": "result",
        "argpartition, ties by age": "",
    },
    "combined_forward": {
        "one forward in the target's place": "result[1]",
        "one forward of the online network": "",
        "one forward, not detached": "gradient of online[0]",
    },
    "fourth_update": {"every fourth update": "result['weight']", "four updates at every fourth step": ""},
    "next_function_lookup": {"filed under the function just placed": "result", "filed under the next function": ""},
}
PAIRS = """
import numpy as np
import hotloop

def plain(x):
    return x.sum()

@hotloop.pair(plain, np.arange(5.0))
def right(x):
    return np.add.reduce(x)

@hotloop.pair(plain, np.arange(5.0), name="<b>wrong</b>")
def wrong(x):
    return x[1:].sum() + x.max()
"""


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speed, "SAMPLE_SECONDS", 1e-4)
    monkeypatch.setattr(speed, "WARM_UP_SECONDS", 1e-3)
    for name in (*ONE_THREAD, "KINETO_LOG_LEVEL", "TORCH_CPP_LOG_LEVEL"):
        monkeypatch.setenv(name, os.environ.get(name, "1"))


def run(*words: str) -> int:
    return verb.run([*words, "--seconds", "0.01", "--quiet"])


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_the_examples_are_judged_as_they_say(name: str) -> None:
    """The verdict names the difference, or says that there is none."""
    proofs = {pair.name: check_pair(pair) for pair in found_in(EXAMPLES / f"{name}.py").pairs}
    found = {pair: proof.difference.what if proof.difference else "" for pair, proof in proofs.items()}
    assert found.keys() == EXPECTED[name].keys()
    for pair, what in EXPECTED[name].items():
        assert found[pair].startswith(what) if what else found[pair] == "", proofs[pair].headline()


def test_every_example_is_expected() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py")} == EXPECTED.keys()


def test_the_example_of_programs_with_state_is_identical_and_a_mistake_in_it_is_seen() -> None:
    cases = found_in(EXAMPLES.parent / "cases" / "sum_tree.py").cases
    assert [case.name for case in cases] == ["sum-tree/n1000", "sum-tree/n1000000"]
    programs = cases[0].build()
    assert programs.check().max_error == 0.0
    forgetful = cases[0].build()
    answers = [forgetful.fast() for _ in range(2)]
    late = iter([answers[0], *answers])
    assert replace(cases[0].build(), fast=lambda: next(late), calls=3).check().max_error > 0.0


def test_a_file_of_pairs_is_proved_and_its_page_written(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "pairs.py").write_text(PAIRS)
    assert run(str(tmp_path / "pairs.py"), "--json", "--html", str(tmp_path / "page.html")) == 1
    right, wrong = json.loads(capsys.readouterr().out)["pairs"]
    assert (right["verdict"], wrong["verdict"]) == ("identical", "different")
    assert right["cost"]["speedup"] > 0
    assert wrong["cost"] is None
    assert wrong["difference"]["what"] == "result"
    page = (tmp_path / "page.html").read_text()
    assert "&lt;b&gt;wrong&lt;/b&gt;" in page
    assert "<b>wrong</b>" not in page
    assert "1 of 2 pairs the same, 1 NOT" in page
    assert "<script" not in page


def test_the_verdict_is_printed_in_text(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "words.py").write_text(PAIRS)
    assert run(str(tmp_path / "words.py")) == 1
    text = capsys.readouterr().out
    assert "right: identical for 1 given input and 11 inputs made from them" in text
    assert "<b>wrong</b>: different: `result` differs on the given input" in text
    assert "1 of 2 pairs the same, 1 NOT" in text


def test_envs_and_networks_from_the_command_line(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "nets.py").write_text(
        "from torch import nn\nA = lambda: nn.Linear(3, 2)\nB = lambda: nn.Linear(3, 2, bias=False)\n"
    )
    one = f"{tmp_path}/nets.py:A"
    assert run("--module", one, "--against", one, "--input", "8,3", "--json") == 0
    assert json.loads(capsys.readouterr().out)["pairs"][0]["evidence"]["mapped"] == "by name"
    with pytest.raises(HotloopError, match="different parameters"):
        run("--module", one, "--against", f"{tmp_path}/nets.py:B")
    few = ("--env-steps", "60", "--num-envs", "2", "--episodes", "10")
    assert run("--env", "CartPole-v1", "--against", "CartPole-v1", *few, "--html", str(tmp_path / "env.html")) == 0
    assert "env steps per second" in capsys.readouterr().out
    assert run("--env", "CartPole-v1", "--against", "Acrobot-v1", *few, "--json") == 1
    assert json.loads(capsys.readouterr().out)["pairs"][0]["difference"]["what"] == "observation_space"
    assert run("--env", "CartPole-v1", "--against", "cartpole", *few, "--html", str(tmp_path / "draws.html")) == 0
    assert "Distributions" in (tmp_path / "draws.html").read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--env", "CartPole-v1"], "needs one plain version"),
        (["--against", "CartPole-v1"], "needs one plain version"),
        (["--env", "a", "--module", "b", "--against", "c"], "needs one plain version"),
        (["x.py", "--env", "a", "--against", "c"], "do not go together"),
        (["--html", "page.html"], "shows what was proved"),
        (["x.py", "--tolerance", "-1"], "--tolerance"),
        (["x.py", "--env-steps", "0"], "--env-steps"),
    ],
)
def test_words_that_do_not_go_together_are_refused(words: list[str], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        run(*words)


def test_a_page_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "more.py").write_text(PAIRS)
    with pytest.raises(HotloopError, match="cannot be written"):
        run(str(tmp_path / "more.py"), "--html", str(tmp_path / "nowhere" / "page.html"))
