"""Every preset loads strictly, and trains as far as a test can wait."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

import hotloop
from hotloop.core.errors import MissingExtraError
from hotloop.presets import preset_names, preset_tree

SHORT = {
    "total_env_steps": 600,
    "evaluation": {"episodes": 2, "final_episodes": 2, "max_episode_steps": 500},
}


def _short_warm_up(name: str) -> dict[str, int]:
    """Past the first n-step rows of all envs, with as many env steps after it."""
    tree = preset_tree(name)
    if tree.get("algorithm") == "ppo":
        return {}
    before_first_rows = (tree.get("n_step", 1) - 1) * tree.get("env", {}).get("num_envs", 1)
    return {"warmup_env_steps": max(200, before_first_rows), "total_env_steps": max(600, 2 * before_first_rows)}


@pytest.mark.parametrize("name", preset_names())
def test_a_preset_trains(name: str, tmp_path: Path) -> None:
    settings = hotloop.preset(name, **SHORT | _short_warm_up(name), run_dir=str(tmp_path / "run"))
    if name.startswith("lunarlander") and importlib.util.find_spec("Box2D") is None:
        with pytest.raises(MissingExtraError, match=r"hotloop\[box2d\]"):
            hotloop.train(settings)
    else:
        assert hotloop.train(settings)["updates"] > 0


def test_cartpole_slm_makes_exactly_the_updates_of_the_measured_case() -> None:
    from hotloop.core.values import exact_fraction
    from hotloop.loop.cadence import UpdatePlan

    settings = hotloop.preset("cartpole-slm")
    plan = UpdatePlan(
        exact_fraction(settings.updates_per_env_step), settings.train_every, settings.warmup_env_steps, 64
    )
    calls = [list(plan.due(frame - 1, frame)) for frame in range(1, settings.total_env_steps + 1)]
    events = [call for call in calls if call]
    assert len(events) == 2_492
    assert sum(map(sum, events)) == 79_744


@pytest.mark.parametrize(
    ("name", "nodes", "edges"),
    [
        ("topology-dqn", 70, 294),
        ("topology-original", 70, 294),
        ("topology-dqn-32", 38, 166),
        ("topology-dqn-32-degree-9", 38, 172),
        ("topology-dqn-128", 134, 1_345),
        ("topology-dqn-264", 270, 5_310),
    ],
)
def test_a_topology_preset_has_the_graph_of_its_table(name: str, nodes: int, edges: int) -> None:
    from hotloop.nets.topology.torso import generate

    graph = generate(hotloop.preset(name).network, 4, 2)
    assert (len(graph.nodes), graph.num_edges) == (nodes, edges)
