"""`hotloop.prove`: two versions of one thing held equal, then timed; what they are says how."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from hotloop.core.errors import ArgumentError
from hotloop.core.extras import explained_imports, torch_if_loaded
from hotloop.core.user_files import is_file, run_file, split_file
from hotloop.proof.function_pairs import prove_functions
from hotloop.proof.values import is_module, shown_value
from hotloop.proof.verdict import Proof

if TYPE_CHECKING:
    from hotloop.proof.case_rows import CaseRow

Kind = Literal["program", "env", "network", "function"]
_SUBJECTS: Mapping[Kind, str] = {
    "program": "a script",
    "env": "an env",
    "network": "a network",
    "function": "a function",
}


@overload
def prove(fast: Any, /, *, against: Any, **options: Any) -> Proof: ...
@overload
def prove(*files: str, **options: Any) -> list[CaseRow | Proof]: ...
def prove(*what: Any, against: Any = None, **options: Any) -> Any:
    """Hold a fast version equal to a plain one, then time both: functions, networks, envs or whole programs.

        proof = hotloop.prove(fast_returns, against=plain_returns, inputs=[(rewards, 0.99)])
        proof = hotloop.prove(FastNet, against=SlowNet, inputs=(32, 4))
        proof = hotloop.prove("fast.py:Env", against="slow.py:Env")
        proof = hotloop.prove("new.py", against="old.py", arguments="--seed 1")
        print(proof.headline())  # identical for ..., or the first difference and what shows it
        for found in hotloop.prove("my_pairs.py", "benchmarks::dqn-update/native"):
            print(found.name, found.verdict)

    The two decide what is done, and must be of one kind. `tolerance` is the share by which a number may differ, 0 for
    not at all; `seconds` is how long both are timed, 0 for not (of programs it is something else). The answer's
    `as_data()` is what `hotloop prove --json` prints.

    **Functions** need `inputs`. One input is a tuple of arguments, a dict of named ones, or the only argument; a list
    holds several; a function makes one of each of `sizes`. Compared are values, gradients (unless `gradients` is
    false), dtypes, shapes, containers, what raises and what becomes of the inputs, on these inputs and (unless `made`
    is false) on ones made from them: rows permuted, repeated, removed, ties. A number may differ by `tolerance` (1e-6)
    times its size, or that of its row or column.

    **Networks** are modules, classes, functions that make one without arguments, or `"file.py:Name"`. Compared are
    forward, gradients and `optimizer_steps` (5) in train and eval mode. `inputs` is a shape, a list of shapes, or a
    tuple of tensors; without it, it is read from the first Linear, Conv or Embedding. Parameters are mapped by name,
    else by order and shape, or by `mapping`, a function from the plain `state_dict` to the fast one's.

    **Envs** are ids (Gymnasium's or ours), classes, functions that make one, or `"file.py:Name"`; what takes
    `num_envs`, or is a `VectorEnv`, is batched, and held against that many single ones. With the same seeds (from
    `seed`) and random legal actions, `num_envs` (4) envs play `env_steps` (2,000), episodes to their end. Where the two
    draw random numbers in another order, `episodes` (200) of each are tested as distributions.

    **Programs** are paths of scripts, run unmodified with the same `arguments`, each time in a fresh copy of their
    folder (unless `in_place`) by the interpreter `python`. Compared are every env step and the parameters after every
    optimizer step, to rounding, or within `tolerance` as a share of each tensor's norm. `env_steps` and `seconds` end
    both early. They are timed in `rounds` (as many as a minute allows); `say` is told how it is getting on.

    **Files** without `against` have pairs (`@hotloop.pair`), cases (`@hotloop.cases`) or both, and all of them are
    proved, in a folder those of all its files; `FILE.py::NAME` chooses some, and `quick` the small set of the cases.
    The answer is then a list.
    """
    if against is None:
        if not all(isinstance(one, str) for one in what):
            raise ArgumentError("`against` is missing: the plain version", "`hotloop.prove(fast, against=plain)`")
        with explained_imports("proving files"):
            from hotloop.proof.run import prove_files

        return prove_files(*what, **_accepted("a file", prove_files, options))
    if len(what) != 1:
        raise ArgumentError(f"{len(what)} fast versions were given", "give one: `hotloop.prove(fast, against=plain)`")
    kind = _kind_of_both(against, what[0], options.get("inputs"))
    with explained_imports(f"proving {_SUBJECTS[kind]}"):
        prover = _prover(kind)
    return prover(against, what[0], **_accepted(_SUBJECTS[kind], prover, options))


def _prover(kind: Kind) -> Callable[..., Proof]:
    """Imported when it is asked for: programs need no PyTorch, functions no Gymnasium."""
    if kind == "program":
        from hotloop.proof.program_pairs import prove_programs

        return prove_programs
    if kind == "network":
        from hotloop.proof.module_pairs import prove_modules

        return prove_modules
    if kind == "env":
        from hotloop.proof.env_pairs import prove_envs

        return prove_envs
    return prove_functions


def _accepted(subject: str, prover: Callable[..., Any], options: dict[str, Any]) -> dict[str, Any]:
    """The options, if all of them are the prover's."""
    known = inspect.signature(prover).parameters
    for name in options:
        if name not in known:
            raise ArgumentError(f"`prove` has no argument `{name}` for {subject}", "`help(hotloop.prove)` explains")
    return options


def _kind_of_both(plain: Any, fast: Any, inputs: Any) -> Kind:
    """What at least one of them clearly is; if neither is, functions."""
    kinds = _kind_of(plain, inputs), _kind_of(fast, inputs)
    clear = [kind for kind in kinds if kind is not None]
    if len(set(clear)) > 1:
        raise ArgumentError(
            f"`against` is {_SUBJECTS[clear[0]]}, and what is held against it {_SUBJECTS[clear[1]]}",
            "give two of one kind",
        )
    if clear:
        return clear[0]
    if not (callable(plain) and callable(fast)):
        wrong = fast if callable(plain) else plain
        raise ArgumentError(
            f"{shown_value(wrong)} is neither a script, an env, a network nor a function",
            "`help(hotloop.prove)` says what can be proved",
        )
    if inputs is None:
        raise ArgumentError("`inputs` is missing: what both functions are called with", "e.g. `inputs=(x, 0.99)`")
    return "function"


def _kind_of(version: Any, inputs: Any) -> Kind | None:
    """Texts and paths by their form; `file.py:Name` by what it names; makers by what they make. None for a function,
    and for what is nothing of all this: whoever proves its kind says what is wrong with it."""
    if isinstance(version, str | Path):
        text = str(version)
        if text.endswith(".py"):
            return "program"
        if not is_file(text):
            return "env"
        version = _loaded(text)
    if _is_network(version):
        return "network"
    if _is_env(version) or "num_envs" in _parameters(version):
        return "env"
    gives_none = isinstance(inputs, tuple) and not inputs
    makes = inputs is None or (not gives_none and not _parameters(version))
    return _kind_made_by(version) if makes and callable(version) else None


def _loaded(text: str) -> Any:
    """None where there is no such file or name."""
    path, name = split_file(text)
    return getattr(run_file(path), name, None) if path.is_file() else None


def _kind_made_by(maker: Callable[..., Any]) -> Kind | None:
    """It is called once, to see what it makes."""
    try:
        made = maker()
    except Exception:  # it wants arguments, or is wrong: told by whoever calls it in earnest
        return None
    if is_module(made):
        return "network"
    if not _is_env(made):
        return None
    if hasattr(made, "close"):
        made.close()
    return "env"


def _parameters(maker: Any) -> list[str]:
    try:
        return list(inspect.signature(maker).parameters)
    except (TypeError, ValueError):
        return []


def _is_network(thing: Any) -> bool:
    torch = torch_if_loaded()
    return is_module(thing) or (torch is not None and isinstance(thing, type) and issubclass(thing, torch.nn.Module))


def _is_env(thing: Any) -> bool:
    """A class or an object with Gymnasium's two functions."""
    return all(callable(getattr(thing, name, None)) for name in ("reset", "step"))
