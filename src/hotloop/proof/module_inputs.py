"""What to feed a network: the shapes that were given, or one read from its first layer with a size."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from hotloop.core.errors import ArgumentError
from hotloop.proof.randomness import SEED
from hotloop.proof.values import copied

ROWS = 32
LARGEST_INTEGER = 2
"""Below which whole numbers are drawn where no embedding says how many there are."""
INTEGERS = ("int64", "int32", "uint8", "bool")
HINT = "say what it takes: `--input 32,4`, once for each input; `--input 32,7:int64` for whole numbers"


def inputs_for(module: nn.Module, given: Any) -> tuple[Any, ...]:
    """Tensors for one forward, tried on the module."""
    if given is None:
        found = _read(module)
    elif isinstance(given, tuple) and given and all(isinstance(one, int) for one in given):
        found = (_random(given, "float32", 0),)
    elif isinstance(given, list):
        shapes = [parse_shape(one) if isinstance(one, str) else (tuple(one), "float32") for one in given]
        found = tuple(_random(shape, dtype, place) for place, (shape, dtype) in enumerate(shapes))
    else:
        found = given if isinstance(given, tuple) else (given,)
    try:
        with torch.no_grad():
            copied(module)(*copied(found))  # a forward may change buffers
    except Exception as error:
        shown = ", ".join(str(list(one.shape)) if isinstance(one, Tensor) else str(one) for one in found)
        said = " ".join(str(error).split())
        raise ArgumentError(f"the plain network does not take {shown}: {type(error).__name__}: {said}", HINT) from error
    return found


def parse_shape(text: str) -> tuple[tuple[int, ...], str]:
    """`32,4` or `32,7:int64`."""
    numbers, _, dtype = text.partition(":")
    try:
        shape = tuple(int(number) for number in numbers.split(","))
    except ValueError:
        raise ArgumentError(f"`{text}` is no shape", "numbers with commas between them: `--input 32,4`") from None
    if not shape or min(shape) < 1:
        raise ArgumentError(f"`{text}` is no shape", "whole numbers above 0: `--input 32,4`")
    if dtype not in ("", "float32", "float64", *INTEGERS):
        raise ArgumentError(
            f"`{dtype}` is no dtype that can be drawn", f"one of float32, float64, {', '.join(INTEGERS)}"
        )
    return shape, dtype or "float32"


def _random(shape: tuple[int, ...], dtype: str, place: int, below: int = LARGEST_INTEGER) -> Tensor:
    generator = torch.Generator().manual_seed(SEED + place)
    if dtype in INTEGERS:
        return torch.randint(below, shape, generator=generator).to(getattr(torch, dtype))
    return torch.randn(shape, generator=generator, dtype=getattr(torch, dtype))


def _read(module: nn.Module) -> tuple[Tensor, ...]:
    for part in module.modules():
        if isinstance(part, nn.Linear) and not isinstance(part, nn.LazyLinear):
            return (_random((ROWS, part.in_features), "float32", 0),)
        if isinstance(part, nn.Embedding):
            return (_random((ROWS, 8), "int64", 0, part.num_embeddings),)
        if isinstance(part, nn.Conv1d | nn.Conv2d | nn.Conv3d):
            sides = [max(16, 4 * size) for size in part.kernel_size]
            return (_random((ROWS, part.in_channels, *sides), "float32", 0),)
    raise ArgumentError("the plain network has no Linear, Conv or Embedding to read a shape from", HINT)
