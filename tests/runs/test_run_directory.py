"""Run directories: made once, locked by one, found again."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hotloop.core.errors import RunError
from hotloop.runs import lock
from hotloop.runs.directory import Run

SETTINGS = {"algorithm": "dqn", "env": {"id": "snake"}, "lr": 1e-3, "layers": [64, 64]}


def test_a_new_run_holds_its_settings_and_can_be_opened_again(tmp_path):
    with Run.create(tmp_path / "first", "snake-dqn", SETTINGS) as run:
        assert run.settings() == SETTINGS
        assert not run.finished
    again = Run.open(str(tmp_path / "first"))
    assert again.settings() == SETTINGS
    assert again.checkpoints == tmp_path / "first" / "checkpoints"
    assert again.events == tmp_path / "first" / "events.jsonl"
    assert again.read_json("run.json")["label"] == "snake-dqn"


def test_without_a_directory_runs_are_named_by_label_and_time_and_never_collide(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = []
    for _ in range(3):
        with Run.create(None, "snake/dqn v2", SETTINGS) as run:
            names.append(run.path.name)
    assert len(set(names)) == 3
    assert all(re.fullmatch(r"snake-dqn-v2-\d{8}-\d{6}(-\d)?", name) for name in names)
    assert sorted(os.listdir("runs")) == sorted(names)


@pytest.mark.parametrize("label", ["../../etc", "", "/", "...", "a\x00b", "<script>"])
def test_no_label_leaves_the_runs_folder(tmp_path, monkeypatch, label):
    monkeypatch.chdir(tmp_path)
    with Run.create(None, label, {}) as run:
        assert run.path.resolve().parent == tmp_path / "runs"
        assert re.fullmatch(r"[A-Za-z0-9_.-]+", run.path.name)


def test_a_directory_that_holds_a_run_is_refused_with_the_way_to_resume(tmp_path):
    Run.create(tmp_path / "a", "x", SETTINGS).close()
    with pytest.raises(RunError, match="already holds a run") as caught:
        Run.create(tmp_path / "a", "x", {})
    assert f"hotloop resume {tmp_path / 'a'}" in caught.value.hint
    assert Run.open(tmp_path / "a").settings() == SETTINGS


def test_a_directory_with_other_things_in_it_is_refused(tmp_path):
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(RunError, match=r"not empty and not a run \(it holds thesis\.tex\)"):
        Run.create(tmp_path, "x", {})
    with pytest.raises(RunError, match="is a file"):
        Run.create(tmp_path / "thesis.tex", "x", {})
    assert os.listdir(tmp_path) == ["thesis.tex"]


def test_what_a_trainer_killed_during_creation_leaves_does_not_block_the_next(tmp_path):
    (tmp_path / "run.json").write_text("{")
    (tmp_path / "lock").write_text("123\n")
    (tmp_path / ".tmp-settings.toml-1-0123abcd").write_text("half")
    Run.create(tmp_path, "x", SETTINGS).close()
    assert Run.open(tmp_path).settings() == SETTINGS
    assert not list(tmp_path.glob(".tmp-*"))


def test_opening_what_is_not_a_run_suggests_near_names(tmp_path):
    Run.create(tmp_path / "snake-1", "x", {}).close()
    (tmp_path / "empty").mkdir()
    with pytest.raises(RunError, match="not a run directory") as caught:
        Run.open(tmp_path / "snak-1")
    assert caught.value.hint == f"did you mean {tmp_path / 'snake-1'}?"
    with pytest.raises(RunError, match=r"no settings\.toml") as caught:
        Run.open(tmp_path / "empty")
    assert "hotloop runs" in caught.value.hint
    with pytest.raises(RunError):
        Run.open(tmp_path / "nowhere" / "at" / "all")


def test_json_files_come_back_without_their_schema_and_without_nan(tmp_path):
    with Run.create(tmp_path / "a", "x", {}) as run:
        run.write_json("result.json", {"return": 1.5, "loss": float("nan")})
        assert run.finished
        assert run.read_json("result.json") == {"return": 1.5, "loss": None}
        assert '"schema": 1' in (run.path / "result.json").read_text()


@pytest.mark.parametrize("content", ["", "{", "[]", "[" * 200_000, '{"a": NaN', '{"schema": 2}', '{"a": 1}'])
def test_a_json_file_that_is_broken_or_of_another_version_is_named(tmp_path, content):
    with Run.create(tmp_path / "a", "x", {}) as run:
        (run.path / "result.json").write_text(content)
        with pytest.raises(RunError, match=r"result\.json"):
            run.result()


def test_a_json_file_of_absurd_size_is_refused_unread(tmp_path):
    with Run.create(tmp_path / "a", "x", {}) as run:
        (run.path / "result.json").touch()
        os.truncate(run.path / "result.json", 2**40)
        with pytest.raises(RunError, match="more than"):
            run.result()


def test_a_run_of_another_schema_is_refused_when_opened(tmp_path):
    Run.create(tmp_path / "a", "x", {}).close()
    (tmp_path / "a" / "run.json").write_text('{"schema": 99}')
    with pytest.raises(RunError, match="schema version 99"):
        Run.open(tmp_path / "a")


@pytest.mark.parametrize("content", [b"a = ", b"\xff\xfe", b"a = " + b"[" * 100_000])
def test_settings_that_are_not_toml_are_named(tmp_path, content):
    with Run.create(tmp_path / "a", "x", {}) as run:
        (run.path / "settings.toml").write_bytes(content)
        with pytest.raises(RunError, match=r"settings\.toml"):
            run.settings()


@pytest.mark.parametrize("name", ["../x.json", "/etc/x.json", "a/b.json", "x.toml", ".json", ""])
def test_json_names_stay_inside_the_run(tmp_path, name):
    with Run.create(tmp_path / "a", "x", {}) as run, pytest.raises(ValueError, match="plain name"):
        run.write_json(name, {})


def test_an_unwritable_place_is_explained(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(RunError, match="cannot create"):
        Run.create(tmp_path / "file" / "run", "x", {})


HOLD = """
import sys, time
from hotloop.runs.directory import Run
run = Run.open(sys.argv[1])
run.lock()
print("locked", flush=True)
time.sleep(60)
"""

HOLD_WITH_WORKER = """
import os, sys, time
from hotloop.runs.directory import Run
run = Run.open(sys.argv[1])
run.lock()
worker = os.fork()
if worker == 0:
    time.sleep(60)
    os._exit(0)
print(worker, flush=True)
time.sleep(60)
"""


def start(script: str, path: Path) -> tuple[subprocess.Popen[str], str]:
    process = subprocess.Popen([sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, process.stdout.readline().strip()


def finish(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait()
    assert process.stdout is not None
    process.stdout.close()


def test_a_second_trainer_is_refused_by_pid_until_the_first_is_dead(tmp_path):
    Run.create(tmp_path / "a", "x", {}).close()
    run = Run.open(tmp_path / "a")
    process, said = start(HOLD, run.path)
    try:
        assert said == "locked"
        assert lock.is_held(run.path / "lock")
        with pytest.raises(RunError, match=rf"pid {process.pid}\b"):
            run.lock()
    finally:
        finish(process)
    assert not lock.is_held(run.path / "lock")
    run.lock()
    run.lock()  # again is fine
    assert (run.path / "lock").read_text() == f"{os.getpid()}\n"
    with pytest.raises(RunError, match="being trained"):
        Run.open(run.path).lock()
    run.close()
    assert not lock.is_held(run.path / "lock")


def test_a_forked_worker_that_outlives_its_killed_trainer_does_not_hold_the_lock(tmp_path):
    Run.create(tmp_path / "a", "x", {}).close()
    process, worker = start(HOLD_WITH_WORKER, tmp_path / "a")
    try:
        assert lock.is_held(tmp_path / "a" / "lock")
        process.kill()
        process.wait()
        os.kill(int(worker), 0)  # still there
        with Run.open(tmp_path / "a") as run:
            run.lock()
    finally:
        os.kill(int(worker), signal.SIGKILL)
        finish(process)


def test_a_listing_that_looks_at_the_lock_does_not_turn_a_trainer_away(tmp_path, monkeypatch):
    import fcntl

    Run.create(tmp_path / "a", "x", {}).close()
    looker = os.open(tmp_path / "a" / "lock", os.O_RDONLY)
    fcntl.flock(looker, fcntl.LOCK_SH)
    monkeypatch.setattr(time, "sleep", lambda _: fcntl.flock(looker, fcntl.LOCK_UN))
    with Run.open(tmp_path / "a") as run:
        run.lock()
    os.close(looker)


def test_a_lock_that_is_a_link_is_not_followed(tmp_path):
    Run.create(tmp_path / "a", "x", {}).close()
    (tmp_path / "precious").write_text("keep me")
    (tmp_path / "a" / "lock").unlink()
    (tmp_path / "a" / "lock").symlink_to(tmp_path / "precious")
    with pytest.raises(RunError, match="lock"):
        Run.open(tmp_path / "a").lock()
    assert (tmp_path / "precious").read_text() == "keep me"
