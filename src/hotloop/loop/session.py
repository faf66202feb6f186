"""Everything one off-policy run consists of, built once; and its whole state, for checkpoints and the digest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hotloop.algos.derived import settled
from hotloop.algos.dqn import DQNLearner, EpsilonGreedy, Greedy
from hotloop.algos.dqn_settings import DQNSettings
from hotloop.core.rng import derive_seed
from hotloop.core.schedules import Counters
from hotloop.core.timer import PhaseTimer
from hotloop.core.types import Array, Batch, Obs, ObsSpec, map_obs
from hotloop.core.values import exact_fraction
from hotloop.envs.foreign import require_discrete
from hotloop.loop.agent_files import agent_with
from hotloop.loop.agents import ActorAgent, Agent, GraphAgent
from hotloop.loop.cadence import UpdatePlan, is_over
from hotloop.loop.collector import Collector
from hotloop.loop.contract import State, load_state_of, state_of
from hotloop.loop.evaluate import Best, evaluate_policy, make_run_envs
from hotloop.loop.machine import require_device
from hotloop.loop.metrics import Metrics
from hotloop.loop.rehearsal import finish_rehearsal
from hotloop.loop.sizes import require_memory
from hotloop.replay.buffer import Replay, Returns
from hotloop.replay.storage import placed


@dataclass
class Session:
    """The parts of a run. Each owns its state; nothing else does."""

    settings: DQNSettings
    counters: Counters
    collector: Collector[Obs]
    policy: EpsilonGreedy
    replay: Replay
    learner: DQNLearner
    metrics: Metrics
    best: Best
    plan: UpdatePlan
    rollbacks: int = 0

    @property
    def finished(self) -> bool:
        return is_over(self.settings, self.counters)

    def facts(self) -> dict[str, float]:
        return {"epsilon": self.policy.epsilon}

    def weights(self) -> Array:
        return self.learner.lane.parameters()

    def load_weights(self, values: Array) -> None:
        self.learner.lane.load_parameters(values)

    def start_from(self, values: Array) -> None:
        self.load_weights(values)
        self.learner.lane.move_target(1.0)

    def agent(self) -> Agent | ActorAgent | GraphAgent:
        """With a copy of the weights that the learner has now."""
        envs = self.collector.envs
        raw_obs = getattr(envs, "raw_obs", None)
        return agent_with(self.weights(), self.settings, envs.obs_spec, envs.action_spec, raw_obs)

    def evaluate(self, episodes: int, check: Callable[[], None], *stream: str | int) -> dict[str, Any]:
        """Greedy episodes with the weights the learner has now, on envs of their own."""
        return evaluate_policy(self.settings, Greedy(self.learner.lane), episodes, check, *stream)

    def recreate_envs(self) -> None:
        """New envs, seeded by how far the run has come: what a resumed run can do too, where envs save no state."""
        self.collector.envs.close()
        envs = make_run_envs(self.settings, self.settings.env.num_envs, "env", self.counters.env_steps)
        self.collector.restart(envs)
        self.replay.drop_pending()

    def reseed(self, *stream: str | int) -> None:
        seed = self.settings.seed
        self.policy.reseed(derive_seed(seed, *stream, "policy", "rng"))
        self.replay.reseed(derive_seed(seed, *stream, "replay", "sampler", "generator"))

    def state(self) -> State:
        return state_of(self) | {"replay": self.replay.state()}

    def load_state(self, state: State) -> None:
        num_actions = require_discrete(self.settings.env.id, self.collector.envs.action_spec).count
        self.replay.load_state(state["replay"], num_actions)  # before the envs: made anew, they drop its pending rows
        load_state_of(self, state)

    def close(self) -> None:
        self.collector.envs.close()


def build_session(settings: DQNSettings, timer: PhaseTimer) -> Session:
    """All parts of a run at its start, every stream derived from the one seed."""
    require_device(settings.device)
    counters = Counters()
    envs = make_run_envs(settings, settings.env.num_envs, "env", 0)
    num_actions = require_discrete(settings.env.id, envs.action_spec).count
    settings = settled(settings, envs.obs_spec)
    require_memory(settings, envs.obs_spec, envs.action_spec)
    learner = DQNLearner(settings, envs.obs_spec, num_actions, counters)
    metrics = Metrics(learner.measures)
    returns = Returns(settings.n_step, settings.gamma, settings.timeouts_are_terminal)
    replay = Replay(
        placed(settings.replay, settings.run_dir),
        envs.obs_spec,
        envs.num_envs,
        returns,
        derive_seed(settings.seed, "replay"),
        num_actions if envs.has_action_mask else None,
    )
    plan = _update_plan(settings, replay)
    with timer.phase("compile"):
        masked_actions = num_actions if envs.has_action_mask else None
        example = example_batch(envs.obs_spec, learner.rows_per_update, masked_actions)
        learner.prepare(example, plan.max_per_call)
        finish_rehearsal()
    return Session(
        settings=settings,
        counters=counters,
        collector=Collector(envs, counters, metrics, timer),
        policy=EpsilonGreedy(
            learner.lane, settings.exploration, counters, num_actions, derive_seed(settings.seed, "policy")
        ),
        replay=replay,
        learner=learner,
        metrics=metrics,
        best=Best(),
        plan=plan,
    )


def example_batch(obs_spec: ObsSpec, rows: int, masked_actions: int | None) -> Batch:
    """One batch of zeros in the shape that updates will see."""
    scalars = np.zeros((1, rows), np.float32)
    return Batch(
        obs=map_obs(lambda spec: np.zeros((1, rows, *spec.shape), spec.dtype), obs_spec),
        action=np.zeros((1, rows), np.int64),
        reward=scalars,
        discount=scalars,
        next_obs=map_obs(lambda spec: np.zeros((1, rows, *spec.shape), spec.dtype), obs_spec),
        weight=scalars,
        index=np.zeros((1, rows), np.int64),
        next_action_mask=None if masked_actions is None else np.ones((1, rows, masked_actions), bool),
    )


def _update_plan(settings: DQNSettings, replay: Replay) -> UpdatePlan:
    repeat = settings.updates_per_batch
    max_per_call = min(settings.learner.updates_per_call // repeat, replay.max_batches_per_sample) * repeat
    ratio = exact_fraction(settings.updates_per_env_step)
    return UpdatePlan(ratio, settings.train_every, settings.warmup_env_steps, max_per_call)
