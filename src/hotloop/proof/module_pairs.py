"""Two networks held equal with the same parameters: forward, gradients, optimizer steps, in train and in eval mode.

The plain network's parameters are put into the fast one: by name, else by order and shape, or by a function of yours
from the one's `state_dict` to the other's. The optimizer is gradient descent whose first step moves the parameters by a
hundredth of their length: Adam would blow the rounding of vanishing gradients up to steps of full size.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.dropout import _DropoutNd

from hotloop.core.arithmetic import arithmetic_on
from hotloop.core.errors import ArgumentError, HotloopError
from hotloop.core.user_files import is_file, run_file, split_file
from hotloop.proof import pair_cost
from hotloop.proof.difference import LetPass
from hotloop.proof.function_pairs import Pair, check_pair
from hotloop.proof.module_inputs import inputs_for
from hotloop.proof.module_training import training_difference
from hotloop.proof.pair_calls import Calls, name_of
from hotloop.proof.randomness import SEED, generators_kept, seed_library
from hotloop.proof.values import copied
from hotloop.proof.verdict import Proof

State = dict[str, Tensor]
Mapping = Callable[[State], State]
"""From what the plain network's `state_dict` holds to what the fast one's shall hold."""
Target = str | nn.Module | Callable[[], nn.Module]
STEPS = 5


@dataclass(frozen=True)
class Mapped:
    """How parameters find each other: by name and shape, by order and shape, or by a function."""

    how: str
    apply: Mapping


def prove_modules(
    plain: Target,
    fast: Target,
    inputs: Any = None,
    *,
    mapping: Mapping | str | None = None,
    optimizer_steps: int = STEPS,
    tolerance: float = 1e-6,
    seconds: float = 1.0,
) -> Proof:
    """What `hotloop.prove` does with two networks: forward, gradients, optimizer steps, both modes; then time."""
    with generators_kept(), arithmetic_on(threads=1):
        modules = _made(plain), _made(fast)
        mapped = mapping_between(*modules, _loaded(mapping) if isinstance(mapping, str) else mapping)
        load_mapped(*modules, mapped)
        arguments = inputs_for(modules[0], inputs)
        return _proved(modules, mapped, arguments, (_name(plain), _name(fast)), optimizer_steps, tolerance, seconds)


def _proved(
    modules: tuple[nn.Module, nn.Module],
    mapped: Mapped,
    arguments: tuple[Any, ...],
    names: tuple[str, str],
    steps: int,
    tolerance: float,
    seconds: float,
) -> Proof:
    proof = Proof("modules", names[1], names[0], names[1], None, {})
    notes: list[str] = []
    let_pass = LetPass()
    counts = {"forwards": 0, "gradients": 0, "optimizer steps": 0}
    for mode in ("eval", "train"):
        pair = [module.train(mode == "train") for module in modules]
        checked, note = _forward(pair[0], pair[1], arguments, tolerance)
        notes += [note] if note else []
        let_pass.any |= checked.rounding
        counts["forwards"] += checked.evidence["given inputs"] + checked.evidence["inputs made from them"]
        difference = checked.difference
        if difference is None:
            difference = training_difference((pair[0], pair[1]), arguments, steps, mapped.apply, tolerance, let_pass)
            counts["gradients"] += 1
            counts["optimizer steps"] += steps
        if difference is not None:
            when = f"{difference.when}, in {mode} mode".removeprefix(", ")
            return replace(proof, difference=difference.at(when), evidence=_facts(counts, mapped, modules, tolerance))
    proof = replace(proof, evidence=_facts(counts, mapped, modules, tolerance), rounding=let_pass.any)
    if not seconds:
        return replace(proof, notes=tuple(notes))
    calls = Calls(modules[0].eval(), modules[1].eval())
    cost, said = pair_cost.of_functions(calls, Pair(modules[0], modules[1], arguments).given(), arguments, (), seconds)
    return replace(proof, cost=cost, notes=(*notes, *said))


def _facts(
    counts: dict[str, int], mapped: Mapped, modules: tuple[nn.Module, nn.Module], tolerance: float
) -> dict[str, Any]:
    sizes = [sum(parameter.numel() for parameter in module.parameters()) for module in modules]
    shown = f"{sizes[0]:,}" if sizes[0] == sizes[1] else f"{sizes[0]:,} and {sizes[1]:,}"
    return {**counts, "parameters": shown, "mapped": mapped.how, "tolerance": tolerance}


def _forward(plain: nn.Module, fast: nn.Module, arguments: tuple[Any, ...], tolerance: float) -> tuple[Proof, str]:
    """Outputs on the given input and on ones made from it; where dropout alone differs, once more without it."""
    checked = check_pair(Pair(plain, fast, arguments, tolerance, gradients=False))
    dropouts = [[part for part in module.modules() if isinstance(part, _DropoutNd)] for module in (plain, fast)]
    rates = [sorted(part.p for part in parts) for parts in dropouts]
    if (
        checked.difference is None
        or rates[0] != rates[1]
        or not all(_is_random(one, arguments) for one in (plain, fast))
    ):
        return checked, ""
    for part in itertools.chain(*dropouts):
        part.p = 0.0
    again = check_pair(Pair(plain, fast, arguments, tolerance, gradients=False))
    return again, "dropout draws in another order; compared with its probability set to 0"


def _is_random(module: nn.Module, arguments: tuple[Any, ...]) -> bool:
    answers = []
    for seed in (SEED, SEED + 1):
        seed_library(seed)
        with torch.no_grad():
            answers.append(copied(module)(*copied(arguments)))
    return not torch.equal(*answers) if all(isinstance(one, Tensor) for one in answers) else False


def mapping_between(plain: nn.Module, fast: nn.Module, mapping: Mapping | None) -> Mapped:
    mine, theirs = plain.state_dict(), fast.state_dict()
    if mapping is not None:
        return Mapped("by a function", mapping)
    if {name: value.shape for name, value in mine.items()} == {name: value.shape for name, value in theirs.items()}:
        return Mapped("by name", dict)
    if [value.shape for value in mine.values()] == [value.shape for value in theirs.values()]:
        names = dict(zip(mine, theirs, strict=True))
        return Mapped("by order and shape", lambda state: {names[name]: value for name, value in state.items()})
    raise ArgumentError(
        f"the networks have different parameters: {_first_unlike(mine, theirs)}",
        "give a function from the plain `state_dict` to the fast one's: `--map file.py:function`",
    )


def _first_unlike(mine: State, theirs: State) -> str:
    def shown(items: Sequence[tuple[str, Tensor]], place: int) -> str:
        return f"`{items[place][0]}` {list(items[place][1].shape)}" if place < len(items) else "no more"

    one, other = list(mine.items()), list(theirs.items())
    places = range(max(len(one), len(other)))
    place = next((at for at in places if at >= min(len(one), len(other)) or one[at][1].shape != other[at][1].shape), 0)
    return f"plain has {shown(one, place)} where fast has {shown(other, place)}"


def load_mapped(plain: nn.Module, fast: nn.Module, mapped: Mapped) -> None:
    try:
        fast.load_state_dict(mapped.apply({name: value.clone() for name, value in plain.state_dict().items()}))
    except (RuntimeError, KeyError, TypeError, AttributeError) as error:
        text = " ".join(str(error).split())
        raise ArgumentError(
            f"the mapped parameters do not fit the fast network: {text}", "mend the function"
        ) from error


def _made(target: Target) -> nn.Module:
    seed_library(SEED)
    if isinstance(target, nn.Module):
        return copied(target)
    try:
        made = (_loaded(target) if isinstance(target, str) else target)()
    except HotloopError:
        raise
    except Exception as error:
        raise ArgumentError(
            f"`{_name(target)}` could not be made: {type(error).__name__}: {error}",
            "give a class or function that needs no arguments",
        ) from error
    if not isinstance(made, nn.Module):
        raise ArgumentError(f"`{_name(target)}` made a {type(made).__name__}", "give one that makes a torch.nn.Module")
    return made


def _loaded(text: str) -> Any:
    """What `file.py:Name` names; runs the file."""
    path, name = split_file(text)
    if not is_file(text) or not path.is_file():
        raise ArgumentError(f"there is no `{text}`", "name a file and what is in it: `file.py:Name`")
    try:
        module = run_file(Path(path))
    except Exception as error:
        raise ArgumentError(
            f"`{path}` cannot be loaded: {type(error).__name__}: {error}", f"run `python {path}`"
        ) from error
    if not callable(getattr(module, name, None)):
        own = [key for key, value in vars(module).items() if callable(value) and not key.startswith("_")]
        raise ArgumentError(f"`{path.name}` has no class or function `{name}`", f"it has {', '.join(own) or 'none'}")
    return getattr(module, name)


def _name(target: Target) -> str:
    return target if isinstance(target, str) else name_of(target)
