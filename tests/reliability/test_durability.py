"""What a power cut would find: every fsync, link and rename of a whole run, in order.

A name counts as good once the file behind it was fsynced; it must be so before the name is given, and the folder that
holds the name must be fsynced before anything else is given a name or taken away.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import hotloop
from tests.reliability.killing import FAMILIES


class Disk:
    """Records what was made durable: inodes as they were when fsynced, folders with the names they then held."""

    def __init__(self, root: Path) -> None:
        self._root = str(root)
        self.synced: dict[int, int] = {}
        """Size of each file when it was last fsynced, by inode."""
        self.calls: list[tuple[str, str]] = []
        self.faults: list[str] = []
        self.renamed: list[Path] = []
        self._waiting: Path | None = None
        """A folder that was given a name and not yet fsynced."""

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("fsync", "rename", "replace", "unlink", "rmdir"):
            real = getattr(os, name)
            monkeypatch.setattr(os, name, self._recorded(real, getattr(self, f"_{name}", self._take_away)))

    def _recorded(self, real: Callable[..., Any], note: Callable[..., None]) -> Callable[..., Any]:
        def call(*words: Any, **options: Any) -> Any:
            place = os.readlink(f"/proc/self/fd/{words[0]}") if isinstance(words[0], int) else os.fspath(words[0])
            if place.startswith(self._root) and options.get("dir_fd") is None:  # not what compiling kernels leaves
                note(*words)
            return real(*words, **options)

        return call

    def _fsync(self, descriptor: int) -> None:
        status, path = os.fstat(descriptor), Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        self.synced[status.st_ino] = status.st_size
        self.calls.append(("fsync", path.name))
        if path == self._waiting:
            self._waiting = None

    def _rename(self, source: Any, target: Any) -> None:
        source, target = Path(source), Path(target)
        self._settled(f"rename to {target.name}")
        self.calls.append(("rename", target.name))
        if target.name.startswith(".tmp-"):
            return  # on its way to be removed
        inside = [*source.iterdir(), source] if source.is_dir() else [source]
        for path in inside:
            status = path.stat()
            if status.st_ino not in self.synced or (path.is_file() and self.synced[status.st_ino] != status.st_size):
                self.faults.append(f"{path.name} became {target.name} before it was fsynced")
        self.renamed.append(target)
        self._waiting = target.parent

    _replace = _rename

    def _take_away(self, path: Any) -> None:
        self._settled(f"removal of {Path(path).name}")

    def _settled(self, what: str) -> None:
        if self._waiting is not None:
            self.faults.append(f"{what} before {self._waiting.name} was fsynced")


@pytest.mark.parametrize("family", ["dqn-native", "ppo-gymnasium"])
def test_nothing_is_named_or_removed_before_what_it_relies_on_is_durable(
    family: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    preset, tree = FAMILIES[family]
    settings = hotloop.preset(preset, **{**tree, "run_dir": str(tmp_path / "run")})
    disk = Disk(tmp_path)
    disk.install(monkeypatch)
    hotloop.train(settings)
    monkeypatch.undo()
    assert not disk.faults
    saved = [path for path in disk.renamed if path.parent.name == "checkpoints"]
    assert len(saved) >= 6
    assert {"run.json", "settings.toml", "lane.json", "result.json", "trace.json"} <= {
        path.name for path in disk.renamed
    }


def test_event_rows_are_durable_before_the_checkpoint_that_counts_on_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    preset, tree = FAMILIES["dqn-native"]
    settings = hotloop.preset(preset, **{**tree, "run_dir": str(tmp_path / "run")})
    disk = Disk(tmp_path)
    events = tmp_path / "run" / "events.jsonl"
    offsets: list[tuple[int, int]] = []
    noted = disk._rename

    def rename(source: Any, target: Any) -> None:
        noted(source, target)
        manifest = Path(source) / "manifest.json"
        if manifest.exists() and not Path(target).name.startswith(".tmp-"):
            meta = json.loads(manifest.read_text())["meta"]
            offsets.append((meta["events_offset"], disk.synced[events.stat().st_ino]))

    monkeypatch.setattr(disk, "_rename", rename)
    disk.install(monkeypatch)
    hotloop.train(settings)
    monkeypatch.undo()
    assert len(offsets) >= 6
    assert all(0 < counted <= synced for counted, synced in offsets)
