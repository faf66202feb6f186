"""An episode of service chains as a page."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from hotloop.core.errors import EnvError
from hotloop.core.rng import derive_seeds
from hotloop.core.types import DiscreteActions
from hotloop.envs.registry import AtRandom
from hotloop.nets.build import build_q_network
from hotloop.presets.env_settings import EnvSettings
from hotloop.presets.network_settings import BranchSettings, NetworkSettings
from hotloop.viewing.play import play_episodes
from hotloop.viewing.scenes import page_writer
from hotloop.workloads.sfc import draw
from hotloop.workloads.sfc.draw import snapshot
from hotloop.workloads.sfc.env import PARTS, Sfc
from hotloop.workloads.sfc.page import MOST_MOMENTS, Watched, page

SETTINGS = EnvSettings(id="sfc", dict_obs="keep", options={"max_data_centres": 3, "max_request_count": 1})


class Attentive(AtRandom):
    """Acts at random, but has a network."""

    def __init__(self) -> None:
        super().__init__(DiscreteActions(13), seed=0)
        branches = BranchSettings(vector_hidden=(), row_width=2, width=2, attention=2)
        self.network = build_q_network(NetworkSettings(torso="branch_attention", branches=branches), dict(PARTS), 13, 0)


def data_of(text: str) -> dict[str, list[dict[str, object]]]:
    (found,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text, flags=re.DOTALL)
    return json.loads(found)


def test_a_page_holds_a_whole_episode_thinned_out_with_attention(tmp_path: Path) -> None:
    episode = page_writer("sfc")(
        Attentive(),
        lambda policy: play_episodes(policy, SETTINGS, 1, 0, trust=False, pictures=True),
        tmp_path / "page.html",
    )
    assert episode.end == "terminated"
    data = data_of((tmp_path / "page.html").read_text())
    shown = data["moments"]
    assert 100 < len(shown) <= MOST_MOMENTS + 1
    assert shown[0]["ms"] == 0
    assert shown[-1]["ms"] == episode.length / 100
    assert sum(row[1] for row in shown[-1]["services"]) == 0  # nothing pending
    assert sum(shown[-1]["attention"].values()) == pytest.approx(1, abs=1e-3)
    assert list(shown[-1]["attention"]) == ["data_centre", "placed", "requests"]
    assert data["services"][0] == "cloud gaming"


def test_a_policy_without_attention_has_none_to_show() -> None:
    watched = Watched(AtRandom(DiscreteActions(13), seed=0))
    watched.act({"data_centre": np.zeros((1, 14), np.float32)}, None)
    assert watched.attention() == {}


def test_a_moment_tells_load_and_chains() -> None:
    envs = Sfc(1, derive_seeds(0, 1, "env"), max_data_centres=2)
    envs.reset()
    envs.step(np.array([0]))  # NAT for somebody
    moment = snapshot(envs.get_state(), 0)
    (chain,) = moment["chains"]
    assert chain["vnf"] == "NAT"
    assert len(chain["way"]) == 2
    assert sum(used for used, _ in moment["centres"]) == 1
    assert moment["ms"] == 0.01


def test_no_text_leaves_its_quotes() -> None:
    hostile = "</script><script>alert(1)</script>"
    text = page([{"ms": 0.0, "services": [], "centres": [], "links": [], "chains": [], "attention": {}}], [hostile])
    assert hostile not in text
    assert data_of(text)["services"] == [hostile]


def test_other_envs_have_no_page() -> None:
    with pytest.raises(EnvError, match="these have one: sfc;"):
        page_writer("snake")
    with pytest.raises(EnvError, match="`CartPole-v1` has no page"):
        page_writer("CartPole-v1")


def test_acceptance_is_shown_while_an_episode_runs() -> None:
    envs = Sfc(1, derive_seeds(0, 1, "env"))
    envs.reset()
    state = envs.get_state()
    assert draw.measures(state, state) == {"acceptance": 0.0}
    state["satisfied"][0, 2], state["dropped"][0, 0] = 3, 1
    assert draw.measures(state, state) == {"acceptance": 0.75}
