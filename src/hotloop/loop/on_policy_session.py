"""Everything one on-policy run consists of, built once; and its whole state, for checkpoints and the digest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hotloop.algos.ppo_settings import PPOSettings
from hotloop.core.graphs import GraphSpec
from hotloop.core.rng import derive_seed
from hotloop.core.schedules import Counters
from hotloop.core.timer import PhaseTimer
from hotloop.core.types import Array, Policy, VecEnv
from hotloop.learners.derived import settled
from hotloop.learners.graph_policies import GraphGreedyPolicy, GraphStochasticPolicy
from hotloop.learners.ppo import GreedyPolicy, PPOLearner, StochasticPolicy
from hotloop.loop.agent_files import agent_with
from hotloop.loop.agents import ActorAgent, Agent, GraphAgent
from hotloop.loop.cadence import is_over
from hotloop.loop.collector import Collector
from hotloop.loop.contract import State, load_state_of, state_of
from hotloop.loop.evaluate import Best, evaluate_policy, make_run_envs
from hotloop.loop.machine import require_device
from hotloop.loop.metrics import Metrics
from hotloop.loop.rehearsal import finish_rehearsal
from hotloop.loop.sizes import require_memory
from hotloop.replay.rollout_buffer import GraphRolloutBuffer, RolloutBuffer


@dataclass
class OnPolicySession:
    """The parts of a run. Each owns its state; a rollout has none, since checkpoints fall between two."""

    settings: PPOSettings
    counters: Counters
    collector: Collector
    learner: PPOLearner
    rollout: RolloutBuffer | GraphRolloutBuffer
    policy: StochasticPolicy | GraphStochasticPolicy
    """Draws actions; a second one, `greedy`, is evaluated."""
    greedy: Policy
    metrics: Metrics
    best: Best
    rollbacks: int = 0

    @property
    def finished(self) -> bool:
        return is_over(self.settings, self.counters)

    def facts(self) -> dict[str, float]:
        return {"lr": float(self.learner.learning_rates()[0])}

    def weights(self) -> Array:
        return self.learner.weights()

    def load_weights(self, values: Array) -> None:
        self.learner.load_weights(values)

    def start_from(self, values: Array) -> None:
        self.load_weights(values)

    def agent(self) -> Agent | ActorAgent | GraphAgent:
        """With a copy of the weights that the learner has now."""
        envs = self.collector.envs
        raw_obs = getattr(envs, "raw_obs", None)
        return agent_with(self.weights(), self.settings, envs.obs_spec, envs.action_spec, raw_obs)

    def evaluate(self, episodes: int, check: Callable[[], None], *stream: str | int) -> dict[str, Any]:
        """Episodes of likeliest actions with the weights the learner has now, on envs of their own."""
        return evaluate_policy(self.settings, self.greedy, episodes, check, *stream)

    def recreate_envs(self) -> None:
        """New envs, seeded by how far the run has come: what a resumed run can do too, where envs save no state."""
        self.collector.envs.close()
        envs = make_run_envs(self.settings, self.settings.env.num_envs, "env", self.counters.env_steps)
        self.collector.restart(envs)
        self.learner.forget_episodes()

    def reseed(self, *stream: str | int) -> None:
        seed = self.settings.seed
        self.policy.reseed(derive_seed(seed, *stream, "policy", "rng"))
        self.learner.reseed(derive_seed(seed, *stream, "learner", "shuffler"))

    def state(self) -> State:
        return state_of(self)

    def load_state(self, state: State) -> None:
        load_state_of(self, state)

    def close(self) -> None:
        self.collector.envs.close()


def build_on_policy_session(settings: PPOSettings, timer: PhaseTimer) -> OnPolicySession:
    """All parts of a run at its start, every stream derived from the one seed."""
    require_device(settings.device)
    counters, envs = Counters(), make_run_envs(settings, settings.env.num_envs, "env", 0)
    settings = settled(settings, envs.obs_spec)
    require_memory(settings, envs.obs_spec, envs.action_spec)
    learner = PPOLearner(settings, envs.obs_spec, envs.action_spec, counters)
    acting = acts_on_graphs if isinstance(envs.obs_spec, GraphSpec) else acts_on_arrays
    rollout, policy, greedy = acting(settings, envs, learner)
    metrics = Metrics(learner.measures, terms=getattr(envs, "reward_terms", ()))
    with timer.phase("compile"):
        finish_rehearsal()
    return OnPolicySession(
        settings=settings,
        counters=counters,
        collector=Collector(envs, counters, metrics, timer),
        learner=learner,
        rollout=rollout,
        policy=policy,
        greedy=greedy,
        metrics=metrics,
        best=Best(),
    )


def acts_on_arrays(
    settings: PPOSettings, envs: VecEnv, learner: PPOLearner
) -> tuple[RolloutBuffer, StochasticPolicy, GreedyPolicy]:
    """The rollout, the policy that writes into it, and the one that is evaluated."""
    shape, width = (settings.rollout_steps, envs.num_envs), envs.action_spec.mask_width
    rollout = RolloutBuffer(shape, envs.obs_spec, learner.actions.layout, width if envs.has_action_mask else None)
    policy = StochasticPolicy(learner, rollout.row, derive_seed(settings.seed, "policy"))
    return rollout, policy, GreedyPolicy(learner)


def acts_on_graphs(
    settings: PPOSettings, envs: VecEnv, learner: PPOLearner
) -> tuple[GraphRolloutBuffer, GraphStochasticPolicy, GraphGreedyPolicy]:
    """The same where observations are graphs, whose rewards may come in parts."""
    parts = getattr(envs, "reward_parts", ("total",))
    settings.reward_parts.require_parts(parts)
    shape = (settings.rollout_steps, envs.num_envs)
    rollout = GraphRolloutBuffer(shape, learner.actions.num_continuous, len(parts))
    policy = GraphStochasticPolicy(learner, rollout, derive_seed(settings.seed, "policy"))
    return rollout, policy, GraphGreedyPolicy(learner)
