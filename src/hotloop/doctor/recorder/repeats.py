"""What is done needlessly, counted by line: the same forward or backward computed again, copies between devices."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import FrameType, ModuleType
from typing import Any

from .order import ACT, UPDATE
from .passes import Pass
from .places import USER, SourcePlaces

MOST_NUMBERS = 1_000_000
"""Larger inputs are not looked at: to compare them would take as long as the forward."""
CHANGING = ("Dropout", "Noisy", "BatchNorm", "AlphaDropout")
"""Modules that answer differently each time while they are trained."""
FORWARD, BACKWARD = "repeated:forward", "repeated:backward"
TO_DEVICE, TO_HOST, BETWEEN = "copied:to device", "copied:to host", "copied:between devices"
HOST = "cpu"


class ByLine(Pass):
    """Counts by the user's own line; the phase is known with the next optimizer step or env call."""

    def __init__(self, places: SourcePlaces) -> None:
        self.places = places
        self._pending: dict[tuple[str, str], list[int]] = {}
        self._found: dict[tuple[str, str, str], list[int]] = {}
        self._counting = False

    def note_here(self, name: str, size: int = 0) -> None:
        """Once more, and how large it was."""
        _add(self._pending, (name, self._line()), 1, size)

    def _line(self) -> str:
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and self.places.whose(frame.f_code) != USER:
            frame = frame.f_back
        return "" if frame is None else self.places.where(frame.f_code.co_filename, frame.f_lineno)

    def on_env(self, now: float) -> None:
        self._charge_to(ACT)
        self._counting = sys.getprofile() is not None

    def on_update(self, now: float) -> None:
        self._charge_to(UPDATE)

    def _charge_to(self, phase: str) -> None:
        for (name, where), (count, largest) in self._pending.items():
            _add(self._found, (name, where, phase), count, largest)
        self._pending.clear()

    def add_to(self, trace: dict[str, Any]) -> None:
        rows = [
            dict(name=name, where=where, phase=phase, count=count, largest=largest)
            for (name, where, phase), (count, largest) in self._found.items()
        ]
        trace["calls"] = [*trace.get("calls", ()), *rows]


def _add(found: dict[Any, list[int]], key: Any, count: int, largest: int) -> None:
    before = found.get(key, (0, 0))
    found[key] = [before[0] + count, max(before[1], largest)]


class Copies(ByLine):
    """Tensors that are moved from one device to another by `to`, `cpu` and `cuda`, with their bytes."""

    def __init__(self, places: SourcePlaces) -> None:
        super().__init__(places)
        self._kept: dict[str, Any] = {}

    def begin(self) -> None:
        tensor = getattr(sys.modules.get("torch"), "Tensor", None)
        for name in ("to", "cpu", "cuda") if tensor is not None else ():
            self._kept[name] = vars(tensor).get(name)
            setattr(tensor, name, self._copying(getattr(tensor, name)))

    def stop(self) -> None:
        """Give the methods back: those of PyTorch's own base class show through again."""
        tensor = sys.modules["torch"].Tensor if self._kept else None
        for name, own in self._kept.items():
            if own is None:
                delattr(tensor, name)
            else:
                setattr(tensor, name, own)
        self._kept = {}

    def _copying(self, move: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(move)
        def hook(one: Any, *args: Any, **keywords: Any) -> Any:
            moved = move(one, *args, **keywords)
            if self._counting and not self.watch.off_main_thread():
                try:
                    self._look_at(one.device.type, moved)
                except Exception as error:
                    self._counting = False
                    self.watch.faults.note("copies", error)
            return moved

        return hook

    def _look_at(self, start: str, moved: Any) -> None:
        end = moved.device.type
        if start != end:
            name = TO_DEVICE if start == HOST else TO_HOST if end == HOST else BETWEEN
            self.note_here(name, moved.numel() * moved.element_size())


class Repeats(ByLine):
    """Remembers what was computed since the last optimizer step or env call: inputs by their bytes."""

    def __init__(self, places: SourcePlaces) -> None:
        super().__init__(places)
        self._seen: set[Any] = set()
        self._losses: list[Any] = []
        """Held, so that no other tensor takes their place in memory meanwhile."""
        self._inside = self._failed = False

    def arrivals(self) -> dict[str, Callable[[ModuleType], None]]:
        return {"torch": self.arrive}

    def arrive(self, torch: ModuleType) -> None:
        call, backward = torch.nn.Module.__call__, torch.Tensor.backward

        @functools.wraps(call)
        def forward(module: Any, *args: Any, **keywords: Any) -> Any:
            if self._inside or not self._counting or keywords or self.watch.off_main_thread():
                return call(module, *args, **keywords)
            self._inside = True
            try:
                self._guarded(self._look_at_forward, module, args)
                return call(module, *args)
            finally:
                self._inside = False

        @functools.wraps(backward)
        def hook(loss: Any, *args: Any, **keywords: Any) -> Any:
            if self._counting and not self.watch.off_main_thread():
                self._guarded(self._look_at_backward, loss)
            return backward(loss, *args, **keywords)

        hook.watched = True  # type: ignore[attr-defined]
        torch.nn.Module.__call__, torch.Tensor.backward = forward, hook

    def _guarded(self, look: Callable[..., None], *args: Any) -> None:
        if not self._failed:
            try:
                look(*args)
            except Exception as error:
                self._failed = True
                self.watch.faults.note("repeats", error)

    def _look_at_forward(self, module: Any, args: tuple[Any, ...]) -> None:
        inputs = tuple(map(_bytes_of, args))
        if not args or None in inputs or (module.training and _changes(module)):
            return
        key = (id(module), inputs)
        if key in self._seen:
            self.note_here(FORWARD)
        self._seen.add(key)

    def _look_at_backward(self, loss: Any) -> None:
        if any(loss is one for one in self._losses):
            self.note_here(BACKWARD)
        else:
            self._losses.append(loss)

    def _charge_to(self, phase: str) -> None:
        super()._charge_to(phase)
        self._seen.clear()
        self._losses.clear()


def _bytes_of(value: Any) -> Any:
    """Shape, type and content of a tensor; None for anything else, and for what is too large."""
    numel = getattr(value, "numel", None)
    if not callable(numel) or numel() > MOST_NUMBERS or value.device.type != "cpu":
        return None
    return tuple(value.shape), str(value.dtype), hash(value.detach().contiguous().numpy().tobytes())


def _changes(module: Any) -> bool:
    return any(type(one).__name__.startswith(CHANGING) for one in module.modules())
