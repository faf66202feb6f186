"""Several sequential updates as one pure function of flat vectors, for `compile_function` to trace.

Network and loss are those of the eager lane; Adam and clipping are written out here on whole vectors, with everything
that changes from update to update (learning rate, bias correction, noise) as a tensor, so that no number is baked in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value

from hotloop.core.types import Batch, Obs, map_obs
from hotloop.lanes.objective import Network, Objective, Rows, objective
from hotloop.lanes.spec import UpdateSpec
from hotloop.maths import categorical, td
from hotloop.maths.adam import clip_scale

Function = Callable[..., tuple[Tensor, ...]]
Vectors = tuple[Tensor, Tensor, Tensor]  # parameters, running mean, running square


class AdamSpec(Protocol):
    """What both families' specs say of the optimiser."""

    @property
    def max_gradient_norm(self) -> float: ...

    @property
    def beta1(self) -> float: ...

    @property
    def beta2(self) -> float: ...

    @property
    def epsilon(self) -> float: ...


def flatten_obs(obs: Any) -> list[Any]:
    """The parts of an observation; those of a dict by name, in whatever order they came."""
    return [obs[name] for name in sorted(obs)] if isinstance(obs, dict) else [obs]


def restore_obs(parts: Sequence[Tensor], like: Obs) -> Any:
    """`parts` in the shape of `like`, an array or a dict; parts beyond it are ignored."""
    return dict(zip(sorted(like), parts, strict=False)) if isinstance(like, dict) else parts[0]


def flatten_batch(batches: Batch) -> list[Any]:
    """The arrays of a batch that an update reads, in the order that `_rows` expects."""
    rest = [batches.action, batches.reward, batches.discount, batches.weight]
    mask = [] if batches.next_action_mask is None else [batches.next_action_mask]
    return [*flatten_obs(batches.obs), *flatten_obs(batches.next_obs), *rest, *mask]


def _rows(fields: Sequence[Tensor], like: Obs) -> Rows:
    """`fields` put back in their places; `like` is any observation of the same kind."""
    parts = len(flatten_obs(like))
    action, reward, discount, weight, *mask = fields[2 * parts :]
    obs, next_obs = restore_obs(fields, like), restore_obs(fields[parts:], like)
    return Rows(obs, action, reward, discount, next_obs, weight, mask[0] if mask else None)


class FunctionalNetwork:
    """A module's forward as a function of a flat parameter vector and a flat noise vector."""

    def __init__(self, module: nn.Module, precision: str) -> None:
        self._module = module
        self._parameters = {name: parameter.shape for name, parameter in module.named_parameters()}
        self._noise = {name: buffer.shape for name, buffer in module.named_buffers()}
        self._half = precision == "bfloat16"
        self.noise_sizes = [shape.numel() for shape in self._noise.values()]

    def split(self, values: Tensor) -> dict[str, Tensor]:
        return split_vector(values, self._parameters)

    def buffers(self, noise: Tensor) -> dict[str, Tensor]:
        """The noisy layers' buffers, from standard normal draws [S]."""
        return split_vector(noise.sign() * noise.abs().sqrt(), self._noise)

    def forward(self, parameters: dict[str, Tensor], noise: Tensor) -> Network:
        """The network with these numbers in it. Half precision ends at its output: the loss is always in float32."""
        buffers = self.buffers(noise)

        def network(obs: Tensor | dict[str, Tensor]) -> Tensor:
            with torch.autocast(noise.device.type, torch.bfloat16, enabled=self._half, cache_enabled=False):
                return functional_call(self._module, parameters | buffers, (obs,)).float()

        return network


def split_vector(vector: Tensor, shapes: dict[str, torch.Size]) -> dict[str, Tensor]:
    parts = vector.split([shape.numel() for shape in shapes.values()]) if shapes else ()
    return {name: part.view(shape) for (name, shape), part in zip(shapes.items(), parts, strict=True)}


def make_step(spec: UpdateSpec, network: FunctionalNetwork, like: Obs, in_place: bool) -> Function:
    """n updates as a function of the parameters, moments and target [P], noise [n, 2, S], the Adam factors [n, 2] of
    each update and the batch's fields [n, B, ...]. It writes to the vectors, or returns new ones before the statistics
    td_error [n, B] and scalars [3, n]. The target stays as it is: who calls moves it in between. From the first update
    on whose loss or gradient is not finite the vectors stay as they are.
    """

    def step(
        values: Tensor, mean: Tensor, square: Tensor, target: Tensor, noise: Tensor, factors: Tensor, *fields: Tensor
    ) -> tuple[Tensor, ...]:
        vectors, td_errors, scalars, good = (values, mean, square), [], [], values.new_ones((), dtype=torch.bool)
        targets = _target_networks(spec, network, target, noise, _rows(fields, like).next_obs)
        for j, target_network in enumerate(targets):
            rows = _rows([field[j] for field in fields], like)
            gradient, outcome = _gradient(spec, network, vectors[0], target_network, noise[j, 0], rows)
            vectors, norm, good = optimise(spec, vectors, gradient, factors[j], outcome.loss, good)
            td_errors.append(outcome.td_error)
            scalars.append(torch.stack((outcome.loss, outcome.q_mean, norm)))
        stats = torch.stack(td_errors), torch.stack(scalars, 1)
        if not in_place:
            return *vectors, *stats
        for old, new in zip((values, mean, square), vectors, strict=True):
            old.copy_(new)
        return stats

    return step


def make_choice(spec: UpdateSpec, network: FunctionalNetwork, like: Obs) -> Function:
    """The best action [N] as a function of parameters [P], noise [S], the observation's parts [N, ...] and a mask."""

    def choose(values: Tensor, noise: Tensor, *fields: Tensor) -> tuple[Tensor]:
        parts = len(flatten_obs(like))
        q = network.forward(network.split(values), noise)(restore_obs(fields, like))
        if spec.atoms > 1:
            q = categorical.expected_q(q, categorical.make_support(spec.v_min, spec.v_max, spec.atoms, q.device))
        return (td.mask_actions(q, fields[parts] if len(fields) > parts else None).argmax(-1),)

    return choose


def _target_networks(
    spec: UpdateSpec, network: FunctionalNetwork, target: Tensor, noise: Tensor, next_obs: Any
) -> list[Network]:
    """What the target says in each update: all n batches in one forward where no noise tells the updates apart, which
    cut an update of a 64-64 network by a fifth."""
    parameters, n = network.split(target), len(noise)
    if spec.noisy:
        return [network.forward(parameters, noise[j, 1]) for j in range(n)]
    everything = network.forward(parameters, noise[0, 1])(map_obs(lambda part: part.flatten(0, 1), next_obs))
    return [_already_known(q) for q in everything.unflatten(0, (n, -1))]


def _already_known(q: Tensor) -> Network:
    return lambda obs: q


def _gradient(
    spec: UpdateSpec, network: FunctionalNetwork, values: Tensor, target_network: Network, noise: Tensor, rows: Rows
) -> tuple[Tensor, Objective]:
    """The gradient [P] of the loss. The parts of an accumulated update are of one size: the mean over all its rows is
    the mean of their means."""

    def loss(parameters: dict[str, Tensor]) -> tuple[Tensor, Objective]:
        outcome = objective(spec, network.forward(parameters, noise), target_network, rows)
        return outcome.loss, outcome

    gradients, (_, outcome) = grad_and_value(loss, has_aux=True)(network.split(values))
    return torch.cat([part.reshape(-1) for part in gradients.values()]), outcome


def optimise(
    spec: AdamSpec, vectors: Vectors, gradient: Tensor, factors: Tensor, loss: Tensor, good: Tensor
) -> tuple[Vectors, Tensor, Tensor]:
    """`maths.adam.adam_step` without its in-place writes; `factors` are those of `adam_factors`.

    `good` says whether everything before was finite; returned is whether it still is. Where not, nothing moves.
    """
    values, mean, square = vectors
    norm = gradient.norm()
    good = good & norm.isfinite() & loss.isfinite()
    if spec.max_gradient_norm > 0:
        gradient = gradient * clip_scale(norm, spec.max_gradient_norm)
    mean = mean.lerp(gradient, 1.0 - spec.beta1)
    square = square * spec.beta2 + gradient * gradient * (1.0 - spec.beta2)
    denominator = square.sqrt() / factors[1] + spec.epsilon
    stepped = (values - factors[0] * mean / denominator, mean, square)
    first, second, third = (torch.where(good, new, old) for new, old in zip(stepped, vectors, strict=True))
    return (first, second, third), norm, good
