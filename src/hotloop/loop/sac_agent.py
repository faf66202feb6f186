"""A trained actor with critics of its own: SAC's, TD3's or DDPG's."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from hotloop.core.types import Array, BoxActions, Obs, ObsSpec, map_obs
from hotloop.learners.sac import UnitActions, build_networks, draw_unit
from hotloop.learners.sac_kernels import best_squashed
from hotloop.loop.agents import ActorAgent, as_batch
from hotloop.presets.sac_settings import SACSettings


class SACAgent(ActorAgent):
    """`act` on one observation or on a batch; `network` has `actor`, `critics` and, if learned, `temperature`."""

    network: Any
    action_spec: BoxActions

    def __init__(self, settings: SACSettings, obs_spec: ObsSpec, action_spec: BoxActions) -> None:
        network: Any = build_networks(settings, obs_spec, len(action_spec.low), seed=0)
        super().__init__(network, settings, (obs_spec, action_spec))  # type: ignore[arg-type]
        self.units = UnitActions(action_spec)

    def as_policy(self) -> SACAgent:
        return self

    @torch.no_grad()
    def outputs(self, obs: Obs) -> Array:
        """What the actor says [N, O]: means, and log standard deviations behind them where it draws."""
        return self.network(self._seen(obs)).numpy()

    @torch.no_grad()
    def outputs_and_values(self, obs: Obs) -> tuple[Array, Array]:
        """The same, and what the lowest of the critics says of the judged action [N]."""
        seen = self._seen(obs)
        outputs = self.network(seen)
        q = self.network.critics((seen, outputs[:, : self.units.count].tanh()))
        return outputs.numpy(), q.amin(0).numpy()

    def _seen(self, obs: Obs) -> Tensor | dict[str, Tensor]:
        return map_obs(torch.from_numpy, obs if self.normalizer is None else self.normalizer.apply(obs))

    def act(self, obs: Any, action_mask: Any = None, deterministic: bool = True, *, mask: Any = None) -> Any:
        """The action in the env's units: one for one observation, an array of them for a batch.

        Unless `deterministic`, drawn from the policy, or with the noise that training ended with.
        """
        batch, single = as_batch(obs, self.obs_spec, self.raw_obs)
        outputs = self.outputs(batch)
        unit = np.empty((len(outputs), self.units.count), np.float32)
        if deterministic:
            best_squashed(outputs, unit)
        else:
            schedule = self.settings.exploration
            deviation = schedule.start if schedule.kind == "constant" else schedule.end
            draw_unit(self._next_seed(), self.settings.policy, outputs, deviation, unit)
        action = self.units.to_env(unit)
        return action[0] if single else action
