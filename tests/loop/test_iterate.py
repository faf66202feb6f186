"""Runs in their caller's hands: row by row, ended early, extended, begun with given weights."""

import json
from pathlib import Path

import numpy as np
import pytest

import hotloop
from hotloop.cli.main import main
from hotloop.core.errors import RunError, SettingsError
from hotloop.loop.iterate import CALLER
from hotloop.runs.directory import Run


def small(family: str, folder: Path, **more):
    evaluation = {"every": 300, "episodes": 1, "final_episodes": 2}
    shared = {"total_env_steps": 600, "log_every": 100, "evaluation": evaluation, "env": {"num_envs": 4}}
    own = {
        "dqn": {"learning_starts": 100, "network": {"hidden": [8]}, "replay": {"buffer_size": 500}},
        "ppo": {"rollout_steps": 25, "batch_size": 50, "network": {"hidden": [8]}},
    }[family]
    return hotloop.preset(f"cartpole-{family}", run_dir=str(folder), **{**shared, **own, **more})


def events(run: Path, kind: str) -> list[dict]:
    rows = [json.loads(line) for line in (run / "events.jsonl").read_text().splitlines()]
    return [row for row in rows if row["event"] == kind]


@pytest.mark.parametrize("family", ["dqn", "ppo"])
def test_rows_are_those_of_the_run_and_its_result_is_that_of_train(family, tmp_path):
    whole = hotloop.train(small(family, tmp_path / "whole"), verbose=False)
    rows = hotloop.iterate(small(family, tmp_path / "rows"))
    seen = [dict(row) for row in rows]
    assert [row["env_steps"] for row in seen] == [100, 200, 300, 400, 500, 600]
    logged = events(tmp_path / "rows", "progress")
    assert [{name: row[name] for name in one} for one, row in zip(seen, logged, strict=True)] == seen
    assert rows.result["digest"] == whole["digest"]
    assert rows.result["evaluation"] == whole["evaluation"]
    assert CALLER in rows.result["phases"]
    assert CALLER not in whole["phases"]


@pytest.mark.parametrize("family", ["dqn", "ppo"])
def test_break_ends_the_run_saved_and_it_resumes_to_the_same_digest(family, tmp_path):
    whole = hotloop.train(small(family, tmp_path / "whole"), verbose=False)
    for row in hotloop.iterate(small(family, tmp_path / "run")):
        if row["env_steps"] == 300:
            break
    assert not Run.open(tmp_path / "run").finished
    for row in hotloop.iterate(tmp_path / "run"):  # goes on where it was
        assert row["env_steps"] > 300
        break
    assert hotloop.resume(tmp_path / "run", verbose=False)["digest"] == whole["digest"]


def test_a_row_says_which_run_it_is_of_and_the_end_is_said(tmp_path, capsys):
    with hotloop.iterate(small("dqn", tmp_path / "run")) as rows:
        row = next(rows)
    assert row.run == rows.run == tmp_path / "run"
    assert "ended at 100 env steps; all of it was saved" in capsys.readouterr().err
    for row in hotloop.iterate(tmp_path / "run", verbose=False):
        assert row.run == tmp_path / "run"
    assert capsys.readouterr().err == ""
    finished = hotloop.iterate(tmp_path / "run")
    assert list(finished) == []
    assert finished.result == Run.open(tmp_path / "run").result()
    longer = [row["env_steps"] for row in hotloop.iterate(tmp_path / "run", total_env_steps=800, verbose=False)]
    assert longer == [700, 800]
    with pytest.raises(SettingsError, match="extends a run"):
        hotloop.iterate(small("dqn", tmp_path / "new"), total_env_steps=5)


def test_an_error_in_the_callers_hands_leaves_a_run_to_resume(tmp_path):
    def look() -> None:
        with hotloop.iterate(small("dqn", tmp_path / "run")) as rows:
            for row in rows:
                row["env_steps"] / 0

    with pytest.raises(ZeroDivisionError):
        look()
    assert hotloop.resume(tmp_path / "run", verbose=False)["env_steps"] == 600


def test_the_callers_time_is_not_trainings(tmp_path, monkeypatch):
    rows = hotloop.iterate(small("dqn", tmp_path / "run"))
    next(rows)
    clock = rows._caller._timer._clock
    rows._caller._timer._clock = lambda: clock() + 10**12  # a thousand seconds pass while the row is looked at
    assert list(rows)[-1]["env_steps"] == 600
    assert rows.result["phases"][CALLER]["seconds"] > 999
    assert 600 / rows.result["env_steps_per_second"] < 900


def test_a_row_shows_the_learner_and_an_agent_with_weights_of_its_own(tmp_path):
    kept = []
    for row in hotloop.iterate(small("dqn", tmp_path / "run")):
        assert row.learner.counters.updates == row["updates"]
        assert row.agent.act(np.zeros(4, np.float32)) in (0, 1)
        kept.append(row.agent)
    first, last = (np.concatenate([p.detach().numpy().ravel() for p in a.network.parameters()]) for a in kept[::5])
    assert not np.array_equal(first, last)


@pytest.mark.parametrize("family", ["dqn", "ppo"])
def test_a_finished_run_goes_on_with_its_own_intervals(family, tmp_path):
    settings = small(family, tmp_path / "run", evaluation={"every": 0, "episodes": 1, "final_episodes": 2})
    first = hotloop.train(settings, verbose=False)
    longer = hotloop.resume(tmp_path / "run", total_env_steps=1_000, verbose=False)
    assert (first["env_steps"], longer["env_steps"]) == (600, 1_000)
    assert longer["updates"] > first["updates"]
    run = Run.open(tmp_path / "run")
    assert hotloop.api.settings_of(run, trust=False).evaluation_every == 30  # a twentieth of 600, still
    assert [(row["from"], row["to"], row["env_steps"]) for row in events(run.path, "extended")] == [(600, 1_000, 600)]
    assert json.loads((run.path / "result-600.json").read_text())["digest"] == first["digest"]
    assert hotloop.resume(tmp_path / "run", verbose=False)["digest"] == longer["digest"]
    again = hotloop.resume(tmp_path / "run", total_env_steps=1_200, verbose=False)  # a third helping
    assert again["env_steps"] == 1_200
    assert [row["to"] for row in events(run.path, "extended")] == [1_000, 1_200]
    assert hotloop.api.settings_of(run, trust=False).extended_from == 600


def test_an_extension_that_is_stopped_resumes_as_one_that_is_not(tmp_path):
    ends = []
    for name in ("whole", "stopped"):
        hotloop.train(small("dqn", tmp_path / name), verbose=False)
    ends.append(hotloop.resume(tmp_path / "whole", total_env_steps=1_000, verbose=False)["digest"])
    hotloop.api.extend(Run.open(tmp_path / "stopped"), small("dqn", tmp_path / "stopped"), 1_000)  # and killed here
    for row in hotloop.iterate(tmp_path / "stopped"):
        if row["env_steps"] == 800:
            break
    ends.append(hotloop.resume(tmp_path / "stopped", verbose=False)["digest"])
    assert ends[0] == ends[1]
    assert len(events(tmp_path / "stopped", "extended")) == 1


def test_the_command_line_extends_too(tmp_path, capsys):
    hotloop.train(small("dqn", tmp_path / "run"), verbose=False)
    assert main(["resume", str(tmp_path / "run"), "--total-env-steps", "0.7k", "--json", "--quiet"]) == 0
    assert json.loads(capsys.readouterr().out)["env_steps"] == 700
    assert main(["resume", str(tmp_path / "run"), "--total-env-steps", "many"]) == 2
    assert main(["resume", str(tmp_path / "run"), "--total-env-steps", "100"]) == 2
    assert "is for 700 env steps and cannot be cut to 100" in capsys.readouterr().err


def test_what_cannot_be_extended_is_said(tmp_path):
    hotloop.train(small("dqn", tmp_path / "run", total_episodes=3), verbose=False)
    with pytest.raises(RunError, match="total_episodes"):
        hotloop.resume(tmp_path / "run", total_env_steps=900, verbose=False)
    with pytest.raises(SettingsError, match="only `hotloop resume"):
        hotloop.train(small("dqn", tmp_path / "new", extended_from=5), verbose=False)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("family", ["dqn", "ppo"])
def test_a_run_starts_from_the_best_weights_of_another(family, tmp_path):
    hotloop.train(small(family, tmp_path / "old"), verbose=False)
    best = hotloop.load(tmp_path / "old").network
    new = small(
        family, tmp_path / "new", start_from=str(tmp_path / "old"), log_every=1, optimizer={"learning_rate": 1e-9}
    )
    rows = hotloop.iterate(new)
    row = next(rows)  # of PPO after the first updates, which hardly move anything
    for ours, theirs in zip(row.agent.network.parameters(), best.parameters(), strict=True):
        assert (ours - theirs).abs().max() < 1e-7
    if family == "dqn":
        state = row.learner.lane.state()
        assert np.array_equal(state["online"], state["target"])
    rows.close()


def test_weights_may_be_given_as_a_module_or_an_array_and_survive_a_stop_before_the_first_checkpoint(tmp_path):
    hotloop.train(small("dqn", tmp_path / "old"), verbose=False)
    agent = hotloop.load(tmp_path / "old")
    weights = hotloop.api.weights_of(Run.open(tmp_path / "old"), agent.settings)
    digests = []
    for name, start in (("module", agent.network), ("array", weights), ("run", tmp_path / "old")):
        digests.append(hotloop.train(small("dqn", tmp_path / name), start_from=start, verbose=False)["digest"])
    rows = hotloop.iterate(small("dqn", tmp_path / "stopped", log_every=1), start_from=weights)
    next(rows)
    rows.close()
    for checkpoint in (tmp_path / "stopped" / "checkpoints").iterdir():
        checkpoint.rename(tmp_path / checkpoint.name)
    # its own log interval changes nothing of what is computed
    digests.append(hotloop.resume(tmp_path / "stopped", verbose=False)["digest"])
    assert len(set(digests)) == 1
    assert digests[0] != hotloop.train(small("dqn", tmp_path / "drawn"), verbose=False)["digest"]


def test_weights_of_another_network_are_refused_before_a_run_is_made(tmp_path):
    with pytest.raises(SettingsError, match="are 7 numbers, this run's network has 58"):
        hotloop.train(small("dqn", tmp_path / "run"), start_from=np.zeros(7, np.float32), verbose=False)
    assert not (tmp_path / "run").exists()
