"""The losses of SAC, TD3 and DDPG: critics towards a soft or smoothed target, an actor up its critics, a temperature.

Up to three stages, each of which moves its own parameters: critics, actor (`ONLINE`, since it acts), temperature. The
numbers that an update draws are part of its batch, so that every lane computes with the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from hotloop.core.types import map_obs
from hotloop.lanes.nonfinite import (
    FailedUpdate,
    Named,
    as_arrays,
    as_tensors,
    bound_network,
    tensors_of_batch,
    tensors_of_state,
    tensors_of_step,
)
from hotloop.lanes.objective import (
    ONLINE,
    TARGET,
    Network,
    Networks,
    Outcome,
    Stage,
    as_tensors_on,
    map_tensors,
    target_of,
)
from hotloop.lanes.spec import Lane
from hotloop.maths import sac, td
from hotloop.nets.sac_network import CRITICS, TEMPERATURE
from hotloop.presets.sac_network_settings import SACLayout

CRITICS_TARGET = target_of(CRITICS)
LOG_ALPHA = "log_alpha"


@dataclass(frozen=True, kw_only=True)
class SACSpec:
    """Losses, optimizer constants and target rule of one update."""

    actions: int
    critics: int
    stochastic: bool  # a squashed normal; otherwise tanh of what the actor says
    learn_temperature: bool
    temperature: float  # where it is not learned; what it begins with where it is
    target_entropy: float
    slope_epsilon: float  # added within the Jacobian's logarithm; 0: exact
    smoothing: float  # deviation of the noise on the target's actions, of a deterministic policy
    smoothing_clip: float
    policy_delay: int  # actor and temperature move in every so many updates
    critic_weight: float  # of the critics' squared errors
    max_grad_norm: float  # of each stage's parameters; 0: no clipping
    accumulate: int
    beta1: float
    beta2: float
    epsilon: float
    target_tau: float
    target_every: int  # in updates; 0: the loop moves the targets itself


class SACBatch(NamedTuple):
    """k batches on the host [k, B, ...], or one of them as tensors [B, ...]; actions in units of -1 to 1."""

    obs: Any
    action: Any  # [B, A] float32
    reward: Any  # [B]
    discount: Any  # [B]
    next_obs: Any
    weight: Any  # [B]
    next_noise: Any = None  # [B, A] standard normal: of the actions in next_obs; None: of no use
    noise: Any = None  # [B, A]: of the actions in obs
    log_prob: Any = None  # [B]: what the actor's stage passes on to the temperature's

    @property
    def next_action_mask(self) -> None:
        """Continuous actions have none."""
        return None


class SACBatches:
    """k batches, gathered at once and moved at once."""

    def __init__(self, batches: SACBatch, device: torch.device) -> None:
        self._tensors: SACBatch = map_tensors(as_tensors_on(device), batches)
        self.per_epoch = len(batches.reward)

    def one(self, j: int) -> SACBatch:
        return map_tensors(lambda field: field[j], self._tensors)

    def several(self, start: int, count: int) -> SACBatch:
        return map_tensors(lambda field: field[start : start + count], self._tensors)


class SACObjective:
    """Its networks: `ONLINE`, the actor; `critics` and their slowly moving copy; `temperature`, where it is learned; a
    slowly moving copy of a deterministic actor."""

    acts_in_precision = False
    noisy = False
    native_title = "multilayer actor and critics on float observations"

    def __init__(self, spec: SACSpec) -> None:
        self.spec = spec
        self.accumulate, self.target_every, self.target_tau = spec.accumulate, spec.target_every, spec.target_tau
        self.targets: tuple[str, ...] = (CRITICS,) if spec.stochastic else (ONLINE, CRITICS)
        of_actor = ("actor_loss", "entropy") if spec.stochastic else ("actor_loss",)
        of_temperature = ("temperature_loss", "temperature") if spec.learn_temperature else ()
        actor = Stage(ONLINE, self.actor_loss, spec.policy_delay, len(of_actor))
        temperature = Stage(TEMPERATURE, self.temperature_loss, spec.policy_delay, len(of_temperature))
        critics = Stage(CRITICS, self.critics_loss)
        self.stages: tuple[Stage, ...] = (critics, actor, temperature) if of_temperature else (critics, actor)
        self.measures: tuple[str, ...] = ("loss", "q_mean", *of_actor, *of_temperature, "gradient_norm")

    def critics_loss(self, networks: Networks, batch: SACBatch, shared: None = None) -> Outcome:
        """Weighted squared errors, the mean over rows summed over critics."""
        with torch.no_grad():
            y = self._target(networks, batch)
        q = networks[CRITICS].forward((batch.obs, batch.action))  # [C, B]
        error = y - q
        loss = self.spec.critic_weight * (batch.weight * td.squared(error)).mean(-1).sum()
        measures = torch.stack((loss.detach(), q.detach().mean()))
        return Outcome(loss, measures, error.detach().abs().mean(0))

    def _target(self, networks: Networks, batch: SACBatch) -> Tensor:
        """What the critics should say [B], by their slowly moving copy and the policy's next action."""
        spec = self.spec
        if spec.stochastic:
            action, log_prob = self._drawn(networks[ONLINE], batch.next_obs, batch.next_noise)
            q = networks[CRITICS_TARGET].forward((batch.next_obs, action))
            return sac.soft_target(batch.reward, batch.discount, q, log_prob, self._alpha(networks))
        action = networks[TARGET].forward(batch.next_obs).tanh()
        if spec.smoothing > 0.0:
            action = sac.smoothed_action(action, batch.next_noise, spec.smoothing, spec.smoothing_clip)
        q = networks[CRITICS_TARGET].forward((batch.next_obs, action))
        return sac.soft_target(batch.reward, batch.discount, q)

    def actor_loss(self, networks: Networks, batch: SACBatch, shared: None = None) -> Outcome:
        """Up the lowest of the critics and the policy's entropy; up the first critic, of a deterministic policy."""
        if not self.spec.stochastic:
            action = networks[ONLINE].forward(batch.obs).tanh()
            loss = -networks[CRITICS].forward((batch.obs, action))[0].mean()
            return Outcome(loss, loss.detach()[None])
        action, log_prob = self._drawn(networks[ONLINE], batch.obs, batch.noise)
        q = networks[CRITICS].forward((batch.obs, action)).amin(0)
        loss = (self._alpha(networks) * log_prob - q).mean()
        log_prob = log_prob.detach()
        return Outcome(loss, torch.stack((loss.detach(), -log_prob.mean())), None, {"log_prob": log_prob})

    def temperature_loss(self, networks: Networks, batch: SACBatch, shared: None = None) -> Outcome:
        """By the log-probabilities of the actor before its step, as the other two stages had it."""
        log_alpha = networks[TEMPERATURE].parameters[LOG_ALPHA]
        loss = sac.temperature_loss(log_alpha, batch.log_prob, self.spec.target_entropy)
        return Outcome(loss, torch.stack((loss.detach(), log_alpha.detach().exp()[0])))

    def _drawn(self, actor: Network, obs: Any, noise: Tensor) -> tuple[Tensor, Tensor]:
        mean, log_std = sac.split_outputs(actor.forward(obs))
        return sac.squashed_sample(mean, log_std, noise, self.spec.slope_epsilon)

    def _alpha(self, networks: Networks) -> Tensor | float:
        if not self.spec.learn_temperature:
            return self.spec.temperature
        return networks[TEMPERATURE].parameters[LOG_ALPHA].detach().exp()

    def groups(self, network: Any) -> dict[str, nn.Module]:
        groups = {ONLINE: network.actor, CRITICS: network.critics}
        return groups | ({TEMPERATURE: network.temperature} if self.spec.learn_temperature else {})

    def on_device(self, data: SACBatch, device: torch.device) -> SACBatches:
        return SACBatches(data, device)

    def call_constants(self, data: SACBatch, networks: Networks) -> None:
        return None

    def known_targets(self, target: Network, batches: SACBatch) -> None:
        return None  # what the critics' copy says depends on actions that the moving actor draws

    def stop_early(self, epoch: Sequence[Tensor]) -> bool:
        return False

    def obs_tensors(self, obs: Any, device: torch.device) -> Any:
        return map_obs(as_tensors_on(device), obs)

    def infer(self, network: Network, obs: Any, action_mask: Tensor | None) -> tuple[Tensor]:
        """What the actor says [N, O]: means, and log standard deviations behind them, before bounds and tanh."""
        return (network.forward(obs),)

    def failure_batch(self, data: SACBatch, j: int, shared: None = None) -> dict[str, Any]:
        fields = data._asdict().items()
        return as_arrays({name: map_obs(lambda part: part[j], field) for name, field in fields if field is not None})

    def nan_search_order(self, network: nn.Module, precision: str, failed: FailedUpdate) -> Named:
        """Stages that were made before the failed one stay made: the critics may have moved since their loss."""
        groups = self.groups(network)
        for name, module in groups.items():
            yield from tensors_of_state(module, failed, name)
        yield from tensors_of_batch(failed.batch, [name for name in SACBatch._fields if name in failed.batch])
        batch = SACBatch(**as_tensors(failed.batch))
        bound = {name: bound_network(module, failed.state[name], {}, precision) for name, module in groups.items()}
        networks = {name: network for name, (_, network) in bound.items()}
        for name in self.targets:
            copy = bound_network(groups[name], failed.state[target_of(name)], {}, precision)
            networks[target_of(name)] = copy[1]
        yield from self._answers(networks, batch)
        for stage in self.stages:
            outcome = stage.loss(networks, batch, None)
            batch = batch._replace(**outcome.next_stage_inputs or {})
            values, module = bound[stage.parameters][0], groups[stage.parameters]
            yield from tensors_of_step(self.spec, module, failed, values, outcome.loss, stage)

    @torch.no_grad()
    def _answers(self, networks: Networks, batch: SACBatch) -> Iterator[tuple[str, Tensor]]:
        yield "outputs of the actor in next_obs", networks[ONLINE].forward(batch.next_obs)
        yield "targets of the critics", self._target(networks, batch)
        yield "Q", networks[CRITICS].forward((batch.obs, batch.action))
        yield "outputs of the actor", networks[ONLINE].forward(batch.obs)

    def native_problem(self, layout: SACLayout | None) -> str:
        return "" if layout is not None else f"the network is not {self.native_title}"

    def native_lane(self, network: nn.Module, layout: SACLayout, batch_size: int) -> Lane:
        from hotloop.lanes.native.sac_lane import NativeSACLane

        return NativeSACLane(self, network, layout, batch_size)
