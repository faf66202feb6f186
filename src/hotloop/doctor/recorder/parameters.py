"""What parameters are called: by their place in the module that owns them, looked up once for each optimizer."""

from __future__ import annotations

import gc
import sys
from typing import Any

from .places import OURS


def names_of(parameters: list[Any]) -> list[str]:
    """`hidden.0.weight`; with the network's name in front where two would be called the same, or have a number only."""
    places = {id(one): place for place, one in enumerate(parameters)}
    found: dict[int, tuple[Any, str]] = {}
    for root in _roots(places):
        for name, one in root.named_parameters():
            place = places.get(id(one))
            if place is not None and place not in found:
                found[place] = root, name
    names = [found[place][1] if place in found else f"parameter {place}" for place in range(len(parameters))]
    networks: dict[int, str] = {}
    for place, name in enumerate(names):
        if place in found and (names.count(name) > 1 or name[0].isdigit()):
            root = found[place][0]
            if id(root) not in networks:
                networks[id(root)] = _name_of(root, len(networks))
            found[place] = root, f"{networks[id(root)]}.{name}"
    return [found[place][1] if place in found else names[place] for place in range(len(parameters))]


def names_in(module: Any) -> list[str]:
    """Of all parameters of one network."""
    names = [name for name, _ in module.named_parameters()]
    prefix = f"{_name_of(module, 0)}." if any(name[0].isdigit() for name in names) else ""
    return [prefix + name for name in names]


def _roots(wanted: dict[int, int]) -> list[Any]:
    """Modules that are part of no other and hold wanted parameters; those that hold most of them first."""
    kind = sys.modules["torch"].nn.Module
    modules = [one for one in gc.get_objects() if issubclass(type(one), kind)]
    parts = {id(part) for one in modules for part in one.__dict__.get("_modules", {}).values()}
    held: list[tuple[int, int, int, Any]] = []
    for one in modules:
        if id(one) not in parts and "_modules" in one.__dict__:
            inside = [id(parameter) for parameter in one.parameters()]
            count = sum(parameter in wanted for parameter in inside)
            if count:
                held.append((-count, len(inside), len(held), one))
    return [one[-1] for one in sorted(held, key=lambda one: one[:3])]


def _name_of(root: Any, number: int) -> str:
    """What the program calls it: a variable, or an attribute of some object."""
    tables = [one if isinstance(one, dict) else getattr(one, "__dict__", None) for one in gc.get_referrers(root)]
    frame: Any = sys._getframe(1)
    while frame is not None:
        if not frame.f_code.co_filename.startswith(OURS):
            tables.append(frame.f_locals)
        frame = frame.f_back
    names = set()
    for table in tables:
        if isinstance(table, dict):
            names |= {name for name, value in list(table.items()) if value is root and isinstance(name, str)}
    known = sorted(name for name in names - {"root", "module", "self"} if not name.startswith("_"))
    return known[0] if known else f"{type(root).__name__} {number}".replace(" ", "-")
