"""How hotloop trains with checkpoints, continues and loads, for the same tests as its peer."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import signal
from pathlib import Path
from typing import Any

TOTAL = {"dqn": 6_000, "ppo": 8_192}
EVERY = {"dqn": 1_000, "ppo": 1_024}
SEED = 3


def versions() -> dict[str, str]:
    import gymnasium
    import torch

    from hotloop.core.program import hotloop_version

    return {"hotloop": hotloop_version(), "torch": torch.__version__, "gymnasium": gymnasium.__version__}


def count(folder: Path) -> int:
    """Checkpoints written so far: only the newest stay, and their names say how many came before."""
    steps = [int(path.name.split("-")[0]) for path in folder.glob("checkpoints/[0-9]*")]
    return max(steps, default=0) // 1_000


def files(algorithm: str, folder: Path) -> list[Path]:
    newest = max((folder / "checkpoints").iterdir(), key=lambda path: path.name)
    return sorted(path for path in newest.iterdir() if path.stat().st_size > 0)


def kind_of(path: Path) -> str:
    return path.name


def is_own(error: BaseException) -> bool:
    from hotloop.core.errors import HotloopError

    return isinstance(error, HotloopError)


def settings_of(algorithm: str, folder: Path) -> Any:
    import hotloop

    env = {"id": "CartPole-v1", "num_envs": 4 if algorithm == "ppo" else 1}
    judged = {"every": 100_000, "episodes": 1, "final_episodes": 1}
    tree: dict[str, Any] = {"env": env, "evaluation": judged, "checkpoint": {"every": EVERY[algorithm]}, "seed": SEED}
    if algorithm == "ppo":
        tree |= {"rollout_steps": 64, "batch_size": 64, "n_epochs": 4}
    else:
        tree |= {"replay": {"buffer_size": 10_000}, "learning_starts": 200, "updates_per_env_step": "1/4"}
    total = TOTAL[algorithm]
    return hotloop.preset(f"cartpole-{algorithm}", total_env_steps=total, run_dir=str(folder), **tree)


def train(algorithm: str, folder: Path, die_in_save: int) -> str:
    """Begun, or resumed where it was begun; returns the digest of the whole state."""
    import hotloop

    if die_in_save:
        _die_in_save(die_in_save)
    if (folder / "settings.toml").exists():
        return str(hotloop.resume(folder)["digest"])
    return str(hotloop.train(settings_of(algorithm, folder))["digest"])


def load(algorithm: str, folder: Path) -> tuple[str, str]:
    """Digest of the newest checkpoint that can be used, and what was said about a newer one."""
    import hotloop
    from hotloop.runs import checkpoint
    from hotloop.runs.digest import digest

    hotloop.load(folder)
    said: list[str] = []
    found = checkpoint.newest(folder / "checkpoints", said.append)
    assert found is not None
    return digest(found[1]), "damage named, previous checkpoint used" if said else ""


def _die_in_save(number: int) -> None:
    """End the process within the given checkpoint, its files half written."""
    from hotloop.runs import checkpoint

    real, saves = checkpoint.encode_manifest, [0]

    def encode(*words: Any) -> bytes:
        saves[0] += 1
        if saves[0] == number:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*words)

    checkpoint.encode_manifest = encode


class Payload:
    """Unpickled, it makes a file."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> Any:
        return (Path.touch, (self.marker,))


def _forge(folder: Path, name: str, content: bytes) -> None:
    """Put `content` into every checkpoint, with a manifest that vouches for it."""
    for path in (folder / "checkpoints").iterdir():
        (path / name).write_bytes(content)
        manifest = json.loads((path / "manifest.json").read_text())
        manifest["files"][name] = {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        body = {key: value for key, value in manifest.items() if key != "sha256"}
        encoded = json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()
        if "sha256" in manifest:
            body["sha256"] = hashlib.sha256(encoded).hexdigest()
        (path / "manifest.json").write_text(json.dumps(body))


def plant_in_weights(folder: Path, marker: Path) -> None:
    _forge(folder, "learner.safetensors", pickle.dumps(Payload(marker)))


def plant_in_replay(folder: Path, marker: Path) -> None:
    _forge(folder, "replay.safetensors", pickle.dumps(Payload(marker)))


def plant_in_settings(folder: Path, marker: Path) -> None:
    """Settings that name an env in a file of the attacker's."""
    (folder / "env.py").write_text(f"from pathlib import Path\nPath({str(marker)!r}).touch()\nclass Env: pass\n")
    settings = folder / "settings.toml"
    settings.write_text(settings.read_text().replace('"CartPole-v1"', json.dumps(f"{folder}/env.py:Env")))


HOSTILE = {
    "pickle in the weights": plant_in_weights,
    "pickle as the replay buffer": plant_in_replay,
    "an env of the attacker's in the settings": plant_in_settings,
}
