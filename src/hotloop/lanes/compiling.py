"""From a function on tensors to machine code: traced once for fixed shapes, compiled by TorchInductor, kept on disk.

`torch.compile` checks guards on every call, which costs as much as a small network's whole update. A function traced
for one set of shapes needs none: whoever calls it vouches for shapes and dtypes, and nothing is ever compiled twice.
"""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.fx.experimental.proxy_tensor import make_fx

from hotloop.core.errors import LaneError
from hotloop.core.own_folders import NoFolder, cache_base, own_folder
from hotloop.core.temporary import TemporaryFolder

EAGER_HINT = "use `--learner.lane eager`, which runs any module"
Compiled = Callable[..., Sequence[Tensor]]


def compiler_available() -> bool:
    """Whether there is a C++ compiler, which code for a CPU needs."""
    return shutil.which(os.environ.get("CXX") or ("clang++" if sys.platform == "darwin" else "g++")) is not None


def compiler_problem() -> str:
    """Why code for a CPU cannot be compiled here; empty where it can."""
    if not compiler_available():
        return "it needs a C++ compiler, and none was found"
    if any(" " in folder for folder in (sys.prefix, torch.__file__)):
        return "PyTorch is installed under a path with a space in it, which its compiler call does not quote"
    return ""


def require_compiler(device: torch.device) -> None:
    if device.type == "cpu" and (problem := compiler_problem()):
        raise LaneError(
            f"the compiled lane cannot be used: {problem}",
            "install g++ or name another in the environment variable CXX, or use `--learner.lane eager`",
        )


def compile_function(function: Callable[..., tuple[Tensor, ...]], example: Sequence[Tensor]) -> Compiled:
    """Machine code that computes `function` for tensors of exactly the shapes and dtypes of `example`, which is not
    changed. What the code returns on a GPU is overwritten by its next call."""
    inputs: list[Any] = [tensor.clone() for tensor in example]
    with torch.no_grad(), _cached_on_disk() as own_folder_used, _without_torch_warnings():
        try:
            graph = make_fx(function, tracing_mode="fake")(*inputs)
            return _machine_code(graph, inputs, own_folder_used)
        except Exception as error:
            reason = str(error).strip().partition("\n")[0] or type(error).__name__
            raise LaneError(f"the compiled lane cannot compile this update: {reason}", EAGER_HINT) from error


def _machine_code(graph: torch.fx.GraphModule, inputs: list[Any], own_folder_used: bool) -> Compiled:
    """Compiled, or taken from disk, and called once: what is left to do at the first call.

    TorchInductor's compiler writes libraries under their final names. One that was killed meanwhile can leave a
    library without its header, which no later process could load: so what lies in our own folder is thrown away once,
    and made anew.
    """
    options = _options(inputs[0].device)
    try:
        compiled = torch._inductor.compile(graph, inputs, options=options)
        compiled(*inputs)
    except Exception:
        if not own_folder_used:
            raise
        shutil.rmtree(_private_folder(), ignore_errors=True)
        _private_folder.cache_clear()
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = _private_folder()
        compiled = torch._inductor.compile(graph, inputs, options=options)
        compiled(*inputs)
    return compiled


def _options(device: torch.device) -> dict[str, object]:
    """How TorchInductor compiles; names unknown to an older torch are left out."""
    if device.type == "cuda":  # launches cost more than the work: CUDA graphs, as `mode="reduce-overhead"` would choose
        options: dict[str, object] = {"triton.cudagraphs": True}
    else:
        options = {
            "cpp_wrapper": True,  # the calls between kernels in C++ too
            "cpp.threads": torch.get_num_threads(),  # baked into the code, and so made part of its key on disk
            # They would lie in a folder of /tmp that others could have made, fill 150 MB and gain nothing.
            "cpp_cache_precompile_headers": False,
        }
    known = set(torch._inductor.list_options())
    return {name: value for name, value in options.items() if name in known} | {"fx_graph_cache": True}


@contextmanager
def _cached_on_disk() -> Iterator[bool]:
    """Compiled code in a folder of our own, unless the user has named another; says whether it is ours."""
    named = os.environ.get("TORCHINDUCTOR_CACHE_DIR")
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = named or _private_folder()
    try:
        yield named is None
    finally:
        if named is None:
            del os.environ["TORCHINDUCTOR_CACHE_DIR"]


@cache
def _private_folder() -> str:
    try:
        return str(own_folder(cache_base() / "hotloop" / "inductor"))
    except NoFolder:
        folder = TemporaryFolder("inductor")  # compiled again by every process
        atexit.register(folder.close)
        return str(folder.path)


@contextmanager
def _without_torch_warnings() -> Iterator[None]:
    """TorchInductor's own imports use what torch itself calls deprecated."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"`torch\.jit\.\w+` is deprecated", DeprecationWarning)
        yield
