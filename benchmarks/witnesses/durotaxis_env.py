"""A colony on a stiffness gradient as one writes it first: a Node object each, networkx for the edges, a sort for the
left-most, features node by node and a new dictionary of rewards every step.

Random numbers come from `uniform()`, in [0, 1), so that an episode can be replayed from a tape.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import networkx as nx
import numpy as np

Point = tuple[float, float]
Observation = dict[str, np.ndarray]
DEFAULT_SUBSTRATES = {"linear": (0.05, 1.0), "exponential": (0.01, 1.0)}
RANDOM_SUBSTRATES = {"linear": ((0.01, 0.1), (0.5, 2.0)), "exponential": ((0.002, 0.01), (0.5, 1.5))}
CURRICULUM_NUMBERS = [5.0, 2.0, 0.5, 0.0]  # gamma, alpha, noise, theta while only the ratio is learned
MILESTONES = [(0.25, 50.0), (0.5, 150.0), (0.75, 300.0), (0.9, 500.0)]
ENDINGS = {"success": 500.0, "out_of_bounds": -100.0, "no_nodes": -100.0, "leftward_drift": -50.0}
ENDINGS["too_many_nodes"] = -15.0
EDGE_ZONES = [(0.03, 5.0), (0.08, 2.0), (0.15, 0.5)]  # of the height, from top or bottom


@dataclass
class ColonyConfig:
    substrate: str = "linear"  # or exponential, random
    m: float = 0.0  # 0: the substrate's default
    b: float = 0.0
    width: float = 600.0
    height: float = 400.0
    start_nodes: int = 5
    max_nodes: int = 500
    max_delete_ratio: float = 0.7
    action: str = "ratio"  # or per_node
    reward: str = "centroid_distance_only"  # or full, simple_delete_only
    recovery: bool = False
    curriculum_steps: int = 0
    max_steps: int = 1000


@dataclass
class Node:
    id: int
    x: float
    y: float
    intensity: float
    age: int = 0

    @property
    def stagnation(self) -> int:
        return max(self.age - 1, 0)


class Colony:
    """`step` answers (observation, reward record, terminated, truncated, info) and never resets by itself."""

    def __init__(self, config: ColonyConfig | dict[str, Any] | None = None) -> None:
        self.config = config if isinstance(config, ColonyConfig) else ColonyConfig(**(config or {}))
        self.uniform: Callable[[], float] = random.random
        self.total_steps = 0  # over all episodes, for the curriculum

    def reset(self, rng: Callable[[], float] | None = None) -> Observation:
        """Start an episode; without `rng` numbers are drawn from where they came last time."""
        self.uniform = rng or self.uniform
        config = self.config
        self.substrate = self.choose_substrate()
        self.start(step=0, drift=0, milestones=(False,) * len(MILESTONES), recoveries=0)
        for _ in range(config.start_nodes):
            x = 0.1 * config.width * self.uniform()
            y = config.height * (0.4 + 0.2 * self.uniform())
            self.nodes.append(self.make_node(x, y))
        self.connect_chain()
        self.measure_hull()
        return self.observe()

    def load(
        self,
        xy: Iterable[Sequence[float]],
        edges: Iterable[Sequence[int]],
        ages: Iterable[int],
        substrate: tuple[str, float, float],
        step: int = 0,
        drift: int = 0,
        milestones: Sequence[bool] = (False,) * len(MILESTONES),
        recoveries: int = 0,
        total_steps: int = 0,
        reward_sums: dict[str, float] | None = None,
    ) -> Observation:
        """Continue from a given state; edges name nodes by their place in `xy`, `substrate` is (kind, m, b)."""
        self.substrate = substrate
        self.start(step, drift, milestones, recoveries)
        self.reward_sums: dict[str, float] = dict(reward_sums or {})
        self.total_steps = total_steps
        for (x, y), age in zip(xy, ages, strict=True):
            node = self.make_node(float(x), float(y))
            node.age = int(age)
            self.nodes.append(node)
        self.graph.add_edges_from((int(u), int(v)) for u, v in edges)
        self.measure_hull()
        return self.observe()

    def start(self, step: int, drift: int, milestones: Sequence[bool], recoveries: int) -> None:
        self.nodes: list[Node] = []
        self.graph = nx.DiGraph()
        self.next_id = 0
        self.step_count, self.drift, self.recoveries = int(step), int(drift), int(recoveries)
        self.milestones = [bool(reached) for reached in milestones]
        self.reward_sums = {}  # of the episode so far, by entry

    def choose_substrate(self) -> tuple[str, float, float]:
        kind = self.config.substrate
        if kind == "random":
            kind = "linear" if self.uniform() < 0.5 else "exponential"
            (m_low, m_high), (b_low, b_high) = RANDOM_SUBSTRATES[kind]
            return kind, m_low + (m_high - m_low) * self.uniform(), b_low + (b_high - b_low) * self.uniform()
        m, b = DEFAULT_SUBSTRATES[kind]
        return kind, self.config.m or m, self.config.b or b

    def intensity(self, x: float) -> float:
        kind, m, b = self.substrate
        return m * x + b if kind == "linear" else b * math.exp(m * x)

    def make_node(self, x: float, y: float) -> Node:
        node = Node(self.next_id, x, y, self.intensity(x))
        self.graph.add_node(node.id)
        self.next_id += 1
        return node

    def connect_chain(self) -> None:
        chain = sorted(self.nodes, key=lambda node: (node.x, node.id))
        for left, right in zip(chain[:-1], chain[1:], strict=True):
            self.graph.add_edge(left.id, right.id)

    def clamp(self, x: float, y: float) -> Point:
        width, height = self.config.width, self.config.height
        margin_x, margin_y = max(2.0, 0.01 * width), max(2.0, 0.01 * height)
        return min(max(x, margin_x), width - margin_x), min(max(y, margin_y), height - margin_y)

    def centroid(self) -> Point:
        count = len(self.nodes)
        return sum(node.x for node in self.nodes) / count, sum(node.y for node in self.nodes) / count

    def action_mask(self) -> np.ndarray:
        """Which of the numbers count in the next step."""
        if self.config.action == "per_node":
            return np.array([True] * 4)
        return np.array([True] + [not self.ratio_only] * 4)

    @property
    def ratio_only(self) -> bool:
        return self.total_steps < self.config.curriculum_steps

    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Lowest and highest numbers of an action."""
        low, high = [0.0, 0.5, 0.5, 0.05, -30.0], [self.config.max_delete_ratio, 15.0, 4.0, 0.5, 30.0]
        first = 0 if self.config.action == "ratio" else 1
        return np.array(low[first:]), np.array(high[first:])

    def read_action(self, action: Any) -> tuple[list[Node], list[float]]:
        """Nodes to be deleted, left-most first, and gamma, alpha, noise, theta."""
        numbers, choices = (action, []) if self.config.action == "ratio" else action
        low, high = self.bounds()
        held = [min(max(float(np.float32(v)), lo), hi) for v, lo, hi in zip(numbers, low, high, strict=True)]
        by_x = sorted(self.nodes, key=lambda node: (node.x, node.id))
        if self.config.action == "per_node":
            deleted = {node.id for node, choice in zip(self.nodes, choices, strict=True) if choice == 1}
            return [node for node in by_x if node.id in deleted], held
        k = math.floor(held[0] * len(self.nodes))
        return by_x[:k], CURRICULUM_NUMBERS if self.ratio_only else held[1:]

    def step(self, action: Any) -> tuple[Observation, dict[str, Any], bool, bool, dict[str, Any]]:
        config = self.config
        chosen, numbers = self.read_action(action)
        before, marked = self.centroid(), self.marked_nodes()
        births = self.grow(chosen, numbers)
        self.step_count += 1
        self.total_steps += 1
        self.measure_hull()
        after = self.centroid() if self.nodes else before
        self.drift = self.drift + 1 if after[0] < before[0] else 0
        reason = self.find_ending()
        recovers = reason == "no_nodes" and config.recovery and self.recoveries < 2
        if recovers:
            reason = None
        rewards = self.calculate_rewards(births, chosen, marked, after[0] - before[0], reason, recovers)
        if recovers:
            self.recover(before)
        terminated = reason is not None
        truncated = not terminated and self.step_count >= config.max_steps
        info: dict[str, Any] = {"reason": "time_out" if truncated else reason, "success": reason == "success"}
        info |= {"final_centroid": after[0], "colony_size": len(self.nodes)}
        self.add_to_sums(rewards)
        if terminated or truncated:
            info |= self.reward_measures()
        return self.observe(), rewards, terminated, truncated, info

    def marked_nodes(self) -> set[int]:
        mean = sum(node.intensity for node in self.nodes) / len(self.nodes)
        return {node.id for node in self.nodes if node.age >= 3 and node.intensity < mean}

    def grow(self, chosen: list[Node], numbers: list[float]) -> list[tuple[Node, Node]]:
        """Spawn, delete, age; returns parents and their children."""
        chosen_ids = {node.id for node in chosen}
        parents = [node for node in self.nodes if node.id not in chosen_ids]
        births = [(parent, self.spawn(parent, *numbers)) for parent in parents]
        for node in chosen:
            self.delete(node)
        for node in parents:
            node.age += 1
        self.nodes = parents + [child for _, child in births]
        return births

    def spawn(self, parent: Node, gamma: float, alpha: float, noise: float, theta: float) -> Node:
        r = gamma / (1 + (alpha / parent.intensity) ** 2) + noise
        angle = math.radians(theta)
        child = self.make_node(*self.clamp(parent.x + r * math.cos(angle), parent.y + r * math.sin(angle)))
        self.graph.add_edge(parent.id, child.id)
        return child

    def delete(self, node: Node) -> None:
        predecessors, successors = list(self.graph.predecessors(node.id)), list(self.graph.successors(node.id))
        self.graph.remove_node(node.id)
        for u in predecessors:
            for v in successors:
                if u != v:
                    self.graph.add_edge(u, v)

    def recover(self, centre: Point) -> None:
        self.recoveries += 1
        count = self.config.start_nodes
        for i in range(count):
            angle = 2 * math.pi * i / count
            x, y = centre[0] + 10 * math.cos(angle), centre[1] + 10 * math.sin(angle)
            x, y = self.clamp(math.floor(x * 1024 + 0.5) / 1024, math.floor(y * 1024 + 0.5) / 1024)
            self.nodes.append(self.make_node(x, y))
        self.connect_chain()
        self.measure_hull()

    def find_ending(self) -> str | None:
        width, height = self.config.width, self.config.height
        if len(self.nodes) > self.config.max_nodes:
            return "too_many_nodes"
        if not self.nodes:
            return "no_nodes"
        if any(node.x < 0 or node.x > width or node.y < 0 or node.y > height for node in self.nodes):
            return "out_of_bounds"
        if self.drift >= 30:
            return "leftward_drift"
        if any(node.x >= 0.95 * width for node in self.nodes):
            return "success"
        return None

    def calculate_rewards(
        self,
        births: list[tuple[Node, Node]],
        deleted: list[Node],
        marked: set[int],
        moved: float,
        reason: str | None,
        recovers: bool,
    ) -> dict[str, Any]:
        population = self.population_reward()
        node_rewards = [self.node_reward(node) for node in self.nodes]
        rewards: dict[str, Any] = {
            "spawn": sum(2.5 if child.intensity - parent.intensity >= 2.5 else -1.0 for parent, child in births),
            "delete": self.delete_reward(deleted, marked),
            "deletion_efficiency": sum(self.efficiency_reward(node) for node in deleted),
            "edge": self.edge_reward(),
            "centroid": 5.0 * moved,
            "milestone": self.milestone_reward(),
            "node_rewards": node_rewards,
            "total_node": sum(node_rewards),
            "survival": 0.01 if self.step_count < 100 else 0.03,
            "empty_graph_recovery_penalty": -50.0 if recovers else 0.0,
            "termination": ENDINGS[reason] if reason else 0.0,
            "num_nodes": len(self.nodes),
        }
        of_graph = ("centroid", "spawn", "delete", "deletion_efficiency", "edge")
        rewards["graph"] = population + sum(rewards[name] for name in of_graph)
        rewards["total"] = self.total_reward(rewards, population)
        return rewards

    def add_to_sums(self, rewards: dict[str, Any]) -> None:
        for name, value in rewards.items():
            if name != "node_rewards":
                self.reward_sums[name] = self.reward_sums.get(name, 0.0) + value

    def reward_measures(self) -> dict[str, float]:
        """What each entry came to in the episode: sums, but a mean number of nodes and a mean reward of one node."""
        sums = self.reward_sums
        measures = {f"reward_{name}": value for name, value in sums.items()}
        measures["reward_num_nodes"] = sums["num_nodes"] / self.step_count
        measures["reward_node_rewards"] = sums["total_node"] / max(sums["num_nodes"], 1)
        return measures

    def total_reward(self, rewards: dict[str, Any], population: float) -> float:
        end = min(max(0.02 * rewards["termination"], -10.0), 10.0)
        if self.config.reward == "centroid_distance_only":
            moved = rewards["centroid"] / (self.config.width - 1) if self.step_count > 1 else 0.0
            return moved + end
        if self.config.reward == "simple_delete_only":
            return min(population, 0.0) + rewards["delete"] + end
        names = ("graph", "total_node", "survival", "milestone", "termination", "empty_graph_recovery_penalty")
        return sum(rewards[name] for name in names)

    def population_reward(self) -> float:
        count = len(self.nodes)
        if count < 2:
            return -5.0
        return -3.0 * (1 + (count - 50) / 50) if count > 50 else 0.1

    def delete_reward(self, deleted: list[Node], marked: set[int]) -> float:
        """Every marked node should go, and no other."""
        right = sum(node.id in marked for node in deleted)
        return 2.0 * right - 2.0 * (len(marked) - right) - 2.0 * (len(deleted) - right)

    def efficiency_reward(self, node: Node) -> float:
        reward = 0.05 * (node.age - 50) if node.age > 50 else 0.0
        return reward + (0.1 * (node.stagnation - 20) if node.stagnation > 20 else 0.0)

    def edge_reward(self) -> float:
        x = {node.id: node.x for node in self.nodes}
        reward = 0.0
        for u, v in self.graph.edges:
            dx = x[v] - x[u]
            if dx > 0.01:
                reward += 0.5
            elif dx < -0.01:
                reward -= 0.05
        return reward

    def milestone_reward(self) -> float:
        reward = 0.0
        for i, (fraction, bonus) in enumerate(MILESTONES):
            passed = any(node.x >= fraction * self.config.width for node in self.nodes)
            if passed and not self.milestones[i]:
                self.milestones[i] = True
                reward += bonus
        return reward

    def node_reward(self, node: Node) -> float:
        reward = 0.3 * min(node.intensity, 100.0)
        if node.id in self.hull_members:
            reward += 0.1
        if node.x < 0.1 * self.config.width:
            reward -= 0.2
        share = min(node.y, self.config.height - node.y) / self.config.height
        for zone, penalty in EDGE_ZONES:
            if share < zone:
                return reward - penalty
        return reward

    def measure_hull(self) -> None:
        tolerance = 1e-12 * self.config.width * self.config.height
        corners, self.hull_area = convex_hull([(node.x, node.y) for node in self.nodes], tolerance)
        self.hull_members = {self.nodes[i].id for i in corners}

    def observe(self) -> Observation:
        edges, features = self.edge_observation()
        return {
            "nodes": self.node_features(),
            "edges": edges,
            "edge_features": features,
            "graph": self.graph_features(),
        }

    def node_features(self) -> np.ndarray:
        if not self.nodes:
            return np.zeros((0, 11))
        centre = self.centroid()
        return np.array([self.features_of(node, centre) for node in self.nodes])

    def features_of(self, node: Node, centre: Point) -> list[float]:
        width, height = self.config.width, self.config.height
        return [
            node.x / width,
            node.y / height,
            scaled(node.intensity),
            scaled(self.graph.in_degree(node.id)),
            scaled(self.graph.out_degree(node.id)),
            min(self.centrality(node) * width, 10.0),
            math.hypot(node.x - centre[0], node.y - centre[1]) / width,
            float(node.id in self.hull_members),
            float(node.age == 0),
            node.age / 100,
            node.stagnation / 50,
        ]

    def centrality(self, node: Node) -> float:
        if len(self.nodes) == 1:
            return 1.0
        total = sum(math.hypot(other.x - node.x, other.y - node.y) for other in self.nodes)
        return 1 / (total / (len(self.nodes) - 1) + 1e-6)

    def edge_observation(self) -> tuple[np.ndarray, np.ndarray]:
        index = {node.id: i for i, node in enumerate(self.nodes)}
        edges = sorted((index[u], index[v]) for u, v in self.graph.edges)
        features = []
        for i, j in edges:
            dx, dy = self.nodes[j].x - self.nodes[i].x, self.nodes[j].y - self.nodes[i].y
            length = math.hypot(dx, dy)
            direction = (dx / length, dy / length) if length > 0 else (0.0, 0.0)
            features.append([length / self.config.width, *direction])
        return np.array(edges, dtype=np.int64).reshape(-1, 2), np.array(features, dtype=np.float64).reshape(-1, 3)

    def graph_features(self) -> np.ndarray:
        if not self.nodes:
            return np.zeros(19)
        width, height, count = self.config.width, self.config.height, len(self.nodes)
        xs, ys = [node.x for node in self.nodes], [node.y for node in self.nodes]
        left, right, low, high = min(xs), max(xs), min(ys), max(ys)
        centre = self.centroid()
        degrees = [self.graph.degree(node.id) for node in self.nodes]
        intensities = [node.intensity for node in self.nodes]
        num_edges = self.graph.number_of_edges()
        features = [scaled(count), scaled(num_edges), num_edges / (count * (count - 1)) if count > 1 else 0.0]
        features += [centre[0] / width, centre[1] / height]
        features += [left / width, low / height, right / width, high / height]
        features += [(right - left) / width, (high - low) / height]
        features += [(right - left) * (high - low) / (width * height), self.hull_area / (width * height)]
        for values in (degrees, intensities):
            features += [scaled(sum(values) / count), scaled(max(values)), scaled(sum(values))]
        return np.array(features)


def scaled(value: float) -> float:
    return math.log1p(value) / 6


def convex_hull(points: list[Point], tolerance: float) -> tuple[list[int], float]:
    """Indices of the corners, and the area; everybody and 0 where the points span none."""
    first: dict[Point, int] = {}
    for index, point in enumerate(points):
        first.setdefault(point, index)
    order = sorted(first)
    corners = half_hull(order, tolerance)[:-1] + half_hull(order[::-1], tolerance)[:-1]
    if len(corners) < 3:
        return list(range(len(points))), 0.0
    area = 0.0
    for (x0, y0), (x1, y1) in zip(corners, corners[1:] + corners[:1], strict=True):
        area += x0 * y1 - x1 * y0
    return [first[corner] for corner in corners], area / 2


def half_hull(points: list[Point], tolerance: float) -> list[Point]:
    """The lower half from left to right (Andrew's monotone chain); the upper one if the points come in reverse."""
    chain: list[Point] = []
    for x, y in points:
        while len(chain) > 1:
            (x0, y0), (x1, y1) = chain[-2:]
            if (x1 - x0) * (y - y0) - (y1 - y0) * (x - x0) > tolerance:
                break
            chain.pop()
        chain.append((x, y))
    return chain
