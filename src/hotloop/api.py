"""Hotloop from Python: what the command line does, as functions."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hotloop.algos.dqn_settings import DQNSettings as DQNSettings
from hotloop.algos.ppo_settings import PPOSettings as PPOSettings
from hotloop.algos.registry import RunSettings, class_of
from hotloop.core.errors import HotloopError as HotloopError
from hotloop.core.errors import RunError, SettingsError
from hotloop.core.rng import derive_seed, derive_seeds
from hotloop.core.settings import as_tree, build, merge
from hotloop.core.types import Array, VecEnv
from hotloop.envs.registry import make_baseline, make_envs, refuse_untrusted, with_whole_path
from hotloop.envs.settings import EnvSettings
from hotloop.lanes.spec import LANES
from hotloop.loop import off_policy, on_policy
from hotloop.loop.agents import ActorAgent, Agent, GraphAgent, load_agent, require_same_actions
from hotloop.loop.contract import Progress
from hotloop.loop.evaluate import MAX_EVALUATION_ENVS, play_episodes, quotas, summarise
from hotloop.loop.journal import LANE
from hotloop.loop.resuming import require_resumable
from hotloop.presets import settings_tree
from hotloop.runs.directory import Run


def preset(name: str, **overrides: Any) -> RunSettings:
    """The settings of a preset or a TOML file, with keyword overrides (`env={"num_envs": 8}` for nested ones)."""
    tree = merge(settings_tree(name), overrides)
    return build(class_of(tree), tree, source=name)


def train(settings: RunSettings, *, label: str = "", progress: Progress | None = None) -> dict[str, Any]:
    """Train in a new run directory; returns the object that `hotloop train --json` prints."""
    label = label or f"{settings.env.id}-{settings.algorithm}"
    settings = with_whole_path(settings)

    def claim_run() -> Run:
        return Run.create(settings.run_dir or None, label, as_tree(settings))

    return _train(dataclasses.replace(settings, trust=True), claim_run, progress or _Quiet())


def resume(
    run_dir: str | Path, *, trust: bool = False, accept_changes: bool = False, progress: Progress | None = None
) -> dict[str, Any]:
    """Continue a run that stopped, exactly; a finished one returns its result again.

    Where its settings.toml was changed since, that is refused, unless `accept_changes` says that it is meant.
    """
    run, says = Run.open(run_dir), progress or _Quiet()
    if run.finished:
        return run.result()
    settings = dataclasses.replace(settings_of(run, trust), run_dir=str(run.path))
    if (run.path / LANE).exists():  # what `auto` chose then is not chosen again
        learner: Any = dataclasses.replace(settings.learner, lane=_lane_of(run))
        settings = dataclasses.replace(settings, learner=learner)

    if not trust:
        refuse_untrusted(settings.env.id)
        refuse_untrusted(settings.network.torso)
    require_resumable(run, settings, accept_changes)

    def claim_run() -> Run:
        run.lock(says.say)
        return run

    return _train(settings, claim_run, says)


def _lane_of(run: Run) -> Any:
    said: Any = run.read_json(LANE)
    lane = said.get("lane") if isinstance(said, dict) else said
    if not isinstance(lane, str) or lane not in LANES:
        raise RunError(
            f"{run.path / LANE} names the lane {lane!r}; expected one of {', '.join(LANES)}",
            "remove the file, and the rule chooses again",
        )
    return lane


def _train(settings: RunSettings, claim_run: Callable[[], Run], progress: Progress) -> dict[str, Any]:
    if isinstance(settings, PPOSettings):
        return on_policy.train(settings, claim_run, progress)
    return off_policy.train(settings, claim_run, progress)


def load(run_dir: str | Path, *, trust: bool = False) -> Agent | ActorAgent | GraphAgent:
    """The best agent of a run so far: `load(run).act(obs)`. Runs no code of the run's env; where its torso is a file of
    yours, `trust` must allow to run that."""
    run = Run.open(run_dir)
    return load_agent(run, settings_of(run, trust))


def evaluate(
    source: str | Path,
    *,
    episodes: int = 100,
    seed: int = 0,
    trust: bool = False,
    policy: str = "",
    env: dict[str, Any] | None = None,
    look_on: Callable[[Any, Array], VecEnv] | None = None,
) -> dict[str, Any]:
    """Fresh greedy episodes with a run's best agent, or with another `policy` of its env: `random`, or a rule that the
    env brings along; then `source` may be a preset too. `env` changes settings of the env (`{"options": {...}}`).
    `look_on` is given the envs and how many episodes each plays, and returns the envs to play in."""
    if episodes < 1:
        raise SettingsError(f"`episodes` is {episodes}, expected at least 1")
    run = None if policy and not Path(source).is_dir() else Run.open(source)
    settings = preset(str(source)) if run is None else settings_of(run, trust)
    env_settings = build(EnvSettings, merge(as_tree(settings.env), env or {}), source="the command line")
    num_envs = min(episodes, MAX_EVALUATION_ENVS)
    envs = make_envs(env_settings, num_envs, derive_seeds(seed, num_envs, "verb"), trust=trust)
    try:
        played_in = envs if look_on is None else look_on(envs, quotas(episodes, num_envs))
        if policy:
            player = make_baseline(policy, envs, env_settings.id, derive_seed(seed, "policy"))
        else:
            assert run is not None
            agent = load_agent(run, settings)
            require_same_actions(agent, envs, env_settings.id)
            player = agent.as_policy()
        return summarise(play_episodes(player, played_in, episodes, settings.evaluation.max_episode_steps))
    finally:
        envs.close()


def report_page(run_dir: str | Path, *, frames: bool = True, trust: bool = False) -> str:
    """One self-contained HTML page of a run, as `hotloop report` writes it."""
    from hotloop.reporting.make import make_report

    return make_report(run_dir, frames=frames, trust=trust).html


def settings_of(run: Run, trust: bool) -> RunSettings:
    tree = run.settings()
    return build(class_of(tree), tree | {"trust": trust}, source=str(run.path / "settings.toml"))


class _Quiet:
    def show(self, *_: Any) -> None:
        pass

    def say(self, text: str) -> None:
        pass
