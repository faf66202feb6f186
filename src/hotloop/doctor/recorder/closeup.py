"""What a program did just before one event: forwards with what went in and came out, losses, gradients, settings of the
optimizer, states of the random generators, and the value that was asked for."""

from __future__ import annotations

import functools
import random
import sys
from collections.abc import Callable
from hashlib import blake2b
from types import ModuleType
from typing import Any

from .fingerprints import as_numbers, fingerprint
from .passes import Pass

MOST_NUMBERS = 1_000_000
FEW = 256
MOST_FORWARDS = 200


class Closeup(Pass):
    """Notes nothing until the event may be the next one."""

    def __init__(self) -> None:
        self.close = True
        self.forwards: list[dict[str, Any]] = []
        self.losses: list[float] = []
        self.kept: dict[str, Any] = {}
        self._inside = False

    def arrivals(self) -> dict[str, Callable[[ModuleType], None]]:
        return {"torch": self._arrive}

    def next_event(self, close: bool) -> None:
        self.close = close
        self.forwards, self.losses = [], []

    def _arrive(self, torch: ModuleType) -> None:
        call, backward = torch.nn.Module.__call__, torch.Tensor.backward

        @functools.wraps(call)
        def forward(module: Any, *args: Any, **keywords: Any) -> Any:
            if not self.close or self._inside or self.watch.over:
                return call(module, *args, **keywords)
            self._inside = True
            try:
                answer = call(module, *args, **keywords)
            finally:
                self._inside = False
            self._note_forward(module, (args, keywords), answer)
            return answer

        @functools.wraps(backward)
        def noted_backward(loss: Any, *args: Any, **keywords: Any) -> Any:
            if self.close and not self.watch.over and loss.numel() == 1:
                self.losses.append(float(loss.detach()))
            return backward(loss, *args, **keywords)

        torch.nn.Module.__call__ = forward
        torch.Tensor.backward = noted_backward

    def _note_forward(self, module: Any, given: Any, answer: Any) -> None:
        if len(self.forwards) >= MOST_FORWARDS:
            return
        parameters = list(module.parameters())
        noted = {
            "module": type(module).__name__,
            "parameters": fingerprint(parameters, near=True) if parameters else "",
            "given": fingerprint(given, near=True),
            "answer": fingerprint(answer, near=True),
            "numbers": numbers_of(answer, FEW),
        }
        self.forwards.append(noted)

    def keep_state(self) -> None:
        self.kept = {"forwards": self.forwards, "losses": self.losses, "generators": generators()}

    def keep_env_call(self, value: Any) -> None:
        self.keep_state()
        self.kept["value"] = numbers_of(value, MOST_NUMBERS)

    def keep_update(self, name: str, names: list[str], parameters: list[Any], optimiser: Any) -> None:
        self.keep_state()
        gradients = [fingerprint(getattr(one, "grad", None), near=True) for one in parameters]
        self.kept.update(names=names, gradients=gradients, settings=_settings(optimiser))
        if name in names:
            self.kept["value"] = numbers_of(parameters[names.index(name)], MOST_NUMBERS)
            self.kept["shape"] = list(parameters[names.index(name)].shape)

    def add_to(self, trace: dict[str, Any]) -> None:
        trace["closeup"] = self.kept


def numbers_of(value: Any, most: int) -> list[float] | None:
    """None where they are too many, or none."""
    try:
        found = as_numbers(value)
    except Exception:
        return None
    if found is None or len(found[2]) > 8 * most:
        return None
    return [float(number) for number in getattr(found[3], "reshape", lambda _: found[3])(-1)]


def _settings(optimiser: Any) -> dict[str, Any]:
    """Of all groups: what is a number, a flag or a pair of them."""
    found: dict[str, Any] = {"optimiser": type(optimiser).__name__} if optimiser is not None else {}
    for place, group in enumerate(getattr(optimiser, "param_groups", ())):
        for name, value in group.items():
            if name != "params" and isinstance(value, (bool, int, float, tuple, type(None))):
                found[name if place == 0 else f"{name} of group {place}"] = value
    return found


def generators() -> dict[str, str]:
    """The state of each generator that a program shares with its libraries, hashed."""
    states = {"random": repr(random.getstate()).encode()}
    numpy, torch = sys.modules.get("numpy.random"), sys.modules.get("torch")
    if numpy is not None:
        states["numpy"] = repr(
            [str(part) for part in numpy.get_state()[1:]] + [numpy.get_state()[1].tobytes()]
        ).encode()
    if torch is not None:
        states["torch"] = torch.get_rng_state().numpy().tobytes()
    return {name: blake2b(state, digest_size=8).hexdigest() for name, state in states.items()}
