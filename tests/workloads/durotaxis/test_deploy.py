"""`hotloop durotaxis deploy`: an agent hardly trained, on substrates of choice."""

from __future__ import annotations

import csv
import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from hotloop import api
from hotloop.cli.main import main
from hotloop.cli.progress import print_result
from hotloop.loop import evaluate
from hotloop.reporting.facts import RunFacts
from hotloop.reporting.learning import reward_terms
from hotloop.runs.directory import Run
from hotloop.viewing.scenes import meanings_of
from hotloop.workloads.durotaxis.deploy import deploy
from hotloop.workloads.durotaxis.env import REWARD_TERMS
from hotloop.workloads.durotaxis.settings import DurotaxisSettings

TINY: dict[str, Any] = {
    "total_env_steps": 16,
    "rollout_steps": 8,
    "batch_size": 8,
    "env": {"num_envs": 2, "options": {"max_nodes": 30, "max_steps": 40}},
    "network": {"graph": {"width": 8, "heads": 2, "layers": 1, "groups": 2, "feed_forward": 8}},
    "evaluation": {"episodes": 2, "final_episodes": 2},
}
MEASURED = {"episodes", "mean_return", "std_return", "mean_length", "success_rate", "final_centroid"}
MEASURED |= {"mean_colony_size", "max_colony_size", *REWARD_TERMS}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("runs") / "durotaxis")
    api.train(api.preset("durotaxis-ppo", **TINY, run_dir=path))
    return path


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[DurotaxisSettings]:
    """The options of every env that is made from now on."""
    made, plain = [], evaluate.make_envs

    def note(settings: Any, *rest: Any, **more: Any) -> Any:
        envs: Any = plain(settings, *rest, **more)
        made.append(envs.settings)
        return envs

    monkeypatch.setattr(evaluate, "make_envs", note)
    return made


def ask(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert main(["durotaxis", "deploy", *words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def fail(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["durotaxis", "deploy", *words]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err


@pytest.mark.parametrize("substrate", ["linear", "exponential", "random"])
def test_an_agent_migrates_on_the_substrate_that_is_named(
    substrate: str, run: str, asked: list[DurotaxisSettings], capsys: pytest.CaptureFixture[str]
) -> None:
    answer = ask(capsys, run, "--substrate", substrate, "--episodes", "3")
    assert answer["run"] == run
    assert answer["substrates"].keys() == {substrate}
    result = answer["substrates"][substrate]
    assert result.keys() == MEASURED
    assert result["episodes"] == 3
    assert [(one.substrate, one.max_nodes) for one in asked] == [(substrate, 30)]  # the rest is as it was trained


def test_from_python_the_answer_is_that_of_the_verb(
    run: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--substrate", "linear", "--m", "0.1", "--episodes", "2", "--log", str(tmp_path / "nodes.csv")]
    answer = deploy(run, substrate="linear", m=0.1, episodes=2, log=tmp_path / "nodes.csv")
    assert {"schema": 1, **answer} == ask(capsys, run, *words)
    assert answer["substrates"]["linear"] == api.evaluate(
        run, episodes=2, env={"options": {"substrate": "linear", "m": 0.1}}
    )


def test_slope_and_start_are_passed_on(
    run: str, asked: list[DurotaxisSettings], capsys: pytest.CaptureFixture[str]
) -> None:
    words = [run, "--substrate", "linear", "--episodes", "2"]
    usual = ask(capsys, *words)
    steep = ask(capsys, *words, "--m", "0.5", "--b", "3")
    assert [one.slope_and_start for one in asked] == [(0.05, 1.0), (0.5, 3.0)]
    assert steep["substrates"]["linear"]["mean_return"] != usual["substrates"]["linear"]["mean_return"]


def test_the_seed_chooses_the_episodes(run: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = [run, "--substrate", "random", "--episodes", "2", "--seed"]
    one, same, other = (ask(capsys, *words, seed) for seed in ("1", "1", "2"))
    assert one == same
    assert one != other


def test_without_a_substrate_all_three_are_tried_and_told_in_a_table(
    run: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["durotaxis", "deploy", run, "--episodes", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:3] == ["substrate", "episodes", "success"]
    assert [line.split()[:2] for line in lines[1:]] == [["linear", "2"], ["exponential", "2"], ["random", "2"]]


@pytest.mark.parametrize("ending", ["jsonl", "csv"])
def test_a_log_has_a_row_for_every_node_of_every_episode_that_is_counted(
    ending: str, run: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words, path = [run, "--substrate", "linear", "--episodes", "35"], tmp_path / f"nodes.{ending}"
    plain, logged = ask(capsys, *words), ask(capsys, *words, "--log", str(path))
    rows = read_log(path)
    assert logged.pop("log") == {"file": str(path), "rows": len(rows)}
    assert logged == plain  # looking on changes nothing
    assert list(rows[0]) == ["substrate", "episode", "step", "id", "x", "y", "intensity", "age", "action"]
    assert {row["substrate"] for row in rows} == {"linear"}
    assert {int(row["episode"]) for row in rows} == set(range(1, 36))
    result = logged["substrates"]["linear"]
    lengths = [max(int(row["step"]) for row in rows if int(row["episode"]) == i) for i in range(1, 36)]
    assert sum(lengths) / 35 == pytest.approx(result["mean_length"])
    last = [row for row in rows if row["action"] == ""]
    assert len(last) / 35 == pytest.approx(result["mean_colony_size"])
    for row in rows[:100]:
        assert float(row["intensity"]) == pytest.approx(0.05 * float(row["x"]) + 1.0)


def test_without_a_substrate_the_log_holds_all_three(
    run: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["durotaxis", "deploy", run, "--episodes", "1", "--log", str(tmp_path / "nodes.csv")]) == 0
    assert "rows in" in capsys.readouterr().err
    assert {row["substrate"] for row in read_log(tmp_path / "nodes.csv")} == {"linear", "exponential", "random"}


def read_log(path: Path) -> list[dict[str, Any]]:
    with path.open(newline="") as file:
        return [json.loads(line) for line in file] if path.suffix == ".jsonl" else list(csv.DictReader(file))


def test_a_log_that_cannot_be_written_is_refused(run: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "end it in .jsonl or .csv" in fail(capsys, run, "--log", str(tmp_path / "nodes.txt"))
    assert "cannot write" in fail(capsys, run, "--log", str(tmp_path / "nowhere" / "nodes.csv"))
    kept = tmp_path / "kept.csv"
    kept.write_text("mine")
    assert "`episodes` is 0" in fail(capsys, run, "--episodes", "0", "--log", str(kept))
    assert "is not a run directory" in fail(capsys, str(tmp_path / "no-run"), "--log", str(kept))
    assert kept.read_text() == "mine"  # nothing is begun before everything fits


def test_what_cannot_be_meant_is_refused(run: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "want a substrate" in fail(capsys, run, "--m", "0.1")
    assert "want a substrate" in fail(capsys, run, "--substrate", "random", "--b", "2")
    assert "stiff at the left" in fail(capsys, run, "--substrate", "linear", "--m", "-1")
    assert "`episodes` is 0" in fail(capsys, run, "--episodes", "0")
    assert "is not a run directory" in fail(capsys, str(Path(run).parent / "nowhere"))
    assert "invalid choice" in fail(capsys, run, "--substrate", "quadratic")


def test_a_run_of_another_env_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "cartpole")
    api.train(api.preset("cartpole-ppo", total_env_steps=64, network={"hidden": [8]}, run_dir=path))
    said = fail(capsys, path)
    assert "was trained on `cartpole`, which has no substrate" in said
    assert "hotloop evaluate" in said


def test_the_terms_of_the_reward_do_not_crowd_what_a_run_says_in_words(
    run: str, capsys: pytest.CaptureFixture[str]
) -> None:
    print_result(json.loads((Path(run) / "result.json").read_text()))
    assert "success rate" in (said := capsys.readouterr().out)
    assert "reward" not in said
    assert main(["evaluate", run, "--episodes", "1"]) == 0  # asked for alone, all of it is told
    assert "reward_deletion_efficiency" in capsys.readouterr().out


def test_the_page_of_a_run_says_what_each_term_of_the_reward_is(run: str) -> None:
    rows = [{"event": "progress", "env_steps": steps, "reward_milestone": 1.0} for steps in (8, 16)]
    facts = RunFacts(Run.open(run), "one", "finished", {"env": {"id": "durotaxis"}}, rows=rows)
    assert "quarters of the way" in str(reward_terms(facts))
    assert "quarters of the way" not in str(reward_terms(dataclasses.replace(facts, settings={"env": "?"})))
    assert meanings_of("durotaxis").keys() == set(REWARD_TERMS)
    assert meanings_of("snake") == meanings_of("CartPole-v1") == {}
