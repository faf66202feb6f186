"""What the remedies of further rules need to run: how rows are drawn, what envs ask, what a logger drops, options."""

from __future__ import annotations

import functools
import importlib
import logging
import random
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from tests.doctor.remedy_trials import ROUNDING, Names, Trial, drawn, learner, made_update, regressed, rows, tensor

STAND_INS = str(Path(__file__).parents[1] / "slow_scripts" / "stand_ins" / "site-packages")


def data_frame() -> Trial:
    def start() -> Names:
        rng = np.random.default_rng(0)
        frame = stand_in("pandas").DataFrame({name: rng.normal(size=60) for name in ("open", "close", "volume")})
        return {"prices": frame}

    def feed(names: Names, step: int) -> None:
        names["day"] = step

    return Trial(start, lambda names: float(names["gain"]), feed)


def stand_in(name: str) -> Any:
    """The package, or the small one that stands in for it, where it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        sys.path.append(STAND_INS)
        return importlib.import_module(name)


def forget_stand_ins() -> None:
    """So that other tests do not find them."""
    sys.path[:] = [folder for folder in sys.path if folder != STAND_INS]
    for name, module in list(sys.modules.items()):
        if (getattr(module, "__file__", None) or "").startswith(STAND_INS):
            del sys.modules[name]


def loaded_once() -> Trial:
    """A model that holds nothing of an episode: its states come from the seed."""

    def start() -> Names:
        def load(description: str) -> Any:
            masses = np.array([float(number) for number in description.split()])
            return SimpleNamespace(start=lambda seed: masses * np.random.default_rng(seed).normal(size=3))

        return {"load": load, "description": "1.0 2.5 4.0"}

    return Trial(start, lambda names: names["state"], lambda names, step: names.update(seed=step))


def prioritised() -> Trial:
    """How many rows are stored, and that every row of a batch is one of them. Rewards number them."""

    def start() -> Names:
        np.random.seed(5)
        known = [(float(number), drawn(number, 11)) for number in range(64)]
        return {"np": np, "buffer": list(known), "priorities": [1.0] * 64, "batch_size": 64, "known": known}

    def ready(names: Names) -> None:
        if "replay" in names:
            for number, obs in names["known"]:
                names["replay"].add(obs, 0, number, obs, False, False)

    def feed(names: Names, step: int) -> None:
        number, obs = float(64 + step), drawn(64 + step, 11)
        names.update(obs=obs, action=0, reward=number, next_obs=obs, terminated=False, truncated=False)
        names.update(row=(number, obs), td_error=np.linspace(0.1, 2.0, 64))
        names["known"].append((number, obs))

    def read(names: Names) -> Any:
        batch = names["batch"]
        rows = batch if isinstance(batch, list) else list(zip(batch.reward.tolist(), batch.obs, strict=True))
        assert len(rows) == 64
        for number, obs in rows:
            assert np.array_equal(names["known"][int(number)][1], obs)
        return len(names["replay"] if "replay" in names else names["buffer"])

    return Trial(start, read, feed, ready)


class Tree:
    """A sum tree as programs have it: leaf i holds the priority of row i."""

    def __init__(self, size: int) -> None:
        self.size, self.nodes = size, [0.0] * (2 * size)

    def update(self, row: int, priority: float) -> None:
        node = row + self.size
        change = priority - self.nodes[node]
        while node:
            self.nodes[node] += change
            node //= 2

    def find(self, mass: float) -> int:
        node = 1
        while node < self.size:
            node *= 2
            if mass >= self.nodes[node]:
                mass -= self.nodes[node]
                node += 1
        return node - self.size


def all_leaves() -> Trial:
    """The same rows for the same masses, while priorities change: in 64ths, whose sums are exact in any order."""

    def start() -> Names:
        return {"np": np, "tree": Tree(64), "capacity": 64}

    def ready(names: Names) -> None:
        for row in range(64):
            if "priorities" in names:
                names["priorities"][row] = 1.0
            names["tree"].update(row, 1.0)

    def feed(names: Names, step: int) -> None:
        draw = np.random.default_rng(step)
        total = names["priorities"].sum() if "priorities" in names else names["tree"].nodes[1]
        names.update(masses=draw.random(16) * total, new_priorities=np.full(16, (1 + step % 64) / 64))

    return Trial(start, lambda names: np.array(names["index"]), feed, ready)


def distinct_rows() -> Trial:
    """Other rows are drawn: as many, all different, all there."""

    def start() -> Names:
        np.random.seed(5)
        random.seed(5)
        return {"np": np, "batch_size": 32}

    def read(names: Names) -> Any:
        index = np.array(names["index"])
        assert len(set(index.tolist())) == 32
        assert 0 <= index.min() <= index.max() < names["n"]
        return names["n"]

    return Trial(start, read, lambda names, step: names.update(n=40 + step))


def gathered() -> Trial:
    def start() -> Names:
        return {"np": np, "rng": np.random.default_rng(5), "buffer": [], "batch_size": 32, "added": 0}

    def feed(names: Names, step: int) -> None:
        for row in drawn(step, 40, 11):
            names["buffer"].append(row)
            if "obs" in names:
                names["obs"][names["added"] % 100_000] = row
            names["added"] += 1

    return Trial(start, lambda names: names["states"].copy(), feed)


def minibatches() -> Trial:
    """Every row once, in batches of 64, in an order of its own."""

    def start() -> Names:
        torch.manual_seed(0)
        return {"DataLoader": torch.utils.data.DataLoader, "TensorDataset": torch.utils.data.TensorDataset}

    def feed(names: Names, step: int) -> None:
        names.update(obs=tensor(step, 160, 4), action=torch.arange(160) + 160 * step)

    def read(names: Names) -> Any:
        assert [len(action) for _, action in names["batches"]] == [64, 64, 32]
        obs, action = (torch.cat(parts) for parts in zip(*names["batches"], strict=True))
        order = action.argsort()
        return [obs[order].numpy(), action[order].numpy()]

    return Trial(start, read, feed)


def dropped_texts() -> Trial:
    """A logger at the level of warnings; the network learns meanwhile."""

    def start() -> Names:
        logger = logging.Logger("agent", logging.WARNING)
        return learner(logger=logger)

    def feed(names: Names, step: int) -> None:
        rows(names, step)
        with torch.no_grad():
            names["q"] = names["network"](names["obs"])

    return Trial(start, regressed, feed)


def unchecked() -> Trial:
    def feed(names: Names, step: int) -> None:
        names.update(obs=tensor(step, 32, 4), action=torch.arange(32) % 2)
        names["logits"] = names["network"](names["obs"])

    def close(names: Names) -> None:
        torch.distributions.Distribution.set_default_validate_args(True)

    return Trial(learner, lambda names: made_update(names, -names["log_prob"].mean()), feed, close=close)


def without_anomaly_detection() -> Trial:
    def close(names: Names) -> None:
        torch.autograd.set_detect_anomaly(False)

    return Trial(learner, regressed, rows, close=close, once=True)


def diagonal() -> Trial:
    def feed(names: Names, step: int) -> None:
        names.update(obs=tensor(step, 32, 4), action=tensor(step + 1000, 32, 2), variance=torch.tensor([0.5, 0.3]))
        names["mean"] = names["network"](names["obs"])

    return Trial(learner, lambda names: made_update(names, -names["log_prob"].mean()), feed, tolerance=ROUNDING)


def one_shape() -> Trial:
    """Batches of five sizes. Compiled for real it needs a C++ compiler and minutes: here by the backend that needs
    neither, which decides how fast and not what."""

    compile_by_default = torch.compile

    def start() -> Names:
        torch.compile = functools.partial(compile_by_default, backend="eager")
        return learner()

    def feed(names: Names, step: int) -> None:
        size = 32 + step % 5
        names.update(obs=tensor(step, size, 4), y=tensor(step + 1000, size, 2))

    def read(names: Names) -> Any:
        return made_update(names, ((names["q"] - names["y"]) ** 2).mean())

    def close(names: Names) -> None:
        torch.compile = compile_by_default

    return Trial(start, read, feed, close=close, tolerance=ROUNDING)


def answer_kept() -> Trial:
    def read(names: Names) -> Any:
        return [np.array(names["value"].item()), made_update(names, names["loss"])]

    return Trial(learner, read, rows)


def detached() -> Trial:
    """What is kept, and that the network learns the same."""

    def feed(names: Names, step: int) -> None:
        rows(names, step)
        names["loss"] = ((names["network"](names["obs"]) - names["y"]) ** 2).mean()

    def read(names: Names) -> Any:
        learned = made_update(names, names["loss"])
        return [np.array([loss.item() for loss in names["losses"]]), learned]

    return Trial(lambda: learner(losses=[]), read, feed)


def frames_as_bytes() -> Trial:
    def feed(names: Names, step: int) -> None:
        draw = np.random.default_rng(step)
        names.update(i=step, frame=draw.integers(0, 256, (84, 84), dtype=np.uint8), rows=draw.integers(0, step + 1, 16))

    return Trial(lambda: {"np": np}, lambda names: names["batch"].copy(), feed)


def read_in_order() -> Trial:
    def feed(names: Names, step: int) -> None:
        names["rows"] = np.random.default_rng(step).integers(0, 500, 64)

    return Trial(lambda: {"stored": drawn(0, 500, 8)}, lambda names: names["batch"].copy(), feed)


def keras_model() -> Names:
    keras = stand_in("keras")
    layers = [keras.Input((4,)), keras.layers.Dense(16, activation="relu"), keras.layers.Dense(2)]
    model = keras.Sequential(layers)
    model.compile(optimizer="sgd", loss="mse")
    return {"model": model}


def predicted() -> Trial:
    def feed(names: Names, step: int) -> None:
        names["obs"] = drawn(step, 4, 4)

    return Trial(keras_model, lambda names: np.array(names["q"]), feed, tolerance=ROUNDING)


def fitted() -> Trial:
    def feed(names: Names, step: int) -> None:
        names.update(obs=drawn(step, 32, 4), target=drawn(step + 1000, 32, 2))

    def read(names: Names) -> Any:
        return np.concatenate([np.ravel(values) for values in names["model"].get_weights()])

    return Trial(keras_model, read, feed, tolerance=ROUNDING)


def compiled(framework: str) -> Trial:
    """A regression, step by step: its weights in TensorFlow and in JAX."""

    def start() -> Names:
        package, weights = stand_in(framework), np.zeros((4, 2), np.float32)
        if framework == "jax":
            return {"jax": package, "jnp": package.numpy, "weights": package.numpy.asarray(weights)}
        return {"tf": package, "weights": package.Variable(weights)}

    def feed(names: Names, step: int) -> None:
        obs, target = drawn(step, 16, 4), drawn(step + 1000, 16, 2)
        make = names["jnp"].asarray if framework == "jax" else lambda values: values
        names.update(obs=make(obs), target=make(target))

    return Trial(start, lambda names: np.array(getattr(names["weights"], "numpy", lambda: names["weights"])()), feed)


def on_the_cpu() -> Trial:
    def read(names: Names) -> Any:
        names["network"].to(names["device"])
        return regressed(names)

    def close(names: Names) -> None:
        torch.set_num_threads(1)

    return Trial(learner, read, rows, close=close, once=True)


def one_copy() -> Trial:
    def feed(names: Names, step: int) -> None:
        names["obs"] = drawn(step, 8, 4)

    return Trial(lambda: {"torch": torch, "device": "cpu"}, lambda names: names["states"].numpy(), feed)


def few_workers() -> Trial:
    """The same games in four processes and in two; each seeded by its number."""

    def feed(names: Names, step: int) -> None:
        names["action"] = np.random.default_rng(step).integers(0, 2, 4)

    def read(names: Names) -> Any:
        return [np.asarray(names["obs"]), np.asarray(names["terminated"])]

    return Trial(dict, read, feed, close=lambda names: names["envs"].close())


def accelerated() -> Trial:
    """A model of Stable-Baselines3's that is given the same rows and draws the same batches of them."""

    def ready(names: Names) -> None:
        names["model"]._setup_learn(1)

    def feed(names: Names, step: int) -> None:
        now, then = drawn(step, 1, 4), drawn(step + 1, 1, 4)
        action, reward, done = np.array([[step % 2]]), np.array([float(step)]), np.array([step % 7 == 0])
        names["model"].replay_buffer.add(now, then, action, reward, done, [{}])
        np.random.seed(step)

    def read(names: Names) -> Any:
        names["model"].train(gradient_steps=1, batch_size=32)
        return [one.detach().numpy().copy() for one in names["model"].q_net.parameters()]

    return Trial(dict, read, feed, ready, once=True, tolerance=ROUNDING)


FURTHER: dict[str, Trial] = {
    "UPDATE018": accelerated(),
    "ACT003": predicted(),
    "MACHINE007": on_the_cpu(),
    "MACHINE008": few_workers(),
    "SYNC003": one_copy(),
    "UPDATE015": fitted(),
    "UPDATE016": compiled("tensorflow"),
    "UPDATE017": compiled("jax"),
    "ENV008": data_frame(),
    "ENV009": loaded_once(),
    "GROW002": detached(),
    "LOG005": dropped_texts(),
    "MACHINE006": read_in_order(),
    "STORE006": prioritised(),
    "STORE011": all_leaves(),
    "STORE007": distinct_rows(),
    "STORE008": gathered(),
    "STORE009": frames_as_bytes(),
    "STORE010": minibatches(),
    "UPDATE010": without_anomaly_detection(),
    "UPDATE011": unchecked(),
    "UPDATE012": diagonal(),
    "UPDATE013": one_shape(),
    "UPDATE014": answer_kept(),
}
