"""`hotloop.export_agent`: a run's best agent as files for other programs, each checked before it gets its name."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

from hotloop.core.errors import EnvError, MissingExtraError, SettingsError
from hotloop.core.rng import derive_seeds
from hotloop.core.types import VecEnv
from hotloop.envs.registry import make_envs
from hotloop.export.about import AnyAgent, export_torch
from hotloop.export.onnx_file import export_onnx
from hotloop.loop.agent_files import load_agent
from hotloop.loop.agents import require_same_actions
from hotloop.presets.registry import settings_of
from hotloop.runs.directory import Run

_ENVS = 4


def export_agent(
    run_dir: str | Path, *, onnx: str | Path | None = None, torch: str | Path | None = None, trust: bool = False
) -> dict[str, Any]:
    """Write a run's best agent as ONNX, as safetensors, or as both; returns what `hotloop export --json` prints.

        written = hotloop.export_agent("runs/cartpole-dqn-20260101-120000", onnx="cartpole.onnx")
        written["onnx"]["inputs"], written["onnx"]["parity"]["largest"]

    The ONNX file takes observations as the env shows them and gives actions as the env takes them. It is held against
    the agent on random observations, and on played ones where the env can be made: one that is code of somebody's
    needs `trust`.
    """
    files = {"onnx": onnx and Path(onnx), "torch": torch and Path(torch)}
    _check(files)
    run = Run.open(run_dir)
    agent = load_agent(run, settings_of(run, trust))
    written: dict[str, Any] = {"run": str(run_dir)}
    notes: list[str] = []
    if files["torch"]:
        written["safetensors"] = export_torch(agent, files["torch"])
    if files["onnx"]:
        with ExitStack() as cleanup:
            envs = _make_envs(agent, trust, notes)
            if envs is not None:
                cleanup.callback(envs.close)
                require_same_actions(agent, envs, agent.settings.env.id)
            written["onnx"] = export_onnx(agent, files["onnx"], envs).as_data()
    return written | {"notes": notes}


def _check(files: dict[str, Any]) -> None:
    if not any(files.values()):
        raise SettingsError("neither `--onnx` nor `--torch` is given", "`--onnx agent.onnx`")
    for name, suffix in (("onnx", ".onnx"), ("torch", ".safetensors")):
        if files[name] and files[name].suffix != suffix:
            raise SettingsError(f"`--{name}` is {files[name]}, expected a name that ends in {suffix}")


def _make_envs(agent: AnyAgent, trust: bool, notes: list[str]) -> VecEnv | None:
    """The run's env, to be played; None where it is code that is not trusted, or cannot be made here."""
    try:
        return make_envs(agent.settings.env, _ENVS, derive_seeds(0, _ENVS, "export"), trust=trust)
    except (EnvError, MissingExtraError) as error:
        notes.append(
            f"checked on random observations only, and without an input for action masks: {error.message}"
            + (f" ({error.hint})" if error.hint else "")
        )
        return None
