"""`hotloop doctor` as a person types it: on a preset and on a script."""

import json

import pytest

from hotloop.cli import doctor
from hotloop.cli.main import main

PRESET = ["cartpole-dqn", "--seconds", "0.3", "--quick", "--quiet", "--warmup-env-steps", "200"]

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


def test_a_loop_over_its_budget_ends_with_3(capsys):
    assert doctor.run([*PRESET, "--budget", "0.001"]) == 3
    assert "over budget" in capsys.readouterr().err
    assert doctor.run([*PRESET, "--budget", "1e9"]) == 0


def test_a_loop_that_became_slower_ends_with_3_and_the_table_says_where(report, tmp_path, capsys):
    old = json.loads(report.read_text())
    for name in ("seconds", *old["timeline"]["phases"]):  # as if everything had been a thousand times faster
        column = old["timeline"]["phases"].get(name) or old["timeline"]["seconds"]
        column[:] = [value / 1_000 for value in column]
    (tmp_path / "old.json").write_text(json.dumps(old))
    assert doctor.run([*PRESET, "--against", str(tmp_path / "old.json"), "--max-slowdown", "5"]) == 3
    assert "slower" in capsys.readouterr().out
    assert doctor.run([*PRESET, "--against", str(report), "--max-slowdown", "1000"]) == 0


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
