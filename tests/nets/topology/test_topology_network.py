"""A network from a graph: numbers by hand, the plain program as witness, and everything an `nn.Module` can do."""

import copy
import json
from pathlib import Path

import networkx
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch.func import functional_call
from torch.testing import assert_close

from benchmarks.witnesses import topology as plain_program
from hotloop.nets import TopologyNetwork
from hotloop.nets.topology.convert import read_graph_file
from hotloop.nets.topology.generators import dense, dense_small_world, small_world
from hotloop.nets.topology.graph import TopologyError

GRAPHS = {
    "small world": small_world(3, 9, 2, 4, 0.3, 1),
    "dense": dense(3, (5, 4), 2),
    "dense small world": dense_small_world(3, (5, 4), 2, 0.4, 1),
}


def diamond() -> networkx.DiGraph:
    """x -> left, right -> y, and x -> y."""
    graph = networkx.DiGraph()
    graph.add_edge("x", "left", weight=2.0)
    graph.add_edge("x", "right", weight=-3.0)
    graph.add_edge("left", "y", weight=1.0)
    graph.add_edge("right", "y", weight=10.0)
    graph.add_edge("x", "y", weight=0.5)
    networkx.set_node_attributes(graph, {"left": 1.0, "right": 0.0, "y": -1.0}, "bias")
    return graph


@pytest.mark.parametrize("fused", [True, False])
def test_values_by_hand(fused):
    network = TopologyNetwork(diamond(), fused=fused)
    values = network.activations(torch.tensor([[1.0], [-1.0]]))
    assert_close(values["left"], torch.tensor([3.0, -0.1]))  # 2 x + 1, leaky
    assert_close(values["right"], torch.tensor([-0.3, 3.0]))  # -3 x, leaky
    assert_close(values["y"], torch.tensor([-0.05, 28.4]))  # 3 - 3 + 0.5 - 1 = -0.5; -0.1 + 30 - 0.5 - 1
    assert_close(network(torch.tensor([[1.0], [-1.0]])), torch.tensor([[-0.05], [28.4]]))


@pytest.mark.parametrize("fused", [True, False])
def test_outputs_can_be_left_as_they_are(fused):
    network = TopologyNetwork(diamond(), activate_outputs=False, fused=fused)
    assert_close(network(torch.tensor([[1.0]])), torch.tensor([[-0.5]]))
    assert_close(network.activations(torch.tensor([[1.0]]))["right"], torch.tensor([-0.3]))


def test_gradients_by_hand():
    network = TopologyNetwork(diamond(), activate_outputs=False)
    x = torch.tensor([[1.0]], requires_grad=True)
    network(x).sum().backward()
    by_edge = dict(zip(network.graph.edges(), network.weight.grad.tolist(), strict=True))
    expected = {("x", "left"): 1.0, ("x", "right"): 1.0, ("left", "y"): 3.0, ("right", "y"): -0.3, ("x", "y"): 1.0}
    assert by_edge == pytest.approx(expected)
    assert network.bias.grad.tolist() == pytest.approx([1.0, 1.0, 1.0])  # 10 x slope 0.1 of `right`
    assert x.grad.item() == pytest.approx(2.0 + 10 * 0.1 * -3.0 + 0.5)


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("activation", ["leaky_relu", "tanh"])
@pytest.mark.parametrize("activate_outputs", [True, False])
def test_gradients_agree_with_finite_differences(name, activation, activate_outputs):
    torch.manual_seed(1)
    network = TopologyNetwork(GRAPHS[name], activation=activation, activate_outputs=activate_outputs).double()
    weight, bias = 5 * network.weight.detach(), network.bias.detach().clone()
    inputs = (torch.randn(4, 3, dtype=torch.double), weight, bias)

    def forward(obs, weight, bias):
        return functional_call(network, {"weight": weight, "bias": bias}, (obs,))

    assert torch.autograd.gradcheck(forward, tuple(part.requires_grad_() for part in inputs))


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("activation", ["leaky_relu", "tanh"])
@pytest.mark.parametrize("rows", [1, 5, 64])
def test_machine_code_torch_and_the_plain_program_agree(name, activation, rows):
    torch.manual_seed(rows)
    graph = GRAPHS[name]
    fused = TopologyNetwork(graph, activation=activation)
    with torch.no_grad():
        fused.weight.mul_(5)
    unfused = TopologyNetwork(graph, activation=activation, fused=False)
    unfused.load_state_dict(fused.state_dict())
    plain = plain_program.TopologyNetwork(fused.to_networkx(), graph.inputs, graph.outputs, activation)
    unfused.load_named(plain.state_dict())
    fused.load_named(plain.state_dict())
    obs = torch.randn(rows, 3)
    outputs = []
    for network in (fused, unfused, plain):
        out = network(obs)
        out.square().sum().backward()
        outputs.append(out.detach())
    assert_close(outputs[0], outputs[1])
    assert_close(outputs[0], outputs[2])
    assert_close(fused.weight.grad, unfused.weight.grad)
    assert_close(fused.bias.grad, unfused.bias.grad)
    plain_gradient = {name: parameter.grad for name, parameter in plain.named_parameters()}
    fused_gradient = copy.deepcopy(fused)
    with torch.no_grad():
        fused_gradient.weight.copy_(fused.weight.grad)
        fused_gradient.bias.copy_(fused.bias.grad)
    for key, value in fused_gradient.named_numbers().items():
        place = f"weights.{key}" if "_to_" in key else f"biases.{key}"
        assert value == pytest.approx(plain_gradient[place].item(), rel=1e-4, abs=1e-6)


def test_every_node_may_be_an_input_s_only_follower_or_have_no_edge_at_all():
    graph = networkx.DiGraph([("i", "o")])
    graph.add_node("alone", bias=2.0)
    network = TopologyNetwork(graph, ["i"], ["o"])
    assert network.activations(torch.zeros(3, 1))["alone"].tolist() == [2.0] * 3
    network(torch.zeros(3, 1)).sum().backward()
    assert network.bias.grad[network.graph.computed.index("alone")] == 0
    network.fused = False
    assert network.activations(torch.zeros(3, 1))["alone"].tolist() == [2.0] * 3


def test_columns_follow_the_order_of_inputs_and_outputs():
    graph = networkx.DiGraph()
    graph.add_edge("a", "p", weight=1.0)
    graph.add_edge("b", "q", weight=1.0)
    networkx.set_node_attributes(graph, {"p": 0.0, "q": 0.0}, "bias")
    obs = torch.tensor([[1.0, 2.0]])
    assert TopologyNetwork(graph, ["a", "b"], ["p", "q"])(obs).tolist() == [[1.0, 2.0]]
    assert TopologyNetwork(graph, ["b", "a"], ["p", "q"])(obs).tolist() == [[2.0, 1.0]]
    assert TopologyNetwork(graph)(obs).tolist() == [[1.0, 2.0]]  # sources and sinks, ascending


def test_weights_and_biases_are_read_and_written_by_name():
    network = TopologyNetwork(diamond())
    assert network.weights["x", "right"] == -3.0
    network.weights["x", "right"] = 4.0
    network.biases["y"] = torch.tensor(7.0)
    assert network.to_networkx().edges["x", "right"]["weight"] == 4.0
    assert network.to_networkx().nodes["y"]["bias"] == 7.0
    assert len(network.weights) == 5
    assert set(network.biases) == {"left", "right", "y"}
    with pytest.raises(TopologyError, match="'x' -> 'left'"):
        network.weights["left", "x"]
    with pytest.raises(TopologyError, match="no bias of 'x'"):
        network.biases["x"] = 1.0
    with pytest.raises(TopologyError, match="removed"):
        del network.biases["y"]


def test_string_keyed_numbers_of_a_saved_network_load_whole_or_not_at_all():
    network = TopologyNetwork(diamond())
    numbers = network.named_numbers()
    assert numbers["x_to_left"] == 2.0
    assert numbers["y"] == -1.0
    changed = {("weights." if "_to_" in key else "biases.") + key: torch.tensor(1.5) for key in numbers}
    network.load_named(changed)
    assert set(network.named_numbers().values()) == {1.5}
    with pytest.raises(TopologyError, match="missing, `y`"):
        network.load_named({key: 0.0 for key in numbers if key != "y"})
    with pytest.raises(TopologyError, match="unknown, `y_to_x`"):
        network.load_named({**numbers, "y_to_x": 0.0})
    assert set(network.named_numbers().values()) == {1.5}


def test_ids_that_are_the_same_as_text_cannot_be_loaded_by_name():
    graph = networkx.DiGraph([(0, 1), (0, "1"), (1, 2), ("1", 2)])
    with pytest.raises(TopologyError, match="`0_to_1`"):
        TopologyNetwork(graph, [0], [2]).named_numbers()


def test_a_graph_goes_to_networkx_and_back_unchanged():
    torch.manual_seed(0)
    network = TopologyNetwork(small_world(4, 16, 2, 4, 0.2, 5))
    again = TopologyNetwork(network.to_networkx())
    assert again.topological_order == network.topological_order
    obs = torch.randn(3, 4)
    assert torch.equal(again(obs), network(obs))


def test_a_json_file_of_networkx_is_read(tmp_path: Path):
    network = TopologyNetwork(diamond())
    data = networkx.node_link_data(network.to_networkx(), edges="edges")
    file = tmp_path / "graph.json"
    file.write_text(json.dumps(data))
    graph, (weights, biases) = read_graph_file(file)
    assert graph.edges() == network.graph.edges()
    assert weights == dict(network.weights)
    assert biases == dict(network.biases)
    data["nodes"].append({"id": "y"})
    file.write_text(json.dumps(data))
    with pytest.raises(TopologyError, match="'y' more than once"):
        read_graph_file(file)
    for text in ("[]", "{", '{"nodes": 3, "edges": []}', '{"nodes": [{"id": 1}]}'):
        file.write_text(text)
        with pytest.raises(TopologyError):
            read_graph_file(file)


def test_state_dict_safetensors_and_copies(tmp_path: Path):
    network = TopologyNetwork(GRAPHS["small world"])
    save_file(network.state_dict(), tmp_path / "network.safetensors")
    other = TopologyNetwork(GRAPHS["small world"])
    other.load_state_dict(load_file(tmp_path / "network.safetensors"))
    twin = copy.deepcopy(network)
    obs = torch.randn(4, 3)
    assert torch.equal(other(obs), network(obs))
    assert torch.equal(twin(obs), network(obs))
    with torch.no_grad():
        twin.weight.zero_()
    assert network.weight.abs().sum() > 0


def test_it_moves_between_devices_and_dtypes():
    network = TopologyNetwork(GRAPHS["small world"])
    assert copy.deepcopy(network).to("meta")(torch.empty(5, 3, device="meta")).shape == (5, 2)
    obs = torch.randn(5, 3)
    assert_close(network.double()(obs.double()).float(), network.float()(obs))
    assert network.bfloat16()(obs.bfloat16()).dtype == torch.bfloat16


def test_single_observations_and_further_axes_keep_their_shape():
    network = TopologyNetwork(GRAPHS["small world"])
    obs = torch.randn(2, 4, 3)
    assert network(obs).shape == (2, 4, 2)
    assert torch.equal(network(obs)[1, 2], network(obs[1, 2]))
    assert network(torch.empty(0, 3)).shape == (0, 2)
    assert torch.equal(network(obs.transpose(0, 1)), network(obs).transpose(0, 1))


def test_what_cannot_be_computed_is_refused():
    network = TopologyNetwork(GRAPHS["small world"])
    with pytest.raises(TopologyError, match=r"3 inputs.*\[2, 4\]"):
        network(torch.zeros(2, 4))
    with pytest.raises(TopologyError, match="float64"):
        network(torch.zeros(2, 3, dtype=torch.double))
    with pytest.raises(TopologyError, match="activation"):
        TopologyNetwork(GRAPHS["dense"], activation="relu")
    with pytest.raises(TopologyError, match="undirected"):
        TopologyNetwork(networkx.Graph([(0, 1)]))
    with pytest.raises(TopologyError, match="cycle"):
        TopologyNetwork(networkx.DiGraph([(0, 1), (1, 2), (2, 1)]), [0], [2])
    with pytest.raises(TopologyError, match="twice"):
        TopologyNetwork(networkx.MultiDiGraph([(0, 1), (0, 1)]))


def test_a_second_derivative_is_refused_by_machine_code_and_given_by_torch():
    network = TopologyNetwork(diamond(), activation="tanh")
    obs = torch.tensor([[0.1]], requires_grad=True)
    with pytest.raises(TopologyError, match="second derivative"):
        torch.autograd.grad(network(obs).sum(), obs, create_graph=True)
    network.fused = False
    (first,) = torch.autograd.grad(network(obs).sum(), obs, create_graph=True)
    assert torch.isfinite(torch.autograd.grad(first.sum(), obs)[0]).all()


def test_torch_compile_sees_the_whole_network():
    network = TopologyNetwork(GRAPHS["small world"])
    traced = torch.compile(network, fullgraph=True, backend="eager")
    obs = torch.randn(4, 3)
    out = traced(obs)
    assert_close(out, network(obs))
    out.sum().backward()
    assert network.weight.grad is not None


def test_a_weight_changed_between_forward_and_backward_is_noticed():
    network = TopologyNetwork(diamond())
    out = network(torch.ones(1, 1))
    with torch.no_grad():
        network.weight.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


def test_the_same_seed_draws_the_same_numbers_of_the_right_spread():
    torch.manual_seed(3)
    first = TopologyNetwork(small_world(4, 264, 2, 40, 0.2, 47))
    torch.manual_seed(3)
    second = TopologyNetwork(small_world(4, 264, 2, 40, 0.2, 47))
    assert torch.equal(first.weight, second.weight)
    assert first.weight.std().item() == pytest.approx(0.1, rel=0.05)
    assert first.bias.std().item() == pytest.approx(0.1, rel=0.15)


def test_it_learns():
    torch.manual_seed(0)
    network = TopologyNetwork(small_world(2, 12, 1, 4, 0.2, 1))
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-2)
    obs = torch.randn(64, 2)
    goal = 1 + obs[:, :1].abs()
    losses = []
    for _ in range(300):
        loss = (network(obs) - goal).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.1 * losses[0]
