"""What remedies need to run: names from the same start, new inputs for every round, and what is compared."""

from __future__ import annotations

import copy
import gc
import io
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import gymnasium
import networkx
import numpy as np
import torch
from torch import nn

from hotloop.core.types import Batch

Names = dict[str, Any]
ROUNDING = 2e-5


def nothing(names: Names, *step: int) -> None:
    pass


@dataclass(frozen=True)
class Trial:
    start: Callable[[], Names]
    """The names that both programs begin with; the same every time."""
    read: Callable[[Names], Any]
    """What is compared after each round; where a network learns, after an update made here."""
    feed: Callable[[Names, int], None] = nothing
    """New inputs before each round."""
    ready: Callable[[Names], None] = nothing
    """What follows the part that is executed once."""
    close: Callable[[Names], None] = nothing
    once: bool = False
    """The snippets make something that the rounds then use."""
    tolerance: float = 0.0


def drawn(step: int, *shape: int) -> Any:
    return np.random.default_rng(step).normal(size=shape).astype(np.float32)


def tensor(step: int, *shape: int) -> torch.Tensor:
    return torch.from_numpy(drawn(step, *shape))


def mlp(width: int = 64) -> nn.Sequential:
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(4, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 2))


def flat(parameters: Any) -> Any:
    return torch.cat([one.detach().reshape(-1) for one in parameters]).numpy().copy()


def learner(**more: Any) -> Names:
    """A network that an Adam of its own trains."""
    network = mlp()
    return {"torch": torch, "network": network, "optimizer": torch.optim.Adam(network.parameters(), 1e-3), **more}


def made_update(names: Names, loss: torch.Tensor) -> Any:
    names["optimizer"].zero_grad()
    loss.backward()
    names["optimizer"].step()
    return flat(names["network"].parameters())


def regressed(names: Names) -> Any:
    """The parameters after an update on rows of this round."""
    return made_update(names, ((names["network"](names["obs"]) - names["y"]) ** 2).mean())


def rows(names: Names, step: int) -> None:
    names.update(obs=tensor(step, 32, 4), y=tensor(step + 1000, 32, 2), step=step)


# Acting


def acting() -> Trial:
    return Trial(lambda: {"network": mlp(), "torch": torch}, lambda names: names["action"].numpy().copy(), rows)


def acting_for_all() -> Trial:
    def feed(names: Names, step: int) -> None:
        names["obs"] = drawn(step, 64, 4)

    return Trial(lambda: {"network": mlp(), "torch": torch}, lambda names: names["actions"], feed)


# The env step


def flood_fill() -> Trial:
    def feed(names: Names, step: int) -> None:
        free = np.zeros((12, 12), bool)
        free[1:-1, 1:-1] = np.random.default_rng(step).random((10, 10)) > 0.3
        free[5, 5] = True
        names.update(free=free, start=(5, 5))

    return Trial(lambda: {"deque": deque}, lambda names: names["room"], feed)


def roads() -> networkx.Graph:
    graph = networkx.complete_graph(6)
    km = np.random.default_rng(4).permutation(range(100, 1000))
    networkx.set_edge_attributes(graph, {edge: {"km": int(km[i])} for i, edge in enumerate(graph.edges)})
    return graph


def shortest_path() -> Trial:
    def start() -> Names:
        graph = roads()

        def length(path: list[int]) -> int:
            return sum(graph.edges[edge]["km"] for edge in zip(path, path[1:], strict=False))

        return {"graph": graph, "networkx": networkx, "length": length}

    def feed(names: Names, step: int) -> None:
        names["a"], names["b"] = random.Random(step).sample(range(6), 2)

    return Trial(start, lambda names: [*names["path"], *[-1] * (6 - len(names["path"]))], feed)


def neighbours() -> Trial:
    def start() -> Names:
        visited: list[int] = []
        graph = networkx.gnp_random_graph(20, 0.3, seed=1)
        return {"graph": graph, "visited": visited, "visit": visited.append}

    return Trial(start, lambda names: list(names["visited"]), lambda names, step: names.update(node=step % 20))


def selection() -> Trial:
    def feed(names: Names, step: int) -> None:
        names.update(x=np.random.default_rng(step).normal(size=200), k=1 + step % 9)

    return Trial(dict, lambda names: names["few"], feed)


def cartpoles() -> Trial:
    """Balanced by hand, so that no game ends in fifty env steps; starts are Gymnasium's."""

    def start() -> Names:
        envs = [gymnasium.make("CartPole-v1") for _ in range(64)]
        obs = np.stack([env.reset(seed=seed)[0] for seed, env in enumerate(envs)])
        fields = {name: np.zeros(64) for name in ("reward", "terminated", "truncated")}
        exact = np.stack([env.unwrapped.state for env in envs])
        return {"envs": envs, "obs": obs, "seen": obs, "exact": exact, **fields}

    def ready(names: Names) -> None:
        if not isinstance(names["envs"], list):
            inner = names["envs"]._envs
            state = inner.get_state()
            (key,) = [name for name, value in state.items() if np.shape(value) in ((64, 4), (4, 64))]
            exact = names["exact"]
            state[key] = (exact if np.shape(state[key]) == (64, 4) else exact.T).astype(state[key].dtype)
            inner.set_state(state)

    def feed(names: Names, step: int) -> None:
        names["action"] = (names["seen"][:, 2] + names["seen"][:, 3] > 0).astype(np.int64)

    def read(names: Names) -> Any:
        answer = [np.array(names[name], float) for name in ("obs", "reward", "terminated", "truncated")]
        names["seen"] = answer[0]
        assert not answer[2].any()
        return answer

    return Trial(start, read, feed, ready, tolerance=1e-4)


class Scale(gymnasium.ObservationWrapper):
    def observation(self, observation: Any) -> Any:
        return observation / 255


class Clip(gymnasium.RewardWrapper):
    def reward(self, reward: float) -> float:
        return max(-1.0, min(1.0, reward))


class Generous(gymnasium.Env):
    """Bytes to see, and rewards beyond one."""

    observation_space = gymnasium.spaces.Box(0, 255, (4,), np.uint8)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        return self._seen(), {}

    def step(self, action: int) -> Any:
        reward, ended = float(self.np_random.normal(0, 3)), bool(self.np_random.random() < 0.1)
        return self._seen(), reward, ended, False, {}

    def _seen(self) -> Any:
        return self.np_random.integers(0, 256, 4).astype(np.uint8)


def one_env(names: Names, step: int) -> None:
    """A step of `env`, or its reset."""
    if step == 0 or names["ended"]:
        obs, info = names["env"].reset(seed=step)
        names.update(answer=[obs, 0.0, False], ended=False)
    else:
        obs, reward, terminated, truncated, info = names["env"].step(step % 2)
        names.update(answer=[obs, reward, terminated], ended=terminated or truncated)


def answered(names: Names) -> Any:
    obs, reward, terminated = names["answer"]
    return [np.asarray(obs, float), np.array(reward), np.array(terminated)]


def wrappers() -> Trial:
    return Trial(lambda: {"Scale": Scale, "Clip": Clip, "env": Generous()}, answered, one_env, once=True)


class Drawn(gymnasium.Wrapper):
    """What draws is not installed here, and no matter."""

    def render(self) -> Any:
        return np.zeros((8, 8, 3), np.uint8)


def rendering() -> Trial:
    def make(name: str, render_mode: str) -> gymnasium.Env:
        return Drawn(gymnasium.make(name))

    return Trial(lambda: {"gymnasium": SimpleNamespace(make=make)}, answered, one_env)


# Replay, rollouts and lists


def pushed() -> Trial:
    """What is stored, and that every row of a batch is a transition that was stored. Rewards number them."""

    def start() -> Names:
        return {"buffer": [], "num_envs": 256, "obs": tensor(0, 256, 11), "known": {}}

    def feed(names: Names, step: int) -> None:
        obs = names["next_obs"] if step else names["obs"]
        draw = np.random.default_rng(step)
        names.update(obs=obs, next_obs=tensor(step + 1, 256, 11), action=torch.from_numpy(draw.integers(0, 3, 256)))
        names["reward"] = torch.arange(256, dtype=torch.float32) + 256 * step
        names["terminated"], names["truncated"] = torch.from_numpy(draw.random(256) < 0.05), torch.zeros(256).bool()
        names["final_obs"] = names["next_obs"]
        fields = [names[name].numpy() for name in ("reward", "obs", "action", "final_obs", "terminated")]
        names["known"].update({float(row[0]): row for row in zip(*fields, strict=True)})

    def read(names: Names) -> Any:
        if "batch" in names:
            check_rows(names)
            stored = [names["known"][number] for number in range(len(names["replay"]))]
            assert len(names["replay"]) == len(names["known"])
            return sum(float(row[0]) for row in stored), len(stored)
        for obs, action, reward, final_obs, terminated in names["buffer"][-256:]:
            known = names["known"][reward]
            assert np.array_equal(known[1], obs)
            assert np.array_equal(known[3], final_obs)
            assert (known[2], known[4]) == (action, terminated)
        return sum(row[2] for row in names["buffer"]), len(names["buffer"])

    return Trial(start, read, feed)


def check_rows(names: Names) -> None:
    batch = names["batch"]
    for row in range(64):
        _, obs, action, final_obs, terminated = names["known"][float(batch.reward[row])]
        assert np.array_equal(batch.obs[row], obs)
        assert batch.action[row] == action
        assert batch.discount[row] == np.float32(0.0 if terminated else 0.99)
        assert terminated or np.array_equal(batch.next_obs[row], final_obs)


def batches() -> Trial:
    def start() -> Names:
        random.seed(5)
        sizes = {"batch_size": 32, "capacity": 100_000, "obs_shape": (11,), "added": 0}
        return {"random": random, "torch": torch, "np": np, "buffer": [], **sizes}

    def feed(names: Names, step: int) -> None:
        for row in drawn(step, 40, 11):
            names["buffer"].append((row, 0))
            if "obs" in names:
                names["obs"][names["added"] % 100_000] = row
            names["added"] += 1

    return Trial(start, lambda names: names["states"].numpy().copy(), feed)


def advantages() -> Trial:
    def feed(names: Names, step: int) -> None:
        draw = np.random.default_rng(step)
        done = draw.random(128) < 0.05
        names.update(rewards=draw.normal(size=128).tolist(), values=draw.normal(size=129).tolist(), dones=done.tolist())

    return Trial(dict, lambda names: np.array(names["advantages"]), feed, tolerance=1e-12)


def memory() -> Trial:
    return Trial(
        lambda: {"memory": [], "capacity": 20},
        lambda names: np.resize(np.array(names["memory"]), 20),
        lambda names, step: names.update(one=step * step),
    )


def copies() -> Trial:
    def feed(names: Names, step: int) -> None:
        names["state"] *= 0.5
        names["state"] += step

    def read(names: Names) -> Any:
        kept = names["before"].copy()
        names["state"] += 1.0  # and the copy does not notice
        assert np.array_equal(kept, names["before"])
        return kept

    return Trial(lambda: {"copy": copy, "state": np.zeros(16)}, read, feed)


# The update


def wired() -> Trial:
    def start() -> Names:
        torch.manual_seed(0)
        graph = networkx.DiGraph([(0, 3), (1, 3), (2, 4), (3, 4), (0, 4), (3, 5), (4, 6), (3, 6), (4, 5)])
        weights = nn.ParameterDict({f"{a}_to_{b}": torch.randn(()) for a, b in graph.edges})
        biases = nn.ParameterDict({str(node): torch.randn(()) for node in (3, 4, 5, 6)})
        ends = {"inputs": [0, 1, 2], "outputs": [5, 6], "order": [3, 4, 5, 6]}
        return {"torch": torch, "graph": graph, "weights": weights, "biases": biases, **ends}

    def ready(names: Names) -> None:
        old = [*names["weights"].parameters(), *names["biases"].parameters()]
        names["trained"] = list(names["network"].parameters()) if "network" in names else old
        names["optimizer"] = torch.optim.Adam(names["trained"], 1e-2)

    def read(names: Names) -> Any:
        names["optimizer"].zero_grad()
        ((names["q"] - names["y"]) ** 2).mean().backward()
        names["optimizer"].step()
        return names["q"].detach().numpy().copy()

    def feed(names: Names, step: int) -> None:
        names.update(obs=tensor(step, 32, 3), y=tensor(step + 1000, 32, 2))

    return Trial(start, read, feed, ready, tolerance=ROUNDING)


def keyed() -> Trial:
    def start() -> Names:
        torch.manual_seed(0)
        scales = nn.ParameterDict({f"layer_{i}": torch.randn(8) for i in range(4)})
        return {"torch": torch, "scales": scales, "network": scales, "optimizer": torch.optim.Adam(scales.parameters())}

    return Trial(
        start,
        lambda names: made_update(names, (names["x"] ** 2).mean()),
        lambda names, step: names.update(x=tensor(step, 32, 8)),
    )


def row_by_row() -> Trial:
    def feed(names: Names, step: int) -> None:
        names.update(rows=list(tensor(step, 32, 4)), ys=list(tensor(step + 1000, 32, 2)))

    return Trial(learner, lambda names: made_update(names, names["loss"]), feed, tolerance=ROUNDING)


def target() -> Trial:
    def start() -> Names:
        names = learner(gamma=0.99)
        return {**names, "target_network": copy.deepcopy(names["network"])}

    def feed(names: Names, step: int) -> None:
        names.update(obs=tensor(step, 32, 4), next_obs=tensor(step + 1, 32, 4), reward=tensor(step, 32))

    def read(names: Names) -> Any:
        error = names["network"](names["obs"]).max(dim=1)[0] - names["target"]
        return made_update(names, (error**2).mean())

    return Trial(start, read, feed)


def native() -> Trial:
    """Parameters after every update; the target moves twice in fifty."""

    def start() -> Names:
        names = learner(updates=0)
        return {**names, "target_network": copy.deepcopy(names["network"])}

    def feed(names: Names, step: int) -> None:
        draw = np.random.default_rng(step)
        obs, next_obs, action = drawn(step, 32, 4), drawn(step + 1, 32, 4), draw.integers(0, 2, 32)
        reward, discount = drawn(step, 32), np.float32(0.9) * (draw.random(32) > 0.1).astype(np.float32)
        fields = {"obs": obs, "action": action, "reward": reward, "discount": discount, "next_obs": next_obs}
        names.update({name: torch.from_numpy(value) for name, value in fields.items()})
        more = {"weight": np.ones(32, np.float32), "index": np.zeros(32, np.int64)}
        names["batch"] = Batch(**{name: value[None] for name, value in (fields | more).items()})

    def read(names: Names) -> Any:
        network = names["learner"].network if "learner" in names else names["network"]
        return flat(network.parameters())

    return Trial(start, read, feed, tolerance=ROUNDING)


def fused() -> Trial:
    return Trial(learner, regressed, rows, once=True, tolerance=ROUNDING)


def many_tensors() -> Trial:
    def start() -> Names:
        torch.manual_seed(0)
        return {"torch": torch, "numbers": [torch.randn(()) for _ in range(300)]}

    def ready(names: Names) -> None:
        weights = names["weights"]
        names["one"] = isinstance(weights, nn.Parameter)
        names["optimizer"] = torch.optim.Adam([weights] if names["one"] else weights.parameters(), 1e-2)

    def read(names: Names) -> Any:
        weights = names["weights"]
        names["optimizer"].zero_grad()
        ((names["x"] @ (weights if names["one"] else torch.stack(list(weights))) - 1.0) ** 2).mean().backward()
        names["optimizer"].step()
        return np.array([weights[i].item() for i in range(300)])

    def feed(names: Names, step: int) -> None:
        names["x"] = tensor(step, 8, 300)

    return Trial(start, read, feed, ready, once=True, tolerance=ROUNDING)


def priorities() -> Trial:
    def feed(names: Names, step: int) -> None:
        names.update(error=(names["network"](tensor(step, 32, 4))[:, 0] - 1.0).abs())

    def read(names: Names) -> Any:
        kept = names["priorities"].copy()
        made_update(names, names["error"].mean())
        assert np.array_equal(kept, names["priorities"])
        return kept

    return Trial(lambda: learner(priorities=np.zeros(32), batch_size=32), read, feed)


def small_tensors() -> Trial:
    def feed(names: Names, step: int) -> None:
        names["obs"] = drawn(step, 256, 11)

    return Trial(lambda: {"torch": torch}, lambda names: names["states"].numpy().copy(), feed)


# Reports, checkpoints, evaluation


def printing() -> Trial:
    """The lines of every thousandth env step, and the parameters of a network that learns meanwhile."""

    def start() -> Names:
        lines = io.StringIO()
        return learner(lines=lines, print=lambda text: lines.write(text + "\n"))

    def feed(names: Names, step: int) -> None:
        rows(names, step)
        names.update(step=100 * step, reward=step / 7)

    def read(names: Names) -> Any:
        wanted = [line for line in names["lines"].getvalue().splitlines() if int(line.split()[1][:-1]) % 1000 == 0]
        return [regressed(names), np.array(wanted)]

    return Trial(start, read, feed)


def saving() -> Trial:
    def start() -> Names:
        names = learner()
        return {**names, "agent": names["network"]}

    def feed(names: Names, step: int) -> None:
        rows(names, step)
        names["step"] = 1000 * (step + 1)

    def read(names: Names) -> Any:
        """The file where it is due, and the parameters."""
        due = names["step"] % 10_000 == 0
        kept = flat(torch.load("latest.pt", weights_only=True).values()) if due else np.zeros(0)
        return [kept, regressed(names)]

    return Trial(start, read, feed)


def evaluating() -> Trial:
    """On an env and random numbers of its own."""

    def start() -> Names:
        def evaluate(agent: nn.Module, episodes: int) -> float:
            with torch.no_grad():
                return float(agent(tensor(episodes, episodes, 4)).mean())

        names = learner(evaluate=evaluate)
        return {**names, "agent": names["network"]}

    def feed(names: Names, step: int) -> None:
        rows(names, step)
        names["step"] = 1000 * step

    return Trial(start, regressed, feed)


def rate() -> Trial:
    """The same fifty steps are trained each time; the rate of the late ones is what the first ones do not spoil."""

    def start() -> Names:
        clock, done = [0.0], []

        def train(step: int) -> None:
            done.append(step)
            clock[0] += 1.0 if step < 10 else 0.01

        numbers = {"steps": 50, "warm_up": 10}
        return {"time": SimpleNamespace(perf_counter=lambda: clock[0]), "train": train, "done": done, **numbers}

    return Trial(start, lambda names: list(names["done"]))


# The machine


def threads() -> Trial:
    def start() -> Names:
        torch.set_num_threads(4)
        network = mlp(256)
        return {"torch": torch, "network": network, "optimizer": torch.optim.Adam(network.parameters(), 1e-3)}

    def feed(names: Names, step: int) -> None:
        names.update(obs=tensor(step, 256, 4), y=tensor(step + 1000, 256, 2))

    return Trial(start, regressed, feed, close=lambda names: torch.set_num_threads(1), once=True, tolerance=ROUNDING)


def denormals() -> Trial:
    """Half of the moments are denormal, as those of units that no longer learn."""

    def start() -> Names:
        torch.set_flush_denormal(False)
        names = learner()
        rows(names, 0)
        regressed(names)
        for state in names["optimizer"].state.values():
            for moment in ("exp_avg", "exp_avg_sq"):
                state[moment].view(-1)[::2] = 1e-39
        return names

    def read(names: Names) -> Any:
        return made_update(names, 0.0 * names["network"](names["obs"]).sum() + sum(names["network"][4].bias))

    return Trial(start, read, rows, close=lambda names: torch.set_flush_denormal(False), once=True)


def workers() -> Trial:
    def start() -> Names:
        return {"gymnasium": gymnasium, "makers": [lambda: gymnasium.make("CartPole-v1") for _ in range(2)]}

    def feed(names: Names, step: int) -> None:
        answer = names["envs"].reset(seed=7) if step == 0 else names["envs"].step(np.array([step % 2, 1 - step % 2]))
        names["answer"] = [np.array(part) for part in answer[:-1]]

    return Trial(start, lambda names: names["answer"], feed, close=lambda names: names["envs"].close(), once=True)


def collecting() -> Trial:
    quick = SimpleNamespace(collect=lambda: gc.collect(0))  # all of a test's process takes a tenth of a second
    return Trial(lambda: learner(gc=quick), regressed, rows, close=lambda names: gc.unfreeze())


def growing() -> Trial:
    def feed(names: Names, step: int) -> None:
        names["r"] = float(np.random.default_rng(step).normal())

    return Trial(lambda: {"returns": [], "np": np}, lambda names: float(names["mean"]), feed, tolerance=1e-12)


TRIALS: dict[str, Trial] = {
    "ACT001": acting(),
    "ACT004": acting(),
    "ACT002": acting_for_all(),
    "ENV001": flood_fill(),
    "ENV002": shortest_path(),
    "ENV003": neighbours(),
    "ENV004": selection(),
    "ENV005": cartpoles(),
    "ENV006": wrappers(),
    "ENV007": rendering(),
    "ENV010": workers(),
    "GROW001": growing(),
    "LOG001": printing(),
    "LOG002": saving(),
    "LOG003": evaluating(),
    "LOG004": rate(),
    "MACHINE001": threads(),
    "MACHINE002": denormals(),
    "MACHINE003": workers(),
    "MACHINE004": collecting(),
    "STORE001": pushed(),
    "STORE002": batches(),
    "STORE003": advantages(),
    "STORE004": memory(),
    "STORE005": copies(),
    "SYNC001": priorities(),
    "SYNC002": small_tensors(),
    "UPDATE001": wired(),
    "UPDATE002": keyed(),
    "UPDATE003": row_by_row(),
    "UPDATE004": target(),
    "UPDATE006": native(),
    "UPDATE007": fused(),
    "UPDATE008": many_tensors(),
}
