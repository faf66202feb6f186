"""How Stable-Baselines3 trains with checkpoints, continues and loads, by its own documentation."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import pickle
import signal
import zipfile
from pathlib import Path
from typing import Any

TOTAL = {"dqn": 6_000, "ppo": 8_192}
EVERY = {"dqn": 1_000, "ppo": 1_024}
SEED = 3


def versions() -> dict[str, str]:
    import gymnasium
    import stable_baselines3
    import torch

    return {
        "stable-baselines3": stable_baselines3.__version__,
        "torch": torch.__version__,
        "gymnasium": gymnasium.__version__,
    }


def count(folder: Path) -> int:
    return len(list(folder.glob("model_*_steps.zip")))


def newest(folder: Path) -> Path | None:
    """The model file with the most steps in its name; Stable-Baselines3 leaves this to its user."""
    found = [path for path in folder.glob("model_*_steps.zip") if "replay" not in path.name]
    return max(found, key=lambda path: int(path.stem.split("_")[1]), default=None)


def replay_of(path: Path) -> Path:
    return path.with_name(path.name.replace("model_", "model_replay_buffer_")).with_suffix(".pkl")


def files(algorithm: str, folder: Path) -> list[Path]:
    path = newest(folder)
    assert path is not None
    return [path, replay_of(path)] if algorithm == "dqn" else [path]


def kind_of(path: Path) -> str:
    return "model zip" if path.suffix == ".zip" else "replay pickle"


def is_own(error: BaseException) -> bool:
    """Whether somebody foresaw this: it raises no error of its own for damage."""
    return False


def make_env(algorithm: str) -> Any:
    from stable_baselines3.common.env_util import make_vec_env

    return make_vec_env("CartPole-v1", 4 if algorithm == "ppo" else 1, seed=SEED)


def new_model(algorithm: str) -> Any:
    from stable_baselines3 import DQN, PPO

    env = make_env(algorithm)
    if algorithm == "ppo":
        return PPO("MlpPolicy", env, n_steps=64, batch_size=64, n_epochs=4, seed=SEED, device="cpu")
    return DQN("MlpPolicy", env, buffer_size=10_000, learning_starts=200, seed=SEED, device="cpu")


def open_model(algorithm: str, path: Path, env: Any) -> Any:
    from stable_baselines3 import DQN, PPO

    if algorithm == "ppo":
        return PPO.load(path, env=env, device="cpu")
    model = DQN.load(path, env=env, device="cpu")
    model.load_replay_buffer(replay_of(path))
    return model


def train(algorithm: str, folder: Path, die_in_save: int) -> str:
    """From the newest checkpoint where there is one, seeded as at the start; returns the digest of the parameters."""
    import torch
    from stable_baselines3.common.callbacks import CheckpointCallback

    torch.set_num_threads(1)
    path = newest(folder)
    model = new_model(algorithm) if path is None else open_model(algorithm, path, make_env(algorithm))
    if path is not None:
        model.set_random_seed(SEED)
    if die_in_save:
        _die_in_save(die_in_save)
    envs = model.get_env().num_envs
    saving = CheckpointCallback(EVERY[algorithm] // envs, str(folder), "model", save_replay_buffer=True)
    left = TOTAL[algorithm] - model.num_timesteps
    if left > 0:
        model.learn(left, callback=saving, reset_num_timesteps=path is None)
    return _digest(model.get_parameters())


def load(algorithm: str, folder: Path) -> tuple[str, str]:
    """Digest of all that the newest checkpoint gives."""
    path = newest(folder)
    assert path is not None, "no checkpoint"
    model = open_model(algorithm, path, None)
    return _digest([model.get_parameters(), model.num_timesteps, _replay(model)]), ""


def _replay(model: Any) -> list[Any]:
    replay = getattr(model, "replay_buffer", None)
    if replay is None:
        return []
    filled = replay.buffer_size if replay.full else replay.pos
    arrays = [replay.observations, replay.next_observations, replay.actions, replay.rewards, replay.dones]
    return [array[:filled].copy() for array in arrays] + [replay.pos]


def _die_in_save(number: int) -> None:
    """End the process within the given save, once the archive has been begun."""
    import torch

    real, saves = torch.save, [0]

    def save(content: Any, file: Any) -> None:
        saves[0] += 1
        real(content, file)
        if saves[0] >= 3 * number - 1:  # each archive holds three: variables, policy, optimizer
            os.kill(os.getpid(), signal.SIGKILL)

    torch.save = save


def _digest(content: Any) -> str:
    import numpy as np
    import torch

    found = hashlib.sha256()

    def add(value: Any) -> None:
        if isinstance(value, dict):
            for key in sorted(value, key=str):
                found.update(str(key).encode())
                add(value[key])
        elif isinstance(value, (list, tuple)):
            for entry in value:
                add(entry)
        elif isinstance(value, torch.Tensor):
            found.update(value.detach().cpu().numpy().tobytes())
        else:
            found.update(np.asarray(value).tobytes() if isinstance(value, np.ndarray) else repr(value).encode())

    add(content)
    return found.hexdigest()


class Payload:
    """Unpickled, it makes a file."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> Any:
        return (Path.touch, (self.marker,))


def _rewritten(path: Path, name: str, content: bytes) -> None:
    with zipfile.ZipFile(path) as archive:
        entries = {entry: archive.read(entry) for entry in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for entry, old in entries.items():
            archive.writestr(entry, content if entry == name else old)


def plant_in_data(folder: Path, marker: Path) -> None:
    path = newest(folder)
    assert path is not None
    data = json.loads(zipfile.ZipFile(path).read("data"))
    data["lr_schedule"] = {":serialized:": base64.b64encode(pickle.dumps(Payload(marker))).decode()}
    _rewritten(path, "data", json.dumps(data).encode())


def plant_in_weights(folder: Path, marker: Path) -> None:
    import torch

    path = newest(folder)
    assert path is not None
    temporary = folder / "payload.pth"
    torch.save({"weights": Payload(marker)}, temporary)
    _rewritten(path, "policy.pth", temporary.read_bytes())


def plant_in_replay(folder: Path, marker: Path) -> None:
    path = newest(folder)
    assert path is not None
    replay_of(path).write_bytes(pickle.dumps(Payload(marker)))


HOSTILE = {
    "pickle in the model's settings": plant_in_data,
    "pickle in the weights": plant_in_weights,
    "pickle as the replay buffer": plant_in_replay,
}
