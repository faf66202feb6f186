"""Learning on growing graphs: the network, a rollout, and the whole training loop.

`graph-forward`: outputs, or outputs and gradients, of 64 graphs. `durotaxis-rollout`: what a rollout is beside the
network, given its actions and values: steps, observations, rewards in parts, and their advantages.
`durotaxis-loop`: acting, stepping and PPO's epochs. The plain network takes all graphs of a step or minibatch in one
forward, as anybody with a graph library has it; `graph-forward-singly` and `durotaxis-loop-singly` are against one
forward per graph. The plain program gets our initial weights and a tape of our draws; both must end with the same
parameters. The policy starts with a delete ratio near 0.6, so that colonies stay small.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch

import hotloop
from benchmarks.durotaxis_step import Draws, RecordedPlay, grow, make_ours, plain_from, random_actions
from benchmarks.learners import copy_parameters, flat
from benchmarks.witnesses import durotaxis_network, durotaxis_ppo
from benchmarks.witnesses.durotaxis_env import Colony
from hotloop.core.graphs import Graphs
from hotloop.core.rng import derive_seed
from hotloop.core.timer import PhaseTimer
from hotloop.core.types import Array
from hotloop.loop.session import Session, build_session
from hotloop.maths.gae_kernels import gae_numpy
from hotloop.nets.graphs.attention import to_tensors
from hotloop.nets.graphs.network import GraphActorCritic, build_graph_actor_critic
from hotloop.presets.env_settings import EnvSettings
from hotloop.presets.network_settings import GraphNetworkSettings
from hotloop.presets.ppo_settings import PPOSettings
from hotloop.presets.run_settings import CheckpointSettings, EvaluationSettings
from hotloop.proof.case import Case, Programs, TwoSizes
from hotloop.proof.equivalence import Equality, compare

TOLERANCE = 2e-3
"""Of parameters, after updates that sum in another order; actions and rewards in between must agree to 1e-4."""
NEVER = 10**12
GRAPHS = 64
LOOP_ENVS, LOOP_STEPS = 16, 8
OPTIONS = {"max_nodes": 100}
SMALL_COLONIES = 1.2
"""Where the ratio's mean starts, before tanh: 0.64 of a colony is given up."""


@hotloop.cases("a graph transformer over 64 graphs of N nodes")
def graph_forward_cases(small: bool = False) -> list[Case]:
    return _forward_cases("graph-forward", _Batched, small)


@hotloop.cases("the same against one graph per forward")
def graph_forward_singly_cases(small: bool = False) -> list[Case]:
    return _forward_cases("graph-forward-singly", _Singly, small)


def _forward_cases(family: str, form: type[_Batched | _Singly], small: bool) -> list[Case]:
    return [
        Case(
            family,
            f"n{nodes}",
            partial(_build_forward, form, nodes, variant == "gradients"),
            variant=variant,
            tolerance=TOLERANCE,
            quick=nodes == 10,
        )
        for variant in ("outputs", "gradients")
        for nodes in ((5,) if small else (5, 10, 40))
    ]


@hotloop.cases("a rollout of 16 colonies, all but the network")
def durotaxis_rollout_cases(small: bool = False) -> list[Case]:
    return [
        Case("durotaxis-rollout", f"n{nodes}", partial(_build_rollout, nodes, small), tolerance=1e-4, quick=True)
        for nodes in ((10,) if small else (10, 40))
    ]


@hotloop.cases("the whole PPO loop on 16 colonies of 4 to 10 nodes")
def durotaxis_loop_cases(small: bool = False) -> list[Case]:
    return _loop_cases("durotaxis-loop", False, small)


@hotloop.cases("the same against one graph per forward")
def durotaxis_loop_singly_cases(small: bool = False) -> list[Case]:
    return _loop_cases("durotaxis-loop-singly", True, small)


def _loop_cases(family: str, singly: bool, small: bool) -> list[Case]:
    return [
        Case(
            family,
            "n4-10",
            partial(_build_loop, mode, singly, small),
            variant=mode.replace("_", "-"),
            tolerance=TOLERANCE,
            quick=mode == "ratio",
        )
        for mode in ("ratio", "per_node")
    ]


def _graphs(nodes: int, count: int) -> Graphs:
    """What is seen of colonies of `nodes` nodes."""
    env = make_ours(count)
    grow(env, nodes)
    return env.step(random_actions(np.random.default_rng(0), env, 0.5)).obs


class _Batched:
    """The plain network on all graphs in one forward; they were concatenated beforehand."""

    make: type[durotaxis_network.GraphActorCritic] = durotaxis_network.BatchedGraphActorCritic

    def __init__(self, graphs: Graphs, network: Any) -> None:
        self.network = network
        self.rows = [durotaxis_network.to_tensors(_one(graphs, index)) for index in range(len(graphs))]
        self.batch = durotaxis_network.collate(self.rows)

    def outputs(self) -> dict[str, torch.Tensor]:
        found = self.network(self.batch)
        return {"mean": found.mean, "log_std": found.log_std, "value": found.values}

    def __call__(self, gradients: bool) -> dict[str, torch.Tensor]:
        with torch.set_grad_enabled(gradients):
            outputs = self.outputs()
            if gradients:
                self.network.zero_grad()
                sum(part.sum() for part in outputs.values()).backward()  # type: ignore[union-attr]
        return outputs


class _Singly(_Batched):
    """One graph per forward."""

    make = durotaxis_network.GraphActorCritic

    def outputs(self) -> dict[str, torch.Tensor]:
        found = [self.network(row) for row in self.rows]
        names = {"mean": "mean", "log_std": "log_std", "value": "values"}
        return {name: torch.stack([getattr(one, other) for one in found]) for name, other in names.items()}


def _build_forward(form: type[_Batched | _Singly], nodes: int, gradients: bool) -> Programs:
    graphs = _graphs(nodes, GRAPHS)
    ours, network = _networks(form.make)
    plain = form(graphs, network)

    def fast() -> dict[str, torch.Tensor]:
        with torch.set_grad_enabled(gradients):
            found = ours(to_tensors(graphs))
            if gradients:
                ours.zero_grad()
                (found.mean.sum() + found.log_std.sum() + found.value.sum()).backward()
        return {"mean": found.mean, "log_std": found.log_std, "value": found.value}

    def compare_outputs(mine: dict[str, torch.Tensor], theirs: dict[str, torch.Tensor]) -> Equality:
        found: list[tuple[str, Any, Any]] = [(name, mine[name].detach(), theirs[name].detach()) for name in mine]
        if gradients:
            pairs = zip(ours.named_parameters(), network.parameters(), strict=True)
            found += [(f"gradient of {name}", one.grad, other.grad) for (name, one), other in pairs]
        return compare(found)

    def growth() -> TwoSizes:
        larger = _graphs(nodes, 4 * GRAPHS)
        with_more = lambda: ours(to_tensors(larger))  # noqa: E731
        return TwoSizes(lambda: ours(to_tensors(graphs)), with_more, 4.0, f"{GRAPHS} graphs", str(4 * GRAPHS))

    return Programs(partial(plain, gradients), fast, compare_outputs, growth=growth)


def _networks(make: Callable[[int, bool], Any]) -> tuple[GraphActorCritic, Any]:
    ours = build_graph_actor_critic(GraphNetworkSettings(), make_ours(1).obs_spec, 5, 6, False, 0.0, seed=0)
    plain = make(5, False)
    copy_parameters(flat(ours.parameters()), plain)
    return ours, plain


def _one(graphs: Graphs, index: int) -> dict[str, Array]:
    one = graphs.take(np.array([index])).arrays()
    return {name: one[name] for name in ("nodes", "edges", "edge_features")} | {"graph": one["graph"][0]}


class GivenRollout:
    """T steps of N colonies with given actions and values."""

    def __init__(self, nodes: int, num_envs: int) -> None:
        self.stretch = RecordedPlay(nodes, num_envs)
        self.steps, self.num_envs = len(self.stretch.actions), num_envs
        self.parts = len(durotaxis_ppo.PARTS)
        self.values = np.random.default_rng(5).normal(size=(self.parts, self.steps + 1, num_envs)).astype(np.float32)
        self._env = make_ours(num_envs)
        self._rewards, self._advantages, self._returns = np.empty((3, self.parts, self.steps, num_envs), np.float32)
        self._flags = np.empty((2, self.steps, num_envs), np.bool_)
        self._final = np.zeros((self.steps, num_envs), np.float32)

    def fast(self) -> tuple[Array, list[Graphs]]:
        self._env.set_state(self.stretch.start)
        seen = []
        for t, action in enumerate(self.stretch.actions):
            step = self._env.step(action)
            assert step.reward_parts is not None
            self._rewards[:, t] = step.reward_parts.T
            self._flags[0, t], self._flags[1, t] = step.terminated, step.truncated
            seen.append(step.obs)
        for part in range(self.parts):
            gae_numpy(
                self._rewards[part], *self._flags, self.values[part], self._final, 0.99, 0.95, self._advantages[part],
                self._returns[part],
            )  # fmt: skip
        return self._returns, seen

    def plain(self) -> list[dict[str, Any]]:
        colonies, rows = self.stretch.plain_colonies(), []
        for t, action in enumerate(self.stretch.actions):
            for i, colony in enumerate(colonies):
                observation, rewards, terminated, truncated, _ = colony.step(action[i])
                row = {"rewards": [rewards[part] for part in durotaxis_ppo.PARTS], "observation": observation}
                row |= {"values": self.values[:, t, i].tolist(), "final_values": [0.0] * self.parts}
                rows.append(row | {"terminated": terminated, "truncated": truncated})
        agent = durotaxis_ppo.Agent.__new__(durotaxis_ppo.Agent)
        agent.config = durotaxis_ppo.Config()
        agent.add_advantages(rows, self.values[:, -1].T.tolist())
        return rows

    def compare(self, fast: tuple[Array, list[Graphs]], rows: list[dict[str, Any]]) -> Equality:
        returns, seen = fast
        theirs = np.array([row["returns"] for row in rows]).reshape(self.steps, self.num_envs, self.parts)
        found: list[tuple[str, Any, Any]] = [("returns", returns.transpose(1, 2, 0), theirs)]
        found += [
            (f"nodes at step {t}", seen[t][i : i + 1].nodes, rows[t * self.num_envs + i]["observation"]["nodes"])
            for t in range(self.steps)
            for i in range(self.num_envs)
        ]
        return compare(found)


def _build_rollout(nodes: int, small: bool) -> Programs:
    given = GivenRollout(nodes, 2 if small else 16)
    return Programs(given.plain, given.fast, given.compare)


def make_settings(mode: str, num_envs: int, steps: int, epochs: int) -> PPOSettings:
    return PPOSettings(
        total_env_steps=NEVER,
        rollout_steps=steps,
        n_epochs=epochs,
        batch_size=min(64, num_envs * steps // 2),
        clip_range=0.2,
        value_clip=0.2,
        ent_coef=0.03,
        log_every=NEVER,
        env=EnvSettings(id="durotaxis", num_envs=num_envs, options={**OPTIONS, "action": mode}),
        evaluation=EvaluationSettings(every=NEVER),
        checkpoint=CheckpointSettings(every=NEVER),
    )


class Ours:
    """A session whose policy starts with small colonies; its iterations as `loop/on_policy.py` makes them."""

    def __init__(self, settings: PPOSettings) -> None:
        self.session: Session = build_session(settings, PhaseTimer())
        network = self.session.learner.network
        with torch.no_grad():
            if network.node_head is None:
                network.actor[-1].bias[0] = SMALL_COLONIES
            else:
                network.node_head.bias[1] = 0.4
            network.actor[-1].bias[len(network.actor[-1].bias) // 2 :] = -1.0

    def iterate(self) -> None:
        session = self.session
        session.rollout.clear()
        while not session.rollout.full:
            _, _, acted, step = session.collector.advance(session.policy, session.rollout.row())
            session.rollout.add(acted, step)
        session.learner.compute_advantages(session.rollout.data, session.collector.obs, session.rollout.timeouts())
        session.learner.update(session.rollout.data)


class Plain:
    """The plain program with our weights, from where our session stands."""

    def __init__(self, ours: Ours, settings: PPOSettings, mode: str, singly: bool) -> None:
        session, rows = ours.session, settings.rollout_rows
        make = durotaxis_network.GraphActorCritic if singly else durotaxis_network.BatchedGraphActorCritic
        network = make(4 if mode == "per_node" else 5, mode == "per_node")
        copy_parameters(session.learner.weights(), network)
        config = durotaxis_ppo.Config(
            rollout_steps=rows, epochs=settings.n_epochs, batch_size=settings.batch_size, kl_stop=1e9
        )
        seeds = (derive_seed(settings.seed, "policy"), derive_seed(settings.seed, "shuffle"))
        self.draws, to_tensors = Draws(*seeds, settings.n_epochs), durotaxis_network.to_tensors
        self.agent = (
            durotaxis_ppo.Agent(config, network, to_tensors, self.draws)
            if singly
            else durotaxis_ppo.BatchedAgent(config, network, to_tensors, durotaxis_network.collate, self.draws)
        )
        state = session.collector.envs.get_state()
        self.colonies: list[Colony] = [
            plain_from(state, index, **OPTIONS, action=mode) for index in range(settings.env.num_envs)
        ]
        self.observations = [colony.observe() for colony in self.colonies]

    def iterate(self) -> list[dict[str, Any]]:
        rows, _ = self.agent.collect(self.colonies, self.observations)
        self.agent.update(rows)
        return rows


def _build_loop(mode: str, singly: bool, small: bool) -> Programs:
    num_envs, steps, epochs = (2, 2, 1) if small else (LOOP_ENVS, LOOP_STEPS, 4)
    settings = make_settings(mode, num_envs, steps, epochs)
    ours = Ours(settings)
    plain = Plain(ours, settings, mode, singly)
    brief = make_settings(mode, 2, 2, 1)
    ours_briefly = Ours(brief)
    plain_briefly = Plain(ours_briefly, brief, mode, singly)

    def compare_iteration(_: None, rows: list[dict[str, Any]]) -> Equality:
        """Rewards of every step, then the parameters."""
        rewards = np.array([row["rewards"] for row in rows]).reshape(steps, num_envs, -1).transpose(2, 0, 1)
        played = compare([("rewards", ours.session.rollout.data.reward, rewards)])
        if played.max_error > 1e-4:  # one other action and the two go separate ways
            return Equality(float("inf"), played.where)
        learned = ours.session.learner.weights(), flat(plain.agent.network.parameters())
        return compare([("parameters", *learned)])

    return Programs(
        plain=plain.iterate,
        fast=ours.iterate,
        compare=compare_iteration,
        calls=2,
        tape=plain.draws,
        brief=(plain_briefly.iterate, ours_briefly.iterate),
    )
