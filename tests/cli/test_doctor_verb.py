"""`hotloop doctor` as a person types it: on a preset and on a script."""

import json
from contextlib import closing

import pytest

from hotloop import api
from hotloop.cli import doctor
from hotloop.cli.main import main
from hotloop.diagnosis import preset as recorded
from hotloop.diagnosis.plain_replay import push_one_by_one
from hotloop.diagnosis.training_loop import NOT_TIMED, TrainingLoop
from hotloop.doctor.loops import LoopRatio

PRESET = ["cartpole-dqn", "--seconds", "1", "--quick", "--quiet", "--learning-starts", "200"]

SCRIPT = """
import sys

class Env:
    def reset(self):
        return 0.0

    def step(self, action):
        total = sum(range(200))
        return float(total), 1.0, False, False, {}

env = Env()
env.reset()
for step in range(int(sys.argv[1])):
    env.step(0)
print("done")
sys.exit(7)
"""


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    path = tmp_path_factory.mktemp("doctor") / "report.json"
    assert doctor.run([*PRESET, "--save", str(path)]) == 0
    return path


def test_a_preset_is_reported_with_phases_that_sum_to_its_time(report):
    found = json.loads(report.read_text())
    assert {"machine", "phases", "counts", "growth", "experiments", "findings"} <= set(found)
    assert sum(phase["seconds"] for phase in found["phases"].values()) == pytest.approx(found["seconds"])
    assert {"act", "env", "store", "sample", "update", "start-up"} <= set(found["phases"])
    assert found["counts"]["env_steps"] > 0
    assert found["subject"]["name"] == "cartpole-dqn"


def test_pages_and_traces_are_written_beside_the_report(tmp_path, capsys):
    files = [str(tmp_path / name) for name in ("page.html", "trace.json")]
    assert doctor.run([*PRESET, "--html", files[0], "--trace", files[1]]) == 0
    assert (tmp_path / "page.html").read_text().startswith("<!doctype html>")
    assert json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert "where the time goes" in capsys.readouterr().out


def test_the_doctors_options_may_stand_before_a_preset_too(capsys):
    assert doctor.run(["--json", "--quick", "--quiet", "--seconds", "0.2", "cartpole-dqn", "--env.num-envs", "2"]) == 0
    counts = json.loads(capsys.readouterr().out)["counts"]
    assert counts["env_steps"] == 2 * counts["env_calls"]


def test_a_loop_over_its_budget_ends_with_4(capsys):
    assert doctor.run([*PRESET, "--budget", "0.001"]) == 4
    assert "over budget" in capsys.readouterr().err
    assert doctor.run([*PRESET, "--budget", "1e9"]) == 0


def test_a_loop_that_became_slower_ends_with_4_and_the_table_says_where(report, tmp_path, capsys):
    old = json.loads(report.read_text())
    for name in ("seconds", *old["timeline"]["phases"]):  # as if everything had been a thousand times faster
        column = old["timeline"]["phases"].get(name) or old["timeline"]["seconds"]
        column[:] = [value / 1_000 for value in column]
    (tmp_path / "old.json").write_text(json.dumps(old))
    assert doctor.run([*PRESET, "--against", str(tmp_path / "old.json"), "--max-slowdown", "5"]) == 4
    assert "slower" in capsys.readouterr().out
    assert doctor.run([*PRESET, "--against", str(report), "--max-slowdown", "1000"]) == 0


def test_the_plain_push_takes_the_place_of_ours_and_is_timed_alone(tmp_path):
    settings = api.preset("snake-original-64", env={"num_envs": 8}, learning_starts=100, replay={"buffer_size": 500})
    with (
        closing(TrainingLoop(settings, tmp_path / "plain", push_one_by_one)) as plain,
        closing(TrainingLoop(settings, tmp_path / "ours")) as ours,
    ):
        stretch = plain.advance(800)
        assert stretch.env_steps == ours.advance(800).env_steps
        assert (plain.session.learner.lane.parameters() == ours.session.learner.lane.parameters()).all()
        assert len(plain.session.replay.pushed) == 500
        assert sum(stretch.phases.values()) == pytest.approx(stretch.seconds)
        assert NOT_TIMED not in stretch.phases


def test_pushes_are_compared_with_the_plain_push_not_with_the_loop_as_it_is(monkeypatch, tmp_path):
    """Above 1 where ours is faster; the first loop of each pair is the one that pushes row by row."""
    pairs = []

    def note(first, second, seconds):
        pairs.append([type(loop.session.replay).__name__ for loop in (first, second)])
        return LoopRatio(1.0, 1.0, 1.0, 1.0, 1.0)

    monkeypatch.setattr(recorded, "compare_loops", note)
    monkeypatch.setattr(recorded, "LANES", ("native",))
    settings = api.preset("cartpole-dqn", total_env_steps=10**6)
    plan = recorded.PresetPlan(seconds=0.05)
    trace = recorded.record_preset(settings, "cartpole-dqn", plan, lambda text: None)
    assert [one.name for one in trace.experiments[-2:]] == ["batched push", "one push"]
    assert pairs[-2:] == [["PlainPushReplay", "PlainPushReplay"], ["PlainPushReplay", "ReplayMemory"]]
    assert all(pair == ["ReplayMemory", "ReplayMemory"] for pair in pairs[:-2])


def test_a_script_is_run_as_it_is_and_its_own_exit_code_is_reported(tmp_path, capsys):
    (tmp_path / "train.py").write_text(SCRIPT)
    assert doctor.run(["--json", "--quick", "--quiet", str(tmp_path / "train.py"), "3000"]) == 0
    captured = capsys.readouterr()
    found = json.loads(captured.out)
    assert found["script_exit"] == 7
    assert found["counts"]["env_steps"] == 3_000
    assert sum(phase["seconds"] for phase in found["phases"].values()) == pytest.approx(found["seconds"], rel=0.05)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nothing.py"], "there is no script nothing.py"),
        (["snake-dqm"], "did you mean `snake-dqn`"),
        (["--seconds", "0", "cartpole-dqn"], "expected above 0"),
        (["--max-slowdown", "2", "cartpole-dqn"], "name it with `--against"),
        (["--against", "nowhere.json", "cartpole-dqn"], "cannot read nowhere.json"),
        (["--html", "no/such/folder/page.html", "cartpole-dqn"], "no folder"),
        (["--ops", "cartpole-dqn"], "is for scripts"),
        (["cartpole-dqn", "--quik"], "quik"),
        ([], "target"),
    ],
)
def test_mistakes_are_told_with_a_hint_and_code_2(words, said, capsys):
    assert main(["doctor", *words]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert "hint:" in error
