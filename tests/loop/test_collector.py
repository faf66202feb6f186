"""The collector: what it counts, what it hands on, and where its time is charged."""

import numpy as np
import pytest

from hotloop.core.schedules import Counters
from hotloop.core.timer import PhaseTimer
from hotloop.loop.collector import Collector
from hotloop.loop.metrics import Metrics
from tests.loop.scripted_envs import ScriptedEnvs, Zeros


class Learning(Zeros):
    """As a policy acts while a run learns: it says what learning will need, here nothing."""

    def act(self, obs, action_mask, out=None):
        return super().act(obs, action_mask), out


def made(envs: ScriptedEnvs) -> tuple[Collector, Counters, Metrics]:
    counters, metrics = Counters(), Metrics(("loss",))
    return Collector(envs, counters, metrics, PhaseTimer()), counters, metrics


def advance(collector: Collector, times: int) -> None:
    for _ in range(times):
        collector.advance(Learning())


def test_env_steps_and_episodes_are_counted_over_all_envs():
    collector, counters, metrics = made(ScriptedEnvs([[2], [3]]))
    advance(collector, 6)
    assert (counters.env_steps, counters.episodes) == (12, 5)  # 6 // 2 + 6 // 3
    row = metrics.row(counters)
    assert (row["mean_return"], row["mean_length"]) == (2.4, 2.4)  # three of 2, two of 3


def test_rows_in_which_an_env_only_reset_are_no_env_steps():
    collector, counters, metrics = made(ScriptedEnvs([[2], [3]], resets_take_a_step=True))
    advance(collector, 6)
    # env 0: x x r x x r, env 1: x x x r x x
    assert (counters.env_steps, counters.episodes) == (4 + 5, 2 + 1)
    row = metrics.row(counters)
    assert row["mean_return"] == row["mean_length"] == pytest.approx((2 + 2 + 3) / 3)


def test_advance_gives_what_was_seen_done_and_what_came_of_it():
    collector, _, _ = made(ScriptedEnvs([[2]], masks=True))
    policy = Learning()
    obs, action, _, step = collector.advance(policy)
    assert (obs.tolist(), action.tolist(), step.obs.tolist()) == ([[0.0, 0.0]], [0], [[0.0, 1.0]])
    obs, _, _, step = collector.advance(policy)
    assert (obs.tolist(), step.final_obs.tolist(), step.obs.tolist()) == ([[0.0, 1.0]], [[0.0, 2.0]], [[1.0, 0.0]])
    assert policy.seen[1][1].shape == (1, 2)


def test_counters_stay_exact_where_floats_would_not():
    collector, counters, _ = made(ScriptedEnvs([[1]]))
    counters.env_steps = counters.episodes = 2**53
    advance(collector, 3)
    assert counters.env_steps == counters.episodes == 2**53 + 3


def test_a_restart_forgets_the_episodes_under_way():
    collector, counters, metrics = made(ScriptedEnvs([[3]]))
    advance(collector, 2)
    collector.restart(ScriptedEnvs([[3]]))
    advance(collector, 3)
    assert metrics.row(counters)["mean_return"] == 3.0
    assert (counters.env_steps, counters.episodes) == (5, 1)


@pytest.mark.parametrize("masks", [False, True])
def test_a_restored_account_finishes_its_episodes(masks):
    envs = ScriptedEnvs([[3], [5]], masks=masks)
    one, counters, metrics = made(envs)
    advance(one, 2)
    saved = one.state()
    other = Collector(ScriptedEnvs([[3], [5]], masks=masks), counters, metrics, PhaseTimer())
    other.load_state(saved)
    other.envs = envs
    obs, _, _, step = other.advance(Learning())
    np.testing.assert_array_equal(obs, [[0.0, 2.0], [0.0, 2.0]])
    assert step.terminated.tolist() == [True, False]
    assert metrics.row(counters)["mean_return"] == 3.0
    assert ("action_mask" in saved) is masks


def test_a_dict_observation_is_restored_by_name():
    class DictEnvs(ScriptedEnvs):
        def _obs(self):
            return {"z": self._turn[:, None].astype(np.float32), "a": self._age[:, None].astype(np.uint8)}

    class DictLearning(Learning):
        def act(self, obs, action_mask, out=None):
            self.seen.append(obs)
            return np.zeros(len(obs["a"]), np.int64), None

    one, counters, metrics = made(DictEnvs([[3]]))
    one.advance(DictLearning())
    saved = one.state()
    saved["last_obs"] = dict(sorted(saved["last_obs"].items()))  # as a checkpoint gives it back
    other = Collector(DictEnvs([[3]]), counters, metrics, PhaseTimer())
    other.load_state(saved)
    policy = DictLearning()
    other.advance(policy)
    assert {name: array.tolist() for name, array in policy.seen[0].items()} == {"z": [[0.0]], "a": [[1]]}


def test_time_is_charged_to_acting_stepping_and_logging():
    now = [0]

    def tick(nanoseconds: int) -> None:
        now[0] += nanoseconds

    class SlowEnvs(ScriptedEnvs):
        def step(self, action):
            tick(10)
            return super().step(action)

    class SlowPolicy(Learning):
        def act(self, obs, action_mask, out=None):
            tick(3)
            return super().act(obs, action_mask)

    class SlowMetrics(Metrics):
        def note_episodes(self, returns, lengths):
            tick(100)
            super().note_episodes(returns, lengths)

    timer = PhaseTimer(lambda: now[0])
    collector = Collector(SlowEnvs([[2]]), Counters(), SlowMetrics(("loss",)), timer)
    for _ in range(4):
        collector.advance(SlowPolicy())
    assert timer.totals_ns() == {"other": 0, "act": 12, "env": 40, "log": 200}
