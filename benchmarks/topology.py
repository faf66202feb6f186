"""A network wired by a graph: one fused operation against two plain programs.

One walks a dictionary of scalars through NetworkX, node by node; the other computes all nodes of a level at once.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import hotloop
from benchmarks.learners import GAMMA, LR, NUM_ACTIONS, OBS_SIZE, TARGET_EVERY, make_batches
from benchmarks.witnesses import topology as dictionary
from benchmarks.witnesses import topology_levels
from hotloop.core.types import ArraySpec, UpdateStats
from hotloop.learners.dqn import DQNLearner
from hotloop.nets.topology.generators import small_world
from hotloop.nets.topology.graph import Topology
from hotloop.nets.topology.network import TopologyNetwork
from hotloop.presets.dqn_settings import DQNSettings, LearnerSettings, OptimizerSettings, TargetSettings
from hotloop.presets.network_settings import NetworkSettings, TopologySettings
from hotloop.proof.case import Call, Case, Programs, TwoSizes
from hotloop.proof.equivalence import Equality, Snapshot, compare, compare_sequences, compare_snapshots, worst

TOLERANCE = 1e-5
UPDATE_TOLERANCE = 1e-4
"""Per update, in float32."""
DIFFERENT_BATCHES = 8
GROWTH = 4
"""Times as many hidden nodes, with as many edges each."""


@dataclass(frozen=True)
class GraphSize:
    hidden: int
    ring_degree: int
    rewiring: float
    seed: int
    batch: int = 32

    @property
    def name(self) -> str:
        return f"{OBS_SIZE + self.hidden + NUM_ACTIONS}-nodes-k{self.ring_degree}-b{self.batch}"

    @property
    def settings(self) -> TopologySettings:
        return TopologySettings(
            hidden=self.hidden, ring_degree=self.ring_degree, rewiring=self.rewiring, graph_seed=self.seed
        )

    def graph(self) -> Topology:
        return small_world(OBS_SIZE, self.hidden, NUM_ACTIONS, self.ring_degree, self.rewiring, self.seed)


SIZES = (
    GraphSize(64, 8, 0.1, 47),
    GraphSize(32, 9, 0.2, 47),
    GraphSize(32, 8, 0.1, 43),
    GraphSize(128, 20, 0.2, 47),
    GraphSize(264, 40, 0.2, 47),
    GraphSize(64, 8, 0.1, 47, batch=256),
)
SMALL = GraphSize(8, 4, 0.2, 1, batch=4)


@dataclass(frozen=True)
class PlainNetwork:
    """A plain network: how it is made with our numbers, and its numbers in our order."""

    name: str
    make: Callable[[TopologyNetwork], nn.Module]
    in_our_order: Callable[[Topology, Any, Callable[[Tensor], Any]], Any]
    """Of a graph and such a network, the number that a function makes of each parameter: edges, then biases."""


def dictionary_twin(network: TopologyNetwork) -> dictionary.TopologyNetwork:
    graph = network.graph
    plain = dictionary.TopologyNetwork(network.to_networkx(), graph.inputs, graph.outputs)
    numbers = network.named_numbers()
    plain.load_state_dict({name: torch.tensor(numbers[name.partition(".")[2]]) for name in plain.state_dict()})
    return plain


def dictionary_in_our_order(graph: Topology, plain: nn.Module, value: Callable[[Tensor], Any]) -> Any:
    named = dict(plain.named_parameters())
    edges = [named[f"weights.{source}_to_{target}"] for source, target in graph.edges()]
    return np.array([float(value(part)) for part in edges + [named[f"biases.{node}"] for node in graph.computed]])


def level_twin(network: TopologyNetwork) -> topology_levels.LevelNetwork:
    graph = network.graph
    plain = topology_levels.LevelNetwork(network.to_networkx(), graph.inputs, graph.outputs)
    numbers = network.named_numbers()
    with torch.no_grad():
        plain.weight.copy_(torch.tensor([numbers[f"{source}_to_{target}"] for source, target in plain.edges]))
        plain.bias.copy_(torch.tensor([numbers[str(node)] for node in plain.nodes]))
    return plain


def levels_in_our_order(graph: Topology, plain: Any, value: Callable[[Tensor], Any]) -> Any:
    weights = dict(zip(plain.edges, value(plain.weight).tolist(), strict=True))
    biases = dict(zip(plain.nodes, value(plain.bias).tolist(), strict=True))
    return np.array([weights[edge] for edge in graph.edges()] + [biases[node] for node in graph.computed])


NODE_BY_NODE = PlainNetwork("", dictionary_twin, dictionary_in_our_order)
BY_LEVEL = PlainNetwork("-by-level", level_twin, levels_in_our_order)


@hotloop.cases("a network wired by a graph: its outputs")
def topology_forward_cases(small: bool = False) -> list[Case]:
    return _cases("topology-forward", NODE_BY_NODE, TOLERANCE, small)


@hotloop.cases("the same against all nodes of a level at once")
def topology_forward_by_level_cases(small: bool = False) -> list[Case]:
    return _cases("topology-forward", BY_LEVEL, TOLERANCE, small)


@hotloop.cases("its outputs and all gradients")
def topology_backward_cases(small: bool = False) -> list[Case]:
    return _cases("topology-backward", NODE_BY_NODE, TOLERANCE, small)


@hotloop.cases("the same against all nodes of a level at once")
def topology_backward_by_level_cases(small: bool = False) -> list[Case]:
    return _cases("topology-backward", BY_LEVEL, TOLERANCE, small)


@hotloop.cases("a DQN update of it")
def topology_update_cases(small: bool = False) -> list[Case]:
    return _cases("topology-update", NODE_BY_NODE, UPDATE_TOLERANCE, small, lane="eager")


@hotloop.cases("the same against all nodes of a level at once")
def topology_update_by_level_cases(small: bool = False) -> list[Case]:
    return _cases("topology-update", BY_LEVEL, UPDATE_TOLERANCE, small, lane="eager")


@hotloop.cases("the plan of the document, all nodes of a level at once, against node by node: plain programs both")
def topology_plan_cases(small: bool = False) -> list[Case]:
    return [
        Case("topology-plan", size.name, partial(_build_plan, backward, size), variant, tolerance=TOLERANCE)
        for variant, backward in (("forward", False), ("backward", True))
        for size in ((SMALL,) if small else SIZES)
    ]


def _cases(work: str, witness: PlainNetwork, tolerance: float, small: bool, lane: str = "") -> list[Case]:
    return [
        Case(
            family=work + witness.name,
            lane=lane,
            size=size.name,
            build=partial(BUILD[work], witness, size),
            tolerance=tolerance,
            quick=size == SIZES[0],
        )
        for size in ((SMALL,) if small else SIZES)
    ]


class _Pair:
    """The same numbers in the fused network and in the plain one, and data for both."""

    def __init__(self, backward: bool, witness: PlainNetwork, size: GraphSize, seed: int = 0) -> None:
        self.run = self._backward if backward else self._forward
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.fast = TopologyNetwork(size.graph())
            self.obs = torch.randn(size.batch, OBS_SIZE)
            self.out_gradient = torch.randn(size.batch, NUM_ACTIONS)
        self.witness, self.plain = witness, witness.make(self.fast)

    def _forward(self, network: torch.nn.Module) -> Tensor:
        with torch.no_grad():
            return network(self.obs)

    def _backward(self, network: torch.nn.Module) -> Tensor:
        network.zero_grad()
        out = network(self.obs)
        out.backward(self.out_gradient)
        return out.detach()

    def calls(self) -> tuple[Call, Call]:
        return lambda: self.run(self.plain), lambda: self.run(self.fast)

    def compare(self, mine: Tensor, theirs: Tensor) -> Equality:
        """Outputs, and the gradient if there is one."""
        found: list[tuple[str, Any, Any]] = [("outputs", mine, theirs)]
        gradients = [part.grad for part in self.fast.parameters() if part.grad is not None]
        if gradients:
            plain = self.witness.in_our_order(self.fast.graph, self.plain, lambda part: part.grad)
            found.append(("gradient", torch.cat(gradients), plain))
        return compare(found)


def _built(size: GraphSize, make: Callable[[GraphSize], Any], further: Callable[[], Equality]) -> Programs:
    """`make` gives the two programs at a size: `calls` are timed, `compare` holds their answers against each other."""
    programs = make(size)
    plain, fast = programs.calls()

    def growth() -> TwoSizes:
        larger = replace(size, hidden=GROWTH * size.hidden)
        edges = size.graph().num_edges, larger.graph().num_edges
        return TwoSizes(fast, make(larger).calls()[1], edges[1] / edges[0], f"E {edges[0]}", str(edges[1]))

    return Programs(plain, fast, programs.compare, further=further, growth=growth)


def _build_forward(witness: PlainNetwork, size: GraphSize) -> Programs:
    return _built(size, partial(_Pair, False, witness), partial(_check, False, witness, size))


def _build_backward(witness: PlainNetwork, size: GraphSize) -> Programs:
    return _built(size, partial(_Pair, True, witness), partial(_check, True, witness, size))


def _check(backward: bool, witness: PlainNetwork, size: GraphSize) -> Equality:
    """With other numbers."""
    pairs = [_Pair(backward, witness, size, seed) for seed in (1, 2, 3)]
    return worst(pair.compare(pair.run(pair.fast), pair.run(pair.plain)) for pair in pairs)


def _build_plan(backward: bool, size: GraphSize) -> Programs:
    pair = _Pair(backward, NODE_BY_NODE, size)
    graph, plain, plan = pair.fast.graph, pair.plain, BY_LEVEL.make(pair.fast)

    def compare_both(mine: Tensor, theirs: Tensor) -> Equality:
        networks = ((BY_LEVEL, plan), (NODE_BY_NODE, plain)) if backward else ()
        gradients = [one.in_our_order(graph, network, lambda part: part.grad) for one, network in networks]
        return compare([("outputs", mine, theirs), *([("gradient", *gradients)] if backward else [])])

    return Programs(lambda: pair.run(plain), lambda: pair.run(plan), compare_both)


class _Agents:
    """A learner and the plain agent from the same start, on the same batches."""

    def __init__(self, witness: PlainNetwork, size: GraphSize) -> None:
        settings = DQNSettings(
            batch_size=size.batch,
            gamma=GAMMA,
            loss="mse",
            network=NetworkSettings(torso="topology", topology=size.settings),
            learner=LearnerSettings(lane="eager"),
            optimizer=OptimizerSettings(learning_rate=LR, max_grad_norm=0.0),
            target=TargetSettings(every=TARGET_EVERY),
        )
        self.learner = DQNLearner(settings, ArraySpec((OBS_SIZE,)), NUM_ACTIONS)
        torso: Any = self.learner.network.torso
        network = torso.network
        self.graph: Topology = network.graph
        self.witness = witness
        self.agent = dictionary.TopologyAgent(witness.make(network), LR, GAMMA, TARGET_EVERY)
        self._batches = [make_batches("mse", size.batch, 1, seed) for seed in range(DIFFERENT_BATCHES)]

    def calls(self) -> tuple[Call, Call]:
        plain_numbers, fast_numbers = itertools.count(), itertools.count()
        return lambda: self._plain(next(plain_numbers)), lambda: self._fast(next(fast_numbers))

    def _fast(self, j: int) -> UpdateStats:
        return self.learner.update(self._batches[j % DIFFERENT_BATCHES][0])

    def _plain(self, j: int) -> float:
        return self.agent.update(**self._batches[j % DIFFERENT_BATCHES][1][0])

    def compare(self, stats: UpdateStats, loss: float) -> Equality:
        return compare_snapshots(self._fast_state(stats), self._plain_state(loss), "after a timed update")

    def fast_step(self, j: int) -> Snapshot:
        return self._fast_state(self._fast(j))

    def plain_step(self, j: int) -> Snapshot:
        return self._plain_state(self._plain(j))

    def _fast_state(self, stats: UpdateStats) -> Snapshot:
        state = self.learner.state()
        return {"loss": np.asarray(stats.scalars[0][0]), "online": state["online"], "target": state["target"]}

    def _plain_state(self, loss: float) -> Snapshot:
        online, target = (
            self.witness.in_our_order(self.graph, network, lambda part: part.detach())
            for network in (self.agent.online, self.agent.target)
        )
        return {"loss": np.float32(loss), "online": online, "target": target}


def _build_update(witness: PlainNetwork, size: GraphSize) -> Programs:
    def check() -> Equality:
        agents = _Agents(witness, size)
        return compare_sequences(agents.fast_step, agents.plain_step)

    return _built(size, partial(_Agents, witness), check)


BUILD = {"topology-forward": _build_forward, "topology-backward": _build_backward, "topology-update": _build_update}
