"""A run that somebody sent: nothing outside its folder is read, written or removed, and nothing in it that is the
user's own."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from unittest.mock import MagicMock

import numpy as np
import pytest

import hotloop
from hotloop.core.errors import HotloopError, NonFiniteError, RunError
from hotloop.loop.failure import save_failure
from hotloop.runs.checkpoint import Checkpoints, checkpoint_name, newest, save
from hotloop.runs.directory import Run
from tests.reliability.killing import FAMILIES, outcome


class Listener:
    """A progress display that remembers what it was told."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def show(self, *_: object) -> None:
        pass

    def say(self, text: str) -> None:
        self.said.append(text)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A finished run, and one that has its last stretch before it."""
    preset, tree = FAMILIES["dqn-native"]
    folder = tmp_path_factory.mktemp("received")
    hotloop.train(hotloop.preset(preset, **{**tree, "run_dir": str(folder / "whole")}))
    stopped = shutil.copytree(folder / "whole", folder / "stopped")
    (stopped / "result.json").unlink()
    return folder / "whole", stopped


@pytest.fixture
def beside(trained: tuple[Path, Path], tmp_path: Path) -> tuple[Path, Path]:
    """A copy of the stopped run, and a precious folder beside it."""
    run = shutil.copytree(trained[1], tmp_path / "runs" / "received")
    thesis = tmp_path / "runs" / "thesis"
    (thesis / "chapters").mkdir(parents=True)
    (thesis / "chapters" / "one.tex").write_text("years of work")
    return run, thesis


def everything(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("target", ["..", "../thesis", "../../runs"])
def test_checkpoints_that_are_a_link_are_refused_and_nothing_beside_the_run_is_touched(
    target: str, beside: tuple[Path, Path]
) -> None:
    run, thesis = beside
    real = run / "checkpoints"
    for folder in real.iterdir():  # so that the link leads to something that can be loaded
        shutil.copytree(folder, (run / target).resolve() / folder.name)
    shutil.rmtree(real)
    real.symlink_to(target)
    before = everything(run.parent)
    for attempt in (hotloop.resume, hotloop.load):
        with pytest.raises(RunError, match="checkpoints is a symbolic link"):
            attempt(run)
    after = everything(run.parent)
    after.pop("received/lock", None)
    before.pop("received/lock", None)
    assert after == before
    assert (thesis / "chapters" / "one.tex").read_text() == "years of work"


def test_what_a_user_keeps_among_checkpoints_is_neither_removed_nor_taken_for_one(
    beside: tuple[Path, Path], trained: tuple[Path, Path]
) -> None:
    run, _ = beside
    folder = run / "checkpoints"
    kept = newest(folder, pytest.fail)
    assert kept is not None
    (folder / "my_notes").mkdir()
    (folder / "my_notes" / "one.txt").write_text("mine")
    shutil.copytree(kept[0], folder / "999999999999999_backup")
    (folder / ".tmp-mine").mkdir()
    (folder / ".tmp-mine" / "two.txt").write_text("mine")
    (folder / "thesis").symlink_to("../../thesis")
    (run / ".tmp-notes").write_text("mine")
    before = everything(folder / "my_notes") | everything(folder / "999999999999999_backup")
    hotloop.resume(run)
    assert everything(folder / "my_notes") | everything(folder / "999999999999999_backup") == before
    assert (folder / ".tmp-mine" / "two.txt").exists()
    assert (folder / "thesis").is_symlink()
    assert (run / ".tmp-notes").read_text() == "mine"
    assert outcome(run) == outcome(trained[0])


def test_a_checkpoint_in_which_a_user_keeps_something_is_left_with_a_word(tmp_path: Path) -> None:
    told: list[str] = []
    checkpoints = Checkpoints(tmp_path, 1, told.append)
    old = checkpoints.save(checkpoint_name(1), {"a": {}}, {})
    (old / "why_this_one.txt").write_text("mine")
    for number in (2, 3):
        checkpoints.save(checkpoint_name(number), {"a": {}}, {})
        checkpoints.thin()
    assert sorted(os.listdir(tmp_path)) == [checkpoint_name(1), checkpoint_name(3)]
    assert (old / "why_this_one.txt").exists()
    assert len(told) == 1
    assert "why_this_one.txt" in told[0]


def test_damaged_checkpoints_that_are_removed_are_told(beside: tuple[Path, Path]) -> None:
    run, _ = beside
    shutil.copytree(next(iter((run / "checkpoints").iterdir())), run / "checkpoints" / checkpoint_name(10**9))
    (run / "checkpoints" / checkpoint_name(10**9) / "learner.json").write_text("[]")
    (run / "checkpoints" / f".tmp-{checkpoint_name(7)}-123-0123abcd").mkdir()
    (run / ".tmp-result.json-123-0123abcd").write_text("half")
    listener = Listener()
    hotloop.resume(run, progress=listener)
    removed = [text for text in listener.said if text.startswith("removed")]
    assert len(removed) == 3
    assert "learner.json" in next(text for text in removed if checkpoint_name(10**9) in text)
    assert not (run / "checkpoints" / checkpoint_name(10**9)).exists()


def test_a_failure_folder_that_is_a_link_is_neither_followed_nor_replaced(
    beside: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    run, thesis = beside
    (run / "failure").symlink_to(thesis)
    with pytest.raises(RunError, match="symbolic link"):
        save_failure(NonFiniteError("x"), Run(run), MagicMock())
    assert everything(thesis) == {"chapters/one.tex": b"years of work"}


def test_files_of_a_run_that_are_links_are_not_followed(beside: tuple[Path, Path]) -> None:
    run, thesis = beside
    secret = thesis / "chapters" / "one.tex"
    secret.write_text('{"event": "progress", "env_steps": 1, "secret": 12345}\n')
    for name in ("run.json", "lane.json", "events.jsonl", "lock", "settings.toml"):
        (run / name).unlink()
        (run / name).symlink_to(secret)
    with pytest.raises(HotloopError):
        hotloop.resume(run)
    assert "12345" not in hotloop.report(run, frames=False, write=False).html
    assert "secret" in secret.read_text()


def test_a_pipe_in_place_of_a_file_blocks_nothing(beside: tuple[Path, Path]) -> None:
    run, _ = beside
    for name in ("run.json", "lane.json", "events.jsonl", "result.json", "doctor.json"):
        (run / name).unlink(missing_ok=True)
        os.mkfifo(run / name)
    assert "events.jsonl cannot be read" in hotloop.report(run, frames=False, write=False).html


def test_a_saved_array_of_a_link_is_not_read(tmp_path: Path) -> None:
    path = save(tmp_path / "checkpoints", checkpoint_name(1), {"a": {"x": np.zeros(3)}}, {})
    content = (path / "a.safetensors").read_bytes()
    (tmp_path / "elsewhere").write_bytes(content)
    (path / "a.safetensors").unlink()
    (path / "a.safetensors").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(HotloopError):
        newest(tmp_path / "checkpoints", lambda text: None)
