"""Arms that are commands: anybody's scripts, judged by the episodes of their training."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import numpy as np
import pytest

import hotloop
from hotloop.comparison.scripts import find_script, training_envs
from hotloop.comparison.training_returns import read_script_run, running_means
from hotloop.core.errors import RunError, SettingsError

SCRIPTS = Path(__file__).with_name("scripts")
WALK, REINFORCE = SCRIPTS / "walk.py", SCRIPTS / "reinforce.py"
WALKS, REINFORCES = shlex.quote(str(WALK)), shlex.quote(str(REINFORCE))  # as an arm names them: there may be a space


def test_the_curve_is_the_mean_of_the_last_hundred_episodes() -> None:
    env_steps, returns = np.arange(1, 301) * 10.0, np.arange(300.0)
    places, seconds, means = running_means(env_steps, env_steps / 100, returns, 3_000)
    assert places[0] == 60
    assert means[0] == 2.5  # episodes 0 to 5 have ended
    assert seconds[0] == 0.6
    assert means[-1] == np.arange(200, 300).mean()
    late = running_means(np.array([1_500.0]), np.array([3.0]), np.array([7.0]), 3_000)[0]
    assert late[0] == 1_500  # nothing before the first episode ended


def test_updates_tell_training_from_evaluation() -> None:
    envs = [
        {"number": 0, "interrupted": 4, "before_update": 4},
        {"number": 1, "interrupted": 0, "before_update": 2},  # an evaluation that ended just before an update
    ]
    assert training_envs(envs) == {0}
    assert training_envs([{"number": 0, "before_update": 3}, {"number": 1}]) == {0}  # learns from whole episodes
    assert training_envs([{"number": 0}, {"number": 1}]) == {0, 1}


def test_a_command_without_a_seed_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"no `\{seed\}` among its arguments"):
        hotloop.compare(f"{WALKS} --height 3", f"{WALKS} --seed {{seed}}", seeds=2, out=tmp_path)
    with pytest.raises(SettingsError, match="there is no script"):
        hotloop.compare("nowhere.py --seed {seed}", seeds=2, out=tmp_path)


def test_the_interpreter_may_stand_first() -> None:
    script = find_script(["/usr/bin/python3.9", str(WALK), "--seed", "{seed}"])
    assert script is not None
    assert (script.python, script.with_seed(3)) == ("/usr/bin/python3.9", ("--seed", "3"))
    assert find_script(["cartpole-dqn", "--double", "false"]) is None


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> tuple[hotloop.Comparison, list[str]]:
    out = tmp_path_factory.mktemp("compared")
    arms = [f"old={WALKS} --seed {{seed}}", f"same={WALKS} --seed {{seed}}", f"low={WALKS} --seed {{seed}} --height 5"]
    return hotloop.compare(*arms, seeds=6, out=out, workers=2), arms


def test_scripts_are_judged_by_their_training_returns(compared: tuple[hotloop.Comparison, list[str]]) -> None:
    found, _ = compared
    assert not found.failed
    assert [round(summary.scores.mean()) for summary in found.summaries] == [10, 10, 5]
    same, low = found.contrasts
    assert low.learning == "worse"
    assert same.learning in ("as good", "unseen")
    assert all(run.env_steps == 4_000 and run.updates == 0 for run in found.summaries[0].runs)
    data = json.loads((found.folder / "compare.json").read_text())
    assert data["differing_settings"]["arguments"][2].endswith("--height 5")
    assert "training episodes" in (found.folder / "table.md").read_text()


def test_finished_runs_are_taken_as_they_are_and_other_scripts_refused(
    compared: tuple[hotloop.Comparison, list[str]],
) -> None:
    found, arms = compared
    again = hotloop.compare(*arms, seeds=6, out=found.folder)
    assert all(job.reused for job in again.jobs)
    with pytest.raises(RunError, match="a run of another program: arguments"):
        hotloop.compare(f"old={WALKS} --seed {{seed}} --height 6", seeds=6, out=found.folder)


def test_runs_of_commands_are_arms_again(compared: tuple[hotloop.Comparison, list[str]], tmp_path: Path) -> None:
    found, _ = compared
    again = hotloop.compare(found.folder, threshold=found.threshold, out=tmp_path / "all")
    assert [summary.label for summary in again.summaries] == ["old", "same", "low"]
    assert [one.as_data() for one in again.contrasts] == [one.as_data() for one in found.contrasts]
    low, old = found.folder / "low", found.folder / "old"
    (turned,) = hotloop.compare(f"fast={low}", old, out=tmp_path / "two").contrasts
    assert (turned.reference, turned.arm, turned.learning) == ("fast", "old", "better")
    unfinished = tmp_path / "runs" / "seed-0"
    unfinished.mkdir(parents=True)
    (unfinished / "script.json").write_bytes((old / "seed-0" / "script.json").read_bytes())
    (failed,) = hotloop.compare(unfinished.parent, out=tmp_path / "none").failed
    assert "is not finished; the command that made it makes it anew" in failed.error
    (unfinished / "script.json").write_text('{"schema": 1, "seed": "first"}')
    with pytest.raises(RunError, match="names no script and seed"):
        hotloop.compare(unfinished.parent, out=tmp_path / "none")


def test_a_script_that_fails_is_told_with_its_own_text(tmp_path: Path) -> None:
    found = hotloop.compare(f"{WALKS} --seed {{seed}} --fail", seeds=1, out=tmp_path)
    (failed,) = found.failed
    assert "it was not to be" in failed.error


def test_evaluation_is_not_counted_and_optimizers_of_one_update_are_one(tmp_path: Path) -> None:
    found = hotloop.compare(f"{REINFORCES} {{seed}}", seeds=1, out=tmp_path)
    (run,) = found.summaries[0].runs
    assert not found.failed
    assert (run.env_steps, run.updates, run.score) == (100, 20, 5.0)
    assert read_script_run(run.path).seed == 0
