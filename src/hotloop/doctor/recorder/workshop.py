"""What the program works with, read from its objects when the loop has ended: env, network, optimizer, library.

Remedies are filled with it. Whatever cannot be read is left out; nothing is called but plain attributes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .passes import Pass
from .sources import Made

if TYPE_CHECKING:
    from .torch_hooks import TorchHooks

GAMMAS = ("gamma", "GAMMA", "discount", "DISCOUNT", "discount_factor")
CAPACITIES = ("buffer_size", "BUFFER_SIZE", "memory_size", "MEMORY_SIZE", "capacity", "replay_size", "max_memory")
ACTIVATIONS = {"ReLU": "relu", "Tanh": "tanh", "SELU": "selu", "LeakyReLU": "leaky_relu"}
LINEAR = "Linear"
SPREAD = ("log_std", "logstd")
"""A policy's own parameter, beside its layers."""
PASSIVE = ("Flatten", "Identity", "Sequential", "ModuleList")


class Workshop(Pass):
    """Fields of Setup."""

    def __init__(self, hooks: TorchHooks) -> None:
        self.hooks = hooks

    def add_to(self, trace: dict[str, Any]) -> None:
        setup: dict[str, Any] = {}
        parts = (self._env, self._network, self._optimiser, self._target, self._library, self._constants)
        for part in parts:
            setup.update(self.watch.faults.guarded(f"reading {part.__name__}", part)() or {})
        trace["setup"] = setup

    def _env(self) -> dict[str, Any]:
        env = self.watch.first_env()
        spec, kind = _spec(env), type(env)
        single = getattr(env, "single_observation_space", None) or getattr(env, "observation_space", None)
        actions = getattr(env, "single_action_space", None) or getattr(env, "action_space", None)
        found = {
            "env_id": str(getattr(spec, "id", "") or ""),
            "env_class": f"{kind.__module__}.{kind.__qualname__}",
            "obs_shape": [int(length) for length in getattr(single, "shape", None) or ()],
            "num_actions": _whole(getattr(actions, "n", 0)),
        }
        return found if env is not None else {}

    def _network(self) -> dict[str, Any]:
        """Of the first network that an optimizer holds all of, where it is linear layers and activations."""
        held = {id(one) for optimiser in self.hooks.optimisers for one in _parameters(optimiser)}
        learning = []
        for module in (*self.hooks.owners, *self.hooks.modules.values()):
            own = list(module.parameters())
            if own and all(id(one) in held for one in own):
                learning.append(module)
        kinds = {kind for module in learning for kind in kinds_of(module)}
        chain = next(filter(None, map(layers_of, learning)), {})
        return {**chain, "network_kinds": sorted(kinds)}

    def _optimiser(self) -> dict[str, Any]:
        return {"lr": float(self.hooks.rates[0]) if self.hooks.rates else 0.0}

    def _target(self) -> dict[str, Any]:
        """Copies into a module are a target's, where they come seldom; those of several modules at once are one."""
        moves = sorted(set(self.hooks.copied_at))
        gaps = sorted(late - early for early, late in zip(moves, moves[1:]))
        every = gaps[len(gaps) // 2] if gaps else 0
        return {"target_every": every} if every >= 2 else {}

    def _library(self) -> dict[str, Any]:
        made: Made | None = self.hooks.made
        if made is None:
            return {}
        model, makers = made.algorithm, made.makers
        if model is None:
            return {"library": makers["optimiser"][0]} if "optimiser" in makers else {}
        found: dict[str, Any] = {"library": type(model).__module__.partition(".")[0], "algorithm": type(model).__name__}
        found.update({"library": makers["algorithm"][0]} if "algorithm" in makers else {})
        found["accelerates"] = is_plain_model(model)
        own = {
            "gamma": getattr(model, "gamma", None),
            "replay_capacity": getattr(model, "buffer_size", None),
            "target_every": getattr(model, "target_update_interval", None) if found["algorithm"] == "DQN" else None,
        }
        for name in ("eval_freq", "n_eval_episodes", "save_freq"):
            own[name] = next((vars(one)[name] for one in made.callbacks.values() if name in vars(one)), None)
        return {**found, **{name: value for name, value in own.items() if _is_plain(value)}}

    def _constants(self) -> dict[str, Any]:
        """Numbers that the program calls by the names that people give them."""
        main = vars(sys.modules.get("__main__", sys))
        found = {}
        for field, names, kind in (("gamma", GAMMAS, float), ("replay_capacity", CAPACITIES, int)):
            values = [space[name] for space in _spaces(main) for name in names if name in space]
            plain = [kind(value) for value in values if _is_plain(value) and value > 0]
            if plain and not (field == "gamma" and plain[0] > 1):
                found[field] = plain[0]
        model = getattr(self.hooks.made, "algorithm", None)
        return {} if model is not None else found


def is_plain_model(model: Any) -> bool:
    """Of Stable-Baselines3's own classes, with a multilayer policy on a CPU that Adam trains: what our adapter makes
    fast."""
    policy = model.policy
    if not all(type(one).__module__.startswith("stable_baselines3.") for one in (model, policy)):
        return False
    plain = (
        policy.features_extractor_class.__name__,
        type(model.observation_space).__name__,
        policy.optimizer_class.__name__,
        str(model.device),
    )
    special = getattr(model, "use_sde", False) or policy.optimizer_kwargs.get("weight_decay")
    return plain == ("FlattenExtractor", "Box", "Adam", "cpu") and not special


def kinds_of(module: Any) -> Iterator[str]:
    """Classes of what computes: leaves, and whatever has parameters beside those of its parts."""
    for one in module.modules():
        own = [name for name, _ in one.named_parameters(recurse=False) if not name.endswith(SPREAD)]
        leaf = next(iter(one.children()), None) is None
        name = type(one).__name__
        if (own or leaf) and name not in PASSIVE:
            yield name


def layers_of(module: Any) -> dict[str, Any]:
    """Sizes and activation of a chain of linear layers; empty where there is anything else."""
    sizes: list[int] = []
    activation = ""
    for one in module.modules():
        name = type(one).__name__
        children = next(iter(one.children()), None) is not None
        if children or name in PASSIVE:
            continue
        if name == LINEAR:
            ends = [int(one.in_features), int(one.out_features)]  # of numpy's, where a program multiplies shapes
            if sizes and sizes[-1] != ends[0]:
                return {}
            sizes += ends if not sizes else ends[1:]
        elif name in ACTIVATIONS:
            activation = activation or ACTIVATIONS[name]
        else:
            return {}
    return {"layers": sizes, "activation": activation} if len(sizes) >= 2 else {}


def _spec(env: Any) -> Any:
    """Of an env, of the first in a vector of them, or of what one was made from."""
    for one in (env, _first(getattr(env, "envs", None))):
        spec = getattr(one, "spec", None)
        if spec is not None:
            return spec
    return None


def _first(many: Any) -> Any:
    return many[0] if isinstance(many, (list, tuple)) and many else None


def _parameters(optimiser: Any) -> Iterator[Any]:
    for group in optimiser.param_groups:
        yield from group["params"]


def _spaces(main: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The program's own names, and those of parsed arguments and settings objects among them."""
    yield main
    for name, value in list(main.items()):
        if name.startswith("_") or isinstance(value, type):
            continue
        if isinstance(value, dict):
            yield value
        elif hasattr(value, "__dict__") and type(value).__module__ in ("__main__", "argparse", "types"):
            yield vars(value)


def _whole(value: Any) -> int:
    try:
        return int(value)
    except (TypeError, ValueError):
        return 0


def _is_plain(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
