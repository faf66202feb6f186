"""A torso of the user's own: `--network.torso path/to/file.py:Class`.

`Class(obs_shape)` is an `nn.Module` that turns observations [B, *obs_shape], floats with bytes scaled to 0..1, into
features [B, F]; of observations in parts it is given a dict of shapes and a dict of tensors. The heads stand on its
features, so that it takes the place of `network.hidden` too.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn.parameter import UninitializedBuffer

from hotloop.core.errors import SettingsError
from hotloop.core.types import ArraySpec, ObsSpec, map_obs
from hotloop.core.user_files import run_file, split_file
from hotloop.nets.modules import as_floats

CONTRACT = (
    "a torso is a class `Torso(obs_shape)` derived from nn.Module, whose forward turns [B, *obs_shape] into [B, F]"
)
STATELESS = "a run saves parameters alone: LayerNorm instead of BatchNorm, no dropout, no other buffers that change"
PROBE_ROWS = 3


class UserTorso(nn.Module):
    """Keeps to the contract, or an error says where it does not: two forwards on made-up observations tell."""

    def __init__(self, torso: str, obs_spec: ObsSpec) -> None:
        super().__init__()
        shapes = map_obs(lambda spec: tuple(spec.shape), obs_spec)
        self.module = _made(torso, shapes)
        _require_same_buffers(torso, self.module, shapes)
        self.num_out = _probe(torso, self.module, obs_spec)
        _require_trainable(torso, self.module)

        self._spec = obs_spec

    def forward(self, obs: Tensor | dict[str, Tensor]) -> Tensor:
        return self.module(map_obs(as_floats, obs))

    def untraceable(self) -> str:
        """Why a compiler cannot look into it; empty where it can."""
        obs = map_obs(_made_up, self._spec)
        names, parts = (list(obs), list(obs.values())) if isinstance(obs, dict) else ([], [obs])
        forward = lambda *given: self.module(dict(zip(names, given, strict=True)) if names else given[0])  # noqa: E731
        try:
            with torch.no_grad():
                make_fx(forward, tracing_mode="fake", _allow_non_fake_inputs=True)(*parts)
        except Exception as error:
            return f"it cannot look into the module ({type(error).__name__})"
        return ""


def load_torso(torso: str) -> type[nn.Module]:
    """The class named by `path/to/file.py:Class`; runs the file."""
    path, name = split_file(torso)
    if not path.is_file():
        raise SettingsError(
            f"there is no file `{torso.rpartition(':')[0]}`", "give the path from the folder you are in"
        )
    try:
        module = run_file(path)
    except Exception as error:
        raise _failed(torso, "cannot be loaded", error, f"run `python {path}`") from error
    kind = getattr(module, name, None)
    if not isinstance(kind, type) or not issubclass(kind, nn.Module):
        found = [key for key, value in vars(module).items() if isinstance(value, type) and issubclass(value, nn.Module)]
        hint = f"it has {', '.join(found)}" if found else CONTRACT
        raise SettingsError(f"`{torso.rpartition(':')[0]}` has no nn.Module called `{name}`", hint)
    return kind


def _made(torso: str, shapes: Any) -> nn.Module:
    kind: Any = load_torso(torso)
    try:
        return kind(shapes)
    except Exception as error:
        raise _failed(torso, f"could not be made for observations of shape {shapes}", error, CONTRACT) from error


def _require_same_buffers(torso: str, module: nn.Module, shapes: Any) -> None:
    """A loaded agent builds the module anew, from another seed: only parameters come back."""
    with torch.random.fork_rng(devices=[]):
        twin = dict(_made(torso, shapes).named_buffers())
    for name, buffer in module.named_buffers():
        if not isinstance(buffer, UninitializedBuffer) and not torch.equal(buffer, twin[name]):
            raise SettingsError(
                f"buffer `{name}` of `{torso}` is drawn at random, so that a loaded agent would have another",
                "make it an nn.Parameter, or draw it from a generator with a seed of its own",
            )


def _probe(torso: str, module: nn.Module, obs_spec: ObsSpec) -> int:
    """How many features it has, by asking it: twice the same, and without a trace."""
    obs = map_obs(_made_up, obs_spec)
    before = torch.random.get_rng_state()
    try:
        with torch.no_grad():
            module(obs)  # lazy layers are made now
            buffers = {name: buffer.clone() for name, buffer in module.named_buffers()}
            torch.random.set_rng_state(before)
            one, other = module(obs), module(obs)
    except Exception as error:
        shapes = map_obs(lambda part: tuple(part.shape), obs)
        raise _failed(torso, f"failed on observations of shape {shapes}", error, CONTRACT) from error
    finally:
        torch.random.set_rng_state(before)
    if not isinstance(one, Tensor) or one.dim() != 2 or len(one) != PROBE_ROWS or not one.is_floating_point():
        given = f"{one.dtype} of shape {tuple(one.shape)}" if isinstance(one, Tensor) else type(one).__name__
        raise SettingsError(f"`{torso}` gave {given} for {PROBE_ROWS} observations; expected floats [B, F]", CONTRACT)
    if not torch.equal(one, other):
        raise SettingsError(f"`{torso}` gave two answers to the same observations", STATELESS)
    if any(not torch.equal(buffers[name], buffer) for name, buffer in module.named_buffers()):
        raise SettingsError(f"the forward of `{torso}` changes its buffers", STATELESS)
    return one.shape[1]


def _made_up(spec: ArraySpec) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.rand((PROBE_ROWS, *spec.shape), generator=generator)


def _require_trainable(torso: str, module: nn.Module) -> None:
    for name, parameter in module.named_parameters():
        if not parameter.requires_grad or parameter.dtype != torch.float32:
            raise SettingsError(
                f"parameter `{name}` of `{torso}` is {parameter.dtype}, requires_grad={parameter.requires_grad}",
                "parameters are float32 and all of them learn; what is fixed is a buffer",
            )


def _failed(torso: str, what: str, error: Exception, hint: str) -> SettingsError:
    """With the line of the user's own file where it happened."""
    path, line = split_file(torso)[0], ""
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(path):
            line = f" ({path.name}, line {trace.tb_lineno})"
        trace = trace.tb_next
    reason = " ".join(str(error).split())[:300]
    return SettingsError(f"`{torso}` {what}: {type(error).__name__}: {reason}{line}", hint)
