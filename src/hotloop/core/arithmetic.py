"""What decides how a machine rounds: two machines that agree here give a run the same digest."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from hotloop.core.extras import can_train, torch_if_installed
from hotloop.core.program import answers, versions

COMPARED = ("versions", "sources", "vector unit", "computed")


@functools.cache
def arithmetic() -> dict[str, Any]:
    """Versions, this hotloop's own text, vector unit, and the digest of a small computation; imports PyTorch. Where
    nothing is installed that trains, versions and text are all there is to compare."""
    found = {"versions": versions(), "sources": sources_digest()}
    if not can_train():
        return found
    import llvmlite.binding as llvm
    import torch

    return found | {
        "vector unit": torch.backends.cpu.get_cpu_capability(),
        "processor": llvm.get_host_cpu_name(),
        "computed": computed(),
    }


def main() -> None:
    """What a process prints that is asked how this machine rounds."""
    answers().write(json.dumps(arithmetic()) + "\n")


def computed() -> str:
    """Digest of a product, an exponential, an update by Adam and a kernel of ours, on fixed numbers."""
    import torch

    from hotloop.core.arithmetic_kernels import softplus_sum

    numbers = np.linspace(-2.0, 2.0, 64 * 48, dtype=np.float32)
    left, right = numbers.reshape(64, 48), numbers[::-1].reshape(48, 64).copy()
    weight = torch.nn.Parameter(torch.from_numpy(right.copy()))
    (torch.from_numpy(left) @ weight).exp().mean().backward()  # type: ignore[no-untyped-call]
    torch.optim.Adam([weight], foreach=False).step()
    pieces = [left @ right, np.exp(numbers), np.tanh(numbers), weight.detach().numpy(), softplus_sum(numbers)]
    return hashlib.sha256(b"".join(np.asarray(piece).tobytes() for piece in pieces)).hexdigest()


def sources_digest() -> str:
    """Of all files of this hotloop: two trees of one version may differ."""
    root = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")) + sorted(root.rglob("*.toml")):
        digest.update(f"{path.relative_to(root).as_posix()}\0".encode() + path.read_bytes())
    return digest.hexdigest()


@contextmanager
def arithmetic_on(threads: int) -> Iterator[None]:
    """PyTorch's threads as asked, where it is installed; denormals flushed, since Adam's moments of dead units decay
    into them and slow everything."""
    torch = torch_if_installed()
    if torch is None:
        yield
        return
    threads_before, flushed_before = torch.get_num_threads(), denormals_are_flushed()
    torch.set_num_threads(threads)
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_num_threads(threads_before)
        torch.set_flush_denormal(flushed_before)


def denormals_are_flushed() -> bool:
    """Whether this thread's arithmetic takes numbers below 1e-38 for zero."""
    return bool((np.full(1, 1e-40, np.float32) * np.float32(1.0))[0] == 0.0)


def differences(here: Mapping[str, Any], there: Mapping[str, Any]) -> list[str]:
    """What two machines do not have in common, a few words each; of Python the minor version counts."""
    found = []
    mine, other = dict(here.get("versions", {})), dict(there.get("versions", {}))
    for name in sorted(mine.keys() | other.keys()):
        one, two = (str(tree.get(name, "none")) for tree in (mine, other))
        if name == "python":
            one, two = (text.rpartition(".")[0] for text in (one, two))
        if one != two:
            found.append(f"{name} {two} instead of {one}")
    if not found and here.get("sources") != there.get("sources"):
        found.append("another text of hotloop under the same version")
    if here.get("vector unit") != there.get("vector unit"):
        found.append(f"vector unit {there.get('vector unit')} instead of {here.get('vector unit')}")
    if not found and here.get("computed") != there.get("computed"):
        found.append(f"{there.get('processor')} rounds in another way than {here.get('processor')}")
    return found
