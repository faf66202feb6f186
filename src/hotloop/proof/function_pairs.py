"""Two functions held equal on the same inputs: values, gradients, dtypes, shapes, containers, what becomes of inputs.

    @hotloop.pair(plain, inputs=[(x, y)])
    def fast(x, y): ...

`hotloop prove my_pairs.py` proves every pair of a file; `hotloop.assert_same` is for a test of yours.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from hotloop.core.arithmetic import arithmetic_on
from hotloop.core.errors import ArgumentError
from hotloop.core.extras import torch_if_installed
from hotloop.proof import pair_cost
from hotloop.proof.difference import Difference, LetPass, Tolerance, first_difference
from hotloop.proof.made_inputs import Arguments, made_from, smallest
from hotloop.proof.pair_calls import CallAnswer, Calls, name_of
from hotloop.proof.randomness import generators_kept
from hotloop.proof.values import shown_value
from hotloop.proof.verdict import Proof

Function = Callable[..., Any]
SIZES = (16, 256)
_pairs: dict[str, list[Pair]] = {}
"""By the name of the module that made them."""


@dataclass(frozen=True)
class Pair:
    """Two functions and the inputs to hold them against each other on."""

    plain: Function
    fast: Function
    inputs: Any
    tolerance: float = 1e-6
    gradients: bool = True
    made: bool = True
    sizes: tuple[int, ...] = SIZES
    name: str = ""

    @property
    def title(self) -> str:
        return self.name or name_of(self.fast)

    def given(self) -> list[tuple[str, Arguments]]:
        """Each with what it is called."""
        if callable(self.inputs):
            return [(f"of size {size}", Arguments.of(self.inputs(size))) for size in self.sizes]
        inputs = self.inputs if isinstance(self.inputs, list) else [self.inputs]
        return [(f"number {number}" if len(inputs) > 1 else "", Arguments.of(one)) for number, one in enumerate(inputs)]


def pair(
    plain: Function,
    inputs: Any,
    *,
    tolerance: float = 1e-6,
    gradients: bool = True,
    made: bool = True,
    sizes: tuple[int, ...] = SIZES,
    name: str = "",
) -> Callable[[Function], Function]:
    """Mark a function as the fast version of `plain`, for `hotloop prove FILE.py`; the function itself is unchanged.

        @hotloop.pair(plain_returns, inputs=[(rewards, 0.99)])
        def fast_returns(rewards, gamma): ...

    The arguments are those of `hotloop.prove`; `name` is what the pair is called, else as its fast function is.
    """
    module = sys._getframe(1).f_globals.get("__name__", "")

    def mark(fast: Function) -> Function:
        made_pair = Pair(plain, fast, inputs, tolerance, gradients, made, sizes, name)
        _pairs.setdefault(module, []).append(made_pair)
        return fast

    return mark


def pairs_of(module: str) -> list[Pair]:
    """Those that a module of this name has made, in order."""
    return _pairs.get(module, [])


def assert_same(
    plain: Function,
    fast: Function,
    inputs: Any,
    *,
    tolerance: float = 1e-6,
    gradients: bool = True,
    made: bool = True,
    sizes: tuple[int, ...] = SIZES,
) -> None:
    """For a test: raise an AssertionError that names the first difference of two functions; nothing is timed.

        def test_fast_returns():
            hotloop.assert_same(plain_returns, fast_returns, (np.ones(8), 0.99))

    The arguments are those of `hotloop.prove`.
    """
    __tracebackhide__ = True
    checked = check_pair(Pair(plain, fast, inputs, tolerance, gradients, made, sizes))
    if checked.difference is not None:
        shown = checked.difference
        lines = [f"{checked.fast} is not the same as {checked.plain}: {shown.sentence()}"]
        lines += [f"smallest input found: {shown.reproduction}"] if shown.reproduction else []
        raise AssertionError("\n".join([*lines, *checked.notes]))


def prove_functions(
    plain: Function,
    fast: Function,
    inputs: Any,
    *,
    tolerance: float = 1e-6,
    gradients: bool = True,
    made: bool = True,
    sizes: tuple[int, ...] = SIZES,
    seconds: float = 1.0,
) -> Proof:
    """What `hotloop.prove` does with two functions."""
    return prove_pair(Pair(plain, fast, inputs, tolerance, gradients, made, sizes), seconds)


def prove_pair(pair: Pair, seconds: float = 1.0) -> Proof:
    """Equality first; then speed, memory and growth with size, on one thread."""
    with arithmetic_on(threads=1):
        proof = check_pair(pair)
        if not proof.passed or not seconds:
            return proof
        cost, notes = pair_cost.of_functions(
            Calls(pair.plain, pair.fast), pair.given(), pair.inputs, pair.sizes, seconds
        )
    return replace(proof, cost=cost, notes=(*proof.notes, *notes))


def check_pair(pair: Pair) -> Proof:
    """Equality alone."""
    for function in (pair.plain, pair.fast):
        if not callable(function):
            raise ArgumentError(f"{function!r} is no function", "give two functions and their inputs")
    torch_if_installed()  # a function may import it when it is called, and then draw from its generator
    with generators_kept():
        return _Check(pair).run()


class _Check:
    """One pair over all its inputs, given ones first."""

    def __init__(self, pair: Pair) -> None:
        self._pair, self._calls = pair, Calls(pair.plain, pair.fast)
        self._let_pass = LetPass()
        self._tolerance = Tolerance(pair.tolerance, let_pass=self._let_pass)
        self._given = self._made = self._gradients = self._both_raised = 0
        self._notes: list[str] = []

    def run(self) -> Proof:
        difference = next((one for one in self._differences() if one is not None), None)
        if difference is None and not self._given + self._made:
            raise ArgumentError(
                f"both functions raise on every input, so that nothing was compared: {self._calls.last_error}",
                "mend the inputs, or what the functions do with them",
            )
        pair = self._pair
        evidence = {"given inputs": self._given, "inputs made from them": self._made, "gradients": self._gradients}
        if self._both_raised:
            self._note(f"{self._both_raised} further inputs raise in both and count as no evidence")
        plain, fast = name_of(pair.plain), name_of(pair.fast)
        facts = {**evidence, "tolerance": pair.tolerance} | self._let_pass.as_data()
        notes = tuple(self._notes)
        return Proof("functions", pair.title, plain, fast, difference, facts, notes, rounding=self._let_pass.any)

    def _differences(self) -> Iterator[Difference | None]:
        given = self._pair.given()
        if not given:
            raise ArgumentError("`inputs` is empty", "give at least one input")
        for name, arguments in given:
            yield self._on(arguments, f"on the given input {name}".strip(), is_made=False)
        if not self._pair.made:
            return
        for name, arguments in given:
            for done, made in made_from(arguments):
                yield self._on(made, f"on the given input {name}".strip() + f" with {done}", is_made=True)

    def _on(self, arguments: Arguments, when: str, is_made: bool) -> Difference | None:
        plain, fast = self._calls.both(arguments)
        if plain.error is not None and fast.error is not None:
            self._both_raised += 1
            return None
        if plain.error is not None and is_made:
            self._note(f"{when} plain raises {plain.error}, and fast answers: that input is ours, and no evidence")
            return None
        self._given += not is_made
        self._made += is_made
        difference = self._compare(plain, fast) or self._compare_gradients(arguments, count=True)
        if difference is None:
            self._note_draws(plain, fast)
            return None
        return self._described(difference, arguments, when)

    def _compare(self, plain: CallAnswer, fast: CallAnswer) -> Difference | None:
        if (plain.error is None) != (fast.error is None):
            return Difference("result", "raised", _said(plain), _said(fast))
        if plain.error is not None:
            return None
        found = first_difference("result", plain.result, fast.result, self._tolerance)
        return found or _first_named("{} afterwards", plain.inputs, fast.inputs, self._tolerance)

    def _compare_gradients(self, arguments: Arguments, count: bool = False) -> Difference | None:
        if not self._pair.gradients or not self._calls.may_have_gradients(arguments):
            return None
        plain, fast = self._calls.both_gradients(arguments)
        if plain.error is not None or not plain.result:
            if count and plain.error is not None:
                self._note(f"gradients were not compared, since plain has none: {plain.error}")
            return None
        self._gradients += count
        if fast.error is not None:
            return Difference("gradients", "raised", "has them", f"raised {fast.error}")
        tolerance = self._calls.tolerance_of(plain.result, self._pair.tolerance, self._let_pass)
        return _first_named("gradient of {}", plain.result, fast.result, tolerance)

    def _described(self, difference: Difference, arguments: Arguments, when: str) -> Difference:
        """With the smallest input that shows it; what the answer then is, is told of that one."""

        def found_on(less: Arguments) -> Difference | None:
            return self._compare(*self._calls.both(less)) or self._compare_gradients(less)

        again = found_on(arguments)
        if again is None:
            self._note("called again on the same input the two agree: one of them keeps state between calls (a cache?)")
            return difference.at(when, arguments.shown())
        if not self._calls.plain_repeats(arguments):
            self._note(
                "plain itself answers differently when called again: it draws from a generator that no seed reaches"
            )
        kinds = (difference.kind, difference.what.split("[")[0])
        least, rows = smallest(arguments, lambda less: _kinds(found_on(less)) == kinds)
        if 0 < rows < arguments.num_rows():
            when += f", there on {rows} row{'s' * (rows > 1)} of it"
        return (found_on(least) or difference).at(when, least.shown())

    def _note_draws(self, plain: CallAnswer, fast: CallAnswer) -> None:
        for name in plain.generators:
            if first_difference(name, plain.generators[name], fast.generators.get(name)) is not None:
                self._note(f"{name} is left in another state: what is drawn next differs")

    def _note(self, text: str) -> None:
        if text not in self._notes:
            self._notes.append(text)


def _kinds(difference: Difference | None) -> tuple[str, str] | None:
    return None if difference is None else (difference.kind, difference.what.split("[")[0])


def _said(answer: CallAnswer) -> str:
    return "answered" if answer.error is None else f"raised {answer.error}"


def _first_named(what: str, plain: dict[str, Any], fast: dict[str, Any], tolerance: Tolerance) -> Difference | None:
    """Of values by name; one that only one side has (a gradient) is told as such."""
    for name in [*plain, *[name for name in fast if name not in plain]]:
        mine, theirs = plain.get(name), fast.get(name)
        if (mine is None) != (theirs is None):
            said = ["none" if one is None else shown_value(one) for one in (mine, theirs)]
            return Difference(what.format(name), "value", said[0], said[1])
        if found := first_difference(what.format(name), mine, theirs, tolerance):
            return found
    return None
