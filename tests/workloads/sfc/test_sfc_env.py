"""Service chains by hand: numbers that can be checked against the tables."""

import numpy as np
import pytest

from hotloop.core.errors import EnvError, SettingsError
from hotloop.core.rng import derive_seeds
from hotloop.envs.contract import check_env
from hotloop.envs.registry import make_envs
from hotloop.presets.env_settings import EnvSettings
from hotloop.workloads.sfc.env import Sfc

NAT, FW, VOC, TM, WO, IDPS, UNINSTALL, WAIT = 0, 1, 2, 3, 4, 5, 6, 12
CLOUD_GAMING, AUGMENTED_REALITY, VOIP, VIDEO, IOT, INDUSTRY = range(6)
INDUSTRY_SLOT = 374


def made(**options: object) -> Sfc:
    envs = Sfc(1, derive_seeds(7, 1, "env"), **options)
    envs.reset()
    return envs


def act(envs: Sfc, *actions: int) -> list[float]:
    return [float(envs.step(np.array([action])).reward[0]) for action in actions]


def two_centres(envs: Sfc, km: int = 300, cpu: int = 100) -> dict[str, np.ndarray]:
    """Two centres `km` apart, and one industry request from 0 to 1 as all there is."""
    state = envs.get_state()
    assert state["num_centres"][0] == 2
    state["cpu"][0] = state["free_cpu"][0] = cpu
    for name in ("length", "shortest"):
        state[name][0, 0, 1] = state[name][0, 1, 0] = km
    for name in ("size", "pending"):
        state[name][0, :6] = [0, 0, 0, 0, 0, 1]
    state["waiting"][0, :6, 0] = [0, 0, 0, 0, 0, 1]
    state["source"][0, INDUSTRY], state["destination"][0, INDUSTRY] = 0, 1
    state["all_pending"][0] = state["generated"][0] = [0, 0, 0, 0, 0, 1]
    state["to_go"][0] = state["next_vnf"][0] = 0
    state["to_go"][0, INDUSTRY, :2] = 1
    state["next_vnf"][0, INDUSTRY, NAT] = 1
    state["candidate"][0] = [INDUSTRY_SLOT, -1, -1, -1, -1, -1]
    state["order"][0, :2], state["visited"][0], state["turn"][0] = [0, 1], 0, 0
    envs.set_state(state)
    return state


def only_two(**options: object) -> Sfc:
    return made(max_data_centres=2, max_request_count=1, **options)


def test_a_request_is_satisfied_when_its_last_vnf_is_done():
    """Industry 4.0: NAT 0.06 ms and FW 0.03 ms on centre 0, then 300 km to centre 1: 0.09 + 1 ms of 8."""
    envs = only_two()
    two_centres(envs)
    assert act(envs, NAT, *[WAIT] * 5) == [0.0] * 6  # NAT from 0 to 6; even times visit centre 0
    assert act(envs, FW, WAIT) == [0.0, 0.0]
    step = envs.step(np.array([WAIT]))
    assert (step.reward[0], step.terminated[0]) == (2.0, True)
    stats = {name: values[0] for name, values in step.episode_stats.items()}
    assert (stats["acceptance"], stats["acceptance_industry_4"]) == (1.0, 1.0)
    assert stats["delay"] == pytest.approx(1.09)
    assert stats["throughput"] == 70
    assert np.isnan(stats["delay_voip"])
    assert stats["cpu_use"] == pytest.approx((1 * 9 + 9 * 3) / (9 * 200))  # NAT all 9 units, FW the last 3
    assert stats["bandwidth_use"] == 0


def test_a_way_that_is_too_long_drops_the_request_at_its_end():
    """2,400 km take 8 ms: with 0.09 ms of processing the limit of 8 ms is missed."""
    envs = only_two()
    two_centres(envs, km=2400)
    act(envs, NAT, *[WAIT] * 5, FW, WAIT)
    step = envs.step(np.array([WAIT]))
    assert (step.reward[0], step.terminated[0], step.episode_stats["acceptance"][0]) == (-1.5, True, 0.0)


def test_a_delay_of_exactly_the_limit_is_in_time():
    """2,373 km take 7.91 ms; with 0.09 ms that is 8 ms to the unit."""
    for km, reward in ((2373, 2.0), (2374, -1.5)):
        envs = only_two()
        two_centres(envs, km=km)
        assert act(envs, NAT, *[WAIT] * 5, FW, WAIT, WAIT)[-1] == reward


def test_a_pending_request_is_dropped_when_it_is_older_than_its_limit():
    envs = only_two()
    two_centres(envs)
    rewards = act(envs, *[WAIT] * 801)
    assert rewards == [0.0] * 800 + [-1.5]


def test_bandwidth_is_held_from_one_vnf_to_the_next_and_given_back():
    envs = only_two()
    two_centres(envs)
    act(envs, NAT, *[WAIT] * 6)  # now at centre 1
    act(envs, FW)
    state = envs.get_state()
    assert state["free_rate"][0, 0, 1] == state["free_rate"][0, 1, 0] == 930_000
    envs.hold_finished()
    act(envs, WAIT, WAIT)
    assert envs.get_state()["free_rate"][0, 0, 1] == 1_000_000


def test_invalid_actions_cost_one_and_change_nothing_but_the_time():
    envs = only_two()
    before = two_centres(envs)
    assert act(envs, UNINSTALL + NAT, FW, VOC) == [-1.0] * 3
    after = envs.get_state()
    for name in ("installed", "free_cpu", "free_rate", "state", "to_go"):
        np.testing.assert_array_equal(before[name], after[name])
    assert after["now"][0] == 3


def test_a_centre_too_small_for_a_vnf_cannot_host_it():
    envs = only_two()
    two_centres(envs, cpu=12)
    act(envs, NAT, *[WAIT] * 5)
    state = envs.get_state()
    assert envs.step(np.array([WAIT])).action_mask[0, FW]  # 9 of the 12 at centre 1
    envs.set_state({**state, "free_cpu": np.full_like(state["free_cpu"], 8)})
    step = envs.step(np.array([WAIT]))
    assert not step.action_mask[0, FW]
    assert act(envs, FW) == [-1.0]


def test_uninstalling_what_is_still_needed_costs_half():
    envs = only_two()
    state = two_centres(envs)
    state["installed"][0, 0, :2] = state["idle"][0, 0, :2] = 1
    state["installed"][0, 0, TM] = state["idle"][0, 0, TM] = 1
    state["free_cpu"][0, 0] -= 1 + 9 + 13
    envs.set_state(state)
    assert act(envs, UNINSTALL + FW, WAIT, UNINSTALL + TM) == [-0.5, 0.0, 0.0]
    after = envs.get_state()
    assert after["free_cpu"][0, 0] == 99
    assert after["installed"][0, 0].tolist() == [1, 0, 0, 0, 0, 0]


def test_the_observation_has_its_parts_in_their_order():
    envs = only_two()
    two_centres(envs)
    obs = envs.step(np.array([NAT])).obs  # now at centre 1
    obs = envs.step(np.array([WAIT])).obs  # and at 0 again, at time 2, NAT busy
    log2 = np.float32(np.log(2) / 5)
    centre, placed, requests = obs["data_centre"][0], obs["placed"][0], obs["requests"][0]
    np.testing.assert_allclose(centre, [log2] + [0] * 11 + [2041 / 2048, 99 / 100], rtol=1e-6)
    assert not placed[:INDUSTRY].any()
    assert not requests[:INDUSTRY].any()
    np.testing.assert_allclose(placed[INDUSTRY], [1, log2, 0, 0, 0, 0, 0, 0, log2, 0, 0, 0, 0], rtol=1e-6)
    np.testing.assert_allclose(requests[INDUSTRY], [1, log2, 798 / 800, 0.07, 0, log2, 0, 0, 0, 0], rtol=1e-6)


def test_a_cycle_visits_the_path_of_the_most_urgent_request_first():
    """Three centres: 0-1 is long, so that the path from 1 to 0 goes over 2."""
    envs = made(min_data_centres=3, max_data_centres=3, max_request_count=1)
    state = envs.get_state()
    state["hop"][0, 1, 0], state["hop"][0, 2, 0] = 2, 0
    state["source"][0, IOT], state["destination"][0, IOT] = 1, 0  # 5 ms is the least of all
    state["turn"][0] = 2
    envs.set_state(state)
    act(envs, WAIT)
    assert envs.get_state()["order"][0, :3].tolist() == [1, 2, 0]


def test_two_hundred_milliseconds_end_an_episode():
    envs = only_two()
    state = two_centres(envs)
    envs.set_state({**state, "now": np.array([19_999]), "arrived": np.array([1])})
    step = envs.step(np.array([WAIT]))
    assert (step.terminated[0], step.truncated[0]) == (True, False)
    assert step.reward[0] == -1.5


def test_envs_of_one_batch_have_different_numbers_of_centres():
    envs = Sfc(64, derive_seeds(0, 64, "env"), max_data_centres=8)
    envs.reset()
    state = envs.get_state()
    assert set(state["num_centres"]) == set(range(2, 9))
    assert set(state["rounds"]) == set(range(1, 6))
    for index, count in enumerate(state["num_centres"]):
        assert ((state["cpu"][index, :count] >= 12) & (state["cpu"][index, :count] <= 120)).all()
        apart = state["length"][index, :count, :count][~np.eye(count, dtype=bool)]
        assert ((apart >= 100) & (apart <= 1000)).all()
        assert (state["shortest"][index, :count, :count] <= state["length"][index, :count, :count]).all()


@pytest.mark.parametrize("dict_obs", ["keep", "flatten"])
def test_it_keeps_the_contract(dict_obs):
    settings = EnvSettings(id="sfc", dict_obs=dict_obs, options={"max_data_centres": 8})
    assert [result for result in check_env(settings, 900) if not result.ok] == []


def test_flattened_parts_lie_side_by_side():
    seeds = derive_seeds(3, 2, "env")
    flat, _ = make_envs(EnvSettings(id="sfc"), 2, seeds).reset()
    parts, _ = make_envs(EnvSettings(id="sfc", dict_obs="keep"), 2, seeds).reset()
    np.testing.assert_array_equal(flat, np.concatenate([parts[name].reshape(2, -1) for name in sorted(parts)], axis=1))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"min_data_centres": 1}, "2 to 16"),
        ({"max_data_centres": 17}, "to 16"),
        ({"min_data_centres": 5}, "`min_data_centres` \\(5\\) to 16"),
        ({"max_request_count": 11}, "to 10"),
        ({"dropped_reward": float("nan")}, "number"),
    ],
)
def test_rules_out_of_range_are_refused(options, words):
    with pytest.raises(SettingsError, match=words):
        made(**options)


def test_a_state_of_another_size_is_refused():
    with pytest.raises(EnvError, match="as many envs"):
        made().set_state(Sfc(2, derive_seeds(0, 2, "env")).get_state())


def test_the_rewards_are_options():
    rewards = {"invalid_reward": -7.0, "dropped_reward": -3.0, "satisfied_reward": 5.0, "uninstall_needed_reward": 9.0}
    for actions, last in (
        ([UNINSTALL], -7.0),
        ([WAIT] * 801, -3.0),
        ([NAT, *[WAIT] * 5, FW, WAIT, WAIT], 5.0),
        ([NAT, *[WAIT] * 5, FW, WAIT, UNINSTALL + NAT], 9.0),
    ):
        envs = only_two(**rewards)
        state = two_centres(envs)
        if last == 9.0:  # a second request that still needs it
            state["to_go"][0, INDUSTRY, NAT] += 1
            envs.set_state(state)
        assert act(envs, *actions)[-1] - (5.0 if last == 9.0 else 0.0) == last
