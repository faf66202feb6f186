"""Two envs: single, batched and ours; what parts them, and whether that is a fault or the order of random draws."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.classic_control.cartpole import CartPoleEnv
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from hotloop.core.errors import EnvError
from hotloop.core.two_sample import distribution_distance
from hotloop.proof import speed
from hotloop.proof.draws import draw_differently
from hotloop.proof.env_pairs import prove_envs
from hotloop.proof.verdict import Proof
from tests.proof import planted_env

FEW: dict[str, Any] = {"num_envs": 3, "env_steps": 240, "episodes": 60, "seconds": 0}


@pytest.fixture(autouse=True)
def _few_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speed, "SAMPLE_SECONDS", 1e-4)
    monkeypatch.setattr(speed, "WARM_UP_SECONDS", 1e-3)


def prove(plain: Any, fast: Any, **more: Any) -> Proof:
    return prove_envs(plain, fast, **{**FEW, **more})


def batched(mode: AutoresetMode, make: Any = None) -> Any:
    def made(num_envs: int) -> Any:
        return SyncVectorEnv([make or (lambda: gymnasium.make("CartPole-v1"))] * num_envs, autoreset_mode=mode)

    return made


def limited(kind: Any) -> Any:
    return lambda: gymnasium.wrappers.TimeLimit(kind(), 500)


def test_an_env_is_the_same_as_itself_and_timed_in_env_steps() -> None:
    proof = prove("CartPole-v1", "CartPole-v1", seconds=0.01)
    assert proof.equal
    assert proof.evidence["env steps"] >= 240
    assert proof.evidence["episodes"] >= 3
    assert proof.cost is not None
    assert proof.cost.unit == "env step"


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_a_batched_env_is_the_same_as_single_ones_with_the_same_seeds(mode: AutoresetMode) -> None:
    assert prove("CartPole-v1", batched(mode), seconds=0.01).equal
    assert prove(batched(mode), "CartPole-v1").equal


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_masks_of_batched_envs_are_compared(mode: AutoresetMode) -> None:
    plain = planted_env.made()
    assert prove(plain, batched(mode, plain), seconds=0.01).equal
    found = prove(plain, batched(mode, planted_env.made("self.x > 0, True", "self.x >= 0, True"))).difference
    assert found is not None
    assert found.what == "action_mask"


def test_the_first_difference_has_its_env_step_and_the_actions_that_led_there() -> None:
    class Heavy(CartPoleEnv):
        def step(self, action: Any) -> Any:
            self.gravity = 9.8 if self.state[0] > -0.02 else 9.9
            return super().step(action)

    found = prove(limited(CartPoleEnv), limited(Heavy)).difference
    assert found is not None
    assert found.what == "observation"
    assert "at env step" in found.when
    assert "of env" in found.when
    assert found.reproduction.startswith("reset(seed=")
    seed = int(found.reproduction[len("reset(seed=") :].partition(")")[0])
    actions = found.reproduction.partition("[")[2].partition("]")[0]
    envs = [limited(kind)() for kind in (CartPoleEnv, Heavy)]
    for env in envs:
        env.reset(seed=seed)
    for action in actions.split(", "):
        answers = [env.step(int(action)) for env in envs]
    assert not np.array_equal(answers[0][0], answers[1][0])  # the reproduction shows it


def test_draws_in_another_order_are_told_from_a_fault_and_tested_by_distribution() -> None:
    class Reseeded(CartPoleEnv):
        def reset(self, *, seed: Any = None, options: Any = None) -> Any:
            return super().reset(seed=None if seed is None else seed + 77, options=options)

    proof = prove(limited(CartPoleEnv), limited(Reseeded))
    assert proof.passed
    assert not proof.equal
    assert proof.as_data()["verdict"] == "the same but for draws"
    assert {"return", "length", "reward", "first observation[0]"} <= {test.measure for test in proof.tests}
    assert any("where plain draws random numbers, at the reset" in note for note in proof.notes)

    class Worse(Reseeded):
        def reset(self, *, seed: Any = None, options: Any = None) -> Any:
            return super().reset(seed=seed, options={"low": 0.0, "high": 0.1})

    found = prove(limited(CartPoleEnv), limited(Worse)).difference
    assert found is not None
    assert found.what.startswith("first observation")
    assert "in distribution" in found.when


def test_parcels_drawn_in_another_order_later_on_are_no_fault() -> None:
    other = planted_env.made("int(self.np_random.integers(7))", "6 - int(self.np_random.integers(7))")
    proof = prove(planted_env.made(), other)
    assert proof.draws_differently or proof.difference is not None  # a mirrored draw has the same distribution
    extra = planted_env.made(
        "            self.place_parcel()\n        term",
        "            self.np_random.random()\n            self.place_parcel()\n        term",
    )
    proof = prove(planted_env.made(), extra)
    assert proof.draws_differently
    assert proof.passed
    assert any("at env step" in note for note in proof.notes)


def test_ours_against_gymnasiums_draws_differently_and_has_the_same_distributions() -> None:
    proof = prove("CartPole-v1", "cartpole")
    assert proof.draws_differently
    assert proof.passed


def test_what_raises_in_one_is_a_difference_and_in_both_is_noted() -> None:
    raising = planted_env.made("self.steps += 1\n", "self.steps += 1\n        assert self.steps < 9\n")
    found = prove(planted_env.made(), raising).difference
    assert found is not None
    assert (found.what, found.kind) == ("step", "raised")
    assert "at env step 9" in found.when
    proof = prove(raising, raising)
    assert proof.passed
    assert any("both raise AssertionError" in note for note in proof.notes)


def test_files_and_mistakes(tmp_path: Path) -> None:
    (tmp_path / "env.py").write_text("import gymnasium\nimport numpy as np\n" + planted_env.PLAIN)
    (tmp_path / "bad.py").write_text("class Env:\n    pass\n")
    assert prove(f"{tmp_path}/env.py:Env", f"{tmp_path}/env.py:Env").equal
    for target, said in (
        ("CartPole-v9", "no env"),
        (f"{tmp_path}/bad.py:Env", "has no `reset`"),
        ("nowhere.py:Env", "no file"),
    ):
        with pytest.raises(EnvError, match=said):
            prove("CartPole-v1", target)


def test_draws_are_judged_by_eye() -> None:
    drawn = [np.array([value, 1.0]) for value in (3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0)]
    shifted = [*drawn[1:], drawn[0]]
    assert draw_differently(drawn, shifted)
    wrong = [one + [0.0, 1.0] for one in shifted]  # the second number is never drawn
    assert not draw_differently(drawn, wrong)
    alike = [np.array([one[0], one[0] + 1]) for one in drawn]  # the first is drawn alike, so the second is wrong
    assert not draw_differently([np.array([one[0], one[0]]) for one in drawn], alike)
    assert not draw_differently([drawn[0]] * 8, shifted)  # plain draws nothing there


def test_the_distance_of_distributions_by_eye_and_by_chance() -> None:
    one, other = [np.array([value]) for value in (1.0, 2.0, 3.0)], [np.array([value]) for value in (4.0, 5.0, 6.0)]
    distance, chance = distribution_distance(one, other)
    assert distance == 1.0
    assert chance == pytest.approx(2 / 20, abs=0.02)  # 2 of the 20 ways to deal six into two threes
    assert distribution_distance(one, one) == (0.0, 1.0)
    draw = np.random.default_rng(0)
    chances = []
    for _ in range(60):  # episodes whose rewards depend on each other are dealt whole
        sides = [[np.full(5, value) for value in draw.normal(size=12)] for _ in range(2)]
        chances.append(distribution_distance(*sides, deals=199)[1])
    assert np.mean(np.array(chances) <= 0.1) < 0.25
