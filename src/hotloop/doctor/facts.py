"""What machine this is, as far as it decides how fast a training loop runs."""

from __future__ import annotations

import os
import platform
import re
import sys
from typing import Any

import psutil


def machine_facts() -> dict[str, Any]:
    """Cores, memory and versions; PyTorch's build and threads where it is loaded already."""
    memory = psutil.virtual_memory()
    facts: dict[str, Any] = {
        "python": platform.python_version(),
        "system": platform.system(),
        "processor": _processor(),
        "cores": usable_cores(),
        "memory_bytes": int(memory.total),
        "memory_available_bytes": int(memory.available),
        "load_average": [round(value, 2) for value in os.getloadavg()] if hasattr(os, "getloadavg") else None,
    }
    for name in ("numpy", "gymnasium", "torch", "stable_baselines3", "jax", "keras"):
        if name in sys.modules:
            facts[name] = str(getattr(sys.modules[name], "__version__", "unknown"))
    return facts | (_torch_facts(sys.modules["torch"]) if "torch" in sys.modules else {})


def usable_cores() -> int:
    """Cores this process may use, which a container can make fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _processor() -> str:
    try:
        with open("/proc/cpuinfo") as lines:
            return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
    except OSError:
        return platform.processor() or platform.machine()


def _torch_facts(torch: Any) -> dict[str, Any]:
    tiny = torch.full((1,), 1e-40)
    return {
        "torch_threads": torch.get_num_threads(),
        "blas": _blas(torch.__config__.show()),
        "vector_instructions": torch.backends.cpu.get_cpu_capability(),
        "denormals_flushed": bool((tiny * 1.0).item() == 0.0),
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
    }


def _blas(configuration: str) -> str:
    """Which matrix library PyTorch was built with: its configuration says `BLAS_INFO=mkl` somewhere."""
    found = re.search(r"BLAS_INFO=(\w+)", configuration)
    return found[1] if found else "unknown"
