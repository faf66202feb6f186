"""What machine this is, as far as it decides how fast a training loop runs."""

from __future__ import annotations

import os
import platform
from typing import Any

import psutil

from hotloop.doctor.recorder.meters import process_facts
from hotloop.doctor.recorder.meters import usable_cores as usable_cores


def machine_facts() -> dict[str, Any]:
    """Cores, memory and versions; PyTorch's build and threads where it is loaded already."""
    return {**hardware_facts(), **process_facts()}


def hardware_facts() -> dict[str, Any]:
    """What is the same for every process on this machine."""
    memory = psutil.virtual_memory()
    return {
        "system": platform.system(),
        "processor": _processor(),
        "memory_bytes": int(memory.total),
        "memory_available_bytes": int(memory.available),
        "load_average": [round(value, 2) for value in os.getloadavg()] if hasattr(os, "getloadavg") else None,
    }


def _processor() -> str:
    try:
        with open("/proc/cpuinfo") as lines:
            return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
    except OSError:
        return platform.processor() or platform.machine()
