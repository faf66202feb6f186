"""Nothing that lies in a run directory is executed by loading, judging, watching or resuming it without `--trust`."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tomli_w

import hotloop
from tests.reliability.killing import FAMILIES

PROGRAM = Path(__file__).with_name("watched_loading.py")
HOSTILE_CODE = """
from pathlib import Path
Path({marker!r}).touch()
class Env:
    pass
"""


class Payload:
    """Unpickled, it makes a file."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> Any:
        return (Path.touch, (self.marker,))


def change_settings(run: Path, **changes: Any) -> None:
    stored = tomllib.loads((run / "settings.toml").read_text())
    for path, value in changes.items():
        *tables, last = path.split("__")
        table = stored
        for name in tables:
            table = table[name]
        table[last] = value
    (run / "settings.toml").write_text(tomli_w.dumps(stored))


def forge(run: Path, name: str, content: bytes) -> None:
    """Put `content` into every checkpoint under a manifest that vouches for it."""
    for folder in (run / "checkpoints").iterdir():
        (folder / name).write_bytes(content)
        manifest = json.loads((folder / "manifest.json").read_text())
        manifest["files"][name] = {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        body = {key: value for key, value in manifest.items() if key != "sha256"}
        encoded = json.dumps(body, sort_keys=True, separators=(",", ":")).encode()
        if "sha256" in manifest:
            body["sha256"] = hashlib.sha256(encoded).hexdigest()
        (folder / "manifest.json").write_text(json.dumps(body, sort_keys=True, separators=(",", ":")))


def env_in_a_file(run: Path, marker: Path) -> None:
    (run / "hostile.py").write_text(HOSTILE_CODE.format(marker=str(marker)))
    change_settings(run, env__id=f"{run}/hostile.py:Env")


def env_in_a_file_that_trusts_itself(run: Path, marker: Path) -> None:
    env_in_a_file(run, marker)
    change_settings(run, trust=True)


def torso_in_a_file(run: Path, marker: Path) -> None:
    (run / "hostile.py").write_text(HOSTILE_CODE.format(marker=str(marker)))
    change_settings(run, network__torso=f"{run}/hostile.py:Env")


def env_in_a_module(run: Path, marker: Path) -> None:
    (run / "hostile_module.py").write_text(HOSTILE_CODE.format(marker=str(marker)))
    change_settings(run, env__id="hostile_module:Env-v0")


def env_with_an_entry_point(run: Path, marker: Path) -> None:
    (run / "hostile_module.py").write_text(HOSTILE_CODE.format(marker=str(marker)))
    change_settings(run, env__id="CartPole-v1", env__options={"entry_point": "hostile_module:Env"})


def pickle_as_weights(run: Path, marker: Path) -> None:
    forge(run, "learner.safetensors", pickle.dumps(Payload(marker)))


def pickle_as_replay(run: Path, marker: Path) -> None:
    forge(run, "replay.safetensors", pickle.dumps(Payload(marker)))


def pickle_as_values(run: Path, marker: Path) -> None:
    forge(run, "best.json", pickle.dumps(Payload(marker)))


def lane_elsewhere(run: Path, marker: Path) -> None:
    (run / "lane.json").write_text(json.dumps({"schema": 1, "lane": "../../hostile", "reason": "__import__('os')"}))


def run_directory_elsewhere(run: Path, marker: Path) -> None:
    change_settings(run, run_dir=str(marker.parent.parent / "elsewhere"))


HOSTILE: list[Callable[[Path, Path], None]] = [
    env_in_a_file,
    env_in_a_file_that_trusts_itself,
    torso_in_a_file,
    env_in_a_module,
    env_with_an_entry_point,
    pickle_as_weights,
    pickle_as_replay,
    pickle_as_values,
    lane_elsewhere,
    run_directory_elsewhere,
]


NAMES = [plant.__name__ for plant in HOSTILE]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Good runs and hostile ones, their last stretch still before them, so that `resume` has something to do."""
    preset, tree = FAMILIES["dqn-native"]
    folder = tmp_path / "runs"
    folder.mkdir()
    hotloop.train(hotloop.preset(preset, **{**tree, "run_dir": str(folder / "good")}))
    (folder / "good" / "result.json").unlink()
    change_settings(shutil.copytree(folder / "good", folder / "other"), env__id="CartPole-v1")
    for plant in HOSTILE:
        plant(shutil.copytree(folder / "good", folder / plant.__name__), folder / f"ran_{plant.__name__}")
    return folder


def watched(folder: Path) -> dict[str, Any]:
    """What `watched_loading.py` says, where the hostile module could be imported."""
    command = [sys.executable, str(PROGRAM), *(str(folder / name) for name in ("good", "other", *NAMES))]
    importable = {**os.environ, "PYTHONPATH": str(folder / "env_in_a_module")}
    done = subprocess.run(command, capture_output=True, text=True, env=importable)
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    assert set(told["good"].values()) == {"done"}, told["good"]
    return told


def test_loading_a_hostile_run_executes_nothing_and_answers_with_a_sentence(folder: Path) -> None:
    answer = watched(folder)
    assert not list(folder.glob("ran_*"))
    assert answer["heard"] == []
    compiled = os.environ.get("NUMBA_CACHE_DIR", "hotloop/kernels/")
    assert not [path for path in answer["written"] if not path.startswith(str(folder)) and compiled not in path]
    assert not (folder.parent / "elsewhere").exists()
    for name in ("env_in_a_file", "env_in_a_file_that_trusts_itself", "env_in_a_module"):
        verbs = answer["hostile"][name]
        assert verbs["load"] == "done"  # weights are data: acting needs no env
        for verb in ("resume", "evaluate", "hotloop evaluate", "hotloop watch"):
            assert "--trust" in verbs[verb], verbs
    for verb in ("load", "resume", "evaluate", "hotloop evaluate", "hotloop watch"):
        assert "--trust" in answer["hostile"]["torso_in_a_file"][verb], answer["hostile"]["torso_in_a_file"]
    for name in ("pickle_as_weights", "pickle_as_replay", "pickle_as_values"):
        assert answer["hostile"][name]["resume"].startswith("refused"), answer["hostile"][name]
    said = {f"{verb} {name}": text for name, verbs in answer["hostile"].items() for verb, text in verbs.items()}
    assert not {what: text for what, text in said.items() if text.startswith("RAISED")}
