"""Everything one run consists of, built once; and its whole state, for checkpoints and the digest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hotloop.core.graphs import GraphSpec
from hotloop.core.rng import derive_seed
from hotloop.core.schedules import Counters
from hotloop.core.timer import PhaseTimer
from hotloop.core.types import Array, ArraySpec, Batch, ObsSpec, VecEnv, map_obs
from hotloop.core.values import exact_fraction
from hotloop.learners.derived import resolve
from hotloop.learners.learning import ExploringPolicy, Learner, make_learner
from hotloop.loop.agent_files import agent_with
from hotloop.loop.agents import ActorAgent, Agent, GraphAgent
from hotloop.loop.cadence import UpdatePlan, is_over
from hotloop.loop.collector import Collector
from hotloop.loop.evaluate import Best, evaluate_policy, make_run_envs
from hotloop.loop.machine import require_device
from hotloop.loop.metrics import Metrics
from hotloop.loop.rehearsal import finish_rehearsal
from hotloop.loop.sizes import require_memory
from hotloop.presets.run_settings import learns_from_replay
from hotloop.replay.buffer import ReplayMemory, Returns
from hotloop.replay.layout import stored_action
from hotloop.replay.rollout_buffer import GraphRolloutBuffer, RolloutBuffer
from hotloop.replay.storage import placed

State = dict[str, dict[str, Any]]
PARTS = ("policy", "metrics", "best")
NONE: Any = None


@dataclass
class Session:
    """The parts of a run. Each owns its state; nothing else does."""

    settings: Any
    counters: Counters
    collector: Collector
    policy: ExploringPolicy
    """Acts while the run learns; the learner has another one that is evaluated."""
    learner: Any
    metrics: Metrics
    best: Best
    replay: ReplayMemory = NONE
    plan: UpdatePlan = NONE
    """When updates on batches of replay are due; both are None where learning is from rollouts."""
    rollout: Any = NONE
    """A `RolloutBuffer`, or one of graphs; it has no state, since checkpoints fall between two."""
    rollbacks: int = 0
    """How often the run went back to a checkpoint because of numbers that were not finite."""

    @property
    def finished(self) -> bool:
        return is_over(self.settings, self.counters)

    def facts(self) -> dict[str, float]:
        return self.policy.facts()

    def weights(self) -> Array:
        return self.learner.weights()

    def load_weights(self, values: Array) -> None:
        self.learner.load_weights(values)

    def start_from(self, values: Array) -> None:
        self.load_weights(values)
        self.learner.lane.move_target(1.0)  # of a policy there is none

    def agent(self) -> Agent | ActorAgent | GraphAgent:
        """With a copy of the weights that the learner has now."""
        envs = self.collector.envs
        raw_obs = getattr(envs, "raw_obs", None)
        return agent_with(self.weights(), self.settings, envs.obs_spec, envs.action_spec, raw_obs)

    def evaluate(self, episodes: int, check: Callable[[], None], *stream: str | int) -> dict[str, Any]:
        """Episodes without exploring, with the weights the learner has now, on envs of their own."""
        return evaluate_policy(self.settings, self.learner.evaluation_policy(), episodes, check, *stream)

    def recreate_envs(self) -> None:
        """New envs, seeded by how far the run has come: what a resumed run can do too, where envs save no state."""
        self.collector.envs.close()
        envs = make_run_envs(self.settings, self.settings.env.num_envs, "env", self.counters.env_steps)
        self.collector.restart(envs)
        self.learner.forget_episodes()
        if self.replay is not None:
            self.replay.drop_pending()

    def reseed(self, *stream: str | int) -> None:
        seed = self.settings.seed
        self.policy.reseed(derive_seed(seed, *stream, "policy", "rng"))
        self.learner.reseed(*stream, "learner")
        if self.replay is not None:
            self.replay.reseed(derive_seed(seed, *stream, "replay", "sampler", "generator"))

    def state(self) -> State:
        envs, rollbacks = self.collector.envs, {"rollbacks": self.rollbacks} if self.rollbacks else {}
        return {
            "counters": self.counters.state() | rollbacks,
            "learner": self.learner.state(),
            "collector": self.collector.state(),
            "envs": envs.get_state() if envs.saves_state else {},
            **{name: getattr(self, name).state() for name in PARTS},
            **({} if self.replay is None else {"replay": self.replay.state()}),
        }

    def load_state(self, state: State) -> None:
        if self.replay is not None:  # before the envs: made anew, they drop its pending rows
            self.replay.load_state(state["replay"], self.learner.num_choices)
        self.counters.load_state(state["counters"])
        self.rollbacks = state["counters"].get("rollbacks", 0)
        self.learner.load_state(state["learner"])
        self._load_envs(state)  # may make them anew, which wants the counters
        for name in PARTS:
            getattr(self, name).load_state(state[name])

    def _load_envs(self, state: State) -> None:
        """The envs as they were saved, or new ones where they save no state."""
        if self.collector.envs.saves_state:
            self.collector.envs.set_state(state["envs"])
            self.collector.load_state(state["collector"])
        elif self.finished:  # only the judging is left: nothing may change
            self.collector.load_state(state["collector"])
        else:
            self.recreate_envs()

    def close(self) -> None:
        self.collector.envs.close()


def build_session(settings: Any, timer: PhaseTimer) -> Session:
    """All parts of a run at its start, every stream derived from the one seed."""
    require_device(settings.device)
    counters, envs = Counters(), make_run_envs(settings, settings.env.num_envs, "env", 0)
    settings = resolve(settings, envs.obs_spec)
    require_memory(settings, envs.obs_spec, envs.action_spec)
    learner = make_learner(settings, envs.obs_spec, envs.action_spec, counters)
    metrics = Metrics(learner.measures, terms=getattr(envs, "reward_terms", ()))
    memory = _replay(settings, envs, learner) if learns_from_replay(settings) else _rollout(settings, envs, learner)
    with timer.phase("compile"):
        if "plan" in memory:
            learner.prepare(_example_batch(envs, learner), memory["plan"].max_per_call)
        finish_rehearsal()
    return Session(
        settings=settings,
        counters=counters,
        collector=Collector(envs, counters, metrics, timer),
        policy=learner.exploring(derive_seed(settings.seed, "policy")),
        learner=learner,
        metrics=metrics,
        best=Best(),
        **memory,
    )


def _replay(settings: Any, envs: VecEnv, learner: Learner) -> dict[str, Any]:
    replay = ReplayMemory(
        placed(settings.replay, settings.run_dir),
        envs.obs_spec,
        envs.num_envs,
        Returns(settings.n_step, settings.gamma, settings.timeouts_are_terminal),
        derive_seed(settings.seed, "replay"),
        learner.num_choices if envs.has_action_mask else None,
        stored_action(envs.action_spec),
    )
    repeat, ratio = settings.updates_per_batch, exact_fraction(settings.updates_per_env_step)
    max_per_call = min(settings.learner.updates_per_call // repeat, replay.max_batches_per_sample) * repeat
    plan = UpdatePlan(ratio, settings.train_every, settings.learning_starts, max_per_call)
    return {"replay": replay, "plan": plan}


def _rollout(settings: Any, envs: VecEnv, learner: Learner) -> dict[str, Any]:
    shape, actions = (settings.rollout_steps, envs.num_envs), learner.actions
    if isinstance(envs.obs_spec, GraphSpec):  # whose rewards may come in parts
        parts = getattr(envs, "reward_parts", ("total",))
        settings.reward_parts.require_parts(parts)
        return {"rollout": GraphRolloutBuffer(shape, actions.num_continuous, len(parts))}
    width = envs.action_spec.mask_width if envs.has_action_mask else None
    return {"rollout": RolloutBuffer(shape, envs.obs_spec, actions.layout, width)}


def _example_batch(envs: VecEnv, learner: Learner) -> Batch:
    masked_actions = learner.num_choices if envs.has_action_mask else None
    return example_batch(envs.obs_spec, learner.rows_per_update, masked_actions, stored_action(envs.action_spec))


def example_batch(obs_spec: ObsSpec, rows: int, masked_actions: int | None, action: ArraySpec | None = None) -> Batch:
    """One batch of zeros in the shape that updates will see."""
    scalars = np.zeros((1, rows), np.float32)
    return Batch(
        obs=map_obs(lambda spec: np.zeros((1, rows, *spec.shape), spec.dtype), obs_spec),
        action=np.zeros((1, rows), np.int64) if action is None else np.zeros((1, rows, *action.shape), action.dtype),
        reward=scalars,
        discount=scalars,
        next_obs=map_obs(lambda spec: np.zeros((1, rows, *spec.shape), spec.dtype), obs_spec),
        weight=scalars,
        index=np.zeros((1, rows), np.int64),
        next_action_mask=None if masked_actions is None else np.ones((1, rows, masked_actions), bool),
    )
