"""Arms by what programs write themselves: files with a seed in their path, and commands that leave them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import hotloop
from hotloop.comparison.arms import file_label, parse_arms
from hotloop.comparison.load import Load, LoadMeter, LoadSample, load_of
from hotloop.comparison.scores import Scores, parse_scores, read_scores
from hotloop.core.errors import RunError, SettingsError
from tests.comparison.synthetic_runs import make_arm, write_run

HEAD = '#{"t_start": 1.0, "env_id": "Walk-v0"}\nr,l,t\n'


def write_monitor(path: Path, returns: list[float]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [f"{value},10,{0.5 * (number + 1)}" for number, value in enumerate(returns)]
    path.write_text(HEAD + "\n".join(rows) + "\n")
    return path


def test_a_path_and_a_column() -> None:
    assert parse_scores("logs/{seed}/progress.csv:eval/mean_reward") == Scores(
        "logs/{seed}/progress.csv", "eval/mean_reward"
    )
    assert parse_scores("a-{seed}.monitor.csv") == Scores("a-{seed}.monitor.csv", "r")
    with pytest.raises(SettingsError, match=r"no `\{seed\}` in its path"):
        parse_scores("logs/progress.csv:r")
    with pytest.raises(SettingsError, match="names no column"):
        parse_scores("logs/{seed}.csv")


@pytest.mark.parametrize(
    ("path", "label"),
    [
        ("logs/dqn-{seed}/monitor.csv", "dqn"),
        ("logs/old_{seed}.csv", "old"),
        ("slow/{seed}/progress.csv", "slow"),
        ("runs/CartPole-v1__dqn__{seed}__*", "CartPole-v1__dqn"),
    ],
)
def test_a_label_is_what_the_path_says_besides_the_seed(path: str, label: str) -> None:
    assert file_label(path) == label


def test_files_are_found_by_their_seed(tmp_path: Path) -> None:
    for seed in (10, 2, 0):
        write_monitor(tmp_path / f"{seed}__x" / f"{seed}.monitor.csv", [1.0])
    (tmp_path / "3__x").mkdir()
    write_monitor(tmp_path / "3__x" / "4.monitor.csv", [1.0])  # its two seeds differ
    assert list(Scores(f"{tmp_path}/{{seed}}__*/{{seed}}.monitor.csv", "r").there()) == [0, 2, 10]
    write_monitor(tmp_path / "2__y" / "2.monitor.csv", [1.0])
    with pytest.raises(RunError, match="both of seed 2"):
        Scores(f"{tmp_path}/{{seed}}__*/{{seed}}.monitor.csv", "r").there()


def test_a_monitor_by_eye(tmp_path: Path) -> None:
    path = write_monitor(tmp_path / "monitor.csv", [float(number) for number in range(200)])
    run = read_scores(Scores("", "r"), path, 7)
    assert run.score == sum(range(100, 200)) / 100  # the mean of the last hundred episodes
    assert (run.seed, run.env_steps, run.training_seconds, run.env_steps_per_second) == (7, 2_000, 100.0, 20.0)
    assert run.curve_env_steps[0] == 40
    assert run.curve_score[0] == 1.5  # episodes 0 to 3


def test_rows_that_are_means_already_are_averaged_over_a_tenth(tmp_path: Path) -> None:
    rows = "\n".join(json.dumps({"step": 10 * number, "score": number}) for number in range(1, 51))
    (tmp_path / "a.jsonl").write_text(rows)
    run = read_scores(Scores("", "score"), tmp_path / "a.jsonl", 0)
    assert run.score == 48.0  # 46 to 50
    assert run.env_steps == 500
    assert not run.training_seconds > 0  # the file tells no time


def test_arms_of_files_are_judged_and_no_speed_is_claimed(tmp_path: Path) -> None:
    for seed in range(6):
        for arm, slope in (("high", 1.0), ("low", 0.5)):
            rows = [json.dumps({"step": 10 * place, "score": slope * place + 0.1 * seed}) for place in range(1, 101)]
            (tmp_path / f"{arm}-{seed}.jsonl").write_text("\n".join(rows))
    arms = [f"{arm}={tmp_path}/{arm}-{{seed}}.jsonl:score" for arm in ("high", "low")]
    found = hotloop.compare(*arms, out=tmp_path / "out")
    assert found.contrasts[0].learning == "worse"
    assert found.contrasts[0].speed == "unknown"
    data = json.loads((tmp_path / "out" / "compare.json").read_text())
    assert [arm["seeds"] for arm in data["arms"]] == [6, 6]
    assert data["circumstances"]["load"] is None  # nothing was trained
    page = (tmp_path / "out" / "table.md").read_text()
    assert "Scores of high: `score` of" in page


def test_an_unknown_column_names_those_there_are(tmp_path: Path) -> None:
    write_monitor(tmp_path / "0.monitor.csv", [1.0])
    with pytest.raises(SettingsError, match="no column `reward`") as caught:
        parse_arms([f"{tmp_path}/{{seed}}.monitor.csv:reward"], ())
    assert "episode_length, mean_return, r" in caught.value.hint
    with pytest.raises(SettingsError, match="no file matches"):
        parse_arms([f"{tmp_path}/{{seed}}.csv:reward"], ())


WRITER = """
import sys
seed, height, path = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3]
with open(path, "w") as log:
    log.write("step,score\\n")
    for place in range(1, 101):
        log.write(f"{place},{height * place + 0.1 * seed}\\n")
"""


def test_commands_that_the_recorder_cannot_see_say_where_their_scores_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text(WRITER)
    arms = [f"{arm}=train.py {{seed}} {height} {arm}-{{seed}}.csv" for arm, height in (("old", 1.0), ("new", 2.0))]
    found = hotloop.compare(*arms, seeds=5, scores="{arm}-{seed}.csv:score", out="out")
    assert not found.failed
    assert found.contrasts[0].learning == "better"
    assert found.load is not None
    assert "Load average while they were trained" in Path("out/table.md").read_text()
    with pytest.raises(SettingsError, match="all commands would write"):
        hotloop.compare(*arms, seeds=5, scores="{seed}.csv:score", out="out")
    Path("old-3.csv").rename("elsewhere.csv")
    again = hotloop.compare(*arms, seeds=5, scores="{arm}-{seed}.csv:score", out="out")
    assert [(job.name, "0 files match old-3.csv" in job.error) for job in again.failed] == [("old, seed 3", True)]


def test_load_by_eye() -> None:
    assert load_of([]) is None
    load = load_of([LoadSample(1.0, {"make": 0.5}), LoadSample(3.5, {"make": 0.9, "ffmpeg": 2.0})])
    assert load == Load(1.0, 3.5, {"ffmpeg": 2.0, "make": 0.9})
    assert load.sentence(2) == (
        "Load average while they were trained: 1.0 to 3.5 on 2 cores; "
        "busy besides the runs: ffmpeg (2.0 cores), make (0.9 cores)."
    )
    assert "no other process" in Load(0.1, 0.2, {}).sentence(2)
    assert "while they were trained: 0.1 to 0.2 on 1 core;" in Load(0.1, 0.2, {}).sentence(1)


def test_the_load_of_a_continued_command_is_that_of_its_own_runs() -> None:
    load = Load(0.1, 0.2, {})
    assert load.sentence(2, trained=3, reused=5) == (
        "Load average while the 3 runs of this command were trained: 0.1 to 0.2 on 2 cores; no other process took a "
        "quarter of a core; the load beside those that were there before is not known."
    )
    assert "while the one run of this command was trained" in load.sentence(2, trained=1, reused=5)


def test_the_meter_looks_when_it_is_time() -> None:
    times = iter([0.0, 0.0, 1.0, 9.0, 10.0])
    meter = LoadMeter(clock=lambda: next(times))
    for _ in range(4):
        meter.watch()
    assert len(meter.looks) == 2


def test_a_finished_run_beside_files_is_judged_by_its_training_episodes(tmp_path: Path) -> None:
    arm = make_arm("ours")
    for seed in range(5):
        run = write_run(tmp_path / "ours" / f"seed-{seed}", arm, seed, [400.0, 500.0])  # evaluations are not asked
        rows = [
            {"event": "progress", "env_steps": 100 * place, "mean_return": 10.0 * place + seed, "seconds": 5.0 + place}
            | {"phases": {"start-up": 5.0}}
            for place in (1, 2)
        ]
        with (run / "events.jsonl").open("a") as events:
            events.write("".join(json.dumps(row) + "\n" for row in rows))
        write_monitor(tmp_path / "theirs" / f"{seed}.monitor.csv", [5.0 + 0.1 * seed] * 20)
    found = hotloop.compare(
        f"ours={tmp_path}/ours", f"theirs={tmp_path}/theirs/{{seed}}.monitor.csv", out=tmp_path / "out"
    )
    ours, theirs = found.summaries
    assert ours.scores.tolist() == [20.0, 21.0, 22.0, 23.0, 24.0]
    assert theirs.scores.tolist() == pytest.approx([5.0, 5.1, 5.2, 5.3, 5.4])
    assert found.contrasts[0].learning == "worse"
