"""The state that every family's session has, for checkpoints and the digest; a session adds what only it remembers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hotloop.loop.run_envs import load_envs

if TYPE_CHECKING:
    from hotloop.loop.contract import TrainingSession

State = dict[str, dict[str, Any]]
PARTS = ("policy", "metrics", "best")


def state_of(session: TrainingSession) -> State:
    envs, counters = session.collector.envs, session.counters
    return {
        "counters": counters.state() | _rollbacks(session),
        "learner": session.learner.state(),
        "collector": session.collector.state(),
        "envs": envs.get_state() if envs.saves_state else {},
        **{name: getattr(session, name).state() for name in PARTS},
    }


def _rollbacks(session: TrainingSession) -> dict[str, int]:
    return {"rollbacks": session.rollbacks} if session.rollbacks else {}


def load_state_of(session: TrainingSession, state: State) -> None:
    session.counters.load_state(state["counters"])
    session.rollbacks = state["counters"].get("rollbacks", 0)
    session.learner.load_state(state["learner"])
    load_envs(session, state)  # may make them anew, which wants the counters
    for name in PARTS:
        getattr(session, name).load_state(state[name])
