"""Service-chain provisioning played slowly: one network, an object per request, everything recounted when asked for.

What is in use is never kept: free resources and bandwidth are what remains after adding up what is installed and what
pending requests hold. Randomness comes from a tape: `draw(bound)` answers a number in 0 .. bound-1.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

NAT, FW, VOC, TM, WO, IDPS = range(6)
NEEDS = {NAT: (1, 4, 7), FW: (9, 5, 1), VOC: (5, 11, 13), TM: (13, 7, 7), WO: (5, 2, 5), IDPS: (11, 15, 2)}
PROCESSING = {NAT: 6, FW: 3, VOC: 11, TM: 7, WO: 8, IDPS: 2}
# name: chain, Mbps (None: drawn), limit in ms, sizes of a bundle
SERVICES = {
    "cloud_gaming": ([NAT, FW, VOC, WO, IDPS], Fraction(4), 80, (40, 55)),
    "augmented_reality": ([NAT, FW, TM, VOC, IDPS], Fraction(100), 10, (1, 4)),
    "voip": ([NAT, FW, TM, FW, NAT], Fraction(64, 1000), 100, (100, 200)),
    "video_streaming": ([NAT, FW, TM, VOC, IDPS], Fraction(4), 100, (50, 100)),
    "massive_iot": ([NAT, FW, IDPS], None, 5, (10, 15)),
    "industry_4": ([NAT, FW], Fraction(70), 8, (1, 4)),
}
WAITING, RUNNING, SATISFIED, DROPPED = "waiting", "running", "satisfied", "dropped"


@dataclass
class Request:
    service: str
    mbps: Fraction
    source: int
    destination: int
    arrival: int
    state: str = WAITING
    places: list[int] = field(default_factory=list)
    vnfs: list[int] = field(default_factory=list)
    done_at: int = 0
    delay: Fraction = Fraction(0)

    @property
    def chain(self) -> list[int]:
        return SERVICES[self.service][0]

    @property
    def limit(self) -> int:
        return SERVICES[self.service][2] * 100

    @property
    def pending(self) -> bool:
        return self.state in (WAITING, RUNNING)

    @property
    def to_go(self) -> list[int]:
        return self.chain[len(self.places) :]

    @property
    def legs(self) -> list[tuple[int, int]]:
        """The stretches on which it holds bandwidth."""
        return list(itertools.pairwise([self.source, *self.places]))

    def left(self, now: int) -> int:
        return self.arrival + self.limit - now


@dataclass
class Instance:
    place: int
    vnf: int
    busy_until: int


class SfcOracle:
    def __init__(
        self,
        draw: Callable[[int], int],
        *,
        min_data_centres: int = 2,
        max_data_centres: int = 4,
        min_request_count: int = 1,
        max_request_count: int = 5,
        max_episode_steps: int = 0,
    ) -> None:
        self.draw = draw
        self.centres_range = min_data_centres, max_data_centres
        self.rounds_range = min_request_count, max_request_count
        self.max_steps = max_episode_steps
        self.restart()

    def between(self, low: int, high: int) -> int:
        return low + self.draw(high - low + 1)

    def restart(self) -> None:
        self.now = self.steps = 0
        self.num_centres = self.between(*self.centres_range)
        self.rounds = self.between(*self.rounds_range)
        self.cpu = [self.between(12, 120) for _ in range(self.num_centres)]
        self.length: dict[tuple[int, int], int] = {}
        for one, other in itertools.combinations(range(self.num_centres), 2):
            self.length[one, other] = self.length[other, one] = self.between(100, 1000)
        self.paths = {pair: self.shortest_path(*pair) for pair in itertools.product(range(self.num_centres), repeat=2)}
        self.requests: list[Request] = []
        self.instances: list[Instance] = []
        self.use_over_time = [Fraction(0)] * 4
        self.arrivals = 0
        self.arrive()
        self.begin_cycle()

    def shortest_path(self, start: int, goal: int) -> list[int]:
        """The best by length, then by hops, then by the numbers along it: paths grown from the start, best first."""
        best, grown = None, [(0, 0, [start])]
        while grown:
            grown.sort()
            length, hops, path = grown.pop(0)
            if path[-1] == goal:
                best = path
                break
            for place in range(self.num_centres):
                if place not in path:
                    grown.append((length + self.length[path[-1], place], hops + 1, [*path, place]))
        assert best is not None
        return best

    def path_length(self, start: int, goal: int) -> int:
        return sum(self.length[leg] for leg in itertools.pairwise(self.paths[start, goal]))

    def arrive(self) -> None:
        self.arrivals += 1
        for service, (_, mbps, _, sizes) in SERVICES.items():
            size = self.between(*sizes)
            rate = Fraction(1000 + self.draw(49_001), 1000) if mbps is None else mbps
            source = self.draw(self.num_centres)
            destination = [place for place in range(self.num_centres) if place != source][
                self.draw(self.num_centres - 1)
            ]
            self.requests += [Request(service, rate, source, destination, self.now) for _ in range(size)]

    def pending(self, service: str | None = None) -> list[Request]:
        return [one for one in self.requests if one.pending and service in (None, one.service)]

    def begin_cycle(self) -> None:
        first: list[int] = []
        if self.pending():
            urgent = min(self.pending(), key=lambda one: one.left(self.now))  # the first of several
            first = self.paths[urgent.source, urgent.destination]
        self.cycle = [*first, *(place for place in range(self.num_centres) if place not in first)]
        self.visited = self.cycle.pop(0)

    def used(self, place: int) -> list[int]:
        """CPU, RAM and storage of what is installed there."""
        return [sum(NEEDS[one.vnf][kind] for one in self.instances if one.place == place) for kind in range(3)]

    def free(self, place: int) -> list[int]:
        capacity = (self.cpu[place], 256, 2048)
        return [whole - part for whole, part in zip(capacity, self.used(place), strict=True)]

    def link_use(self) -> dict[tuple[int, int], Fraction]:
        """Mbps that pending requests hold on each link."""
        use = {link: Fraction(0) for link in self.length}
        for request in self.pending():
            for start, goal in request.legs:
                for one, other in itertools.pairwise(self.paths[start, goal]):
                    use[one, other] += request.mbps
                    use[other, one] += request.mbps
        return use

    def idle(self, place: int, vnf: int) -> list[Instance]:
        return [one for one in self.instances if (one.place, one.vnf) == (place, vnf) and one.busy_until <= self.now]

    def priority(self, request: Request) -> float:
        left = request.left(self.now) / 100
        p1, p3 = -left, 100 / (left + 1e-6) if left < 10 else 0
        p2 = 0 if not request.places else 10 if self.visited in request.places else -10
        return p1 + p3 + p2

    def candidate(self, vnf: int) -> Request | None:
        use, found = self.link_use(), []
        for request in self.pending():
            if request.state == WAITING and request.to_go[0] == vnf:
                path = self.paths[[request.source, *request.places][-1], self.visited]
                if all(1000 - use[leg] >= request.mbps for leg in itertools.pairwise(path)):
                    found.append(request)
        return max(found, key=self.priority) if found else None  # the first of several

    def fits(self, vnf: int) -> bool:
        return all(need <= free for need, free in zip(NEEDS[vnf], self.free(self.visited), strict=True))

    def action_mask(self) -> list[bool]:
        idle = [bool(self.idle(self.visited, vnf)) for vnf in range(6)]
        allocate = [(idle[vnf] or self.fits(vnf)) and self.candidate(vnf) is not None for vnf in range(6)]
        return [*allocate, *idle, True]

    def act(self, action: int) -> float:
        if action == 12:
            return 0.0
        if not self.action_mask()[action]:
            return -1.0
        vnf = action % 6
        idle = self.idle(self.visited, vnf)
        if action >= 6:
            self.instances.remove(idle[0])
            return -0.5 if any(vnf in request.to_go for request in self.pending()) else 0.0
        request = self.candidate(vnf)
        assert request is not None
        if not idle:
            idle = [Instance(self.visited, vnf, 0)]
            self.instances += idle
        idle[0].busy_until = request.done_at = self.now + PROCESSING[vnf]
        request.places.append(self.visited)
        request.vnfs.append(vnf)
        request.state = RUNNING
        return 0.0

    def step(self, action: int) -> tuple[float, bool, bool]:
        """Reward, terminated, truncated; the episode is not restarted."""
        reward = self.act(action)
        self.note_use()
        self.now += 1
        self.steps += 1
        for request in self.pending():
            if request.state == RUNNING and request.done_at == self.now:
                request.state = WAITING
                if not request.to_go:
                    stops = [request.source, *request.places, request.destination]
                    km = sum(self.path_length(*leg) for leg in itertools.pairwise(stops))
                    request.delay = Fraction(self.now - request.arrival, 100) + Fraction(km, 300)
                    request.state = SATISFIED if request.delay * 100 <= request.limit else DROPPED
                    reward += 2.0 if request.state == SATISFIED else -1.5
        for request in self.pending():
            if request.left(self.now) < 0 or self.now >= 20_000:
                request.state = DROPPED
                reward -= 1.5
        if self.now % 400 == 0 and self.arrivals < self.rounds:
            self.arrive()
        terminated = self.now >= 20_000 or (not self.pending() and self.arrivals == self.rounds)
        if self.cycle:
            self.visited = self.cycle.pop(0)
        else:
            self.begin_cycle()
        return reward, terminated, 0 < self.max_steps <= self.steps

    def note_use(self) -> None:
        used = [sum(self.used(place)[kind] for place in range(self.num_centres)) for kind in range(3)]
        held = sum(self.link_use().values(), Fraction(0)) / 2
        for kind, amount in enumerate([*used, held]):
            self.use_over_time[kind] += amount

    def observe(self) -> dict[str, np.ndarray]:
        def scaled(counts: list[int]) -> list[float]:
            return [math.log1p(count) / 5 for count in counts]

        here, now = self.visited, self.now
        instances = [[one for one in self.instances if (one.place, one.vnf) == (here, vnf)] for vnf in range(6)]
        centre = scaled([len(ones) for ones in instances])
        centre += scaled([sum(one.busy_until <= now for one in ones) for ones in instances])
        free_cpu, _, free_storage = self.free(here)
        centre += [free_storage / 2048, free_cpu / self.cpu[here]]
        placed, requests = [], []
        for service, (_, _, limit, _) in SERVICES.items():
            pending = self.pending(service)
            on_this = [v for one in pending for v, p in zip(one.chain, one.places, strict=False) if p == here]
            to_go = [vnf for one in pending for vnf in one.to_go]
            following = [one.to_go[0] for one in pending if one.to_go]
            counts = [[listed.count(vnf) for vnf in range(6)] for listed in (on_this, to_go, following)]
            placed.append([float(bool(on_this)), *scaled(counts[0]), *scaled(counts[1])])
            urgent = min(pending, key=lambda one: one.left(now)) if pending else None
            left = urgent.left(now) / (limit * 100) if urgent else 0.0
            rate = float(urgent.mbps) / 1000 if urgent else 0.0
            requests.append([float(bool(pending)), *scaled([len(pending)]), left, rate, *scaled(counts[2])])
        parts = {"data_centre": centre, "placed": placed, "requests": requests}
        return {name: np.array(part, np.float32) for name, part in parts.items()}

    def stats(self) -> dict[str, float]:
        """What the episode is judged by so far."""
        measures: dict[str, float] = {}
        for suffix, services in [("", list(SERVICES)), *((f"_{one}", [one]) for one in SERVICES)]:
            chosen = [one for one in self.requests if one.service in services]
            satisfied = [one for one in chosen if one.state == SATISFIED]
            total = float(sum((one.delay for one in satisfied), Fraction(0)))
            measures |= {
                f"acceptance{suffix}": len(satisfied) / len(chosen),
                f"delay{suffix}": total / len(satisfied) if satisfied else math.nan,
                f"throughput{suffix}": float(sum((one.mbps for one in satisfied), Fraction(0))),
            }
        links = self.num_centres * (self.num_centres - 1) // 2
        wholes = [sum(self.cpu), 256 * self.num_centres, 2048 * self.num_centres, 1000 * links]
        for name, amount, whole in zip(("cpu", "ram", "storage", "bandwidth"), self.use_over_time, wholes, strict=True):
            measures[f"{name}_use"] = float(amount / whole / self.now)
        return measures
