"""How good the agent is: greedy episodes on separate envs, and the best weights so far.

The envs of a run: those it trains in, and those it is judged in.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hotloop.core.rng import derive_seeds
from hotloop.core.types import Array, Policy, VecEnv
from hotloop.envs.registry import make_envs
from hotloop.presets.env_settings import EnvSettings
from hotloop.presets.run_settings import EvaluationSettings

MAX_EVALUATION_ENVS = 32
MAX_EPISODE_STEPS = 100_000
USUAL_EPISODES, LEAST_EPISODES, USUAL_FINAL_EPISODES = 20, 5, 100
ONE_IN = 10
"""Of so many training env steps, one may be spent on evaluation, half of it on the periodic ones."""


def play_episodes(
    policy: Policy,
    envs: VecEnv,
    episodes: int,
    max_episode_steps: int = MAX_EPISODE_STEPS,
    check: Callable[[], None] = lambda: None,
) -> dict[str, Array]:
    """Returns, lengths and the workload's own measures of `episodes` whole episodes.

    Each env plays a quota fixed in advance: taking the first episodes to finish would favor short ones. An episode
    that does not end is cut off and counts as far as it came. `check` is called at every step and may raise.
    """
    quota = quotas(episodes, envs.num_envs)
    totals, lengths = np.zeros(envs.num_envs), np.zeros(envs.num_envs, dtype=np.int64)
    finished: dict[str, list[Any]] = {"return": [], "length": []}
    obs, action_mask = envs.reset()
    while quota.any():
        check()
        step = envs.step(policy.act(obs, action_mask))
        valid = np.ones(envs.num_envs, dtype=bool) if step.valid is None else step.valid
        totals += np.where(valid, step.reward, 0.0)
        lengths += valid
        for i in np.flatnonzero((step.terminated | step.truncated | (lengths >= max_episode_steps)) & valid):
            if quota[i] > 0:
                quota[i] -= 1
                _note(
                    finished,
                    {"return": totals[i], "length": lengths[i]} | {k: v[i] for k, v in step.episode_stats.items()},
                )
            totals[i], lengths[i] = 0.0, 0
        obs, action_mask = step.obs, step.action_mask
    return {name: np.array(values) for name, values in finished.items()}


def play_fresh(
    env: EnvSettings,
    player_for: Callable[[VecEnv], Policy],
    *,
    episodes: int,
    seed: int,
    max_episode_steps: int,
    trust: bool = False,
    look_on: Callable[[Any, Array], VecEnv] | None = None,
) -> dict[str, Any]:
    """The object called `evaluation`, of episodes that no run has seen: envs made anew from `seed`.

    `player_for` is given the envs and returns who plays in them; `look_on` is given them with how many episodes each
    plays, and returns the envs to play in.
    """
    num_envs = min(episodes, MAX_EVALUATION_ENVS)
    envs = make_envs(env, num_envs, derive_seeds(seed, num_envs, "verb"), trust=trust)
    try:
        player = player_for(envs)
        played_in = envs if look_on is None else look_on(envs, quotas(episodes, num_envs))
        return summarize(play_episodes(player, played_in, episodes, max_episode_steps))
    finally:
        envs.close()


def quotas(episodes: int, num_envs: int) -> Array:
    """How many of the episodes each env plays, [N]."""
    quota = np.full(num_envs, episodes // num_envs)
    quota[: episodes % num_envs] += 1
    return quota


def _note(finished: dict[str, list[Any]], episode: dict[str, Any]) -> None:
    for name, value in episode.items():
        finished.setdefault(name, []).append(value.item())


def summarize(played: dict[str, Array]) -> dict[str, Any]:
    """The object called `evaluation` in every JSON answer.

    Of the workload's own measures, flags are told as rates, counts as mean and maximum, and fractions as their mean
    under their own name: over the episodes that have one (not NaN), None where none has.
    """
    returns = played["return"]
    summary: dict[str, Any] = {
        "episodes": len(returns),
        "mean_return": float(returns.mean()),
        "std_return": float(returns.std()),
        "mean_length": float(played["length"].mean()),
    }
    for name, values in played.items():
        if values.dtype == np.bool_:
            summary[f"{name}_rate"] = float(values.mean())
        elif name in ("return", "length"):
            continue
        elif values.dtype.kind == "f":
            measured = values[~np.isnan(values)]
            summary[name] = float(measured.mean()) if len(measured) else None
        else:
            summary |= {f"mean_{name}": float(values.mean()), f"max_{name}": values.max().item()}
    return summary


def env_steps_of(evaluation: dict[str, Any]) -> int:
    return round(evaluation["episodes"] * evaluation["mean_length"])


@dataclass(frozen=True)
class EvaluationPlan:
    """How many episodes an evaluation has: what was set, or what is affordable.

    Decided from settings and env steps alone, never by a clock, so that a run is repeated and resumed exactly.
    """

    settings: EvaluationSettings
    limited: bool
    """Whether what is not set is held to a tenth of the training env steps."""

    @property
    def words(self) -> str:
        if self.settings.every:
            return f"every {self.settings.every:,} env steps, {self.settings.episodes or USUAL_EPISODES} episodes each"
        if not self.limited:
            return f"every twentieth of the run, {self.settings.episodes or USUAL_EPISODES} episodes each"
        return "at most a tenth of the training env steps; `--evaluation.every N` sets your own interval"

    def periodic_episodes(self, env_steps: int, spent: int, longest: int) -> int:
        """Of an evaluation that is due now; 0: put off. `spent` are evaluation env steps, `longest` an episode's."""
        if self.settings.every or not self.limited:
            return self.settings.episodes or USUAL_EPISODES
        affordable = max(0, env_steps // (2 * ONE_IN) - spent) // longest
        if affordable < (self.settings.episodes or LEAST_EPISODES):
            return 0
        return self.settings.episodes or min(affordable, USUAL_EPISODES)

    def only_episodes(self, env_steps: int, longest: int) -> int:
        """Of the one evaluation that a run has even if it cannot afford it: something must be the best."""
        return self.settings.episodes or max(1, min(env_steps // (2 * ONE_IN) // longest, USUAL_EPISODES))

    def final_allowance(self, env_steps: int, spent: int) -> int:
        """Env steps for judging the best and the last weights: what is left, and half of all at least."""
        return max(env_steps // ONE_IN - spent, env_steps // (2 * ONE_IN))

    def final_episodes(self, allowance: int, longest: int) -> int:
        if self.settings.final_episodes or not self.limited:
            return self.settings.final_episodes or USUAL_FINAL_EPISODES
        return max(1, min(allowance // longest, USUAL_FINAL_EPISODES))


class Best:
    """The weights with the highest mean return in a periodic evaluation (the later ones where two are equal)."""

    def __init__(self) -> None:
        self.mean_return = -np.inf
        self.env_steps = -1
        self.judged_at = -1  # env steps of the last evaluation, best or not
        self.spent = 0  # evaluation env steps so far
        self.longest = 0  # mean length of an evaluation's episodes, the longest so far
        self.parameters: Array = np.empty(0, dtype=np.float32)

    def offer(self, mean_return: float, env_steps: int, parameters: Array) -> None:
        self.judged_at = env_steps
        if mean_return >= self.mean_return:
            self.mean_return, self.env_steps, self.parameters = mean_return, env_steps, parameters

    def note_played(self, evaluation: dict[str, Any]) -> None:
        self.spent += env_steps_of(evaluation)
        self.longest = max(self.longest, math.ceil(evaluation["mean_length"]))

    def cost(self) -> dict[str, int]:
        """Saved beside the state: what was spent is no part of what was learned."""
        return {"spent": self.spent, "longest": self.longest}

    def load_cost(self, cost: dict[str, int]) -> None:
        self.spent, self.longest = cost.get("spent", 0), cost.get("longest", 0)
        if type(self.spent) is not int or type(self.longest) is not int or min(self.spent, self.longest) < 0:
            raise ValueError("what evaluations cost is no count of env steps")

    def state(self) -> dict[str, Any]:
        return {
            "parameters": self.parameters,
            "mean_return": np.array(self.mean_return),
            "env_steps": self.env_steps,
            "judged_at": self.judged_at,
        }

    def load_state(self, state: dict[str, Any]) -> None:
        self.parameters = state["parameters"]
        self.mean_return = float(state["mean_return"])
        self.env_steps = state["env_steps"]
        self.judged_at = state["judged_at"]


def make_run_envs(settings: Any, num_envs: int, *stream: str | int) -> VecEnv:
    return make_envs(settings.env, num_envs, derive_seeds(settings.seed, num_envs, *stream), trust=settings.trust)


def evaluate_policy(
    settings: Any, policy: Policy, episodes: int, check: Callable[[], None], *stream: str | int
) -> dict[str, Any]:
    """The object called `evaluation`: whole episodes of `policy` on envs of their own."""
    envs = make_run_envs(settings, min(episodes, MAX_EVALUATION_ENVS), "evaluate", *stream)
    try:
        limit = settings.evaluation.max_episode_steps
        return summarize(play_episodes(policy, envs, episodes, limit, check))
    finally:
        envs.close()
