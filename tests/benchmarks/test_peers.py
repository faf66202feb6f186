"""Comparison with other libraries, none of which is needed here: shapes, ratios and what is said of missing ones."""

from __future__ import annotations

import json
import re
import sys

import pytest

from benchmarks import lanes
from benchmarks.peers import __main__ as command
from benchmarks.peers import compare, libraries, replay_work
from benchmarks.peers.compare import PeerRow, losses
from benchmarks.peers.libraries import Found, Library
from benchmarks.peers.replay_work import Work, hotloop_call
from hotloop.core.errors import MissingExtraError, SettingsError
from hotloop.core.program import install_command
from hotloop.proof.speed import Speed

SB3 = Library("stable-baselines3", "2", "python")
REJAX = Library("rejax", "0.1", "other-python")
COLUMNS = {"work", "library", "version", "unit", "theirs", "hotloop", "ratio", "low", "high"}


@pytest.fixture
def _nothing_installed(monkeypatch):
    monkeypatch.setattr(libraries, "_version_here", lambda name: "")


def faked_run(python, script, training):
    """Hotloop 1,000 env steps in a second, others in ten; rejax breaks."""
    if script == "dqn_rejax.py":
        raise compare.ScriptFailedError("no module named jax")
    seconds = 1.0 if script.endswith("_hotloop.py") else 10.0
    return {"env_steps": 1_000, "seconds": seconds}


def test_names_choose_parts_and_libraries_and_nothing_named_means_all():
    assert libraries.split_names([]) == (libraries.PARTS, libraries.LIBRARIES)
    assert libraries.split_names(["replay", "cpprb"]) == (("replay",), ("cpprb",))
    assert libraries.split_names(["training", "rlox"]) == (("dqn", "ppo", "sac"), ("rlox",))
    assert libraries.split_names(["ppo", "stable-baselines3"]) == (("ppo",), ("stable-baselines3",))
    assert [work.algorithm for _, work in compare.plan([SB3], 10, 100, ["ppo"])] == ["ppo", "ppo"]
    with pytest.raises(SettingsError, match="did you mean `tianshou`"):
        libraries.split_names(["tianshu"])


@pytest.mark.usefixtures("_nothing_installed")
def test_all_missing_is_an_error_that_says_what_to_install(capsys):
    with pytest.raises(MissingExtraError, match=re.escape(install_command("peers"))):
        command.run([])


def test_one_missing_is_only_noted(monkeypatch):
    monkeypatch.setattr(libraries, "_version_here", lambda name: "11.0" if name == "cpprb" else "")
    found = libraries.find_libraries(libraries.LIBRARIES)
    assert found.libraries == [Library("cpprb", "11.0", sys.executable)]
    assert found.missing["rlox"] == f"not installed: {install_command('peers')}"
    assert "--python-jax" in found.missing["rejax"]


def test_another_interpreter_is_asked_for_the_jax_libraries(tmp_path):
    with pytest.raises(SettingsError, match="no interpreter"):
        libraries.find_libraries(["rejax"], str(tmp_path / "python"))
    with pytest.raises(MissingExtraError):
        libraries.find_libraries(["rejax"], sys.executable)


def test_training_rates_become_one_row_per_library_and_a_failure_is_told():
    planned = compare.plan([SB3, REJAX, Library("cpprb", "11", "python")], 10, 100)
    assert [training.name for _, training in planned] == [
        "dqn-cartpole-own-env/update-every-1",
        "dqn-cartpole/update-every-1",
        "dqn-cartpole/update-every-4",
        "ppo-cartpole/gymnasium",
        "ppo-cartpole/our-env",
        "sac-pendulum/256x256-b256",
        "sac-pendulum/400x300-b256",
        "sac-pendulum/64x64-b64",
    ]
    results = [result for _, result in compare.compare_training(planned, 2, faked_run)]
    assert results[:8] == [None] * 8
    failed, every, fourth, ppo, own, *sac = results[8:]
    assert failed == "dqn-cartpole-own-env/update-every-1 rejax failed: no module named jax"
    assert (every.theirs, every.hotloop, every.ratio, every.low, every.high) == (100.0, 1_000.0, 10.0, 10.0, 10.0)
    assert ppo.ratio == own.ratio == sac[0].ratio == 10.0
    assert set(json.loads(json.dumps(fourth.as_data()))) == COLUMNS


def test_replay_rows_are_made_from_the_paired_times(monkeypatch):
    monkeypatch.setattr(compare, "CALLS", {"rlox": lambda work: None if work.rows == 256 else lambda: None})
    monkeypatch.setattr(compare, "WORK", (Work("add", 1, 4), Work("add", 256, 11)))
    monkeypatch.setattr(compare.speed, "measure", lambda *_: Speed(0.5, 0.4, 0.6, 1e-6, 2e-6))
    found = [Library("rlox", "1.2", "python"), SB3]
    rows = [row for _, row in compare.compare_replays(found, 1.0)]
    assert rows == [PeerRow("replay-add/1x4", "rlox", "1.2", "µs", 1.0, 2.0, 0.5, 0.4, 0.6), None]
    assert compare.count_comparisons(found) == 2
    assert losses(rows[:1]) == ["replay-add/1x4: rlox is 2.00x as fast as hotloop"]


@pytest.mark.parametrize("work", compare.WORK, ids=lambda work: work.name)
def test_our_own_replay_does_every_work(work, monkeypatch):
    """Seen from the replay: rows are there afterwards, a batch has its size, priorities count in the next draw."""
    monkeypatch.setattr("benchmarks.peers.replay_work.CAPACITY", 2_000)
    made, answers = [], []
    make = replay_work._hotloop_replay
    monkeypatch.setattr(replay_work, "_hotloop_replay", lambda *words: made.append(make(*words)) or made[-1])
    call = hotloop_call(work)
    (replay,) = made
    before, sample = replay.size, replay.sample
    monkeypatch.setattr(replay, "sample", lambda *words: answers.append(sample(*words)) or answers[-1])
    call()
    call()
    rows = {"add": work.rows, "store": 1}.get(work.kind, 0)
    assert replay.size == before + 2 * rows
    assert all(batch.index.shape == (1, work.rows) for batch in answers)
    assert len(answers) == (0 if rows else 2)
    if work.kind == "prioritized":
        assert len(set(sample(replay.size, 1, 0).weight.ravel())) > 1


def test_the_verb_prints_rows_notes_and_where_we_are_behind(monkeypatch, capsys):
    monkeypatch.setattr(libraries, "find_libraries", lambda names, python: Found([SB3], {"rejax": "not installed"}))
    rows = iter([("", PeerRow("replay-add/1x4", "rlox", "1.2", "µs", 1.0, 2.0, 0.5, 0.4, 0.6))])
    monkeypatch.setattr(compare, "compare_replays", lambda *_: rows)
    monkeypatch.setattr(compare, "compare_training", lambda *_: iter([("", "x failed: no")]))
    assert command.run(["--quiet"]) == 0
    text = capsys.readouterr().out
    assert "rejax: not installed" in text
    assert "x failed: no" in text
    assert "behind: replay-add/1x4: rlox is 2.00x as fast as hotloop" in text


def test_the_verb_answers_in_json(monkeypatch, capsys):
    monkeypatch.setattr(libraries, "find_libraries", lambda names, python: Found([SB3]))
    monkeypatch.setattr(compare, "run_script", faked_run)
    monkeypatch.setattr(compare.compare_training, "__defaults__", (faked_run,))
    assert command.run(["training", "--json", "--quiet", "--rounds", "1"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert set(data) == {"schema", "load_average", "rows", "notes"}
    assert [row["ratio"] for row in data["rows"]] == [10.0] * 7


@pytest.mark.parametrize(
    ("run", "words"), [(command.run, ["--seconds", "0"]), (lanes.run, ["64x65-b32"]), (command.run, ["--rounds", "0"])]
)
def test_impossible_wishes_are_refused(run, words):
    with pytest.raises(SettingsError):
        run(words)


@pytest.mark.parametrize("native_env", [False, True])
def test_our_own_training_script_reports_its_window_and_its_updates(native_env):
    training = compare.Training(update_every=4, warm_up=600, env_steps=300, native_env=native_env)
    line = compare.run_script(sys.executable, "dqn_hotloop.py", training)
    assert line["env_steps"] == 300
    assert line["updates"] == (904 - 500) // 4  # up to a multiple of 4 past the window; the first 500 make none
    assert line["seconds"] > 0


def test_a_script_that_breaks_is_told_by_its_last_line():
    training = compare.Training(update_every=0, warm_up=0, env_steps=1)
    with pytest.raises(compare.ScriptFailedError, match="ZeroDivisionError"):
        compare.run_script(sys.executable, "dqn_hotloop.py", training)


def test_our_sac_script_makes_an_update_for_every_env_step():
    training = compare.Training(1, warm_up=120, env_steps=60, algorithm="sac", size="16x12-b8")
    line = compare.run_script(sys.executable, "sac_hotloop.py", training)
    assert line["env_steps"] == 60
    assert 0 < line["updates"] <= 120 + 60 + 1
    assert line["seconds"] > 0.0
