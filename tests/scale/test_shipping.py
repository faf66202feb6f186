"""A run directory on its way: what crosses once, what is put together at the other end, what is refused."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hotloop.core.errors import RunError
from hotloop.runs.checkpoint import Checkpoints, checkpoint_name
from hotloop.scale.shipping import Inbox, Outbox


def written(path: Path, env_steps: int, rows: bytes) -> Path:
    path.mkdir(exist_ok=True)
    (path / "settings.toml").write_text("seed = 1\n")
    with open(path / "events.jsonl", "ab") as events:
        events.write(rows)
    state: dict[str, Any] = {"learner": {"online": np.arange(1000.0)}, "counters": {"env_steps": env_steps}}
    Checkpoints(path / "checkpoints").save(checkpoint_name(env_steps), state, {})
    return path


def content(path: Path) -> dict[str, bytes]:
    return {one.relative_to(path).as_posix(): one.read_bytes() for one in path.rglob("*") if one.is_file()}


def test_everything_crosses_once_and_arrives_as_it_was(tmp_path: Path) -> None:
    run, home = written(tmp_path / "run", 100, b"one\n"), tmp_path / "home"
    outbox, inbox = Outbox(run), Inbox(home)
    for packet in outbox.packets():
        inbox.take(packet)
    assert content(home) == content(run)
    first = outbox.bytes
    assert list(outbox.packets()) == []
    written(run, 200, b"two\n")
    for packet in outbox.packets():
        inbox.take(packet)
    assert content(home) == content(run)
    assert outbox.bytes - first < first / 2, "weights that did not change are not sent again"
    shutil.rmtree(run / "checkpoints" / checkpoint_name(100))
    written(run, 300, b"")
    (run / "events.jsonl").write_bytes(b"one\nother\n")  # resumed: cut back, then appended
    (run / "result.json").write_text("{}")
    for packet in outbox.packets():
        inbox.take(packet)
    assert not (home / "result.json").exists(), "a run is finished when all else is there"
    for packet in outbox.packets(last=True):
        inbox.take(packet)
    inbox.close()
    assert content(home) == content(run)
    assert not home.with_name("home.arriving").exists()


def test_the_settings_cross_first_since_they_make_a_folder_a_run(tmp_path: Path) -> None:
    run = written(tmp_path / "run", 100, b"one\n")
    (run / "lane.json").write_text("{}")
    assert next(Outbox(run).packets())["name"] == "settings.toml"


def test_a_run_is_taken_up_from_its_newest_checkpoint_alone(tmp_path: Path) -> None:
    run = written(written(tmp_path / "run", 100, b"one\n"), 200, b"two\n")
    inbox = Inbox(tmp_path / "there")
    for packet in Outbox(run, newest_only=True).packets():
        inbox.take(packet)
    assert [path.name for path in (tmp_path / "there" / "checkpoints").iterdir()] == [checkpoint_name(200)]


@pytest.mark.parametrize(
    "packet",
    [
        {"kind": "file", "name": "../outside", "data": b""},
        {"kind": "file", "name": "/etc/outside", "data": b""},
        {"kind": "file", "name": "checkpoints/x", "data": b""},
        {"kind": "file", "name": "lock", "data": b""},
        {"kind": "events", "at": 5, "data": b"x"},
        {"kind": "events", "at": -1, "data": b"x"},
        {"kind": "piece", "sha256": "../../outside", "at": 0, "data": b"x"},
        {"kind": "checkpoint", "name": "../outside", "data": b"{}", "keep": []},
        {"kind": "checkpoint", "name": "000000000000100", "data": b"{}", "keep": []},
        {"kind": "surprise"},
        {},
    ],
    ids=str,
)
def test_what_leads_elsewhere_or_is_damaged_is_refused(packet: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(RunError):
        Inbox(tmp_path / "home").take(packet)
    assert not (tmp_path / "outside").exists()
    assert not list((tmp_path / "home").rglob("0000*"))


def test_a_piece_that_is_not_what_its_hash_says_makes_no_checkpoint(tmp_path: Path) -> None:
    run, inbox = written(tmp_path / "run", 100, b"one\n"), Inbox(tmp_path / "home")
    *pieces, checkpoint = Outbox(run).packets()
    for packet in pieces:
        inbox.take(packet | {"data": packet["data"][:-1] + b"?"} if packet["kind"] == "piece" else packet)
    with pytest.raises(RunError, match="arrived damaged"):
        inbox.take(checkpoint)
    assert not list((tmp_path / "home" / "checkpoints").iterdir())
