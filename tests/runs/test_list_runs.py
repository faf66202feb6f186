"""A listing reads small files and tails, and survives whatever it finds."""

import os

import pytest

from hotloop.runs.directory import Run
from hotloop.runs.events import EventLog
from hotloop.runs.listing import list_runs


def make(path, rows=(), settings=None):
    run = Run.create(path, path.name, settings or {"algorithm": "dqn", "env": {"id": "snake"}})
    log = EventLog(run.events)
    for row in rows:
        log.append(row)
    log.close()
    return run


def test_each_run_is_listed_with_its_status_and_last_numbers(tmp_path):
    running = make(tmp_path / "running", [{"event": "start", "schema": 1}, {"env_steps": 500, "mean_return": 2.0}])
    make(tmp_path / "stopped", [{"env_steps": 100, "mean_return": 1.0}, {"env_steps": 200}]).close()
    finished = make(tmp_path / "finished", [{"env_steps": 900, "mean_return": 3.0}])
    finished.write_json("result.json", {"env_steps": 1000, "evaluation": {"mean_return": 9.5}})
    finished.close()
    (tmp_path / "notes").mkdir()
    (tmp_path / "file").touch()
    found = {summary.path.name: summary for summary in list_runs(tmp_path)}
    running.close()
    assert {name: (s.status, s.env_steps, s.mean_return) for name, s in found.items()} == {
        "running": ("running", 500, 2.0),
        "stopped": ("stopped", 200, 1.0),
        "finished": ("finished", 1000, 9.5),
    }
    summary = found["stopped"]
    assert (summary.label, summary.env, summary.algorithm) == ("stopped", "snake", "dqn")
    assert summary.started is not None
    assert summary.started.startswith("20")


def test_a_run_that_has_only_begun_says_nothing_it_does_not_know(tmp_path):
    Run.create(tmp_path / "new", "label", {"env": "cartpole"}).close()
    (summary,) = list_runs(tmp_path)
    assert (summary.label, summary.env, summary.algorithm) == ("label", "cartpole", None)
    assert (summary.status, summary.env_steps, summary.mean_return) == ("stopped", None, None)


def test_a_folder_that_is_missing_has_no_runs(tmp_path):
    assert list_runs(tmp_path / "missing") == []


@pytest.mark.parametrize("name", ["run.json", "settings.toml", "events.jsonl", "result.json"])
@pytest.mark.parametrize("content", [b"", b"\xff{[", b"[" * 100_000, b"3\n", b'{"env_steps": "x", "evaluation": 3}\n'])
def test_a_damaged_run_is_listed_all_the_same(tmp_path, name, content):
    make(tmp_path / "a", [{"env_steps": 5}]).close()
    (tmp_path / "a" / name).write_bytes(content)
    (summary,) = list_runs(tmp_path)
    assert summary.path == tmp_path / "a"
    assert isinstance(summary.label, str)


def test_an_endless_event_file_is_read_at_its_end_only(tmp_path):
    make(tmp_path / "a").close()
    events = tmp_path / "a" / "events.jsonl"
    os.truncate(events, 2**40)
    with open(events, "ab") as stream:
        stream.write(b'\n{"env_steps": 7}\n')
    (summary,) = list_runs(tmp_path)
    assert summary.env_steps == 7


def test_runs_come_oldest_first(tmp_path):
    for name, started in [("b", "2025-01-01"), ("a", "2025-01-02"), ("c", "2024-12-31")]:
        run = make(tmp_path / name)
        run.write_json("run.json", {"label": name, "started": started})
        run.close()
    assert [summary.path.name for summary in list_runs(tmp_path)] == ["c", "b", "a"]
