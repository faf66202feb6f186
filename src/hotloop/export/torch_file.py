"""An agent's parameters by name as safetensors, with everything needed to build the network again as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load, save

from hotloop.core.errors import NumbersError
from hotloop.core.types import Array
from hotloop.export.about import AnyAgent, describe, settings_of
from hotloop.export.wrapped import normaliser_vectors
from hotloop.loop.actor_agent import ActorAgent
from hotloop.runs.files import make_folder, write_file


def export_torch(agent: AnyAgent, file: Path) -> dict[str, Any]:
    """One file: `network.NAME` as `network.state_dict()` calls them, `normaliser.PART.shift` and `.scale`; the JSON is
    in its header, under `hotloop`."""
    arrays = parameters(agent)
    about = describe(agent) | {"settings": settings_of(agent)}
    content = save(arrays, metadata={"format": "pt", "hotloop": json.dumps(about)})
    back = load(content)
    if any(not np.array_equal(array, back[name]) for name, array in arrays.items()):
        raise NumbersError(f"{file} would not hold what the agent has", "please report it")
    make_folder(file.parent)
    write_file(file, content)
    count = sum(array.size for array in arrays.values())
    return {"file": str(file), "bytes": len(content), "tensors": len(arrays), "parameters": count, **about}


def parameters(agent: AnyAgent) -> dict[str, Array]:
    arrays = {f"network.{name}": value.detach().numpy() for name, value in agent.network.state_dict().items()}
    if isinstance(agent, ActorAgent) and agent.normaliser is not None:
        for name, (shift, scale) in normaliser_vectors(agent.normaliser, agent.obs_spec).items():
            arrays |= {f"normaliser.{name}.shift": shift, f"normaliser.{name}.scale": scale}
    return {name: np.ascontiguousarray(array) for name, array in arrays.items()}
