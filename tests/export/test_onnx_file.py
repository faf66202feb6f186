"""Networks of every kind as ONNX files, run by onnxruntime and held against their agents."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hotloop import api
from hotloop.cli.main import main
from hotloop.core.errors import MissingExtraError, NonFiniteError, SettingsError
from hotloop.core.program import install_command
from hotloop.core.rng import derive_seeds
from hotloop.core.types import ArraySpec, BoxActions, HybridActions, MultiDiscreteActions
from hotloop.envs.registry import make_envs
from hotloop.export import onnx_file
from hotloop.export.onnx_file import export_onnx
from hotloop.export.parity import Parity
from hotloop.loop.agents import ActorAgent, Agent, GraphAgent
from tests.export.small_agents import actor, q_agent

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")
pytest.importorskip("onnxscript")

IMAGE = ArraySpec((6, 6, 2), np.dtype(np.uint8))
PARTS = {"view": ArraySpec((3, 4)), "speed": ArraySpec(()), "own": ArraySpec((5,))}


class MaskedEnvs:
    """Envs as far as an export looks: forbidden actions, and nothing to play."""

    has_action_mask = True

    def __init__(self, spec: Any) -> None:
        self.action_spec = spec


@pytest.mark.parametrize(
    ("agent", "inputs", "shape"),
    [
        (q_agent(IMAGE, first=1, dueling=True, noisy=True, atoms=5), ["obs"], ["batch", 6, 6, 2]),
        (q_agent(PARTS | {"eyes.0": IMAGE}), ["obs.eyes.0", "obs.own", "obs.speed", "obs.view"], ["batch", 6, 6, 2]),
        (q_agent(PARTS, torso="branch_attention"), ["obs.own", "obs.speed", "obs.view"], ["batch", 5]),
        (
            q_agent(ArraySpec((4,)), torso="topology", topology={"hidden": 9, "ring_degree": 4, "activation": "tanh"}),
            ["obs"],
            ["batch", 4],
        ),
    ],
    ids=["rainbow on images", "an image among parts", "branches", "topology"],
)
def test_q_networks_are_the_same_outside(agent: Agent, inputs: list[str], shape: list[Any], tmp_path: Path) -> None:
    exported = export_onnx(agent, tmp_path / "q.onnx", None)
    assert list(exported.inputs) == inputs
    assert exported.inputs[inputs[0]]["shape"] == shape
    assert exported.outputs == ["q_values", "action"]
    assert exported.parity.largest < 1e-5
    assert exported.parity.observations == 1 + 7 + 64
    assert list(tmp_path.iterdir()) == [tmp_path / "q.onnx"]


@pytest.mark.parametrize(
    "agent",
    [
        actor(
            PARTS,
            HybridActions(MultiDiscreteActions((2, 3), (1, 0)), BoxActions((-2.0, -np.inf), (6.0, np.inf), (2,))),
            normalize=True,
        ),
        actor(ArraySpec((3,)), BoxActions((-2.0, 0.0), (2.0, 1.0), (2, 1)), squashed=True, shared=False),
    ],
    ids=["hybrid, normalized", "squashed numbers"],
)
def test_actors_give_actions_as_the_env_takes_them(agent: ActorAgent, tmp_path: Path) -> None:
    exported = export_onnx(agent, tmp_path / "actor.onnx", None)
    assert exported.outputs == ["outputs", "value", "action"]
    assert exported.parity.differences.keys() == {"outputs", "value", "action"}
    assert exported.parity.largest < 1e-5
    assert exported.about["normaliser"] == agent.settings.normalize.obs


def test_a_mask_is_an_input_and_no_forbidden_choice_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx_file, "_played", lambda *_: iter(()))
    spec = MultiDiscreteActions((2, 3))
    agent = actor(ArraySpec((3,)), spec)
    envs: Any = MaskedEnvs(spec)
    exported = export_onnx(agent, tmp_path / "masked.onnx", envs)
    assert exported.inputs["action_mask"] == {"shape": ["batch", 5], "dtype": "bool"}
    session = runtime.InferenceSession(str(tmp_path / "masked.onnx"))
    mask = np.array([[True, False, False, False, True]])
    *_, action = session.run(None, {"obs": np.zeros((1, 3), np.float32), "action_mask": mask})
    assert action.tolist() == [[0, 2]]


def test_a_network_that_differs_gets_no_file_and_leaves_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "agent.onnx"
    file.write_bytes(b"before")
    monkeypatch.setattr(onnx_file, "check", lambda *_: Parity(3, {"q_values": 2e-4}))
    with pytest.raises(NonFiniteError, match="differs from the agent by 0.0002"):
        export_onnx(q_agent(ArraySpec((4,))), file, None)
    assert file.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [file]


def test_a_graph_network_is_refused_with_its_name_and_the_reason(tmp_path: Path) -> None:
    settings = api.preset("durotaxis-ppo")
    assert isinstance(settings, api.PPOSettings)
    envs = make_envs(settings.env, 1, derive_seeds(0, 1, "test"))
    agent = GraphAgent(settings, envs.obs_spec, envs.action_spec)
    with pytest.raises(SettingsError, match="`durotaxis` has graphs") as raised:
        export_onnx(agent, tmp_path / "graph.onnx", envs)
    assert "--torch" in raised.value.hint


def test_a_missing_library_is_told_with_the_line_that_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(MissingExtraError) as raised:
        export_onnx(q_agent(ArraySpec((4,))), tmp_path / "agent.onnx", None)
    assert raised.value.hint == install_command("export")


def test_the_verb_writes_both_kinds_and_checks_on_played_observations(
    run_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tiny = ["--total-env-steps", "400", "--learning-starts", "100", "--batch-size", "8", "--network.hidden", "8"]
    tiny += ["--evaluation.episodes", "2", "--evaluation.final-episodes", "2"]
    assert main(["train", "cartpole-dqn", *tiny, "--run-dir", "mine", "--quiet"]) == 0
    capsys.readouterr()
    assert main(["export", "mine", "--onnx", "out/a.onnx", "--torch", "out/a.safetensors", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["onnx"]["parity"]["played"]
    assert answer["onnx"]["parity"]["observations"] == 72 + 4 * 64
    assert answer["onnx"]["parity"]["largest"] <= 1e-4
    assert answer["safetensors"]["parameters"] == 4 * 8 + 8 + 8 * 2 + 2
    model = onnx.load("out/a.onnx")
    facts = {entry.key: entry.value for entry in model.metadata_props}
    assert json.loads(facts["observation"]) == {"shape": [4], "dtype": "float32"}
    assert facts["env"] == "cartpole"
    assert "site-packages" not in str(model)
    assert not any(node.metadata_props for node in model.graph.node)

    agent = api.load("mine")
    obs = np.random.default_rng(5).normal(size=(9, 4)).astype(np.float32)
    _, action = runtime.InferenceSession("out/a.onnx").run(None, {"obs": obs})
    assert action.tolist() == agent.act(obs).tolist()
    assert main(["export", "mine", "--onnx", "again.onnx"]) == 0
    assert "largest difference" in capsys.readouterr().out
