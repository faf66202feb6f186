"""Trained agents: drawn and greedy actions, Stable-Baselines3's way of asking, files."""

import json

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import hotloop
from hotloop.core.errors import HotloopError
from tests.loop.test_given import Corridor, small


@pytest.fixture(scope="module", params=["dqn", "ppo"])
def run(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("agents") / "run"
    more = {"normalize": {"obs": True}} if request.param == "ppo" else {}
    hotloop.train(small(request.param, folder, total_env_steps=200, **more), env=Corridor, verbose=False)
    return folder


def observations(count):
    return np.random.default_rng(0).random((count, 3), np.float32)


def test_an_agent_acts_greedily_unless_it_is_told_to_draw(run):
    agent, obs = hotloop.load(run), observations(400)
    assert (agent.act(obs) == agent.act(obs)).all()
    drawn = [agent.act(obs, deterministic=False) for _ in range(3)]
    assert 0 < np.mean(drawn[0] != agent.act(obs)) < 0.7
    assert (drawn[0] != drawn[1]).any()
    again = hotloop.load(run)
    assert (again.act(obs, deterministic=False) == drawn[0]).all()  # its seed is the run's


def test_it_draws_among_what_the_mask_allows(run):
    mask = np.tile([False, True], (400, 1))
    assert (hotloop.load(run).act(observations(400), mask, deterministic=False) == 1).all()


def test_predict_answers_as_stable_baselines3_does(run):
    agent, obs = hotloop.load(run), observations(5)
    action, state = agent.predict(obs, deterministic=True)
    assert state is None
    assert (action == agent.act(obs)).all()
    one, state = agent.predict(obs[0], state="mine", deterministic=True)
    assert isinstance(one, np.ndarray)
    assert (one, state) == (action[0], "mine")


def test_a_saved_agent_is_the_agent(run, tmp_path):
    agent, obs = hotloop.load(run), observations(50)
    path = agent.save(tmp_path / "new" / "agent.safetensors")
    loaded = hotloop.load(path)
    assert repr(loaded) == repr(agent)
    assert "agent for given:Corridor" in repr(agent)
    assert (loaded.act(obs) == agent.act(obs)).all()
    assert np.array_equal(loaded.weights(), agent.weights())
    assert agent.save(path) == path  # again, in its place


def test_a_file_that_is_no_agent_or_was_changed_is_one_sentence(run, tmp_path):
    path = hotloop.load(run).save(tmp_path / "agent.safetensors")
    whole = path.read_bytes()
    for damaged in (b"", whole[:100], whole[:-5], b"\x00" * 64):
        path.write_bytes(damaged)
        with pytest.raises(HotloopError):
            hotloop.load(path)
    path.write_bytes(whole)
    arrays = load_file(path)
    about = json.loads(arrays["about"].tobytes())
    about["settings"]["network"]["hidden"] = [25_000, 25_000]
    text = np.frombuffer(json.dumps(about).encode(), np.uint8)
    save_file({**arrays, "about": text}, path)
    with pytest.raises(HotloopError, match="parameters"):
        hotloop.load(path)  # before anything of that size is built


def test_history_is_the_rows_of_a_run(run):
    rows = hotloop.history(run, frame=False)
    assert [row["env_steps"] for row in rows] == [100, 200]
    assert hotloop.history(run, "evaluation", frame=False)[-1]["episodes"] == 1
    assert hotloop.__version__.count(".") >= 1
