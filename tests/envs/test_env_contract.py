"""Every kind of env through the contract, and planted faults that it must find."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from gymnasium import spaces

from hotloop.core.types import Array, EnvStep, Obs
from hotloop.core.workloads import env_places
from hotloop.envs.cartpole import CartPole
from hotloop.envs.contract import CHECKS, check_env
from hotloop.envs.spaces import obs_bounds, raw_obs_for
from hotloop.presets.env_settings import EnvSettings

PLANTED = Path(__file__).parent / "planted_envs.py"
GOOD = "Counter Parts FromOne TwoChoices MaskInInfo MaskMethod SharedBuffer CloseFails make_counter"
SPACES = "Bits Dials Pair Nested Film Cameras"
VECTOR = "NextStepVector SameStepVector DisabledVector"
GYMNASIUM = ["CartPole-v1", "FrozenLake-v1", "Taxi-v4", "Acrobot-v1", "CliffWalking-v1", "Pendulum-v1"]
MASKED = "NextStepMasks SameStepMasks DisabledMasks SameStepParts SameStepNested NextStepCameras"


def planted(name: str, **more: object) -> EnvSettings:
    return EnvSettings(id=f"{PLANTED}:{name}", **more)


def failures(target: object, env_steps: int = 150) -> dict[str, str]:
    return {result.name: result.detail for result in check_env(target, env_steps) if not result.ok}


@pytest.mark.parametrize("name", env_places())
def test_every_native_env_keeps_the_contract(name):
    assert failures(EnvSettings(id=name), 1000) == {}


@pytest.mark.parametrize("name", GYMNASIUM)
def test_gymnasium_envs_keep_the_contract(name):
    assert failures(EnvSettings(id=name)) == {}


def test_gymnasiums_own_batched_cartpole_keeps_the_contract():
    assert failures(EnvSettings(id="CartPole-v1", batched=True)) == {}


@pytest.mark.parametrize("name", [*GOOD.split(), *SPACES.split(), *VECTOR.split(), *MASKED.split()])
def test_good_envs_of_every_kind_keep_the_contract(name):
    assert failures(planted(name)) == {}


@pytest.mark.parametrize("name", ["Parts", "SameStepParts", "Nested", "SameStepNested"])
def test_a_dict_of_parts_may_be_kept_by_name(name):
    assert failures(planted(name, dict_obs="keep")) == {}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("NaNObs", "`obs` with NaN"),
        ("WrongShape", r"shape (3,) where its space has shape (2,)"),
        ("WrongKind", "`obs` of dtype <U5"),
        ("Raising", "RuntimeError in `step` (the physics exploded)"),
        ("RewardNone", "`reward` None"),
        ("RewardInfinite", "`reward` inf"),
        ("FourValues", "4 values from `step`"),
        ("TerminatedNone", "`terminated` None of type NoneType"),
        ("InfoList", "`info` of type list"),
        ("EmptyMask", "allows no action"),
        ("OldReset", "(observation, info) from `reset`"),
        ("VectorNaN", "`obs` with NaN"),
        ("NoFinalObs", "`final_obs` nowhere"),
        ("NoMode", "autoreset_mode"),
    ],
)
def test_a_planted_fault_is_found_and_named(name, words):
    found = failures(planted(name))
    assert words in found["shapes and dtypes are as declared"]
    assert f":{name}`" in found["shapes and dtypes are as declared"]


def test_an_env_that_ignores_its_seed_is_found():
    found = failures(planted("Unseeded"))
    assert found == {
        "the same seeds give the same episodes": "the first `obs`  differs",
        "an env does not depend on num_envs": "the first `obs`  differs",
    }


def test_an_observation_outside_its_box_is_found():
    assert failures(planted("OutsideItsBox")) == {
        "observations lie within their space": "`obs` holds 11 where its space has -10 to 10"
    }


@pytest.mark.parametrize("dict_obs", ["flatten", "keep"])
def test_bounds_of_parts_are_looked_at_where_they_are_numbers(dict_obs):
    space = spaces.Dict(
        {
            "place": spaces.Discrete(3, start=5),
            "bits": spaces.MultiBinary((2, 2)),
            "dials": spaces.MultiDiscrete([2, 3]),
            "inner": spaces.Tuple([spaces.Box(-1.0, 2.0, (2,), np.float64), spaces.Box(0, 255, (1, 2), np.uint8)]),
        }
    )
    raw_obs = raw_obs_for("test", space, dict_obs)
    low, high = obs_bounds(space, raw_obs)
    space.seed(0)
    for _ in range(50):
        obs, _ = raw_obs.encode(space.sample())
        for part, least, most in zip(*(_parts(each) for each in (obs, low, high)), strict=True):
            assert part[0].shape == least.shape == most.shape
            assert (part >= least).all()
            assert (part <= most).all()
    assert sum(part.size for part in _parts(low)) == 3 + 4 + 5 + 2 + 2
    assert min(part.min() for part in _parts(low)) == -1.0
    assert max(part.max() for part in _parts(high)) == 255.0


def _parts(obs: Obs) -> list[Array]:
    return list(obs.values()) if isinstance(obs, dict) else [obs]


class Spoiled:
    """CartPole with the one promise broken that `fault` names."""

    def __init__(self, fault: str, num_envs: int, seeds: Array) -> None:
        if fault == "num_envs":
            seeds = seeds + np.uint64(num_envs)
        elif fault == "seeds":
            seeds = np.random.default_rng().integers(0, 2**63, num_envs, np.uint64)
        self.fault, self.inner = fault, CartPole(num_envs, seeds, max_episode_steps=9)
        self.num_envs, self.saves_state, self.has_action_mask = num_envs, True, fault == "no mask"
        self.obs_spec, self.action_spec = self.inner.obs_spec, self.inner.action_spec
        self.buffer = np.zeros((num_envs, 4), np.float32)
        self.closed = False

    def reset(self) -> tuple[Obs, None]:
        return self.inner.reset()

    def step(self, action: Array) -> EnvStep:
        step = self.inner.step(action)
        if self.fault == "final_obs":
            step.final_obs = step.final_obs + 1
        elif self.fault == "stuck":
            step.obs = step.final_obs
        elif self.fault == "buffer":
            self.buffer[...] = step.obs
            step.obs = self.buffer
        elif self.fault == "dtype":
            step.reward = step.reward.astype(np.float64)
        elif self.fault == "nan":
            step.reward[0] = np.nan
        return step

    def get_state(self) -> dict[str, Array]:
        if self.fault == "view":
            return {"body": self.inner._body, "elapsed": self.inner._elapsed, "generator": self.inner._generator}
        return self.inner.get_state()

    def set_state(self, state: Mapping[str, Array]) -> None:
        if self.fault != "forgets":
            self.inner.set_state(state)

    def close(self) -> None:
        if self.closed and self.fault == "close":
            raise RuntimeError("closed twice")
        self.closed = True


SPOILED = {
    "final_obs": "final_obs equals obs while an episode runs",
    "stuck": "a finished episode starts anew",
    "buffer": "arrays handed out are left alone",
    "dtype": "shapes and dtypes are as declared",
    "nan": "observations and rewards are finite",
    "no mask": "action masks always allow something",
    "seeds": "the same seeds give the same episodes",
    "num_envs": "an env does not depend on num_envs",
    "view": "a saved state continues exactly",
    "forgets": "a saved state continues exactly",
    "close": "close may be called twice",
}


@pytest.mark.parametrize("fault", SPOILED)
def test_each_promise_has_a_check_that_notices_when_it_is_broken(fault):
    found = failures(lambda num_envs, seeds: Spoiled(fault, num_envs, seeds))
    assert SPOILED[fault] in found


def test_every_check_has_a_fault_planted_for_it():
    assert {*SPOILED.values(), "observations lie within their space"} == set(CHECKS)
