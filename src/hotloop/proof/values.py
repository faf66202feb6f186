"""What functions, envs and networks take and give: nested values as parts with a path, copied whole, shown short.

A value is an array, a tensor or a number, text or None, or a container of values: a tuple, a list, a dict, a dataclass,
a network, an optimizer, or any object, whose attributes are its parts.
"""

from __future__ import annotations

import copy
import dataclasses
import random
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from hotloop.core.extras import torch_if_loaded

Part = tuple[str, Any]
"""Its path below the value that it is part of, and the part itself."""
SHOWN_DIGITS = 9
LONGEST_TEXT = 120
READ_AS_ARRAYS = ("__array__", "__dlpack__", "dtype", "shape", "ndim")
LEAVES = (np.ndarray, np.generic, bool, int, float, complex, str, bytes, type(None))


def is_tensor(value: Any) -> bool:
    """PyTorch is not imported for the question: where nobody has, nothing is a tensor, a network or an optimizer."""
    torch = torch_if_loaded()
    return torch is not None and isinstance(value, torch.Tensor)


def is_module(value: Any) -> bool:
    torch = torch_if_loaded()
    return torch is not None and isinstance(value, torch.nn.Module)


def is_optimizer(value: Any) -> bool:
    torch = torch_if_loaded()
    return torch is not None and isinstance(value, torch.optim.Optimizer)


def is_array(value: Any) -> bool:
    """Of numpy, PyTorch, or a library whose arrays can be read as theirs (JAX)."""
    if isinstance(value, np.ndarray) or is_tensor(value):
        return True
    if isinstance(value, np.generic | type) or not all(hasattr(value, name) for name in READ_AS_ARRAYS):
        return False
    try:
        return np.dtype(value.dtype).kind != "O"
    except TypeError:  # a key of JAX's is no number
        return False


def parts_of(value: Any) -> list[Part] | None:
    """The parts of a container, in order; None for a value that has none."""
    if isinstance(value, (*LEAVES, type)) or is_tensor(value) or (callable(value) and not is_module(value)):
        return None
    if is_array(value):
        return None
    if is_module(value):
        return _of_module(value)
    if is_optimizer(value):
        return _of_optimizer(value)
    if isinstance(value, Mapping):
        return [(f"[{key!r}]", part) for key, part in value.items()]
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return [(f".{name}", part) for name, part in zip(value._fields, value, strict=True)]
    if isinstance(value, list | tuple | deque):
        return [(f"[{number}]", part) for number, part in enumerate(value)]
    if generator_state(value) is not None:
        return [(".state", generator_state(value))]
    if dataclasses.is_dataclass(value):
        return [(f".{field.name}", getattr(value, field.name)) for field in dataclasses.fields(value)]
    if type(value).__eq__ is object.__eq__ and hasattr(value, "__dict__"):
        return [(f".{name}", part) for name, part in vars(value).items()]
    return None


def _of_module(module: Any) -> list[Part]:
    """Parameters, their gradients and the buffers, by name."""
    parameters = list(module.named_parameters())
    found: list[Part] = [(f".{name}", parameter.detach()) for name, parameter in parameters]
    found += [(f".{name}.grad", parameter.grad) for name, parameter in parameters]
    return found + [(f".{name}", buffer) for name, buffer in module.named_buffers()]


def _of_optimizer(optimizer: Any) -> list[Part]:
    """Its moments by the number of the parameter, and its settings."""
    state = optimizer.state_dict()
    moments = [(f".state[{key}]", part) for key, part in state["state"].items()]
    settings = [{key: part for key, part in group.items() if key != "params"} for group in state["param_groups"]]
    return [*moments, (".settings", settings)]


def generator_state(value: Any) -> Any:
    """What a generator of random numbers will draw next, as plain data; None for anything else."""
    if isinstance(value, np.random.Generator):
        return copy.deepcopy(value.bit_generator.state)
    if isinstance(value, np.random.RandomState):
        return value.get_state()
    if isinstance(value, random.Random):
        return value.getstate()
    torch = torch_if_loaded()
    return value.get_state() if torch is not None and isinstance(value, torch.Generator) else None


def set_generator_state(generator: Any, state: Any) -> None:
    if isinstance(generator, np.random.Generator):
        generator.bit_generator.state = state
    elif isinstance(generator, random.Random):
        generator.setstate(state)
    else:
        generator.set_state(state)


def leaves_of(value: Any, path: str = "", seen: tuple[int, ...] = ()) -> Iterator[Part]:
    """Everything that has no parts, with its path; an object within itself is not entered again."""
    parts = None if id(value) in seen else parts_of(value)
    if parts is None:
        yield path, value
        return
    for name, part in parts:
        yield from leaves_of(part, path + name, (*seen, id(value)))


def copied(value: Any) -> Any:
    """A copy that shares nothing with the value; what two parts of it share, their copies share too.

    A tensor that was computed from others is cut off from them, as PyTorch asks for; it is then an input as any other.
    """
    memo: dict[int, Any] = {}
    for _, leaf in leaves_of(value):
        if is_tensor(leaf) and not leaf.is_leaf:
            memo[id(leaf)] = leaf.detach().clone().requires_grad_(leaf.requires_grad)
    return copy.deepcopy(value, memo)


def as_array(value: Any) -> np.ndarray:
    """An array (anybody's), tensor or number as numpy's; half precision that numpy lacks as float32."""
    if is_tensor(value):
        torch = torch_if_loaded()
        value = value.detach().cpu()
        value = value.to_dense() if value.layout is not torch.strided else value
        return np.asarray(value.float() if value.dtype is torch.bfloat16 else value.numpy())
    array = np.asarray(value)
    return array.astype(np.float32) if array.dtype.kind == "V" and "float" in dtype_of(value) else array


def dtype_of(value: Any) -> str:
    """`float32`, whoever's array it is; a Python number counts as numpy's largest of its kind."""
    return str(value.dtype).removeprefix("torch.") if hasattr(value, "dtype") else str(np.asarray(value).dtype)


def is_number(value: Any) -> bool:
    return isinstance(value, bool | int | float | complex | np.generic) and not isinstance(value, np.flexible)


def shown_value(value: Any) -> str:
    """On one line, short: numbers with all digits that tell float32 apart."""
    if isinstance(value, float | np.floating):
        return f"{float(value):.{SHOWN_DIGITS}g}"
    if is_number(value):
        return str(value)
    if is_array(value):
        text = np.array2string(as_array(value), threshold=12, precision=5, separator=", ")
        text = f"{dtype_of(value)}{list(value.shape)} {text}"
    elif is_module(value):
        text = f"a {type(value).__name__}"
    elif isinstance(value, list | tuple):
        text = ", ".join(map(shown_value, value[:8])) + (f", ... {len(value)} in all" if len(value) > 8 else "")
        text = f"[{text}]" if isinstance(value, list) else f"({text})"
    elif isinstance(value, dict):
        text = "{" + ", ".join(f"{key!r}: {shown_value(part)}" for key, part in list(value.items())[:8]) + "}"
    else:
        text = repr(value)
    text = " ".join(text.split())
    return text if len(text) <= LONGEST_TEXT else f"{text[: LONGEST_TEXT - 3]}..."
