"""What networks look like: Q-networks, actor-critics, graph networks, and their plain layouts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from hotloop.core.errors import SettingsError
from hotloop.core.given import is_given
from hotloop.core.user_files import is_file
from hotloop.core.values import nearest, require_at_least, require_finite, shortened

MOST_LAYERS = 1_000
Activation = Literal["relu", "tanh", "selu", "leaky_relu"]
ImageLayout = Literal["auto", "channels-first", "channels-last"]
TORSOS = ("auto", "mlp", "cnn", "nature_cnn")
Q_TORSOS = (*TORSOS, "topology", "branch_attention")


def require_torso(torso: str, known: tuple[str, ...]) -> None:
    if torso in known or is_file(torso) or is_given(torso):
        return
    near = nearest(torso, known)
    hint = (
        f"`{torso}:Class` names a class in it" if torso.endswith(".py") else f"did you mean `{near}`?" if near else ""
    )
    names = ", ".join(f"`{name}`" for name in known)
    raise SettingsError(
        f"`network.torso` is {shortened(torso)}, expected one of {names}, or `path/to/file.py:Class`", hint
    )


def require_widths(widths: tuple[int, ...], name: str, least: int = 1) -> None:
    if any(width < least for width in widths):
        raise SettingsError(f"`{name}` is {shortened(list(widths))}, expected widths of at least {least}")
    if len(widths) > MOST_LAYERS:
        raise SettingsError(f"`{name}` has {len(widths):,} layers, expected at most {MOST_LAYERS:,}")


@dataclass(frozen=True, kw_only=True)
class TopologySettings:
    """How a network with `network.torso = "topology"` is wired; its graph's output nodes are the Q-values."""

    generator: Literal["small_world", "dense", "dense_small_world"] = "small_world"
    """`small_world`: a ring of `hidden` nodes with some edges rewired. `dense`: the layers of `network.hidden`.
    `dense_small_world`: those layers, with some edges rewired past the next layer."""
    hidden: int = 64
    """Hidden nodes of a small world, at least 3."""
    ring_degree: int = 8
    """Each node of a small world feeds the next `ring_degree // 2`; at least 2 and below `hidden`. The first so many
    nodes see the inputs, the last so many feed the outputs."""
    rewiring: float = 0.1
    """Probability that an edge gets a new target, 0 to 1."""
    graph_seed: int = 47
    """Which graph, 0 to 4294967295; apart from the run's `seed`, which draws its weights."""
    activation: Literal["leaky_relu", "tanh"] = "leaky_relu"
    """Of every node but the inputs: `leaky_relu` (slope 0.1) or `tanh`."""
    activate_outputs: bool = True
    """Whether the outputs have that activation too; with `tanh` they then stay between -1 and 1."""
    learn_biases: bool = True
    """Whether biases learn; if not, they stay as they were drawn."""

    def __post_init__(self) -> None:
        require_finite(self, "network.topology.")
        if not 2 <= self.ring_degree < self.hidden:
            raise SettingsError(
                f"`network.topology.ring_degree` is {self.ring_degree} with {self.hidden} `hidden` nodes",
                "it must be at least 2 and below `network.topology.hidden`",
            )
        if not 0 <= self.rewiring <= 1:
            raise SettingsError(f"`network.topology.rewiring` is {self.rewiring}, expected 0 to 1")
        if not 0 <= self.graph_seed < 2**32:
            raise SettingsError(f"`network.topology.graph_seed` is {self.graph_seed}, expected 0 to {2**32 - 1}")


@dataclass(frozen=True, kw_only=True)
class BranchSettings:
    """The branches of a network with `network.torso = "branch_attention"`, one for each part of the observation."""

    vector_hidden: tuple[int, ...] = (128,)
    """Units of each hidden layer of a branch over a vector, before its last, each at least 1."""
    row_width: int = 64
    """Units that each row of a table is turned into, by the same layer for all rows, at least 1."""
    width: int = 64
    """Units that every branch ends with, at least 1."""
    attention: int = 128
    """Units of the layer that scores the branches, at least 1."""

    def __post_init__(self) -> None:
        for name in ("row_width", "width", "attention"):
            if getattr(self, name) < 1:
                raise SettingsError(f"`network.branches.{name}` is {getattr(self, name)}, expected at least 1")
        require_widths(self.vector_hidden, "network.branches.vector_hidden")


@dataclass(frozen=True, kw_only=True)
class NetworkSettings:
    """Torso and head; every combination of dueling, noisy and atoms is allowed, but no noise in a `topology`."""

    torso: str = "auto"
    """`mlp` flattens the observation; `cnn` puts three 3x3 convolutions (32, 64, 64) before the hidden layers,
    `nature_cnn` those of Mnih et al. 2015 (8x8, 4x4, 3x3; 32, 64, 64) and a layer of 512; images in a dict have
    convolutions of their own, joined with the other parts before the hidden layers. `auto` takes `cnn` for observations
    of three dimensions (`network.image_layout`) and for dicts with an image, `mlp` otherwise; `topology`: a graph of
    single nodes, wired as `network.topology` says, is the whole network; `branch_attention`: a branch for each part of
    a dict observation, as `network.branches` says, and attention over them before the hidden layers.
    `path/to/file.py:Class`: a module of your own, in place of the hidden layers too."""
    image_layout: ImageLayout = "auto"
    """Where the channels of an image stand for a `cnn`: `channels-first` (4 x 84 x 84), `channels-last` (84 x 84 x 4);
    `auto` decides by shape, says what it decided, and refuses a shape that could be either."""
    hidden: tuple[int, ...] = (64, 64)
    """Units of each hidden layer; 0: 64 where an observation has at most 32 numbers, 256 where it has more."""
    activation: Activation = "relu"
    """After every hidden layer: `relu`, `tanh`, `selu` or `leaky_relu` (slope 0.01)."""
    dueling: bool = False
    """Split the head into a state value and action advantages (Wang et al. 2016)."""
    noisy: bool = False
    """Learned noise on every linear layer (Fortunato et al. 2018); with `exploration.start` 0 it alone explores."""
    noisy_sigma: float = 0.5
    """Initial size of that noise, above 0."""
    atoms: int = 1
    """1: scalar Q-values. Above 1: a distribution of returns on so many atoms, C51 (Bellemare et al. 2017)."""
    v_min: float = 0.0
    """Return of the lowest atom."""
    v_max: float = 200.0
    """Return of the highest atom, above `v_min`."""
    topology: TopologySettings = field(default_factory=TopologySettings)
    branches: BranchSettings = field(default_factory=BranchSettings)

    def __post_init__(self) -> None:
        require_finite(self, "network.")
        require_torso(self.torso, Q_TORSOS)
        require_widths(self.hidden, "network.hidden", least=0)
        if self.atoms < 1:
            raise SettingsError(f"`network.atoms` is {self.atoms}, expected 1 (scalar) or more (C51 uses 51)")
        if self.v_max <= self.v_min:
            raise SettingsError(f"`network.v_max` is {self.v_max}, expected above `network.v_min` ({self.v_min})")
        if self.noisy_sigma <= 0:
            raise SettingsError(f"`network.noisy_sigma` is {self.noisy_sigma}, expected above 0")
        if is_given(self.torso) and (self.noisy or self.atoms > 1):
            raise SettingsError(
                "`network.noisy` and `network.atoms` are of networks that the settings describe, and one was given",
                "leave them out, or `network`",
            )
        if self.torso == "topology" and self.noisy:
            raise SettingsError(
                "`network.noisy` needs linear layers, and `network.torso` is `topology`, which has none",
                "explore with `exploration` instead: `--network.noisy false`",
            )


@dataclass(frozen=True, kw_only=True)
class GraphNetworkSettings:
    """Layers of attention along a graph's edges, for observations that are graphs; other observations ignore this."""

    width: int = 128
    """Units of every node, every edge and the graph's own token, at least 2; a multiple of `heads` and `groups`."""
    heads: int = 4
    """Attention heads of a layer, at least 1; each has `width / heads` units."""
    layers: int = 4
    """Layers, at least 1: after so many, a node has heard from nodes as many edges away."""
    feed_forward: int = 256
    """Units between the two linear maps that end a layer, at least 1."""
    groups: int = 16
    """Groups that the last units are split into, at least 1, each with a softmax of its own; a group needs 2 units."""

    def __post_init__(self) -> None:
        require_at_least(1, self, "network.graph.", "width", "heads", "layers", "feed_forward", "groups")
        if self.layers > MOST_LAYERS:
            raise SettingsError(f"`network.graph.layers` is {self.layers:,}, expected at most {MOST_LAYERS:,}")
        for name in ("heads", "groups"):
            if self.width % getattr(self, name):
                raise SettingsError(
                    f"`network.graph.width` is {self.width}, no multiple of `{name}` ({getattr(self, name)})",
                    f"choose `network.graph.{name}` among the divisors of the width",
                )
        if self.width < 2 * self.groups:
            raise SettingsError(
                f"`network.graph.groups` is {self.groups}, expected at most {self.width // 2}",
                f"half of the width ({self.width}): the softmax of a single unit is always 1",
            )


@dataclass(frozen=True, kw_only=True)
class ActorCriticSettings:
    """Orthogonal weights; the policy's last layer starts near zero, so that all actions start equally likely."""

    torso: str = "auto"
    """`mlp` flattens the observation; `cnn` puts three 3x3 convolutions (32, 64, 64) before the hidden layers,
    `nature_cnn` those of Mnih et al. 2015 (8x8, 4x4, 3x3; 32, 64, 64) and a layer of 512; images in a dict have
    convolutions of their own, joined with the other parts before the hidden layers. `auto` takes `cnn` for observations
    of three dimensions (`network.image_layout`) and for dicts with an image, `mlp` otherwise.
    `path/to/file.py:Class`: a module of your own, in place of the hidden layers too."""
    image_layout: ImageLayout = "auto"
    """Where the channels of an image stand for a `cnn`: `channels-first` (4 x 84 x 84), `channels-last` (84 x 84 x 4);
    `auto` decides by shape, says what it decided, and refuses a shape that could be either."""
    hidden: tuple[int, ...] = (64, 64)
    """Units of each hidden layer; 0: 64 where an observation has at most 32 numbers, 256 where it has more."""
    activation: Activation = "tanh"
    """After every hidden layer: `relu`, `tanh`, `selu` or `leaky_relu` (slope 0.01)."""
    shared: bool = False
    """One torso for policy and value instead of one for each."""
    squashed: bool = False
    """Continuous actions go through tanh, so that they cannot leave their bounds, instead of being cut off there."""
    log_std: float = 0.0
    """Continuous actions: logarithm of the standard deviation to begin with, in units of half the action's range."""
    graph: GraphNetworkSettings = field(default_factory=GraphNetworkSettings)

    def __post_init__(self) -> None:
        require_finite(self, "network.")
        require_torso(self.torso, TORSOS)
        require_widths(self.hidden, "network.hidden", least=0)
        if not -10.0 <= self.log_std <= 2.0:
            raise SettingsError(f"`network.log_std` is {self.log_std}, expected -10 to 2")


@dataclass(frozen=True)
class MLPLayout:
    """A multilayer Q-network as numbers: parameters lie in the order of the layers, weight [out, in] before bias,
    the value stream of a dueling head before its advantages."""

    title: ClassVar[str] = "a multilayer network"

    obs_size: int
    hidden: tuple[int, ...]
    activation: str
    dueling: bool
    num_actions: int
    atoms: int
