"""What machine this is, as far as the user's process can tell with the standard library; the parent adds the rest."""

from __future__ import annotations

import os
import platform
import re
import sys
from typing import Any

LIBRARIES = ("numpy", "gymnasium", "gym", "torch", "stable_baselines3", "jax", "tensorflow", "keras")


def process_facts() -> dict[str, Any]:
    """Python, cores and the versions of what is loaded already; PyTorch's build and threads."""
    facts: dict[str, Any] = {"python": platform.python_version(), "cores": usable_cores()}
    if platform.python_implementation() != "CPython":
        facts["implementation"] = platform.python_implementation()
    for name in LIBRARIES:
        if name in sys.modules:
            facts[name] = str(getattr(sys.modules[name], "__version__", "unknown"))
    if "torch" in sys.modules:
        facts.update(torch_facts(sys.modules["torch"]))
    return facts


def usable_cores() -> int:
    """Cores this process may use, which a container can make fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def torch_facts(torch: Any) -> dict[str, Any]:
    tiny = torch.full((1,), 1e-40)
    capability = getattr(torch.backends.cpu, "get_cpu_capability", None) if hasattr(torch.backends, "cpu") else None
    return {
        "torch_threads": torch.get_num_threads(),
        "blas": _blas(torch.__config__.show()),
        "vector_instructions": capability() if capability is not None else "unknown",
        "denormals_flushed": bool((tiny * 1.0).item() == 0.0),
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
    }


def _blas(configuration: str) -> str:
    """Which matrix library PyTorch was built with: its configuration says `BLAS_INFO=mkl` somewhere."""
    found = re.search(r"BLAS_INFO=(\w+)", configuration)
    return found[1] if found else "unknown"
