"""Hotloop from Python: what the command line does, as functions."""

from __future__ import annotations

import dataclasses
import importlib.util
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from hotloop.core.errors import HotloopError as HotloopError
from hotloop.core.errors import MissingExtraError, RunError, SettingsError
from hotloop.core.given import give, is_given, require_given
from hotloop.core.rng import derive_seed
from hotloop.core.settings import as_tree, build, merge
from hotloop.core.timer import PhaseTimer
from hotloop.core.types import Array, Policy, VecEnv
from hotloop.envs.registry import make_baseline
from hotloop.lanes.spec import LANES
from hotloop.loop import off_policy, on_policy
from hotloop.loop.agent_files import give_network, load_agent, load_agent_file, read_agent_file, weights_of
from hotloop.loop.agents import ActorAgent, Agent, GraphAgent, require_same_actions
from hotloop.loop.contract import NullProgress, Progress, RemarksOnly, require_size
from hotloop.loop.evaluate import play_fresh
from hotloop.loop.iterate import Iteration, to_the_end
from hotloop.loop.journal import LANE
from hotloop.loop.resuming import extend, require_resumable
from hotloop.loop.running import Claim, Rows
from hotloop.loop.session import Session
from hotloop.presets.dqn_settings import DQNSettings as DQNSettings
from hotloop.presets.env_names import refuse_untrusted, with_whole_path
from hotloop.presets.env_settings import EnvSettings
from hotloop.presets.ppo_settings import PPOSettings as PPOSettings
from hotloop.presets.registry import ALGORITHMS, RunSettings, label_of
from hotloop.presets.registry import preset as preset
from hotloop.presets.registry import settings_of as settings_of
from hotloop.presets.sac_settings import SACSettings as SACSettings
from hotloop.runs.directory import Run
from hotloop.runs.events import read_events

EVENTS = ("progress", "evaluation", "start", "rollback", "settings", "extended", "rows_lost")
Maker = Callable[..., Any]
"""A class, or a function without arguments that must be given."""


def train(
    settings: RunSettings | str,
    *,
    env: Maker | str | None = None,
    network: nn.Module | Maker | None = None,
    start_from: str | Path | nn.Module | Array | None = None,
    label: str = "",
    verbose: bool = True,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Train in a new run directory; returns the object that `hotloop train --json` prints.

    `settings` may be a preset's name. `env` makes an env, a class or a function called without arguments (or an
    id), and `network` makes a module from observations to Q-values, or to a policy's outputs and a value, or is
    one: a module is copied, and `hotloop.load` gives the trained copy. Both stand in the place of what the settings
    name. They may come from a notebook's cell; the run then needs them again (`hotloop.resume(run, env=...)`), and
    cannot leave this process: no `env.workers`, no `compare`, no `tune`.

    `start_from`: a run whose best weights the network begins with, a file of `agent.save`, or a module or vector.
    `verbose` shows progress on stderr; `progress` is a display of your own.

        result = hotloop.train(hotloop.preset("cartpole-dqn", total_env_steps=2_000))
    """
    with _display(verbose, progress) as display:
        return to_the_end(_new_run(_with_given(settings, env, network), start_from, label, display, PhaseTimer()))


def iterate(
    settings: RunSettings | str | Path,
    *,
    total_env_steps: int | None = None,
    env: Maker | str | None = None,
    network: nn.Module | Maker | None = None,
    start_from: str | Path | nn.Module | Array | None = None,
    label: str = "",
    trust: bool = False,
    verbose: bool = True,
    progress: Progress | None = None,
) -> Iteration:
    """Train row by row: a row every `log_every` env steps, with the learner and an agent to look at.

        for row in hotloop.iterate("cartpole-dqn"):
            print(row["env_steps"], row["mean_return"])
            if row["env_steps"] >= 2_000:
                break
        hotloop.resume(row.run)

    `break` ends the run cleanly, to be resumed. In the place of settings a run directory continues that run, and
    `total_env_steps` extends it, as in `resume`. `verbose` prints remarks on stderr, and no bar. The rest is as in
    `train`.
    """
    timer, display = PhaseTimer(), progress or (RemarksOnly() if verbose else NullProgress())
    if isinstance(settings, Path) or (isinstance(settings, str) and Path(settings).is_dir()):
        run = _opened(settings, total_env_steps, env, network, trust)
        if run.finished:
            return Iteration(iter(()), timer, run.result())
        return Iteration(_continued(run, trust, False, display, timer), timer)
    if total_env_steps is not None:
        raise SettingsError("`total_env_steps` extends a run; of a new one it is a setting", "give it to `preset`")
    return Iteration(_new_run(_with_given(settings, env, network), start_from, label, display, timer), timer)


def resume(
    run_dir: str | Path,
    *,
    total_env_steps: int | None = None,
    env: Maker | None = None,
    network: nn.Module | Maker | None = None,
    trust: bool = False,
    accept_changes: bool = False,
    verbose: bool = True,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Continue a run that stopped, exactly; a finished one returns its result again.

        result = hotloop.resume("runs/cartpole-dqn-20260101-120000")
        result = hotloop.resume("runs/cartpole-dqn-20260101-120000", total_env_steps=200_000)

    `total_env_steps` lets a run go on to more env steps than it was begun for, finished or not: its intervals stay
    what they were, its schedules at their end, and it need not end as a run that was longer from the start. `env` and
    `network` are given again where the run was given them as Python objects. Where its settings.toml was changed
    since, that is refused, unless `accept_changes` says that it is meant.
    """
    run = _opened(run_dir, total_env_steps, env, network, trust)
    if run.finished:
        return run.result()
    with _display(verbose, progress) as display:
        return to_the_end(_continued(run, trust, accept_changes, display, PhaseTimer()))


def _opened(run_dir: str | Path, total_env_steps: int | None, env: Any, network: Any, trust: bool) -> Run:
    """A run to be continued, extended where that is asked for."""
    run = Run.open(run_dir)
    _give_again(run, env, network)
    if total_env_steps is not None:
        with run:
            run.lock()
            extend(run, settings_of(run, trust), total_env_steps)
    return run


def _with_given(settings: RunSettings | str, env: Any, network: Any) -> RunSettings:
    """The settings with the names of what was given as a Python object."""
    settings = preset(settings) if isinstance(settings, str) else settings
    if not isinstance(settings, tuple(ALGORITHMS.values())):
        raise SettingsError(
            f"`settings` is a {type(settings).__name__}; expected is a preset's name, or what `hotloop.preset` "
            "made of one",
            "values change a preset: `hotloop.train(hotloop.preset('cartpole-dqn', batch_size=64))`",
        )
    tree: dict[str, Any] = {}
    if env is not None and not isinstance(env, str) and not callable(env):
        raise SettingsError(
            f"`env` is a {type(env).__name__} already, one object, and several are needed",
            "give its class, or a function that makes a new one",
        )
    if env is not None:
        tree["env"] = {"id": env if isinstance(env, str) else give("env", env)}
    if network is not None:
        tree["network"] = {"torso": give("network", network)}
    return build(type(settings), merge(as_tree(settings), tree)) if tree else settings


def _give_again(run: Run, env: Any, network: Any) -> None:
    """Objects under the names that the run knows them by."""
    settings = settings_of(run)
    for kind, name, thing in (("env", settings.env.id, env), ("network", settings.network.torso, network)):
        if thing is None:
            require_given(kind, name)
        elif not is_given(name):
            raise SettingsError(f"`{kind}` is given, but the run has `{name}`", f"leave `{kind}` out")
        else:
            give(kind, thing, name)


def _new_run(settings: RunSettings, start_from: Any, label: str, progress: Progress, timer: PhaseTimer) -> Rows:
    if settings.extended_from:
        raise SettingsError(
            f"`extended_from` is {settings.extended_from:,}, but only `hotloop resume --total-env-steps` extends a run",
            "leave it out",
        )
    label = label or label_of(settings)
    settings = with_whole_path(settings)
    start = _start_weights(settings.start_from if start_from is None else start_from)

    def claim_run(session: Session) -> Run:
        if start is not None:
            require_size(start, session)
        return Run.create(settings.run_dir or None, label, as_tree(settings), start)

    return _rows(dataclasses.replace(settings, trust=True), claim_run, progress, timer)


def _start_weights(source: str | Path | nn.Module | Array) -> Array | None:
    """All that acting needs as one vector, as a session loads it."""
    if isinstance(source, np.ndarray):
        return np.ascontiguousarray(source, np.float32).reshape(-1)
    if isinstance(source, nn.Module):
        return nn.utils.parameters_to_vector(source.parameters()).detach().cpu().float().numpy()
    if not str(source):
        return None
    if Path(source).is_file():
        return read_agent_file(Path(source))[1]
    run = Run.open(source)
    return weights_of(run, settings_of(run, trust=False))


def _continued(run: Run, trust: bool, accept_changes: bool, progress: Progress, timer: PhaseTimer) -> Rows:
    settings = dataclasses.replace(settings_of(run, trust), run_dir=str(run.path))
    if (run.path / LANE).exists():  # what `auto` chose then is not chosen again
        learner: Any = dataclasses.replace(settings.learner, lane=_lane_of(run))
        settings = dataclasses.replace(settings, learner=learner)

    if not trust:
        refuse_untrusted(settings.env.id)
        refuse_untrusted(settings.network.torso)
    require_resumable(run, settings, accept_changes)

    def claim_run(session: Session) -> Run:
        run.lock(progress.say)
        return run

    return _rows(settings, claim_run, progress, timer)


def _lane_of(run: Run) -> Any:
    said: Any = run.read_json(LANE)
    lane = said.get("lane") if isinstance(said, dict) else said
    if not isinstance(lane, str) or lane not in LANES:
        raise RunError(
            f"{run.path / LANE} names the lane {lane!r}; expected one of {', '.join(LANES)}",
            "remove the file, and the rule chooses again",
        )
    return lane


def _rows(settings: RunSettings, claim_run: Claim, progress: Progress, timer: PhaseTimer) -> Rows:
    if isinstance(settings, PPOSettings):
        return on_policy.rows(settings, claim_run, progress, timer)
    return off_policy.rows(settings, claim_run, progress, timer)


@contextmanager
def _display(verbose: bool, progress: Progress | None) -> Iterator[Progress]:
    """The display that was given, one on stderr, or none."""
    if progress is not None or not verbose:
        yield progress or NullProgress()
        return
    from hotloop.cli.progress import TerminalProgress

    with TerminalProgress() as shown:
        yield shown


def load(
    run_dir: str | Path, *, network: nn.Module | Maker | None = None, trust: bool = False
) -> Agent | ActorAgent | GraphAgent:
    """The best agent of a run so far, or one that `agent.save(file)` wrote.

    Runs no code of the run's env; a torso in a file of yours needs `trust`, a network that was given is given again.

        agent = hotloop.load("runs/cartpole-dqn-20260101-120000")
        action = agent.act(observation)
    """
    if Path(run_dir).is_file():
        return load_agent_file(Path(run_dir), trust, network)
    run = Run.open(run_dir)
    settings = settings_of(run, trust)
    give_network(settings, network)
    return load_agent(run, settings)


def evaluate(
    source: str | Path,
    *,
    episodes: int = 100,
    seed: int = 0,
    trust: bool = False,
    policy: str = "",
    env: dict[str, Any] | Maker | None = None,
    network: nn.Module | Maker | None = None,
) -> dict[str, Any]:
    """Play fresh greedy episodes with a run's best agent, or with another policy of its env.

        hotloop.evaluate("runs/cartpole-dqn-20260101-120000", episodes=20)["mean_return"]
        hotloop.evaluate("sfc-dqn", policy="heuristic")  # a preset: the policy needs no run

    `policy` is `random`, or a rule that the env brings along. `env` changes settings of the env
    (`{"options": {...}}`), or is the env itself where the run was given it as a Python object, as `network` may be.
    Without `trust` no code of the run's env is imported.
    """
    if episodes < 1:
        raise SettingsError(f"`episodes` is {episodes}, expected at least 1")
    run = None if policy and not Path(source).is_dir() else Run.open(source)
    if run is not None:
        _give_again(run, env if callable(env) else None, network)
    settings = preset(str(source)) if run is None else settings_of(run, trust)
    changed = env if isinstance(env, dict) else {}
    env_settings = build(EnvSettings, merge(as_tree(settings.env), changed), source="the command line")

    def player_for(envs: VecEnv) -> Policy:
        if policy:
            return make_baseline(policy, envs, env_settings.id, derive_seed(seed, "policy"))
        assert run is not None
        agent = load_agent(run, settings)
        require_same_actions(agent, envs, env_settings.id)
        return agent.as_policy()

    limit = settings.evaluation.max_episode_steps
    return play_fresh(env_settings, player_for, episodes=episodes, seed=seed, max_episode_steps=limit, trust=trust)


def history(run_dir: str | Path, event: str = "progress", frame: bool | None = None) -> Any:
    """The rows of a run's events.jsonl: a list of dicts, or a DataFrame where pandas is installed.

        rows = hotloop.history("runs/cartpole-dqn-20260101-120000", frame=False)
        [(row["env_steps"], row["mean_return"]) for row in rows]

    `event` is `progress` (a row every `log_every` env steps), `evaluation` or another kind of row;
    `frame` asks for the one or the other.
    """
    rows = [row for row in read_events(Run.open(run_dir).events) if row["event"] == event]
    if not rows and event not in EVENTS:
        raise SettingsError(f"there are no `{event}` rows in a run", f"there are {', '.join(EVENTS)}")
    if frame is False or (frame is None and importlib.util.find_spec("pandas") is None):
        return rows
    try:
        import pandas  # type: ignore[import-untyped]
    except ImportError as error:
        raise MissingExtraError("a DataFrame needs pandas, which is not installed", "pip install pandas") from error
    return pandas.DataFrame(rows)
