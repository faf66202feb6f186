"""Named settings: one TOML file per workload and algorithm; and settings in a file of one's own.

Those beside this file are for any env and for Gymnasium's; the others are in the folders of the workloads.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from hotloop.core.errors import SettingsError
from hotloop.core.settings import MAX_SETTINGS_BYTES, parse_toml
from hotloop.core.values import nearest
from hotloop.core.vocabulary import upgraded
from hotloop.core.workloads import preset_files, workloads

RENAMED = {
    "sfc-original": ("sfc-like", "docs/sfc.md"),
    "sfc-original-fast": ("sfc-like-fast", "docs/sfc.md"),
    "durotaxis-original": ("durotaxis-like", "docs/durotaxis.md"),
}
"""Presets that promised more likeness than there is: what they are called now, and where the differences stand."""
ALGORITHMS_HERE = (
    "hotloop trains DQN (double, dueling, n-step, prioritized, C51, noisy: Rainbow), PPO (continuous actions too; A2C) "
    "and SAC (TD3, DDPG)"
)


def all_preset_files() -> dict[str, Path]:
    """Name -> file, of every workload."""
    return {file.stem: file for workload in workloads() for file in preset_files(workload)}


def preset_names() -> list[str]:
    """Those for any env first."""
    return sorted(sorted(all_preset_files()), key=lambda name: "-" in name)


def presets_by_workload() -> str:
    """`dqn; ppo; cartpole-a2c, -dqn, -ppo; snake-dqn, ...`: thirty names in the space of ten."""
    workloads: dict[str, list[str]] = {}
    for name in preset_names():
        workload, dash, rest = name.partition("-")
        workloads.setdefault(workload, []).append(dash + rest)
    return "; ".join(workload + ", ".join(rests) for workload, rests in workloads.items())


def preset_text(name: str) -> str:
    """The TOML of a preset, comments included."""
    if name in RENAMED:
        now, page = RENAMED[name]
        raise SettingsError(
            f"the preset `{name}` is called `{now}`: it is not the original in everything",
            f"`{now}` has its settings; {page} lists what differs",
        )
    if name not in preset_names():
        raise SettingsError(f"no preset and no file is called `{name}`", _hint_for(name))
    return all_preset_files()[name].read_text()


def _hint_for(name: str) -> str:
    there = f"presets: {presets_by_workload()}; or give a path ending in .toml"
    if name.lower() not in preset_names() and (variant := _with_env(name.lower())):
        return f"`{name}` goes with an env: `hotloop train {variant} --env.id YourEnv-v0`; {there}"
    if near := nearest(name.lower(), preset_names()):
        return f"did you mean `{near}`? {there}"
    return f"{ALGORITHMS_HERE}; {there}"


def _with_env(algorithm: str) -> str:
    """A preset for an algorithm that has none of its own for any env; empty where there is none."""
    found = [name for name in preset_names() if name.endswith(f"-{algorithm}")]
    if algorithm == "ddpg" and not found:
        return "pendulum-td3 --policy-delay 1 --target.every 1 --smoothing.noise 0 --network.critics 1"
    return next(iter(sorted(found, key=lambda name: not name.startswith("cartpole-"))), "")


def preset_tree(name: str) -> dict[str, Any]:
    return tomllib.loads(preset_text(name))


def settings_tree(name: str) -> dict[str, Any]:
    """Of a preset, or of a TOML file where the name ends so."""
    if not name.endswith(".toml"):
        return preset_tree(name)
    try:
        with Path(name).open("rb") as file:
            tree = parse_toml(file.read(MAX_SETTINGS_BYTES + 1))
    except OSError as error:
        raise SettingsError(f"cannot read {name}: {error.strerror}", "give a preset's name or a TOML file") from None
    except ValueError as error:  # also what Python itself refuses, such as thousands of digits
        raise SettingsError(f"{name} is not valid TOML: {error}") from None
    if "trust" in tree:
        raise SettingsError(f"{name} sets `trust`, which a file cannot", "give `--trust` on the command line")
    return upgraded(tree, name)
