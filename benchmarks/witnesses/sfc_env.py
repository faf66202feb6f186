"""Service-chain provisioning as one writes it first: a dictionary per request, a scan over all of them for every
question. Shortest paths are Dijkstra's and kept for the episode; `AllPathsSfcEnv` finds one by listing every path there
is, each time it is asked.

Random numbers come from `draw(count)`, a number in 0 .. count-1, so that an episode can be replayed from a tape.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

VNFS = ["NAT", "FW", "VOC", "TM", "WO", "IDPS"]
VNF_CPU = {"NAT": 1, "FW": 9, "VOC": 5, "TM": 13, "WO": 5, "IDPS": 11}
VNF_RAM = {"NAT": 4, "FW": 5, "VOC": 11, "TM": 7, "WO": 2, "IDPS": 15}
VNF_STORAGE = {"NAT": 7, "FW": 1, "VOC": 13, "TM": 7, "WO": 5, "IDPS": 2}
VNF_TIME = {"NAT": 6, "FW": 3, "VOC": 11, "TM": 7, "WO": 8, "IDPS": 2}  # in 0.01 ms
SFCS: dict[str, dict[str, Any]] = {
    "cloud_gaming": {"chain": ["NAT", "FW", "VOC", "WO", "IDPS"], "kbps": 4000, "limit": 8000, "bundle": (40, 55)},
    "augmented_reality": {"chain": ["NAT", "FW", "TM", "VOC", "IDPS"], "kbps": 100000, "limit": 1000, "bundle": (1, 4)},
    "voip": {"chain": ["NAT", "FW", "TM", "FW", "NAT"], "kbps": 64, "limit": 10000, "bundle": (100, 200)},
    "video_streaming": {"chain": ["NAT", "FW", "TM", "VOC", "IDPS"], "kbps": 4000, "limit": 10000, "bundle": (50, 100)},
    "massive_iot": {"chain": ["NAT", "FW", "IDPS"], "kbps": (1000, 50000), "limit": 500, "bundle": (10, 15)},
    "industry_4": {"chain": ["NAT", "FW"], "kbps": 70000, "limit": 800, "bundle": (1, 4)},
}
LINK_KBPS, DC_RAM, DC_STORAGE = 1_000_000, 256, 2048
ROUND_EVERY, LAST_TIME = 400, 20_000


class SfcEnv:
    """`step` answers (state, reward, done); `state` is the three inputs of the network."""

    def __init__(
        self, draw: Callable[[int], int], dcs: tuple[int, int] = (2, 4), request_counts: tuple[int, int] = (1, 5)
    ) -> None:
        self.draw = draw
        self.dcs_range = dcs
        self.request_counts = request_counts
        self.paths: dict[int, dict[int, list[int]]] = {}  # source -> destination -> path

    def randint(self, low: int, high: int) -> int:
        return low + self.draw(high - low + 1)

    def reset(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        self.time = 0
        self.num_dcs = self.randint(*self.dcs_range)
        self.request_count = self.randint(*self.request_counts)
        self.dcs: list[dict[str, Any]] = []
        for _ in range(self.num_dcs):
            cpu = self.randint(12, 120)
            instances: dict[str, list[int]] = {vnf: [] for vnf in VNFS}  # when each is free again
            self.dcs.append({"cpu": cpu, "free_cpu": cpu, "ram": DC_RAM, "storage": DC_STORAGE, "vnfs": instances})
        self.distance: dict[tuple[int, int], int] = {}
        self.bandwidth: dict[tuple[int, int], int] = {}
        for i in range(self.num_dcs):
            for j in range(i + 1, self.num_dcs):
                self.distance[(i, j)] = self.distance[(j, i)] = self.randint(100, 1000)
                self.bandwidth[(i, j)] = self.bandwidth[(j, i)] = LINK_KBPS
        self.paths = {}
        self.requests: list[dict[str, Any]] = []
        self.rounds = 0
        self.satisfied = self.dropped = 0
        self.generate_requests()
        self.start_cycle()
        return self.get_state()

    def generate_requests(self) -> None:
        self.rounds += 1
        for name, sfc in SFCS.items():
            size = self.randint(*sfc["bundle"])
            kbps = self.randint(*sfc["kbps"]) if isinstance(sfc["kbps"], tuple) else sfc["kbps"]
            source = self.draw(self.num_dcs)
            destination = self.draw(self.num_dcs - 1)
            if destination >= source:
                destination += 1
            for _ in range(size):
                request = {"type": name, "chain": sfc["chain"], "kbps": kbps, "limit": sfc["limit"]}
                request |= {"source": source, "destination": destination, "arrival": self.time}
                self.requests.append(request | {"placed": [], "busy_until": 0})

    def path_length(self, path: list[int]) -> int:
        return sum(self.distance[(a, b)] for a, b in zip(path[:-1], path[1:], strict=True))

    def shortest_path(self, source: int, destination: int) -> list[int]:
        """Of equally long ones that with the fewest links, then the first by index."""
        if source not in self.paths:
            self.paths[source] = self.dijkstra(source)
        return self.paths[source][destination]

    def dijkstra(self, source: int) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        queue = [(0, 1, [source])]
        while queue:
            length, links, path = heapq.heappop(queue)
            here = path[-1]
            if here in found:
                continue
            found[here] = path
            for dc in range(self.num_dcs):
                if dc not in found:
                    heapq.heappush(queue, (length + self.distance[(here, dc)], links + 1, [*path, dc]))
        return found

    def start_cycle(self) -> None:
        order: list[int] = []
        if self.requests:
            urgent = min(self.requests, key=lambda r: r["limit"] - (self.time - r["arrival"]))
            order = self.shortest_path(urgent["source"], urgent["destination"])
        self.order = order + [dc for dc in range(self.num_dcs) if dc not in order]
        self.current_dc = self.order.pop(0)

    def next_vnf(self, request: dict[str, Any]) -> str | None:
        placed = len(request["placed"])
        return request["chain"][placed] if placed < len(request["chain"]) else None

    def priority(self, request: dict[str, Any]) -> float:
        remaining = (request["limit"] - (self.time - request["arrival"])) / 100
        p1 = -remaining
        p2 = 0.0
        if request["placed"]:
            p2 = 10.0 if self.current_dc in request["placed"] else -10.0
        p3 = 100.0 / (remaining + 1e-6) if remaining < 10 else 0.0
        return p1 + p3 + p2

    def candidates(self) -> dict[str, dict[str, Any]]:
        """For each VNF the request of highest priority that could have it at this data centre."""
        paths: dict[int, list[int]] = {}  # of this look only: the next data centre is another one
        best: dict[str, tuple[float, dict[str, Any]]] = {}
        for request in self.requests:
            vnf = self.next_vnf(request)
            if vnf is None or request["busy_until"] > self.time:
                continue
            previous = request["placed"][-1] if request["placed"] else request["source"]
            if previous not in paths:
                paths[previous] = self.shortest_path(previous, self.current_dc)
            path = paths[previous]
            if all(self.bandwidth[link] >= request["kbps"] for link in zip(path[:-1], path[1:], strict=True)):
                priority = self.priority(request)
                if vnf not in best or priority > best[vnf][0]:
                    best[vnf] = (priority, request)
        return {vnf: request for vnf, (_, request) in best.items()}

    def idle(self, vnf: str) -> list[int]:
        """Which instances at this data centre are free."""
        return [i for i, until in enumerate(self.dcs[self.current_dc]["vnfs"][vnf]) if until <= self.time]

    def fits(self, vnf: str) -> bool:
        dc = self.dcs[self.current_dc]
        enough_cpu = dc["free_cpu"] >= VNF_CPU[vnf]
        return enough_cpu and dc["ram"] >= VNF_RAM[vnf] and dc["storage"] >= VNF_STORAGE[vnf]

    def action_mask(self) -> np.ndarray:
        candidates = self.candidates()
        mask = [vnf in candidates and (bool(self.idle(vnf)) or self.fits(vnf)) for vnf in VNFS]
        mask += [bool(self.idle(vnf)) for vnf in VNFS]
        return np.array([*mask, True])

    def step(self, action: int) -> tuple[tuple[np.ndarray, np.ndarray, np.ndarray], float, bool]:
        reward = 0.0
        if action < 6:
            reward += self.allocate(VNFS[action])
        elif action < 12:
            reward += self.uninstall(VNFS[action - 6])
        self.time += 1
        reward += self.finish_requests()
        if self.time % ROUND_EVERY == 0 and self.rounds < self.request_count:
            self.generate_requests()
        done = self.time >= LAST_TIME or (not self.requests and self.rounds == self.request_count)
        if self.order:
            self.current_dc = self.order.pop(0)
        else:
            self.start_cycle()
        return self.get_state(), reward, done

    def allocate(self, vnf: str) -> float:
        request = self.candidates().get(vnf)
        idle = self.idle(vnf)
        if request is None or not (idle or self.fits(vnf)):
            return -1.0
        dc = self.dcs[self.current_dc]
        if not idle:
            dc["free_cpu"] -= VNF_CPU[vnf]
            dc["ram"] -= VNF_RAM[vnf]
            dc["storage"] -= VNF_STORAGE[vnf]
            dc["vnfs"][vnf].append(0)
            idle = [len(dc["vnfs"][vnf]) - 1]
        dc["vnfs"][vnf][idle[0]] = request["busy_until"] = self.time + VNF_TIME[vnf]
        previous = request["placed"][-1] if request["placed"] else request["source"]
        self.change_bandwidth(previous, self.current_dc, -request["kbps"])
        request["placed"].append(self.current_dc)
        return 0.0

    def uninstall(self, vnf: str) -> float:
        idle = self.idle(vnf)
        if not idle:
            return -1.0
        dc = self.dcs[self.current_dc]
        dc["vnfs"][vnf].pop(idle[0])
        dc["free_cpu"] += VNF_CPU[vnf]
        dc["ram"] += VNF_RAM[vnf]
        dc["storage"] += VNF_STORAGE[vnf]
        needed = any(vnf in request["chain"][len(request["placed"]) :] for request in self.requests)
        return -0.5 if needed else 0.0

    def change_bandwidth(self, source: int, destination: int, kbps: int) -> None:
        path = self.shortest_path(source, destination)
        for a, b in zip(path[:-1], path[1:], strict=True):
            self.bandwidth[(a, b)] += kbps
            self.bandwidth[(b, a)] += kbps

    def finish_requests(self) -> float:
        """Satisfy and drop what is due at this time; the reward of it."""
        reward, pending = 0.0, []
        for request in self.requests:
            elapsed = self.time - request["arrival"]
            finished = self.next_vnf(request) is None and request["busy_until"] <= self.time
            if finished and self.in_time(request, elapsed):
                reward += 2.0
                self.satisfied += 1
                self.release(request)
            elif finished or elapsed > request["limit"] or self.time >= LAST_TIME:
                reward -= 1.5
                self.dropped += 1
                self.release(request)
            else:
                pending.append(request)
        self.requests = pending
        return reward

    def in_time(self, request: dict[str, Any], elapsed: int) -> bool:
        stops = [request["source"], *request["placed"], request["destination"]]
        km = sum(self.path_length(self.shortest_path(a, b)) for a, b in zip(stops[:-1], stops[1:], strict=True))
        return 3 * elapsed + km <= 3 * request["limit"]  # 3 km per 0.01 ms

    def release(self, request: dict[str, Any]) -> None:
        stops = [request["source"], *request["placed"]]
        for a, b in zip(stops[:-1], stops[1:], strict=True):
            self.change_bandwidth(a, b, request["kbps"])

    def get_state(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self.dc_state(), self.placed_state(), self.request_state()

    def dc_state(self) -> np.ndarray:
        dc = self.dcs[self.current_dc]
        installed = [np.log1p(len(dc["vnfs"][vnf])) / 5 for vnf in VNFS]
        idle = [np.log1p(len(self.idle(vnf))) / 5 for vnf in VNFS]
        return np.array([*installed, *idle, dc["storage"] / DC_STORAGE, dc["free_cpu"] / dc["cpu"]], dtype=np.float32)

    def placed_state(self) -> np.ndarray:
        rows = []
        for name in SFCS:
            here, to_go = dict.fromkeys(VNFS, 0), dict.fromkeys(VNFS, 0)
            for request in self.requests:
                if request["type"] == name:
                    placed = len(request["placed"])
                    for vnf, dc in zip(request["chain"], request["placed"], strict=False):
                        here[vnf] += dc == self.current_dc
                    for vnf in request["chain"][placed:]:
                        to_go[vnf] += 1
            counts = [np.log1p(count) / 5 for count in [*here.values(), *to_go.values()]]
            rows.append([float(any(here.values())), *counts])
        return np.array(rows, dtype=np.float32)

    def request_state(self) -> np.ndarray:
        rows = []
        for name, sfc in SFCS.items():
            pending = [request for request in self.requests if request["type"] == name]
            following = dict.fromkeys(VNFS, 0)
            for request in pending:
                vnf = self.next_vnf(request)
                if vnf is not None:
                    following[vnf] += 1
            remaining = kbps = 0.0
            if pending:
                urgent = min(pending, key=lambda r: r["limit"] - (self.time - r["arrival"]))
                remaining = (urgent["limit"] - (self.time - urgent["arrival"])) / sfc["limit"]
                kbps = urgent["kbps"] / LINK_KBPS
            counts = [np.log1p(count) / 5 for count in following.values()]
            rows.append([float(bool(pending)), np.log1p(len(pending)) / 5, remaining, kbps, *counts])
        return np.array(rows, dtype=np.float32)


class AllPathsSfcEnv(SfcEnv):
    """As the original was at first: 1,957 paths are listed for each pair of 8 data centres that is asked about."""

    def simple_paths(self, path: list[int], goal: int) -> Iterator[list[int]]:
        if path[-1] == goal:
            yield path
            return
        for dc in range(self.num_dcs):
            if dc not in path:
                yield from self.simple_paths([*path, dc], goal)

    def shortest_path(self, source: int, destination: int) -> list[int]:
        paths = self.simple_paths([source], destination)
        return min(paths, key=lambda path: (self.path_length(path), len(path), path))
