"""Q-networks of every combination: shapes, initialization, and the layout that says where parameters lie."""

import itertools

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from hotloop.core.errors import SettingsError
from hotloop.core.types import ArraySpec
from hotloop.nets.build import QNetwork, build_q_network, mlp_layout, num_features, observation_text
from hotloop.nets.modules import CNN, MLP, JoinedTorso, as_vector
from hotloop.presets.network_settings import NetworkSettings

VECTOR = ArraySpec((3,))
IMAGE = ArraySpec((6, 5, 2), np.dtype(np.uint8))
DICT = {"board": ArraySpec((2, 2), np.dtype(np.uint8)), "speed": ArraySpec((3,))}
SPECS = {"vector": VECTOR, "image": IMAGE, "dict": DICT, "ints": ArraySpec((4,), np.dtype(np.int64))}


def obs_of(spec, rows: int, seed: int = 0):
    draw = np.random.default_rng(seed)
    if isinstance(spec, dict):
        return {name: obs_of(part, rows, seed + 1) for name, part in spec.items()}
    return torch.from_numpy((draw.random((rows, *spec.shape)) * 255).astype(spec.dtype))


def made(spec=VECTOR, num_actions: int = 4, seed: int = 1, **settings) -> QNetwork:
    return build_q_network(NetworkSettings(**settings), spec, num_actions, seed)


@pytest.mark.parametrize(
    ("dueling", "noisy", "atoms", "spec"), list(itertools.product([False, True], [False, True], [1, 7], SPECS))
)
def test_every_combination_gives_q_values_or_logits_and_can_learn(dueling, noisy, atoms, spec):
    network = made(SPECS[spec], dueling=dueling, noisy=noisy, atoms=atoms, hidden=(8, 8))
    output = network(obs_of(SPECS[spec], 5))
    assert output.shape == ((5, 4) if atoms == 1 else (5, 4, 7))
    assert output.dtype == torch.float32
    output.square().sum().backward()
    assert all(parameter.grad is not None for parameter in network.parameters())
    assert isinstance(network.torso, CNN if spec == "image" else MLP)


@pytest.mark.parametrize("hidden", [(), (5,), (5, 6, 7)])
@pytest.mark.parametrize("dueling", [False, True])
def test_any_number_of_hidden_layers_will_do(hidden, dueling):
    assert made(hidden=hidden, dueling=dueling)(torch.zeros(2, 3)).shape == (2, 4)


@pytest.mark.parametrize("num_actions", [1, 2])
@pytest.mark.parametrize("dueling", [False, True])
def test_few_actions_keep_their_axis(num_actions, dueling):
    assert made(num_actions=num_actions, dueling=dueling)(torch.zeros(1, 3)).shape == (1, num_actions)
    assert made(num_actions=num_actions, dueling=dueling, atoms=3)(torch.zeros(1, 3)).shape == (1, num_actions, 3)


def test_one_number_per_observation_is_a_vector_too():
    assert made(ArraySpec(()))(torch.zeros(2)).shape == (2, 4)


@pytest.mark.parametrize("shape", [(6, 5, 2), (32, 32, 1), (33, 40, 3), (84, 84, 4), (1, 1, 1)])
def test_images_of_any_size_fit_the_convolutions(shape):
    spec = ArraySpec(shape, np.dtype(np.uint8))
    assert made(spec, image_layout="channels-last", hidden=(8,))(obs_of(spec, 2)).shape == (2, 4)


def test_bytes_are_scaled_to_one_and_floats_are_taken_as_they_are():
    assert as_vector(torch.tensor([[0, 255]], dtype=torch.uint8)).tolist() == [[0.0, 1.0]]
    assert as_vector(torch.tensor([[3.5, -2.0]])).tolist() == [[3.5, -2.0]]


def test_parts_of_a_dict_stand_side_by_side():
    obs = {"a": torch.tensor([[1.0, 2.0]]), "b": torch.tensor([[[3.0], [4.0]]])}
    assert as_vector(obs).tolist() == [[1.0, 2.0, 3.0, 4.0]]
    assert num_features(DICT) == 7


def test_the_order_in_which_a_dict_lists_its_parts_does_not_change_the_answer():
    """A checkpoint gives a dict back in an order of its own."""
    network, obs = made(DICT), obs_of(DICT, 3)
    turned = dict(reversed(obs.items()))
    assert_close(network(obs), network(turned))


@pytest.mark.parametrize(
    ("activation", "expected"),
    [("relu", [0.0, 2.0]), ("tanh", [-0.7616, 0.9640]), ("leaky_relu", [-0.01, 2.0]), ("selu", [-1.1113, 2.1014])],
)
def test_activations_by_hand(activation, expected):
    torso = made(ArraySpec((2,)), hidden=(2,), activation=activation).torso
    with torch.no_grad():
        torso.layers[0].weight.copy_(torch.eye(2))
        torso.layers[0].bias.zero_()
        assert torso(torch.tensor([[-1.0, 2.0]]))[0].tolist() == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("atoms", [1, 5])
def test_a_dueling_head_is_value_plus_advantage_of_mean_zero(atoms):
    network, obs = made(dueling=True, atoms=atoms), torch.randn(6, 3)
    features = network.torso(obs)
    value = network.head.value(features).unsqueeze(-2)  # [B, 1, Z]
    output = network(obs).reshape(6, 4, atoms)
    assert_close((output - value).mean(-2), torch.zeros(6, atoms), atol=1e-6, rtol=0)
    raw = network.head.advantage(features).reshape(6, 4, atoms)
    assert_close(output[:, 1] - output[:, 0], raw[:, 1] - raw[:, 0], atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("noisy", [False, True])
@pytest.mark.parametrize("spec", ["vector", "image"])
def test_the_same_seed_gives_the_same_network_and_leaves_torchs_generator_alone(noisy, spec):
    torch.manual_seed(3)
    before = torch.random.get_rng_state()
    one, other, third = (made(SPECS[spec], seed=seed, noisy=noisy) for seed in (5, 5, 2**64 - 1))
    assert torch.equal(torch.random.get_rng_state(), before)
    for a, b in zip(one.parameters(), other.parameters(), strict=True):
        assert torch.equal(a, b)
    assert not torch.equal(next(one.parameters()), next(third.parameters()))


@pytest.mark.parametrize("dueling", [False, True])
@pytest.mark.parametrize("atoms", [1, 5])
@pytest.mark.parametrize("hidden", [(), (8,), (8, 6)])
def test_parameters_lie_in_the_order_that_the_layout_states(dueling, atoms, hidden):
    settings = NetworkSettings(hidden=hidden, dueling=dueling, atoms=atoms, activation="tanh")
    network, layout = (
        made(dueling=dueling, atoms=atoms, hidden=hidden, activation="tanh"),
        mlp_layout(settings, VECTOR, 4),
    )
    widths = [layout.obs_size, *layout.hidden]
    heads = [layout.atoms, layout.num_actions * layout.atoms] if dueling else [layout.num_actions * layout.atoms]
    layers = list(itertools.pairwise(widths)) + [(widths[-1], out) for out in heads]
    shapes = [shape for num_in, num_out in layers for shape in ((num_out, num_in), (num_out,))]
    assert [tuple(parameter.shape) for parameter in network.parameters()] == shapes
    assert_close(forward_by_layout(layout, network, torch.ones(2, 3)), network(torch.ones(2, 3)))


def forward_by_layout(layout, network: QNetwork, x: torch.Tensor) -> torch.Tensor:
    """The network worked out from its flat numbers and its layout alone."""
    numbers = torch.cat([parameter.detach().reshape(-1) for parameter in network.parameters()])

    def linear(x: torch.Tensor, num_out: int) -> torch.Tensor:
        nonlocal numbers
        size = num_out * x.shape[1]
        weight, bias, numbers = numbers[:size], numbers[size : size + num_out], numbers[size + num_out :]
        return x @ weight.view(num_out, -1).T + bias

    for width in layout.hidden:
        x = linear(x, width).tanh()
    value = linear(x, layout.atoms)[:, None] if layout.dueling else 0.0
    q = linear(x, layout.num_actions * layout.atoms).view(-1, layout.num_actions, layout.atoms)
    q = value + q - q.mean(1, keepdim=True) if layout.dueling else q
    return q if layout.atoms > 1 else q.squeeze(-1)


def test_there_is_no_layout_where_the_network_is_not_plain():
    assert mlp_layout(NetworkSettings(noisy=True), VECTOR, 2) is None
    assert mlp_layout(NetworkSettings(), IMAGE, 2) is None
    assert mlp_layout(NetworkSettings(torso="mlp"), IMAGE, 2) is None  # bytes
    assert mlp_layout(NetworkSettings(), DICT, 2) is None
    assert mlp_layout(NetworkSettings(torso="mlp"), ArraySpec((6, 5, 2)), 2).obs_size == 60


@pytest.mark.parametrize("spec", [VECTOR, DICT])
def test_a_cnn_needs_images(spec):
    with pytest.raises(SettingsError, match="cnn"):
        made(spec, torso="cnn")


@pytest.mark.parametrize("shape", [(4, 84, 84), (1, 84, 84), (3, 210, 160), (20, 30, 30), (2, 6, 7)])
def test_channels_come_first_where_the_shape_says_so(shape):
    """A stack of four frames is no image of height 4 with 84 channels."""
    network = made(ArraySpec(shape, np.dtype(np.uint8)))
    assert network.torso.convolutions[0].in_channels == shape[0]
    words = observation_text(NetworkSettings(), ArraySpec(shape))
    assert words.endswith(f"images of {shape[1]} x {shape[2]} with {shape[0]} channels, which come first")


@pytest.mark.parametrize("shape", [(84, 84, 4), (210, 160, 3), (5, 5, 3), (8, 8, 119), (6, 7, 2)])
def test_channels_come_last_where_the_shape_says_so(shape):
    assert made(ArraySpec(shape)).torso.convolutions[0].in_channels == shape[2]
    words = observation_text(NetworkSettings(), ArraySpec(shape))
    assert words.endswith(f"images of {shape[0]} x {shape[1]} with {shape[2]} channels, which come last")


@pytest.mark.parametrize("shape", [(84, 84, 84), (4, 84, 4), (3, 4, 5), (7, 6, 5)])
def test_a_shape_that_could_be_either_is_refused_until_the_setting_decides(shape):
    with pytest.raises(SettingsError, match="first or last") as caught:
        made(ArraySpec(shape))
    assert "--network.image-layout channels-first" in caught.value.hint
    assert made(ArraySpec(shape), image_layout="channels-first").torso.convolutions[0].in_channels == shape[0]
    assert made(ArraySpec(shape), image_layout="channels-last").torso.convolutions[0].in_channels == shape[2]


def test_both_layouts_of_the_same_image_give_the_same_values():
    last = obs_of(ArraySpec((84, 84, 4), np.dtype(np.uint8)), 2)
    one, other = made(ArraySpec((84, 84, 4))), made(ArraySpec((4, 84, 84)))
    assert_close(one(last), other(last.permute(0, 3, 1, 2)))


CAMERAS = {
    "camera": ArraySpec((8, 8, 3)),
    "eye.0": ArraySpec((12, 9), np.dtype(np.uint8)),  # in grey
    "speed": ArraySpec((2,)),
    "bits": ArraySpec((4,)),
}


@pytest.mark.parametrize("noisy", [False, True])
def test_an_image_among_the_parts_of_a_dict_has_convolutions_joined_with_the_rest(noisy):
    network, obs = made(CAMERAS, hidden=(8,), noisy=noisy), obs_of(CAMERAS, 3)
    assert isinstance(network.torso, JoinedTorso)
    assert network.torso.names == ["camera", "eye.0"]
    assert [image.convolutions[0].in_channels for image in network.torso.images] == [3, 1]
    features = [network.torso.images[0](obs["camera"]), network.torso.images[1](obs["eye.0"][..., None])]
    joined = torch.cat([*features, obs["bits"], obs["speed"]], dim=-1)  # the others in the order of their names
    assert_close(network(obs), network.head(network.torso.mlp(joined)))
    network(obs).square().sum().backward()
    assert all(parameter.grad is not None for parameter in network.parameters())
    assert_close(network(obs), network(dict(reversed(obs.items()))))
    assert mlp_layout(NetworkSettings(), CAMERAS, 4) is None


def test_an_image_among_the_parts_of_a_dict_is_flattened_only_where_that_is_asked_for():
    assert isinstance(made(CAMERAS, torso="mlp").torso, MLP)
    assert made(CAMERAS, torso="mlp").torso.layers[0].in_features == num_features(CAMERAS)
    alone = {"camera": CAMERAS["camera"]}
    assert made(alone)(obs_of(alone, 3)).shape == (3, 4)
    film = {"film": ArraySpec((4, 8, 8, 3))}
    with pytest.raises(SettingsError, match="part `film`") as caught:
        made(film)
    assert "--network.torso mlp" in caught.value.hint


def test_the_network_of_nature_has_the_layers_of_the_paper():
    network = made(ArraySpec((4, 84, 84), np.dtype(np.uint8)), torso="nature_cnn", hidden=(), num_actions=6)
    shapes = [tuple(parameter.shape) for parameter in network.parameters() if parameter.dim() > 1]
    assert shapes == [(32, 4, 8, 8), (64, 32, 4, 4), (64, 64, 3, 3), (512, 3136), (6, 512)]
    assert [convolution.stride for convolution in network.torso.convolutions] == [(4, 4), (2, 2), (1, 1)]
    assert sum(parameter.numel() for parameter in network.parameters()) == 1_687_206
    more = made(ArraySpec((36, 36, 1)), torso="nature_cnn", hidden=(7,))
    assert [layer.out_features for layer in more.torso.mlp.layers] == [512, 7]
    assert more(torch.zeros(2, 36, 36, 1)).shape == (2, 4)


def test_images_in_a_dict_may_have_the_convolutions_of_nature():
    parts = {"camera": ArraySpec((40, 48, 3), np.dtype(np.uint8)), "speed": ArraySpec((2,))}
    torso = made(parts, torso="nature_cnn", hidden=(8,)).torso
    assert torso.images[0].num_out == 512
    assert torso.mlp.layers[0].in_features == 514


@pytest.mark.parametrize("shape", [(35, 84, 3), (3, 84, 35), (10, 10, 1)])
def test_images_too_small_for_nature_are_refused(shape):
    with pytest.raises(SettingsError, match="needs images of 36 x 36 pixels or more; these are") as caught:
        made(ArraySpec(shape), torso="nature_cnn")
    assert "--network.torso cnn" in caught.value.hint


@pytest.mark.parametrize(
    ("torso", "words"), [("cnnn", "did you mean `cnn`"), ("net.py", "`net.py:Class` names a class"), ("rnn", "")]
)
def test_an_unknown_torso_is_refused_with_those_there_are(torso, words):
    with pytest.raises(SettingsError, match="expected one of `auto`, .*, or `path/to/file.py:Class`") as caught:
        NetworkSettings(torso=torso)
    assert words in caught.value.hint


def test_what_is_flattened_is_said():
    assert observation_text(NetworkSettings(), ArraySpec((84, 84))) == (
        "observations of 84 x 84 are flattened to 7056 numbers"
    )
    assert observation_text(NetworkSettings(), VECTOR) == ""
    assert observation_text(NetworkSettings(torso="branch_attention"), DICT) == ""
    assert observation_text(NetworkSettings(), DICT) == ""


def test_what_is_read_as_an_image_is_said_part_by_part():
    assert observation_text(NetworkSettings(), CAMERAS) == (
        "`camera` of 8 x 8 x 3 are images of 8 x 8 with 3 channels, which come last; "
        "`eye.0` of 12 x 9 are images in grey; the other parts are 6 numbers"
    )
