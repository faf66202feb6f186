"""Single values of settings: the kinds there are, how each is read, and how it is called towards users."""

from __future__ import annotations

import dataclasses
import difflib
import math
import types
import typing
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any

from hotloop.core.errors import SettingsError

Count = Annotated[int, "count"]
"""A whole number that may be written `1e6`, `1_000_000` or `2M`."""

Ratio = Annotated[float | str, "ratio"]
"""A number that is kept exact: `0.25`, `8` or `1/32`."""

_LARGEST_COUNT, _LARGEST_EXPONENT = 2**63, 300
_SUFFIXES = {"k": 1_000, "K": 1_000, "M": 1_000_000, "G": 1_000_000_000}


def exact_fraction(value: float | str) -> Fraction:
    """The fraction a user meant: 0.03 is 3/100, not the nearest binary float."""
    above, _, below = str(value).partition("/")
    try:
        return _parse_decimal(above) / (_parse_decimal(below) if below else 1)
    except (ValueError, ArithmeticError):
        raise SettingsError(f"{value!r} is no ratio", "expected a number like 0.25 or 1/32") from None


def require_finite(settings: Any, table: str) -> None:
    """Refuse NaN and infinity in any number of `settings`: comparisons with bounds let NaN through."""
    for field in dataclasses.fields(settings):
        value = getattr(settings, field.name)
        if isinstance(value, float) and not math.isfinite(value):
            raise SettingsError(f"`{table}{field.name}` is {value}, expected a finite number")


def require_at_least(least: int, settings: Any, table: str, *names: str) -> None:
    for name in names:
        if getattr(settings, name) < least:
            raise SettingsError(f"`{table}{name}` is {getattr(settings, name)}, expected at least {least}")


def convert(value: Any, hint: Any, path: str) -> Any:
    """`value` as the type `hint`, or an error that says what was expected."""
    try:
        return _convert(value, hint)
    except (ValueError, TypeError, ArithmeticError):
        shown = shortened(value)
        raise SettingsError(f"`{path}` is {shown}, expected {type_name(hint)}", _value_hint(value, hint)) from None


def shortened(value: Any) -> str:
    """A value as a sentence can hold it."""
    try:
        text = repr(value)
    except ValueError:  # an integer with more digits than Python prints
        return "a number of thousands of digits"
    return text if len(text) <= 80 else text[:77] + "..."


def _convert(value: Any, hint: Any) -> Any:
    origin = typing.get_origin(hint)
    if origin is Annotated:
        return parse_count(value) if hint is Count else _parse_ratio(value)
    if origin is typing.Literal:
        return _one_of(value, typing.get_args(hint))
    if origin is tuple:
        return _convert_sequence(value, typing.get_args(hint)[0])
    if origin is dict:
        if not isinstance(value, Mapping):
            raise TypeError
        return {str(key): _plain(entry) for key, entry in value.items()}
    if hint is bool:
        return _parse_bool(value)
    return _number_or_text(value, hint)


def _number_or_text(value: Any, hint: Any) -> Any:
    if isinstance(value, bool) or (hint is str) != isinstance(value, str):
        raise TypeError
    if hint is int and (not isinstance(value, int)):
        raise TypeError
    if hint is float and not (isinstance(value, (int, float)) and math.isfinite(value)):
        raise TypeError
    return hint(value)


def _convert_sequence(value: Any, item: Any) -> tuple[Any, ...]:
    if isinstance(value, (str, bytes)) or not isinstance(value, (list, tuple)):
        raise TypeError
    return tuple(_convert(entry, item) for entry in value)


def _one_of(value: Any, choices: tuple[Any, ...]) -> Any:
    if value not in choices:
        raise ValueError
    return value


def _plain(value: Any) -> Any:
    if not isinstance(value, (bool, int, float, str)):
        raise TypeError
    return value


def _parse_bool(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError
    return value


def parse_count(value: Any) -> int:
    """`1e6`, `1_000_000`, `2M` and 1000000 are all counts; 1.5 is not, nor is anything beyond 64 bits."""
    if isinstance(value, bool):
        raise TypeError
    if isinstance(value, str):
        text = value.strip().replace("_", "")
        scale = _SUFFIXES.get(text[-1:], 1)
        number = _parse_decimal(text[:-1] if scale > 1 else text) * scale
    else:
        number = Fraction(value)
    if number.denominator != 1 or abs(number) >= _LARGEST_COUNT:
        raise ValueError
    return int(number)


def _parse_decimal(text: str) -> Fraction:
    """An exact number; refuses exponents whose digits would fill the memory."""
    decimal = Decimal(text)
    if not decimal.is_finite() or abs(decimal.adjusted()) > _LARGEST_EXPONENT:
        raise ValueError
    return Fraction(decimal)


def _parse_ratio(value: Any) -> float | str:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise TypeError
    try:
        fraction = exact_fraction(value)
    except SettingsError:
        raise ValueError from None
    return value if isinstance(value, str) and "/" in value else float(fraction)


def type_name(hint: Any) -> str:
    """How a type is called towards users."""
    origin = typing.get_origin(hint)
    if origin is Annotated:
        return "a whole number (like 50000, 1e6 or 2M)" if hint is Count else "a number (like 0.25 or 1/32)"
    if origin is typing.Literal:
        return "one of " + ", ".join(f"`{choice}`" for choice in typing.get_args(hint))
    if origin is tuple:
        return f"a list, each {type_name(typing.get_args(hint)[0])}"
    if origin in (dict, types.UnionType):
        return "a table of plain values"
    names = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}
    return names.get(hint, str(hint))


def _value_hint(value: Any, hint: Any) -> str:
    if typing.get_origin(hint) is typing.Literal:
        near = difflib.get_close_matches(str(value), [str(choice) for choice in typing.get_args(hint)], n=1)
        return f"did you mean `{near[0]}`?" if near else ""
    return ""
