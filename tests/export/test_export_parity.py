"""How a difference is measured, graphs by their levels, and safetensors: nothing here needs an extra."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pytest
import torch
from safetensors import safe_open

from hotloop.cli.main import main
from hotloop.core.types import Array, ArraySpec, BoxActions
from hotloop.export.about import export_torch
from hotloop.export.parity import ParityInputs, check, random_batches
from hotloop.export.wrapped import LevelledTopology
from hotloop.nets.build import build_q_network
from hotloop.nets.topology.generators import dense_small_world, small_world
from hotloop.nets.topology.network import TopologyNetwork
from tests.export.small_agents import actor, q_agent

OBS = np.array([[0.1, 0.2], [0.3, 0.4]], np.float32)


def difference(q_expected: list[list[float]], q_found: list[list[float]], chosen: list[int], mask: Any = None) -> Any:
    """Of an agent whose Q-values and choice are given, and a file that says otherwise."""
    agent = q_agent(ArraySpec((2,)), actions=len(q_expected[0]))
    agent.q_values = lambda obs: np.array(q_expected, np.float32)  # type: ignore[method-assign]
    found = {"q_values": np.array(q_found, np.float32), "action": np.array(chosen)}
    return check(agent, lambda seen: found, [ParityInputs(OBS, mask)])


def test_a_difference_is_relative_beyond_one() -> None:
    parity = difference([[0.5, 1000.0], [0.0, 2.0]], [[0.50003, 1000.05], [0.0, 2.0]], [1, 1])
    assert parity.differences["q_values"] == pytest.approx(5e-5, rel=1e-2)  # 0.05 of 1000, more than 3e-5 of 0.5
    assert parity.differences["action"] == 0.0
    assert parity.holds


def test_another_action_counts_by_how_much_worse_it_is() -> None:
    equal = [[1.0, 1.0], [0.0, 2.0]]
    assert difference(equal, equal, [1, 1]).holds  # either is right in the first row
    worse = difference(equal, equal, [0, 0])
    assert worse.differences["action"] == pytest.approx(1.0)  # 2 of 2
    assert not worse.holds


def test_a_forbidden_or_impossible_action_never_passes() -> None:
    equal = [[1.0, 1.0], [0.0, 2.0]]
    mask = np.array([[True, False], [True, True]])
    assert difference(equal, equal, [0, 1], mask).holds
    assert math.isinf(difference(equal, equal, [1, 1], mask).largest)
    assert math.isinf(difference(equal, equal, [0, 7]).largest)


def test_nan_never_passes() -> None:
    assert not difference([[1.0, 2.0], [0.0, 2.0]], [[math.nan, 2.0], [0.0, 2.0]], [1, 1]).holds


def test_random_observations_fit_the_spec_and_leave_an_action_allowed() -> None:
    spec = {"image": ArraySpec((2, 2, 1), np.dtype(np.uint8)), "flags": ArraySpec((3,), np.dtype(np.bool_))}
    batches = list(random_batches(spec, mask_width=2))
    assert [len(batch.obs["image"]) for batch in batches] == [1, 7, 64]
    assert {name: part.dtype for name, part in batches[0].obs.items()} == {"image": np.uint8, "flags": np.bool_}
    assert all(batch.action_mask is not None and batch.action_mask.any(axis=1).all() for batch in batches)


@pytest.mark.parametrize("activate_outputs", [True, False])
@pytest.mark.parametrize(
    "graph",
    [
        small_world(3, 12, 2, 4, 0.3, 5),
        dense_small_world(3, (4, 4), 2, 0.4, 5),
        networkx.DiGraph([(0, 3), (3, 4), (2, 4), (1, 5), (4, 5)]),
    ],
    ids=["small world", "layers", "by hand"],
)
def test_a_graph_by_its_levels_is_the_same_network(graph: Any, activate_outputs: bool) -> None:
    network = TopologyNetwork(graph, activate_outputs=activate_outputs)
    with torch.no_grad():
        network.weight.normal_()
        obs = torch.randn(6, len(network.graph.inputs))
        torch.testing.assert_close(LevelledTopology(network)(obs), network(obs), rtol=1e-5, atol=1e-5)


def test_safetensors_hold_every_parameter_by_name_and_what_builds_the_network(tmp_path: Path) -> None:
    agent = q_agent(ArraySpec((4,)), dueling=True)
    answer = export_torch(agent, tmp_path / "q.safetensors")
    with safe_open(tmp_path / "q.safetensors", "np") as file:
        about = json.loads(file.metadata()["hotloop"])
        arrays: dict[str, Array] = {name.removeprefix("network."): file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    assert about["settings"]["network"]["hidden"] == [8]
    assert "run_dir" not in about["settings"]
    assert answer["tensors"] == len(arrays)
    network = build_q_network(agent.settings.network, agent.obs_spec, 3, seed=9)
    network.load_state_dict({name: torch.from_numpy(array) for name, array in arrays.items()})
    obs = torch.randn(5, 4)
    assert torch.equal(network(obs), agent.network(obs))


def test_safetensors_hold_the_normalizer(tmp_path: Path) -> None:
    agent = actor(ArraySpec((3,)), BoxActions((-1.0,), (1.0,), (1,)), normalize=True)
    export_torch(agent, tmp_path / "a.safetensors")
    assert agent.normalizer is not None
    with safe_open(tmp_path / "a.safetensors", "np") as file:
        both = [file.get_tensor(f"normalizer.obs.{name}") for name in ("shift", "scale")]
    assert np.concatenate(both).tolist() == agent.normalizer.weights().tolist()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["mine"], "neither `--onnx` nor `--torch`"),
        (["mine", "--onnx", "a.pt"], "ends in .onnx"),
        (["mine", "--torch", "a.onnx"], "ends in .safetensors"),
        (["nowhere", "--onnx", "a.onnx"], "is not a run directory"),
    ],
)
def test_mistakes_of_the_verb(
    words: list[str], expected: str, run_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", *words]) == 2
    assert expected in capsys.readouterr().err
    assert list(run_folder.iterdir()) == []
