"""Objects that get faster methods without being replaced: their class becomes a subclass of the one they have.

Whoever holds the object, keeps it; `isinstance` and attributes stay. A copy or a pickle of such an object is one of the
plain class, so that files written with it are read where hotloop is not installed.
"""

from __future__ import annotations

import copyreg
from inspect import isfunction
from typing import Any

STATE = "_hotloop"
"""The attribute that holds what the faster methods need."""
_subclasses: dict[tuple[type, type], type] = {}


class InPlace:
    """What a class of faster methods derives from, after the class that it is made for."""

    __slots__ = ()
    _plain_class: type

    def __reduce_ex__(self, protocol: Any) -> Any:
        state = super().__reduce_ex__(2)[2]
        if isinstance(state, dict):
            state = {name: value for name, value in state.items() if name != STATE}
        return copyreg._reconstructor, (self._plain_class, object, None), state  # type: ignore[attr-defined]


def plain_class(thing: Any) -> type:
    """The class that an object has without us."""
    return thing._plain_class if isinstance(thing, InPlace) else type(thing)


def overridden(methods: type, thing: Any, original: type, *others: str) -> str:
    """The first of `methods`, or of other names, that the object's class has not from `original`; empty: none."""
    ours = [cls for cls in methods.__mro__ if issubclass(cls, InPlace) and cls is not InPlace]
    held = [item for cls in ours for item in vars(cls).items()]
    names = [name for name, value in held if isfunction(value) and hasattr(original, name)]
    cls = plain_class(thing)
    return next((name for name in (*names, *others) if getattr(cls, name) is not getattr(original, name)), "")


def quicken(thing: Any, methods: type[InPlace], state: Any) -> None:
    """Give `thing` the faster `methods`."""
    plain = plain_class(thing)
    made = _subclasses.get((methods, plain))
    if made is None:
        made = _subclasses[methods, plain] = type(plain.__name__, (methods, plain), {"_plain_class": plain})
    thing.__class__ = made
    setattr(thing, STATE, state)


def is_quick(thing: Any) -> bool:
    return isinstance(thing, InPlace)


def slow_down(thing: Any) -> None:
    """The inverse; does nothing to an object that has no faster methods."""
    if isinstance(thing, InPlace):
        thing.__class__ = thing._plain_class
        delattr(thing, STATE)
