"""The verb as a person uses it; one real comparison of four tiny runs, the rest about mistakes."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hotloop.cli import compare as verb
from hotloop.cli.compare import exit_code
from hotloop.comparison import jobs
from hotloop.core.errors import HotloopError, SettingsError
from hotloop.scale import local

TINY = [
    *("--total-env-steps", "400", "--learning-starts", "100", "--batch-size", "8", "--network.hidden", "8"),
    *("--evaluation.episodes", "2", "--evaluation.final-episodes", "3"),
]
WORDS = ["double=cartpole-dqn", "cartpole-dqn --double false", "--seeds", "2", "--threshold", "5", "--out", "there"]


def test_two_arms_with_two_seeds_are_trained_and_the_same_command_trains_nothing_again(
    run_folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert verb.run([*WORDS, "--json", "--", *TINY]) == 0
    captured = capsys.readouterr()
    answer = json.loads(captured.out)
    assert "finished double, seed 1" in captured.err
    assert [arm["label"] for arm in answer["arms"]] == ["double", "cartpole-dqn, double false"]
    assert [arm["seeds"] for arm in answer["arms"]] == [2, 2]
    assert all(run["env_steps"] == 400 for arm in answer["arms"] for run in arm["runs"])
    assert {arm["reached"] for arm in answer["arms"]} == {2}  # no episode of CartPole is shorter than 5
    assert answer["circumstances"]["command"].endswith(f"--out there -- {' '.join(TINY)}")
    names = {path.name for path in (run_folder / "there").iterdir()}
    assert {"table.md", "compare.json", "curve-env-steps.svg", "curve-seconds.svg", "curve-seconds.png"} < names

    monkeypatch.setattr(local, "_start", _must_not_start)
    assert verb.run([*WORDS, "--", *TINY]) == 0
    captured = capsys.readouterr()
    assert "4 are finished already" in captured.err
    assert "cartpole-dqn, double false" in captured.out
    assert "table.md" in captured.out

    assert verb.run([*WORDS, "--measure", "mean_length", "--json", "--quiet", "--", *TINY]) == 0
    assert json.loads(capsys.readouterr().out)["arms"][0]["mean"] == answer["arms"][0]["mean"]  # one a step
    with pytest.raises(SettingsError, match="mean_length"):
        verb.run([*WORDS, "--measure", "mean_points", "--", *TINY])
    with pytest.raises(HotloopError, match="gamma 0.99 there, 0.5 now"):
        verb.run([*WORDS, "--", *TINY, "--gamma", "0.5"])


def _must_not_start(*_: Any) -> None:
    raise AssertionError("a finished run was started again")


def test_a_failed_run_exits_with_one_and_the_others_count(
    run_folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(jobs: Any, workers: int, watch: Any) -> None:
        for job in jobs:
            job.status, job.error = "failed", "no such luck"

    monkeypatch.setattr(jobs, "run_jobs", fail)
    (run_folder / "there").mkdir()
    assert verb.run(WORDS) == 1
    captured = capsys.readouterr()
    assert "failed: double, seed 0: no such luck" in captured.out


def test_ctrl_c_says_that_the_same_command_continues(
    run_folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(jobs, "run_jobs", interrupt)
    assert verb.run(WORDS) == 130
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "the same command continues" in captured.err


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["cartpole-dqn"], "--seeds"),
        (["--seeds", "2"], "ARM"),
        (["cartpole-dqn", "--seeds", "0"], "at least 1"),
        (["cartpole-dqn", "--seeds", "2", "--workers", "-1"], "at least 1"),
        (["cartpole-dqn", "--seeds", "2", "--threshold", "nan"], "finite"),
        (["cartpole-dqn", "--seeds", "2", "--margin", "0"], "above 0"),
        (["cartpole-dqn", "--seeds", "2", "--markdown", "x.txt"], "FILE.md"),
        (["--double", "false", "cartpole-dqn", "--seeds", "2"], "no option"),
        (["cartpole-dqn", "--seeds", "2", "--treshold", "3"], "--threshold"),
        (["cartpole-dqn", "--gamma", "0.9", "cartpole-dqm", "--seeds", "2"], "the preset `cartpole-dqn`"),
        (["cartpole-dqm", "--seeds", "2"], "cartpole-dqn"),
        (["cartpole-dqn --gama 1", "--seeds", "2"], "gamma"),
        (["cartpole-dqn", "--seeds", "2", "--", "--gama", "1"], "gamma"),
        (["cartpole-dqn", "cartpole-dqn", "--seeds", "2"], "name them apart"),
    ],
)
def test_a_mistake_is_told_before_anything_is_trained(words: list[str], expected: str, run_folder: Path) -> None:
    with pytest.raises(SettingsError) as raised:
        verb.run(words)
    assert expected in str(raised.value)
    assert list(run_folder.iterdir()) == []


def test_help_gives_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        verb.run(["--help"])
    text = capsys.readouterr().out
    assert "example" in text
    assert "--json" in text


@pytest.mark.parametrize(
    ("learning", "expected"),
    [  # without --fail-if, with `worse`, with `unsure`
        (("as good", "better"), (0, 0, 0)),
        (("as good", "worse"), (0, 1, 1)),
        (("mixed",), (0, 1, 1)),
        (("unseen", "as good"), (0, 0, 3)),
        (("too few",), (0, 3, 3)),
        ((), (0, 3, 3)),  # one arm alone: nothing was judged
    ],
)
def test_fail_if_decides_which_verdicts_are_no_success(learning: tuple[str, ...], expected: tuple[int, ...]) -> None:
    found: Any = SimpleNamespace(failed=[], contrasts=[SimpleNamespace(learning=word) for word in learning])
    assert tuple(exit_code(found, asked) for asked in (None, "worse", "unsure")) == expected
    found.failed = ["a run"]
    assert exit_code(found, None) == 1
