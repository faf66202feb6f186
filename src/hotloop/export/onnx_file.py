"""An agent as an ONNX file with a free batch axis, held against the agent before it gets its name."""

from __future__ import annotations

import json
import logging
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch

from hotloop.core.errors import NonFiniteError, SettingsError
from hotloop.core.extras import need
from hotloop.core.types import Array, ArraySpec, VecEnv
from hotloop.export.about import AnyAgent, describe
from hotloop.export.parity import TOLERANCE, Parity, ParityInputs, check, played_batches, random_batches
from hotloop.export.wrapped import MASK, WrappedActor, WrappedQ, WrappedSAC, input_specs, wrap
from hotloop.loop.agents import ActorAgent, Agent, GraphAgent
from hotloop.runs.files import explained, fsync_folder, make_folder, temporary_beside, write_chunks

_EXAMPLE_ROWS = 2  # torch takes a batch of one for a fixed size


@dataclass(frozen=True)
class Exported:
    file: Path
    size: int
    opset: int
    inputs: dict[str, Any]
    outputs: list[str]
    about: dict[str, Any]
    parity: Parity
    played: bool

    def as_data(self) -> dict[str, Any]:
        return {
            "file": str(self.file),
            "bytes": self.size,
            "opset": self.opset,
            "inputs": self.inputs,
            "outputs": self.outputs,
            **self.about,
            "parity": {
                "observations": self.parity.observations,
                "played": self.played,
                "differences": self.parity.differences,
                "largest": self.parity.largest,
                "tolerance": TOLERANCE,
            },
        }


def export_onnx(agent: AnyAgent, file: Path, envs: VecEnv | None) -> Exported:
    """Write `file`; `envs` (None: not available) say whether actions are masked, and are played for the check."""
    if isinstance(agent, GraphAgent):
        raise SettingsError(
            f"`{agent.settings.env.id}` has graphs for observations, and a graph network cannot be an ONNX file: its "
            "messages are gathered by segments whose number differs from batch to batch",
            "`--torch FILE.safetensors` writes its parameters",
        )
    onnx, runtime, _ = need("export", "writing ONNX", "onnx", "onnxruntime", "onnxscript")
    masked = envs is not None and envs.has_action_mask
    width = envs.action_spec.mask_width if envs is not None and masked else 0
    wrapped = wrap(agent, masked)
    names = [*input_specs(agent.obs_spec), *([MASK] if masked else [])]
    model = _as_model(wrapped, _example(agent, width), names)
    about = describe(agent) | {"action_mask": masked}
    _put_metadata(onnx, model, about)
    onnx.checker.check_model(model)

    def verify(path: Path) -> Parity:
        batches = random_batches(agent.obs_spec, width)
        return check(agent, _runner(runtime, path, names), chain(batches, _played(agent, envs)))

    size, parity = _write_verified(file, model.SerializeToString(), verify)
    shapes = {name: _shape(spec) for name, spec in input_specs(agent.obs_spec).items()}
    if masked:
        shapes[MASK] = {"shape": ["batch", width], "dtype": "bool"}
    opset = next(entry.version for entry in model.opset_import if not entry.domain)
    return Exported(file, size, opset, shapes, list(wrapped.outputs), about, parity, envs is not None)


def _played(agent: Agent | ActorAgent, envs: VecEnv | None) -> Iterator[ParityInputs]:
    return iter(()) if envs is None else played_batches(agent, envs)


def _shape(spec: ArraySpec) -> dict[str, Any]:
    return {"shape": ["batch", *spec.shape], "dtype": spec.dtype.name}


def _example(agent: Agent | ActorAgent, mask_width: int) -> list[torch.Tensor]:
    arrays = [np.zeros((_EXAMPLE_ROWS, *spec.shape), spec.dtype) for spec in input_specs(agent.obs_spec).values()]
    if mask_width:
        arrays.append(np.ones((_EXAMPLE_ROWS, mask_width), np.bool_))
    return [torch.from_numpy(array) for array in arrays]


def _as_model(wrapped: WrappedQ | WrappedActor | WrappedSAC, example: list[torch.Tensor], names: list[str]) -> Any:
    """Through torch.export in its strict way, which understands `len` of a batch; the levels of a graph do not need
    that, and are exported much faster without."""
    strict = not (isinstance(wrapped, WrappedQ) and wrapped.is_levelled)
    free = (tuple({0: torch.export.Dim("batch")} for _ in example),)
    with _quiet(), torch.no_grad():
        program = torch.export.export(wrapped, tuple(example), dynamic_shapes=free, strict=strict)
        model: Any = torch.onnx.export(
            program, dynamo=True, verbose=False, input_names=names, output_names=list(wrapped.outputs)
        )
    return model.model_proto


@contextmanager
def _quiet() -> Iterator[None]:
    """The exporter tells of libraries that it would also know."""
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "onnxscript", "onnx_ir")]
    levels = [logger.level for logger in loggers]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for logger in loggers:
            logger.setLevel(logging.ERROR)
        try:
            yield
        finally:
            for logger, level in zip(loggers, levels, strict=True):
                logger.setLevel(level)


def _put_metadata(onnx: Any, model: Any, about: dict[str, Any]) -> None:
    """What the network is; and not the lines of code that the exporter notes for each of its operations."""
    for node in model.graph.node:
        del node.metadata_props[:]
        node.doc_string = ""
    del model.graph.value_info[:]
    for value in (*model.graph.input, *model.graph.output):
        del value.metadata_props[:]
        value.type.tensor_type.shape.dim[0].dim_param = "batch"
    model.producer_name, model.producer_version = "hotloop", about["hotloop"]
    texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in about.items()}
    onnx.helper.set_model_props(model, texts)


def _runner(runtime: Any, path: Path, names: list[str]) -> Callable[[ParityInputs], dict[str, Array]]:
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    outputs = [output.name for output in session.get_outputs()]

    def compute(seen: ParityInputs) -> dict[str, Array]:
        parts = seen.obs if isinstance(seen.obs, dict) else {"": seen.obs}
        given = {f"obs.{name}" if name else "obs": np.ascontiguousarray(part) for name, part in parts.items()}
        if MASK in names:
            assert seen.action_mask is not None
            given[MASK] = seen.action_mask
        return dict(zip(outputs, session.run(None, given), strict=True))

    return compute


def _write_verified(file: Path, content: bytes, verify: Callable[[Path], Parity]) -> tuple[int, Parity]:
    """A file that differs from its agent never gets its name, and does not replace one that was there."""
    make_folder(file.parent)
    temporary = temporary_beside(file)
    with explained("write", file):
        try:
            write_chunks(temporary, [content])
            parity = verify(temporary)
            if not parity.holds:
                raise NonFiniteError(
                    f"the exported network differs from the agent by {parity.largest:.2g}, more than {TOLERANCE:g}; "
                    f"{file} was not written",
                    "please report it, with the run's settings.toml",
                )
            os.replace(temporary, file)
            fsync_folder(file.parent)
        except BaseException:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise
    return len(content), parity
