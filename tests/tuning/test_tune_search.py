"""Searches whose trials train nothing (what is pruned, stopped, continued), and one that trains."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sqlite3
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import hotloop
from hotloop.cli import tune as verb
from hotloop.cli.main import main
from hotloop.comparison.jobs import TrainingJob
from hotloop.core.errors import HotloopError, MissingExtraError
from hotloop.core.program import install_command
from hotloop.core.settings import as_tree
from hotloop.presets.registry import settings_from_argv
from hotloop.runs.directory import Run
from hotloop.runs.events import EventLog
from hotloop.tuning import trial as trial_module

pytest.importorskip("optuna")

WORDS = ["cartpole-dqn", "--search", "gamma=0.1..0.9", "--search", "n_step=1,3", "--storage", "there", "--jobs", "1"]
EVERY = 60_000 // 20  # env steps between two evaluations of the preset
Watch = Callable[[], None]


def gamma_of(job: TrainingJob) -> float:
    return float(job.command[job.command.index("--gamma") + 1])


def result_of(path: Path, env_steps: int, score: float | None) -> dict[str, Any]:
    judged = {"episodes": 1, "mean_return": score, "std_return": 0.0}
    made = {"env_steps": env_steps, "updates": 1, "episodes": 1, "run": str(path), "lane": "eager"}
    phases = {"seconds": 1.0, "phases": {}, "env_steps_per_second": 1.0}
    return {**made, **phases, "evaluation": judged, "final_evaluation": judged}


def pretend(job: TrainingJob, watch: Watch, scores: Sequence[float | None]) -> None:
    """What a child would leave, watched after each evaluation."""
    run = Run.create(job.path, "pretended", {**job.arm.settings, "seed": job.seed})
    run.close()
    log = EventLog(run.events)
    phases = {"seconds": 1.0, "phases": {}, "env_steps_per_second": 1.0}
    for number, score in enumerate(scores, start=1):
        if score is None:  # put off
            continue
        log.append({"event": "evaluation", "env_steps": EVERY * number, "mean_return": score, **phases})
        watch()
    log.close()
    run.write_json("result.json", result_of(run.path, EVERY * len(scores), scores[-1]))
    job.status = "finished"


@pytest.fixture
def children(monkeypatch: pytest.MonkeyPatch, run_folder: Path) -> Callable[[Any], None]:
    """Puts a function in the place of processes."""
    monkeypatch.setattr(trial_module, "LOOK_SECONDS", 0.0)

    def replace(child: Callable[[TrainingJob, Watch], None]) -> None:
        def run_jobs(jobs: Sequence[TrainingJob], workers: int, watch: Watch) -> None:
            for job in jobs:
                if job.status == "waiting":
                    child(job, watch)

        monkeypatch.setattr(trial_module, "run_jobs", run_jobs)

    return replace


def tune(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> dict[str, Any]:
    capsys.readouterr()
    assert verb.run([*WORDS, *words, "--json"]) == code
    return json.loads(capsys.readouterr().out)


def test_the_best_trial_is_found_and_the_search_goes_on_where_it_was(
    children: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    trained = []

    def child(job: TrainingJob, watch: Watch) -> None:
        trained.append(gamma_of(job))
        pretend(job, watch, [gamma_of(job)] * 3)

    children(child)
    answer = tune(capsys, "--trials", "4")
    assert [trial["state"] for trial in answer["trials"]] == ["finished"] * 4
    best = max(range(4), key=trained.__getitem__)
    assert answer["best"]["number"] == best
    assert answer["best"]["value"] == trained[best]
    assert f"--gamma {trained[best]:g} --n-step" in answer["train"]
    assert answer["compare"].endswith("--seeds 8")
    assert len(tune(capsys, "--trials", "6")["trials"]) == 6
    assert len(set(trained)) == 6  # nothing is drawn again
    names = {path.name for path in Path("there").iterdir()}
    assert {"study.db", "tune.json", "curve-env-steps.svg", "curve-seconds.svg", "trial-0005"} < names
    assert len(tune(capsys, "--trials", "6")["trials"]) == 6
    assert len(trained) == 6
    assert verb.run([*WORDS, "--trials", "6"]) == 0
    assert f"best: trial {max(range(6), key=trained.__getitem__)}," in capsys.readouterr().out
    with pytest.raises(HotloopError, match="holds another search: its settings differ"):
        verb.run([*WORDS, "--trials", "6", "--batch-size", "32"])


def test_a_trial_below_the_median_of_the_others_is_ended_early(
    children: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    started: list[int] = []

    def child(job: TrainingJob, watch: Watch) -> None:
        started.append(1)
        pretend(job, watch, [1.0] * 6 if len(started) == 5 else [10.0 + len(started)] * 6)

    children(child)
    answer = tune(capsys, "--trials", "6")
    assert [trial["state"] for trial in answer["trials"]] == ["finished"] * 4 + ["pruned", "finished"]
    assert answer["trials"][4]["value"] is None
    assert answer["trials"][4]["last"] == 1.0
    assert not Run.open("there/trial-0004/seed-0").finished
    started.clear()
    answer = tune(capsys, "--trials", "6", "--no-prune", "--storage", "unpruned")
    assert [trial["state"] for trial in answer["trials"]] == ["finished"] * 6


def test_an_evaluation_that_was_put_off_is_compared_with_what_others_had_at_its_env_steps(
    children: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """The fifth trial's first evaluation, 5.0, is the fifth of the others, whose fifth was 3.0 and third 30.0."""
    started: list[int] = []

    def child(job: TrainingJob, watch: Watch) -> None:
        started.append(1)
        late: list[float | None] = [None, None, None, None, 5.0, 5.0, 5.0, 5.0]
        pretend(job, watch, late if len(started) == 5 else [30.0] * 4 + [3.0] * 4)

    children(child)
    answer = tune(capsys, "--trials", "5")
    assert [trial["state"] for trial in answer["trials"]] == ["finished"] * 5


def test_a_stopped_search_continues_the_trial_it_was_in(children: Any, capsys: pytest.CaptureFixture[str]) -> None:
    def stopped(job: TrainingJob, watch: Watch) -> None:
        pretend(job, watch, [3.0, 4.0])
        (job.path / "result.json").unlink()
        os.kill(os.getpid(), signal.SIGTERM)
        while True:  # a child goes on until it is told
            watch()
            time.sleep(0.01)

    before = signal.getsignal(signal.SIGTERM)
    children(stopped)
    answer = tune(capsys, "--trials", "2", code=143)
    assert answer["stopped"]
    assert [(trial["state"], trial["last"]) for trial in answer["trials"]] == [("open", 4.0)]
    assert signal.getsignal(signal.SIGTERM) == before

    def resumed(job: TrainingJob, watch: Watch) -> None:
        if "resume" in job.command:
            assert job.path == Path("there/trial-0000/seed-0")
            log = EventLog(job.path / "events.jsonl")
            log.append({"event": "evaluation", "env_steps": 300, "mean_return": 5.0, "seconds": 1.0, "phases": {}})
            log.close()
            Run.open(job.path).write_json("result.json", result_of(job.path, 300, 5.0))
            job.status = "finished"
        else:
            pretend(job, watch, [1.0])

    children(resumed)
    answer = tune(capsys, "--trials", "2")
    assert [(trial["state"], trial["value"]) for trial in answer["trials"]] == [("finished", 5.0), ("finished", 1.0)]


def test_a_failed_trial_is_told_and_the_others_count(children: Any, capsys: pytest.CaptureFixture[str]) -> None:
    def child(job: TrainingJob, watch: Watch) -> None:
        if job.path.parent.name == "trial-0000":
            job.status, job.error = "failed", "the loss became NaN"
        else:
            pretend(job, watch, [2.0])

    children(child)
    answer = tune(capsys, "--trials", "2", "--seeds", "2")
    assert [(trial["state"], trial["error"]) for trial in answer["trials"]] == [
        ("failed", "the loss became NaN"),
        ("finished", ""),
    ]
    assert {path.name for path in Path("there/trial-0001").iterdir()} == {"seed-0", "seed-1"}


def test_a_trial_whose_numbers_ran_away_tells_the_sampler_that_its_place_is_bad(children: Any) -> None:
    """Known by the update that its run kept; another failure says nothing about the settings."""

    def child(job: TrainingJob, watch: Watch) -> None:
        job.status, job.error = "failed", "what a run may say of a NaN"
        if job.path.parent.name == "trial-0000":
            (job.path / "failure").mkdir(parents=True)

    children(child)
    assert verb.run([*WORDS, "--trials", "2", "--quiet"]) == 1
    with contextlib.closing(sqlite3.connect("there/study.db")) as study:
        assert study.execute("select state from trials order by number").fetchall() == [("PRUNED",), ("FAIL",)]


def test_from_python_the_search_returns_what_it_found(children: Any) -> None:
    children(lambda job, watch: pretend(job, watch, [gamma_of(job)] * 2))
    said: list[str] = []
    found = hotloop.tune(
        "cartpole-dqn", search=["gamma=0.1..0.9"], trials=2, overrides={"n_step": 1}, storage="there", say=said.append
    )
    assert found.best is not None
    assert found.best.value == max(row.value or 0.0 for row in found.rows)
    assert f"--n-step 1 --gamma {found.best.values['gamma']}" in str(found.train_command)
    assert not found.stopped
    assert json.loads(Path("there/tune.json").read_text()) == {"schema": 1, **found.as_data()}
    assert said[0].startswith("2 trials in there, ")
    with pytest.raises(HotloopError, match="tune sets itself"):
        hotloop.tune("cartpole-dqn", search=["gamma=0.1..0.9"], trials=2, overrides={"seed": 3})


def test_an_unknown_measure_stops_the_search(children: Any) -> None:
    children(lambda job, watch: pretend(job, watch, [2.0]))
    with pytest.raises(HotloopError, match="no number called `mean_points`"):
        verb.run([*WORDS, "--trials", "3", "--measure", "mean_points"])


def test_a_search_without_optuna_says_what_to_install(run_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(MissingExtraError) as raised:
        verb.run([*WORDS, "--trials", "3"])
    assert raised.value.hint == install_command("tune")
    assert list(run_folder.iterdir()) == []


def test_trials_are_trained_as_runs_of_their_own_the_preset_first(
    run_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tiny = ["--total-env-steps", "400", "--learning-starts", "100", "--batch-size", "8", "--network.hidden", "8"]
    tiny += ["--evaluation.episodes", "2", "--evaluation.final-episodes", "3"]
    words = [
        "cartpole-dqn",
        *tiny,
        "--search",
        "optimizer.learning_rate=1e-4..1e-2:log",
        "--search",
        "n_step=1,3",
        "--trials",
        "2",
    ]
    assert verb.run([*words, "--json"]) == 0
    captured = capsys.readouterr()
    answer = json.loads(captured.out)
    assert answer["trials"][0]["values"] == {"optimizer.learning_rate": "0.0005", "n_step": "3"}
    assert answer["trials"][0]["is_preset"]
    assert "best so far" in captured.err
    folder = Path(answer["folder"])
    assert folder.parent == Path("runs")
    for number in range(2):
        run = Run.open(folder / f"trial-000{number}" / "seed-0")
        assert run.result()["env_steps"] == 400
        assert run.settings()["optimizer"]["learning_rate"] == float(
            answer["trials"][number]["values"]["optimizer.learning_rate"]
        )


def stranger(folder: Path) -> dict[str, Any]:
    """Settings of a run whose env leaves a mark where it is imported, and pays well."""
    (folder / "stranger.py").write_text(
        "import gymnasium, pathlib\n"
        "pathlib.Path(__file__).with_name('ran').touch()\n"
        "class Env(gymnasium.Env):\n"
        "    observation_space = gymnasium.spaces.Box(-1.0, 1.0, (4,))\n"
        "    action_space = gymnasium.spaces.Discrete(2)\n"
        "    def reset(self, *, seed=None, options=None):\n"
        "        return self.observation_space.sample(), {}\n"
        "    def step(self, action):\n"
        "        return self.observation_space.sample(), 1e6, False, True, {}\n"
    )
    words = ["--env.id", str(folder / "stranger.py:Env"), "--total-env-steps", "1000", "--learning-starts", "100"]
    return as_tree(settings_from_argv("cartpole-dqn", words))


def test_a_run_of_somebody_else_is_neither_resumed_nor_scored(
    run_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    planted = Run.create("there/trial-0000/seed-0", "mine", stranger(run_folder))
    planted.close()
    assert main(["tune", *WORDS, "--trials", "1", "--quiet"]) == 2
    said = capsys.readouterr()
    assert "there/trial-0000/seed-0 was trained with other settings: env.id '" in said.err
    assert not said.out
    planted.write_json("result.json", {"env_steps": 1, "evaluation": {"mean_return": 1e6}})
    assert main(["tune", *WORDS, "--trials", "1", "--quiet"]) == 2
    assert not (run_folder / "ran").exists()


def test_a_log_that_is_a_link_is_not_written_through(run_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("precious").write_text("mine")
    Path("there/trial-0000").mkdir(parents=True)
    Path("there/trial-0000/seed-0.log").symlink_to(Path("precious").absolute())
    assert main(["tune", *WORDS, "--trials", "1", "--quiet"]) == 2
    assert "seed-0.log" in capsys.readouterr().err
    assert Path("precious").read_text() == "mine"


def test_a_study_that_is_none_is_refused_in_a_sentence(run_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("there").mkdir()
    for content in (b"no database, whatever its name says", b"SQLite format 3\0" + bytes(100)):
        Path("there/study.db").write_bytes(content)
        assert main(["tune", *WORDS, "--trials", "1"]) == 2
        assert "error: there/study.db cannot be used as a study: " in capsys.readouterr().err
    Path("there/study.db").rename("elsewhere.db")
    Path("there/study.db").symlink_to("../elsewhere.db")
    assert main(["tune", *WORDS, "--trials", "1"]) == 2
    assert "is a symbolic link" in capsys.readouterr().err
