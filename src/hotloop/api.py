"""Hotloop from Python: what the command line does, as functions."""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hotloop.algos.dqn_settings import DQNSettings
from hotloop.algos.registry import class_of
from hotloop.core.errors import HotloopError as HotloopError
from hotloop.core.errors import RunError, SettingsError
from hotloop.core.overrides import parse_overrides
from hotloop.core.rng import derive_seeds
from hotloop.core.settings import as_tree, build, merge
from hotloop.envs.registry import is_file, make_envs, refuse_untrusted
from hotloop.loop import off_policy
from hotloop.loop.agent import Agent, load_agent
from hotloop.loop.evaluate import MAX_EVALUATION_ENVS, play_episodes, summarise
from hotloop.loop.journal import LANE
from hotloop.presets import preset_tree
from hotloop.runs.directory import Run


def preset(name: str, **overrides: Any) -> DQNSettings:
    """The settings of a preset or a TOML file, with keyword overrides (`env={"num_envs": 8}` for nested ones)."""
    tree = merge(_tree_of(name), overrides)
    return build(class_of(tree), tree, source=name)


def settings_from_words(name: str, words: Sequence[str]) -> DQNSettings:
    """The same with command-line overrides: `["--seed", "3", "--env.num-envs", "8"]`.

    An env in a file or module is code. Whoever names it on the command line wants it run; one that a TOML file names
    must be allowed with `--trust`.
    """
    tree = _tree_of(name)
    cls = class_of(tree)
    build(cls, tree, source=name)  # a mistake in the file is told as the file's
    overrides = parse_overrides(words, cls)
    settings = build(cls, merge(tree, overrides), source="the command line")
    if "id" not in overrides.get("env", {}) and not settings.trust:
        refuse_untrusted(settings.env.id)
    return settings


def train(settings: DQNSettings, *, label: str = "", progress: off_policy.Progress | None = None) -> dict[str, Any]:
    """Train in a new run directory; returns the object that `hotloop train --json` prints."""
    label = label or f"{settings.env.id}-{settings.algorithm}"
    if is_file(settings.env.id):  # the run must find it again from any folder
        path, _, name = settings.env.id.rpartition(":")
        env = dataclasses.replace(settings.env, id=f"{Path(path).expanduser().resolve()}:{name}")
        settings = dataclasses.replace(settings, env=env)

    def claim_run() -> Run:
        return Run.create(settings.run_dir or None, label, as_tree(settings))

    return off_policy.train(dataclasses.replace(settings, trust=True), claim_run, progress or _Quiet())


def resume(run_dir: str | Path, *, trust: bool = False, progress: off_policy.Progress | None = None) -> dict[str, Any]:
    """Continue a run that stopped, exactly; a finished one returns its result again."""
    run = Run.open(run_dir)
    if run.finished:
        return run.result()
    settings = settings_of(run, trust)
    if (run.path / LANE).exists():  # what `auto` chose then is not chosen again
        learner = dataclasses.replace(settings.learner, lane=run.read_json(LANE)["lane"])
        settings = dataclasses.replace(settings, learner=learner)

    def claim_run() -> Run:
        run.lock()
        return run

    return off_policy.train(settings, claim_run, progress or _Quiet())


def load(run_dir: str | Path) -> Agent:
    """The best agent of a run so far: `load(run).act(obs)`. Runs no code of the run's env."""
    run = Run.open(run_dir)
    return load_agent(run, settings_of(run, trust=False))


def evaluate(run_dir: str | Path, *, episodes: int = 100, seed: int = 0, trust: bool = False) -> dict[str, Any]:
    """Fresh greedy episodes with a run's best agent."""
    if episodes < 1:
        raise SettingsError(f"`episodes` is {episodes}, expected at least 1")
    run = Run.open(run_dir)
    settings = settings_of(run, trust)
    num_envs = min(episodes, MAX_EVALUATION_ENVS)
    envs = make_envs(settings.env, num_envs, derive_seeds(seed, num_envs, "verb"), trust=trust)
    try:
        limit = settings.evaluation.max_episode_steps
        return summarise(play_episodes(load_agent(run, settings).as_policy(), envs, episodes, limit))
    finally:
        envs.close()


def settings_of(run: Run, trust: bool) -> DQNSettings:
    tree = run.settings()
    settings = build(class_of(tree), tree | {"trust": trust}, source=str(run.path / "settings.toml"))
    if not isinstance(settings, DQNSettings):
        raise RunError(f"{run.path} is a run of `{tree.get('algorithm')}`, which this version does not know")
    return settings


def _tree_of(name: str) -> dict[str, Any]:
    if not name.endswith(".toml"):
        return preset_tree(name)
    try:
        tree = tomllib.loads(Path(name).read_text())
    except OSError as error:
        raise SettingsError(f"cannot read {name}: {error.strerror}", "give a preset's name or a TOML file") from None
    except ValueError as error:  # also what Python itself refuses, such as thousands of digits
        raise SettingsError(f"{name} is not valid TOML: {error}") from None
    if "trust" in tree:
        raise SettingsError(f"{name} sets `trust`, which a file cannot", "give `--trust` on the command line")
    return tree


class _Quiet:
    def show(self, *_: Any) -> None:
        pass

    def say(self, text: str) -> None:
        pass
