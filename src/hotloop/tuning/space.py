"""What is searched: `optimizer.learning_rate=1e-5..1e-2:log`, `n_step=1,3,5`, `network.hidden=64x64,256`."""

from __future__ import annotations

import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hotloop.core.errors import SettingsError
from hotloop.core.overrides import flag_of
from hotloop.core.settings import flatten, leaf_types, unknown_key
from hotloop.core.values import Count, Ratio, Stretch, exact_fraction, parse_count, type_name
from hotloop.presets.registry import tree_from_argv

HINT = "a range is `name=low..high`, with `:log` or `:step=N` after it; a list is `name=a,b,c` (`64x64` for a list)"
REFUSED = {
    "seed": "`--seeds N` trains each trial with seeds 0 to N - 1",
    "run_dir": "`--storage FOLDER` holds the runs",
    "trust": "give `--trust` as a setting",
    "algorithm": "search one algorithm at a time",
    "evaluation": "what trials are judged by must be the same for all",
}


@dataclass(frozen=True)
class Span:
    """Numbers between two ends, both included."""

    path: str
    low: float
    high: float
    whole: bool
    log: bool = False
    step: float | None = None

    def suggest(self, trial: Any) -> Any:
        if self.whole:
            return trial.suggest_int(self.path, int(self.low), int(self.high), step=int(self.step or 1), log=self.log)
        return trial.suggest_float(self.path, self.low, self.high, step=self.step, log=self.log)

    def text(self, value: Any) -> str:
        """As it is trained: four digits of a number are enough, and fit a command line."""
        return str(int(value)) if self.whole else f"{min(max(float(f'{value:.4g}'), self.low), self.high):g}"

    def words(self, value: Any) -> list[str]:
        return [flag_of(self.path), self.text(value)]

    def samples(self) -> list[Any]:
        return [self.low, self.high]

    def holds(self, value: Any) -> Any:
        """The parameter that stands for a preset's own value; None where it lies outside."""
        number = _as_number(value) if isinstance(value, str) else value
        if isinstance(number, bool) or not isinstance(number, int | float) or not self.low <= number <= self.high:
            return None
        if self.step and (number - self.low) % self.step:
            return None
        return int(number) if self.whole else float(number)


@dataclass(frozen=True)
class Choices:
    """One of a few values, as they are written on a command line."""

    path: str
    texts: tuple[str, ...]
    is_list: bool = False

    def suggest(self, trial: Any) -> Any:
        return trial.suggest_categorical(self.path, self.texts)

    def text(self, value: Any) -> str:
        return str(value)

    def words(self, value: Any) -> list[str]:
        return [flag_of(self.path), *(value.split("x") if self.is_list else [value])]

    def samples(self) -> list[Any]:
        return list(self.texts)

    def holds(self, value: Any) -> Any:
        if self.is_list:
            value = "x".join(map(str, value))
        for text in self.texts:
            if text == str(value) or (isinstance(value, bool) and text.lower() == str(value).lower()):
                return text
            if isinstance(value, int | float) and not isinstance(value, bool) and _as_number(text) == value:
                return text
        return None


Dimension = Span | Choices


def parse_search(text: str, cls: Any) -> Dimension:
    """One `--search` for settings of type `cls`."""
    name, equals, values = text.partition("=")
    path = name.strip().removeprefix("--").replace("-", "_")
    if not equals or not values.strip():
        raise SettingsError(f"`--search {text}` names no values", HINT)
    for refused, hint in REFUSED.items():
        if path == refused or path.startswith(refused + "."):
            raise SettingsError(f"`{path}` is not searched", hint)
    kind = _kind(path, cls)
    values = values.strip()
    return _span(path, values, kind, text) if ".." in values else _choices(path, values, kind, text)


def _kind(path: str, cls: Any) -> Any:
    """The type of a setting; None for an option of an env, which may be any plain value."""
    leaves = leaf_types(cls)
    if path in leaves:
        return leaves[path]
    if typing.get_origin(leaves.get(path.rpartition(".")[0])) is dict:
        return None
    raise unknown_key(cls, path, "`--search`")


def _span(path: str, values: str, kind: Any, text: str) -> Span:
    if kind not in (int, float, Count, Ratio, Stretch, None):
        raise SettingsError(f"`--search {text}` gives a range, but `{path}` is {type_name(kind)}", HINT)
    ends, _, rest = values.partition(":")
    low_text, _, high_text = ends.partition("..")
    whole = kind in (int, Count, Stretch) or (kind is None and low_text.isdigit() and high_text.isdigit())
    low, high = (_number(end, whole, path, text) for end in (low_text, high_text))
    if not low < high:
        raise SettingsError(f"`--search {text}` goes from {low:g} to {high:g}, expected the lower one first", HINT)
    log, step = rest == "log", None
    if rest.startswith("step="):
        step = _number(rest.removeprefix("step="), whole, path, text)
    elif rest and not log:
        raise SettingsError(f"`--search {text}` ends in `:{rest}`, expected `:log` or `:step=N`", HINT)
    if (log and low <= 0) or (step is not None and step <= 0):
        raise SettingsError(f"`--search {text}`: a logarithmic range and a step must be above 0", HINT)
    return Span(path, low, high, whole, log, step)


def _number(text: str, whole: bool, path: str, search: str) -> float:
    try:
        return parse_count(text) if whole else float(exact_fraction(text))
    except (SettingsError, ValueError, TypeError, ArithmeticError):
        expected = "a whole number" if whole else "a number"
        raise SettingsError(f"`--search {search}`: `{text}` of `{path}` is not {expected}", HINT) from None


def _choices(path: str, values: str, kind: Any, text: str) -> Choices:
    texts = tuple(value.strip() for value in values.split(","))
    if len(texts) < 2 or not all(texts) or len(set(texts)) < len(texts):
        raise SettingsError(f"`--search {text}` needs at least two different values", HINT)
    return Choices(path, texts, typing.get_origin(kind) is tuple)


def check_space(dimensions: Sequence[Dimension], source: str, words: Sequence[str]) -> None:
    """Every value of a list and both ends of a range must be settings that could be trained."""
    paths = [dimension.path for dimension in dimensions]
    twice = {path for path in paths if paths.count(path) > 1}
    if twice:
        raise SettingsError(f"`{min(twice)}` is searched twice", "give one `--search` for each setting")
    for dimension in dimensions:
        for value in dimension.samples():
            given = dimension.words(value)
            try:
                tree_from_argv(source, [*words, *given])
            except SettingsError as error:
                raise SettingsError(f"`--search` would try `{' '.join(given)}`: {error.message}", error.hint) from None


def of_preset(dimensions: Sequence[Dimension], settings: Mapping[str, Any]) -> dict[str, Any] | None:
    """The parameters with which a trial is the preset as it is; None where the search does not contain it."""
    flat = flatten(settings)
    values = {dimension.path: _held(dimension, flat.get(dimension.path)) for dimension in dimensions}
    return None if any(value is None for value in values.values()) else values


def _held(dimension: Dimension, value: Any) -> Any:
    return None if value is None else dimension.holds(value)


def words_of(dimensions: Sequence[Dimension], values: Mapping[str, Any]) -> list[str]:
    return [word for dimension in dimensions for word in dimension.words(values[dimension.path])]


def _as_number(text: str) -> float | None:
    try:
        return float(exact_fraction(text))
    except SettingsError:
        return None
