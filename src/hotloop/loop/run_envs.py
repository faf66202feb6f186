"""The envs of a run: those it trains in, and those it is judged in."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from hotloop.core.rng import derive_seeds
from hotloop.core.types import Policy, VecEnv
from hotloop.envs.registry import make_envs
from hotloop.loop.evaluate import MAX_EVALUATION_ENVS, play_episodes, summarise

if TYPE_CHECKING:
    from hotloop.loop.contract import TrainingSession


def make_run_envs(settings: Any, num_envs: int, *stream: str | int) -> VecEnv:
    return make_envs(settings.env, num_envs, derive_seeds(settings.seed, num_envs, *stream), trust=settings.trust)


def judge(
    settings: Any, policy: Policy, episodes: int, check: Callable[[], None], *stream: str | int
) -> dict[str, Any]:
    """The object called `evaluation`: whole episodes of `policy` on envs of their own."""
    envs = make_run_envs(settings, min(episodes, MAX_EVALUATION_ENVS), "evaluate", *stream)
    try:
        limit = settings.evaluation.max_episode_steps
        return summarise(play_episodes(policy, envs, episodes, limit, check))
    finally:
        envs.close()


def load_envs(session: TrainingSession, state: dict[str, dict[str, Any]]) -> None:
    """The envs as they were saved, or new ones where they save no state."""
    collector = session.collector
    if collector.envs.saves_state:
        collector.envs.set_state(state["envs"])
        collector.load_state(state["collector"])
    elif session.finished:  # only the judging is left: nothing may change
        collector.load_state(state["collector"])
    else:
        session.recreate_envs()
