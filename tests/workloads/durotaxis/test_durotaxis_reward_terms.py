"""All fourteen entries of the reward record: as their formulas say, step after step, and what they come to."""

import json
from functools import cache

import gymnasium
import numpy as np
import pytest

from hotloop import api
from hotloop.core.types import NodeAction
from hotloop.reporting.make import make_report
from hotloop.workloads.durotaxis.env import REWARD_TERMS, Durotaxis
from hotloop.workloads.durotaxis.layout_kernels import DRIFTED, EMPTY, OUTSIDE, RUNS, SUCCEEDED, TOO_MANY
from tests.oracles.durotaxis_rewards_oracle import rewards_of

ENDINGS = {RUNS: "runs", TOO_MANY: "too many", EMPTY: "empty", OUTSIDE: "outside"}
ENDINGS |= {DRIFTED: "drift", SUCCEEDED: "success"}
HULL = 7  # of the node features
FOURTEEN = [name.removeprefix("reward_") for name in REWARD_TERMS]
MODES = {
    "default": {"max_nodes": 60},
    "full": {"reward": "full", "substrate": "exponential", "max_nodes": 80},
    "delete": {"reward": "simple_delete_only", "substrate": "random", "max_nodes": 60},
    "per node": {"action": "per_node", "recovery": True, "reward": "full", "max_nodes": 40},
    "a short field": {"width": 60.0, "reward": "full", "max_nodes": 60},
}


def old_colony(options):
    """One colony, its nodes older and older, so that age is worth something."""
    env = Durotaxis(1, np.array([7], np.uint64), **options)
    env.hold_finished()
    env.reset()
    state = env.get_state()
    state["ages"] = np.arange(len(state["ages"])) * 15
    env.set_state(state)
    return env


def chosen_action(draw, env, n):
    low, high = np.array([0.5, 0.5, 0.05, -30]), np.array([15.0, 4, 0.5, 30])
    numbers = (low + (high - low) * draw.random(4)).astype(np.float32)
    if env.settings.action == "per_node":
        choices = draw.integers(0, 2, n) if draw.random() < 0.8 else np.ones(n, np.int64)
        return NodeAction(numbers[None], choices), choices.astype(bool)
    ratio = np.float32(draw.choice([0.0, 0.3, 0.5, 0.6, 0.7]))
    x = env.snapshot(0)["positions"][:, 0]
    deleted = np.zeros(n, bool)
    deleted[sorted(range(n), key=lambda i: (x[i], i))[: int(np.floor(min(float(ratio), 0.7) * n))]] = True
    return np.array([[ratio, *numbers]], np.float32), deleted


def judged_step(draw, env, passed):
    """One step: the record, what the formulas say, and whether the episode is over."""
    before = env.snapshot(0)
    recoveries = env.get_state()["recoveries"][0]
    action, deleted = chosen_action(draw, env, len(before["positions"]))
    step = env.step(action)
    after, state, hull = env.snapshot(0), env.get_state(), step.final_obs.nodes[:, HULL] > 0
    recovered = bool(state["recoveries"][0] > recoveries)
    if recovered:
        nothing = {"positions": np.empty((0, 2)), "ages": np.empty(0, int), "edges": np.empty((0, 2), int)}
        after, hull = after | nothing, np.empty(0, bool)
    said = rewards_of(
        before, after, deleted, env.settings.reward,
        hull=hull, ending=ENDINGS[int(state["outcome"][0])], recovered=recovered, passed=passed,
    )  # fmt: skip
    return env.record, said, step


@cache
def played(mode):
    """Compare a mode for some episodes; returns which entries were anything but zero."""
    env, draw, passed, seen, episodes = old_colony(MODES[mode]), np.random.default_rng(0), set(), set(), 0
    sums, nodes, steps = dict.fromkeys(FOURTEEN, 0.0), 0, 0
    for _ in range(150):
        record, said, step = judged_step(draw, env, passed)
        assert set(record) == set(said) == set(FOURTEEN)
        for name in FOURTEEN:
            np.testing.assert_allclose(record[name][0], said[name], rtol=1e-9, atol=1e-9, err_msg=name)
            seen |= {name} if np.any(said[name]) else set()
        assert step.reward[0] == np.float32(record["total"][0])
        steps, nodes = steps + 1, nodes + said["num_nodes"]
        sums = {name: sums[name] + np.sum(said[name]) for name in FOURTEEN}
        if step.terminated[0] or step.truncated[0]:
            sums |= {"num_nodes": nodes / steps, "node_rewards": sums["total_node"] / max(nodes, 1)}
            for name in FOURTEEN:
                np.testing.assert_allclose(step.episode_stats[f"reward_{name}"][0], sums[name], atol=1e-9, err_msg=name)
            env.reset()
            passed.clear()
            sums, nodes, steps, episodes = dict.fromkeys(FOURTEEN, 0.0), 0, 0, episodes + 1
    assert episodes > 0
    return seen


@pytest.mark.parametrize("mode", MODES)
def test_every_entry_is_what_its_formula_says_and_their_sums_are_told(mode):
    assert played(mode)


def test_no_entry_is_zero_all_along():
    assert set.union(*(played(mode) for mode in MODES)) == set(FOURTEEN)


def test_a_state_saved_before_there_were_sums_is_loaded_and_its_episode_not_guessed():
    env = old_colony({"max_nodes": 10})
    state = env.get_state()
    del state["reward_sums"]
    env.set_state(state)
    grow = np.array([[0.0, 5, 2, 0.5, 0]], np.float32)
    assert not env.step(grow).terminated[0]
    last = env.step(grow)
    assert last.terminated[0]
    assert np.isnan(last.episode_stats["reward_total"][0])
    assert last.episode_stats["colony_size"][0] == 20


def test_gymnasium_gives_all_fourteen_in_info():
    env = gymnasium.make("hotloop.workloads.durotaxis.gymnasium_env:hotloop/Durotaxis-v0", disable_env_checker=True)
    env.reset(seed=0)
    _, reward, *_, info = env.step(np.array([0.5, 5, 2, 0.5, 0], np.float32))
    assert list(info["rewards"]) == FOURTEEN
    assert reward == np.float32(info["rewards"]["total"])
    assert sum(info["rewards"]["node_rewards"]) == pytest.approx(info["rewards"]["total_node"])


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "durotaxis"
    settings = api.preset(
        "durotaxis-ppo", total_env_steps=128, rollout_steps=16, batch_size=16, log_every=32, run_dir=str(path),
        env={"num_envs": 2, "options": {"max_nodes": 30, "max_steps": 12}}, evaluation={"episodes": 2},
        network={"graph": {"width": 8, "heads": 2, "layers": 1, "groups": 2, "feed_forward": 8}},
    )  # fmt: skip
    api.train(settings)
    return path


def test_log_rows_evaluations_and_the_page_hold_all_fourteen(run):
    rows = [json.loads(line) for line in (run / "events.jsonl").read_text().splitlines()]
    progress = [row for row in rows if row["event"] == "progress"]
    evaluations = [row for row in rows if row["event"] == "evaluation"]
    for row in (progress[-1], evaluations[-1], json.loads((run / "result.json").read_text())["evaluation"]):
        assert set(REWARD_TERMS) <= set(row)
        assert row["reward_total"] == pytest.approx(row["mean_return"], rel=1e-5)
    page = make_report(run, frames=False).html
    terms = page[page.index("Rewards, term by term") :]
    for name in FOURTEEN:
        assert f"reward {name.replace('_', ' ')}" in terms, name
