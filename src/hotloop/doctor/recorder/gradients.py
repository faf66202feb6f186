"""Changes to what PyTorch is asked for that compute the same: no gradients while acting, fused optimizers."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from .order import TO_ROUNDING
from .passes import Pass
from .places import unseen
from .stacks import callers
from .trial import LOOKING, TRYING, Switch, Trial

MOST_FRAMES = 8
"""Of the stack that tells one forward of a program from another."""
FUSED = ("Adam", "AdamW", "SGD")


class NoGradients(Switch):
    """Forwards whose graph no update ever uses, told by where in the program they are called."""

    name = "no_grad while acting"
    what = "networks that choose actions record no gradients"

    def __init__(self) -> None:
        super().__init__()
        self.acting: dict[Any, int] = {}
        self.needed: set[Any] = set()
        self.unknown: set[Any] = set()
        """Whose results hold no tensor, or that an update followed before an env call did."""
        self.sites: set[Any] = set()
        """Where gradients are recorded for nothing."""

    def look(self, trial: Trial) -> None:
        sure = {site for site, count in self.acting.items() if count >= 5} if trial.has_seen_turns else set()
        self.sites = sure - self.needed - self.unknown

    def reason(self, trial: Trial) -> str:
        if self.sites:
            return ""
        if set(self.acting) & self.needed:
            return "the update uses the gradients that are recorded when actions are chosen"
        if self.acting:
            return "it is not certain that no update uses the gradients that are recorded when actions are chosen"
        return "no gradients are recorded when actions are chosen, as far as can be told"


class Forwards(Pass):
    """Tells `NoGradients` which forwards there are; leaves out their gradients while it is on."""

    watch: Trial

    def __init__(self, switch: NoGradients) -> None:
        self.switch = switch
        self._since: list[Any] = []
        self._inside = False

    def arrivals(self) -> dict[str, Callable[[ModuleType], None]]:
        return {"torch": self._arrive}

    def on_env(self, now: float) -> None:
        """What was called since the last env call and no backward reached may have chosen the action."""
        if self.watch.state == LOOKING:
            for site in self._since:
                self.switch.acting[site] = self.switch.acting.get(site, 0) + 1
        self._since.clear()

    def on_update(self, now: float) -> None:
        self.switch.unknown.update(self._since)
        self._since.clear()

    def _arrive(self, torch: ModuleType) -> None:
        module, enabled, disabled = torch.nn.Module, torch.is_grad_enabled, torch.no_grad
        call, switch = module.__call__, self.switch

        @functools.wraps(call)
        def forward(one: Any, *args: Any, **keywords: Any) -> Any:
            if self._inside or not self._asked() or not enabled():
                return call(one, *args, **keywords)
            self._inside = True
            try:
                site = site_of(sys._getframe(1))
                if site in switch.sites:
                    switch.seen += 1
                    if switch.active:
                        with disabled():
                            return call(one, *args, **keywords)
                result = call(one, *args, **keywords)
                if self.watch.state == LOOKING:
                    self._note(site, result)
                return result
            finally:
                self._inside = False

        module.__call__ = unseen(forward)

    def _asked(self) -> bool:
        state = self.watch.state
        return state == LOOKING or (state == TRYING and bool(self.switch.sites))

    def _note(self, site: Any, result: Any) -> None:
        tensors, needed = list(tensors_in(result)), self.switch.needed
        if not tensors:
            self.switch.unknown.add(site)
        recorded = [one for one in tensors if one.requires_grad]
        if not recorded:
            return
        self._since.append(site)
        for one in recorded:
            one.register_hook(lambda gradient: needed.add(site))


def site_of(frame: Any) -> Any:
    """The lines that lead to a call, some way out."""
    return tuple((one.f_code, one.f_lineno) for one in callers(frame)[:MOST_FRAMES])


def tensors_in(result: Any) -> Any:
    """Of a tensor, or of a tuple, list or dict of them."""
    if hasattr(result, "requires_grad"):
        yield result
    elif isinstance(result, (tuple, list)):
        for one in result:
            yield from tensors_in(one)
    elif isinstance(result, dict):
        for one in result.values():
            yield from tensors_in(one)


class Fused(Switch):
    name = "fused optimizer"
    what = "one kernel for all parameters instead of several operations for each (`fused=True`)"
    kind = TO_ROUNDING

    def __init__(self, updates: Any) -> None:
        super().__init__()
        self.updates = updates
        """Who knows the optimizers."""
        self._before: list[tuple[dict[str, Any], Any, Any]] = []

    def reason(self, trial: Trial) -> str:
        if not self.optimisers or not trial.updates:
            return "no optimizer of PyTorch's was seen to step"
        names = {type(one).__name__ for one in self.optimisers}
        if not names & set(FUSED):
            return f"{', '.join(sorted(names))} has no fused form"
        groups = [group for one in self.optimisers for group in one.param_groups if "fused" in group]
        if not groups:
            return f"this PyTorch ({sys.modules['torch'].__version__}) has no fused optimizers"
        if all(group["fused"] for group in groups):
            return "the optimizer is fused already"
        devices = {parameter.device.type for group in groups for parameter in group["params"]}
        if not devices <= fused_devices():
            return f"this PyTorch has no fused optimizers for {', '.join(sorted(devices))}"
        return ""

    def count(self, trial: Trial) -> int:
        return trial.updates

    @property
    def optimisers(self) -> list[Any]:
        return [one for one in self.updates.optimisers if one.state]  # those that have stepped

    def on(self) -> None:
        super().on()
        for one in self.optimisers:
            if type(one).__name__ in FUSED:
                for group in one.param_groups:
                    if "fused" in group and not group["fused"]:
                        self._before.append((group, group["fused"], group.get("foreach")))
                        group["fused"], group["foreach"] = True, False

    def off(self) -> None:
        super().off()
        for group, fused, foreach in self._before:
            group["fused"], group["foreach"] = fused, foreach
        self._before.clear()


def fused_devices() -> set[str]:
    """From 2.4 on PyTorch says so itself; before, there was CUDA alone."""
    tells = getattr(sys.modules.get("torch.utils._foreach_utils"), "_get_fused_kernels_supported_devices", None)
    return set(tells()) if tells is not None else {"cuda"}
