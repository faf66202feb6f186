"""SAC, TD3 and DDPG of Stable-Baselines3 on the native lane: the same draws and log lines, other arithmetic."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from stable_baselines3 import SAC, TD3

from hotloop.adapters.sb3.memory import Home, SharedMemory, not_finite, steps_made
from hotloop.adapters.sb3.replay import QuickStorage, draw_batches
from hotloop.adapters.sb3.squashed import LogTemperature, Stacks
from hotloop.core.types import Array
from hotloop.lanes.native import sac_plan_kernels as measure
from hotloop.lanes.native.sac_lane import GroupVectors, NativeSACUpdater, kept, prepare
from hotloop.lanes.objective import ONLINE
from hotloop.lanes.sac_objective import SACBatch, SACSpec
from hotloop.nets.given_network import SharedNetwork
from hotloop.nets.sac_network import CRITICS, TEMPERATURE


class SACEngine:
    """The memory that a model's networks and optimizers share with machine code, and the kernels that work on it."""

    def __init__(self, model: SAC | TD3, stacks: Stacks) -> None:
        self._stochastic = isinstance(model, SAC)
        prepare(self._stochastic)
        self._stacks, self.obs_shape = stacks, model.observation_space.shape
        self._updaters: dict[SACSpec, NativeSACUpdater] = {}
        self._constant = np.zeros(0, np.float32)
        self._share(model)
        self._actor = self._updater(model, 0)

    def _share(self, model: SAC | TD3) -> None:
        orders, policy = self._stacks.orders, model.policy
        networks = {
            ONLINE: (policy.actor, policy.actor.optimizer, None if self._stochastic else policy.actor_target),
            CRITICS: (policy.critic, policy.critic.optimizer, policy.critic_target),
        }
        shared = {name: SharedNetwork(net, orders[name]) for name, (net, _, _) in networks.items()}
        self._log_temperature = getattr(model, "log_ent_coef", None)
        modules: dict[str, Any] = dict(shared)
        if self._log_temperature is not None:
            modules[TEMPERATURE] = LogTemperature(self._log_temperature)
        self.groups = GroupVectors(modules, ())
        self.memories: dict[str, SharedMemory] = {}
        for name, (_, optimizer, target) in networks.items():
            slow = None if target is None else SharedNetwork(target, orders[name])
            self.memories[name] = SharedMemory(shared[name], optimizer, slow, self._home(name))
        if self._log_temperature is not None:
            memory = SharedMemory(modules[TEMPERATURE], model.ent_coef_optimizer, None, self._home(TEMPERATURE))
            self.memories[TEMPERATURE] = memory

    def _home(self, name: str) -> Home:
        parts = (measure.VALUES, measure.MEAN, measure.SQUARE, measure.SLOW)
        return Home(*(self.groups.part(name, which) for which in parts))

    def is_shared(self, model: SAC | TD3) -> bool:
        held = {ONLINE: model.actor.optimizer, CRITICS: model.critic.optimizer}
        if getattr(model, "log_ent_coef", None) is not self._log_temperature:
            return False
        if self._log_temperature is not None:
            held[TEMPERATURE] = model.ent_coef_optimizer
        return all(memory.is_shared(held[name]) for name, memory in self.memories.items())

    def _updater(self, model: SAC | TD3, target_every: int) -> NativeSACUpdater:
        """For the constants that the model has now."""
        group = model.critic.optimizer.param_groups[0]
        learned = self._log_temperature is not None
        spec = SACSpec(
            actions=self._stacks.actions,
            critics=self._stacks.critics.copies,
            stochastic=self._stochastic,
            learn_temperature=learned,
            temperature=1.0 if learned or not self._stochastic else float(model.ent_coef_tensor),
            target_entropy=float(model.target_entropy) if self._stochastic else 0.0,
            slope_epsilon=float(model.actor.action_dist.epsilon) if self._stochastic else 0.0,
            smoothing=0.0 if self._stochastic else float(model.target_policy_noise),
            smoothing_clip=0.0 if self._stochastic else float(model.target_noise_clip),
            policy_delay=1 if self._stochastic else int(model.policy_delay),
            critic_weight=0.5 if self._stochastic else 1.0,
            max_grad_norm=0.0,
            accumulate=1,
            beta1=float(group["betas"][0]),
            beta2=float(group["betas"][1]),
            epsilon=float(group["eps"]),
            target_tau=float(model.tau),
            target_every=target_every,
        )
        stacks = (self._stacks.actor, self._stacks.critics)
        return kept(self._updaters, spec, lambda _: NativeSACUpdater(spec, stacks, self.groups))

    def _batches(self, model: SAC | TD3, k: int, rows: int, drawn: int) -> SACBatch:
        """k batches, and the normal numbers that an update draws: `drawn` tensors, one update after another."""
        if self._constant.shape != (k, rows):
            self._constant = np.ones((k, rows), np.float32)
        batch = draw_batches(model, k, rows)
        noise = torch.empty((k, drawn, rows, self._stacks.actions))
        for j in range(k):
            for one in range(drawn):  # each by itself: torch draws other numbers for a larger tensor
                noise[j, one].normal_()
        action = batch.action.reshape(k, rows, -1).astype(np.float32, copy=False)
        numbers = [np.ascontiguousarray(noise[:, one].numpy()) for one in range(drawn)]
        return SACBatch(*batch._replace(action=action), self._constant, *numbers)

    def _update(self, updater: NativeSACUpdater, data: SACBatch, lr: float, first_update: int) -> Array:
        k = len(data.reward)
        made, _, stats = updater.update(data, np.full(k, lr), first_update)
        if made < k:
            raise not_finite(first_update + made + 1)
        return stats

    def update_sac(self, model: SAC, gradient_steps: int, batch_size: int) -> Array:
        """Statistics [7, k]. The targets move after the first update of a call, and every so many after it."""
        interval, lr = int(model.target_update_interval), float(model.critic.optimizer.param_groups[0]["lr"])
        data = self._batches(model, gradient_steps, batch_size, drawn=2)
        data = data._replace(noise=data.next_noise, next_noise=data.noise)  # those of obs are drawn first
        count, measured = self.memories[CRITICS].count, []
        updater = self._updater(model, 1 if interval == 1 else 0)
        starts = [0, gradient_steps] if interval == 1 else [0, *range(1, gradient_steps, interval), gradient_steps]
        for start, end in zip(starts, starts[1:], strict=False):
            part = SACBatch(*(None if field is None else field[start:end] for field in data))
            measured.append(self._update(updater, part, lr, count + start))
            for memory in self.memories.values():
                memory.advance(end - start)
            if interval > 1 and (end - 1) % interval == 0:
                self.groups.move_target(CRITICS, float(model.tau))
        return np.concatenate(measured, axis=1)

    def update_td3(self, model: TD3, gradient_steps: int, batch_size: int) -> Array:
        """Statistics [7, k]. Actor and targets move in every so many updates of the model's life."""
        delay, lr = int(model.policy_delay), float(model.critic.optimizer.param_groups[0]["lr"])
        data = self._batches(model, gradient_steps, batch_size, drawn=1)
        if model.target_policy_noise == 0.0:
            data = data._replace(next_noise=None)  # drawn, as the original does, and of no use
        count = self.memories[CRITICS].count
        stats = self._update(self._updater(model, delay), data, lr, count)
        self.memories[CRITICS].advance(gradient_steps)
        self.memories[ONLINE].advance((count + gradient_steps) // delay - count // delay)
        return stats

    def is_in_place(self) -> bool:
        return self.memories[ONLINE].is_in_place()

    def act(self, rows: Array) -> Array:
        """What the actor says [N, O] of observations [N, F]."""
        return self._actor.act(rows)


def updates_problem(model: SAC | TD3) -> str:
    """Why the steps of the model's optimizers are not those that its updates would have made."""
    critic, actor = steps_made(model.critic.optimizer), steps_made(model.actor.optimizer)
    if isinstance(model, SAC):
        tuned = model.ent_coef_optimizer
        counts = {critic, actor, critic if tuned is None else steps_made(tuned)}
        return "" if len(counts) == 1 else "its optimizers have not made equally many steps"
    if (critic, actor) != (model._n_updates, model._n_updates // model.policy_delay):
        return "its optimizers have made other numbers of steps than its updates"
    return ""


class QuickSAC(QuickStorage, SAC):
    """Methods of an accelerated `SAC`."""

    def train(self, gradient_steps: int, batch_size: int = 64) -> None:
        if not self._hotloop.is_ready(self):
            return self.train(gradient_steps, batch_size)  # which is SAC's own again
        tuned = [] if self.ent_coef_optimizer is None else [self.ent_coef_optimizer]
        self._update_learning_rate([self.actor.optimizer, self.critic.optimizer, *tuned])
        stats = self._hotloop.engine.update_sac(self, gradient_steps, batch_size)
        self._n_updates += gradient_steps
        means, record = stats.mean(axis=1, dtype=np.float64), self.logger.record
        record("train/n_updates", self._n_updates, exclude="tensorboard")
        record("train/ent_coef", means[measure.TEMPERATURE_MEAN] if tuned else self.ent_coef_tensor.item())
        record("train/actor_loss", means[measure.ACTOR_LOSS])
        record("train/critic_loss", means[measure.LOSS])
        if tuned:
            record("train/ent_coef_loss", means[measure.TEMPERATURE_LOSS])


class QuickTD3(QuickStorage, TD3):
    """Methods of an accelerated `TD3` or `DDPG`."""

    _n_updates: int

    def train(self, gradient_steps: int, batch_size: int = 100) -> None:
        if not self._hotloop.is_ready(self):
            return self.train(gradient_steps, batch_size)  # which is TD3's own again
        self._update_learning_rate([self.actor.optimizer, self.critic.optimizer])
        stats = self._hotloop.engine.update_td3(self, gradient_steps, batch_size)
        before, self._n_updates = self._n_updates, self._n_updates + gradient_steps
        moved = self._n_updates // self.policy_delay - before // self.policy_delay
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")
        if moved:  # a delayed stage weighs as many updates as it stands for
            total = stats[measure.ACTOR_LOSS].sum(dtype=np.float64)
            self.logger.record("train/actor_loss", total / (self.policy_delay * moved))
        self.logger.record("train/critic_loss", stats[measure.LOSS].mean(dtype=np.float64))
