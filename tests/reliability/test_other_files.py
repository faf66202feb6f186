"""Damage to the files of a run that no manifest covers: resumed the same, or refused with a sentence."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import hotloop
from hotloop.core.errors import HotloopError
from tests.reliability.killing import FAMILIES, outcome

FILES = ("lane.json", "run.json", "settings.toml", "events.jsonl", "lock")
CONTENTS = {
    "missing": None,
    "empty": b"",
    "zeros": bytes(512),
    "not text": b"\xff\xfe{[",
    "an empty table": b'{"schema": 1}\n',
    "a list": b"[1, 2]\n",
    "another schema": b'{"schema": 99, "lane": "native"}\n',
    "an unknown lane": b'{"schema": 1, "lane": "../../etc", "reason": ""}\n',
    "a lane that is no name": b'{"schema": 1, "lane": ["native"], "reason": 3}\n',
    "deep": b"[" * 100_000,
}


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A finished run, and the same without its result."""
    preset, tree = FAMILIES["dqn-native"]
    folder = tmp_path_factory.mktemp("other")
    hotloop.train(hotloop.preset(preset, **{**tree, "run_dir": str(folder / "whole")}))
    shutil.copytree(folder / "whole", folder / "stopped")
    (folder / "stopped" / "result.json").unlink()
    return folder / "whole", folder / "stopped"


@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS)
def test_a_damaged_file_is_told_or_does_not_matter(
    content: bytes | None, stopped: tuple[Path, Path], tmp_path: Path
) -> None:
    expected, faults = outcome(stopped[0]), []
    for name in FILES:
        run = shutil.copytree(stopped[1], tmp_path / name)
        (run / name).unlink() if content is None else (run / name).write_bytes(content)
        try:
            hotloop.resume(run)
        except HotloopError:
            continue
        except Exception as error:
            faults.append(f"{name}: {type(error).__name__}: {error}")
        else:
            parts = ("result",) if name == "events.jsonl" else ("result", "rows")
            if any(outcome(run)[part] != expected[part] for part in parts):
                faults.append(f"{name}: resumed to another end")
    assert not faults
    assert (tmp_path / "events.jsonl" / "result.json").exists(), "lost rows are no reason to lose the run"
