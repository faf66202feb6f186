"""Envs in worker processes answer exactly as in process: play, masks, errors, settings."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import hotloop
from hotloop.core.errors import EnvError, HotloopError, SettingsError
from hotloop.core.types import (
    Array,
    ArraySpec,
    BoxActions,
    DiscreteActions,
    EnvStep,
    HybridActions,
    MultiDiscreteActions,
    VecEnv,
)
from hotloop.envs.registry import make_envs
from hotloop.envs.workers import messages
from hotloop.envs.workers.messages import BufferPlan, new_memory, slabs_in
from hotloop.envs.workers.pool import WorkerPool
from hotloop.presets.env_settings import EnvSettings
from tests.envs import planted_envs, planted_worker_envs

PLANTED = Path(planted_envs.__file__)
WORKER_ENVS = Path(planted_worker_envs.__file__)
FIELDS = ("obs", "reward", "terminated", "truncated", "final_obs", "action_mask", "final_action_mask", "valid")


def make(env_id: str, num_envs: int, workers: int, **settings: Any) -> Any:
    seeds = np.arange(num_envs, dtype=np.uint64) * (2**33 + 7) + 11
    return make_envs(EnvSettings(id=env_id, num_envs=num_envs, workers=workers, **settings), num_envs, seeds)


def draw_actions(envs: VecEnv, mask: Array | None, generator: np.random.Generator) -> Array:
    spec = envs.action_spec
    if isinstance(spec, DiscreteActions):
        weights = generator.random((envs.num_envs, spec.count))
        return np.argmax(weights if mask is None else weights * mask, axis=1)
    if isinstance(spec, BoxActions):
        return generator.uniform(-1, 1, (envs.num_envs, *spec.shape)).astype(np.float32)
    if isinstance(spec, HybridActions):
        numbers = generator.uniform(-1, 1, (envs.num_envs, 2))
        return np.hstack([generator.integers(0, 3, (envs.num_envs, 1)), numbers]).astype(np.float32)
    return generator.integers(0, spec.counts, (envs.num_envs, len(spec.counts)))


def require_equal(first: Any, second: Any) -> None:
    assert type(first) is type(second)
    if isinstance(first, dict):
        assert list(first) == list(second)
        for name in first:
            require_equal(first[name], second[name])
    elif first is not None:
        assert first.dtype == second.dtype
        assert np.array_equal(first, second)


def require_equal_steps(first: EnvStep, second: EnvStep) -> None:
    for name in FIELDS:
        require_equal(getattr(first, name), getattr(second, name))
    assert (first.obs is first.final_obs) == (second.obs is second.final_obs)


CASES = [
    ("CartPole-v1", 5, 2, {"max_episode_steps": 17}),
    (f"{PLANTED}:Parts", 3, 2, {"dict_obs": "keep"}),
    (f"{PLANTED}:Nested", 3, 2, {"wrappers": ("ClipReward(0.25, 0.5)", "FrameStackObservation(2)")}),
    (f"{PLANTED}:make_counter", 3, 2, {"max_episode_steps": 4}),
    (f"{PLANTED}:MaskInInfo", 3, 1, {}),
    (f"{WORKER_ENVS}:KeepsActions", 2, 1, {}),
    ("tests.envs.registers_itself:Steady-v0", 2, 1, {}),
]
MORE_CASES = [
    ("CartPole-v1", 3, 3, {}),
    ("Pendulum-v1", 4, 1, {"max_episode_steps": 20}),
    ("FrozenLake-v1", 4, 2, {"options": {"is_slippery": False}}),
    (f"{PLANTED}:Parts", 3, 2, {}),
    (f"{PLANTED}:FromOne", 2, 2, {}),
    (f"{PLANTED}:TwoChoices", 2, 1, {}),
    (f"{PLANTED}:MaskMethod", 3, 2, {}),
    (f"{PLANTED}:SharedBuffer", 4, 2, {"options": {"length": 3}}),
    (f"{WORKER_ENVS}:Both", 3, 2, {}),
]


@pytest.mark.parametrize(
    ("env_id", "num_envs", "workers", "settings"),
    CASES + [pytest.param(*case, marks=pytest.mark.slow) for case in MORE_CASES],
)
def test_play_equals_the_same_envs_in_process(env_id, num_envs, workers, settings):
    pool, plain = make(env_id, num_envs, workers, **settings), make(env_id, num_envs, 0, **settings)
    assert isinstance(pool, WorkerPool)
    try:
        for name in ("num_envs", "obs_spec", "action_spec", "has_action_mask", "saves_state"):
            assert getattr(pool, name) == getattr(plain, name)
        generator = np.random.default_rng(3)
        for length in (60, 7, 25):
            (obs, mask), (plain_obs, plain_mask) = pool.reset(), plain.reset()
            require_equal(obs, plain_obs)
            require_equal(mask, plain_mask)
            for _ in range(length):
                actions = draw_actions(plain, mask, generator)
                step, plain_step = pool.step(actions), plain.step(actions)
                require_equal_steps(step, plain_step)
                mask = step.action_mask
        assert not pool.incidents
    finally:
        pool.close()
        plain.close()


def test_arrays_are_not_written_to_again():
    pool = make("CartPole-v1", 2, 2, max_episode_steps=3)
    try:
        first, _ = pool.reset()
        steps = [pool.step(np.array([0, 1])) for _ in range(6)]
        copies = [step.obs.copy() for step in steps]
        before = first.copy()
        for _ in range(6):
            pool.step(np.array([1, 0]))
        assert np.array_equal(first, before)
        assert all(np.array_equal(step.obs, copy) for step, copy in zip(steps, copies, strict=True))
    finally:
        pool.close()


def play(envs: VecEnv, count: int) -> None:
    for _ in range(count):
        envs.step(np.zeros(envs.num_envs, np.int64))


def error_of(env_id: str, workers: int, **settings: Any) -> tuple[type, str]:
    """What 6 steps of 3 envs raise."""
    try:
        envs = make(env_id, 3, workers, **settings)
    except HotloopError as error:
        return type(error), str(error)
    try:
        envs.reset()
        with pytest.raises(HotloopError) as caught:
            play(envs, 6)
        return caught.type, str(caught.value)
    finally:
        envs.close()


FAULTS = ["NaNObs", "WrongShape", "WrongKind", "Raising", "RewardNone", "RewardInfinite", "FourValues"]
FAULTS += ["TerminatedNone", "InfoList", "EmptyMask", "OldReset"]


@pytest.mark.parametrize(
    "name", FAULTS[1:2] + [pytest.param(fault, marks=pytest.mark.slow) for fault in FAULTS[:1] + FAULTS[2:]]
)
def test_a_bad_env_is_told_in_the_same_words_as_in_process(name):
    assert error_of(f"{PLANTED}:{name}", 2) == error_of(f"{PLANTED}:{name}", 0)


def test_an_error_names_the_env_by_its_number_in_the_pool():
    seeds = np.array([5, 6, 7, 8], np.uint64)
    told = []
    for workers in (0, 2):
        chosen = EnvSettings(id=f"{WORKER_ENVS}:Raises", num_envs=4, workers=workers, options={"bad_seed": 8})
        envs = make_envs(chosen, 4, seeds)
        envs.reset()
        with pytest.raises(
            EnvError, match=r"env 3 raised RuntimeError in `step` .* after 2 steps of each env"
        ) as caught:
            play(envs, 3)
        told.append(str(caught.value))
        envs.close()
    assert told[0] == told[1]


UNMADE = [
    ("CartPole-v1", {"options": {"nonsense": 3}}),
    (f"{PLANTED}:Missing", {}),
    ("no_such_file.py:Env", {}),
    ("no_such_module:Env-v0", {}),
    ("CartPol-v1", {}),
]


@pytest.mark.parametrize(("env_id", "settings"), UNMADE)
def test_envs_that_cannot_be_made_are_refused_in_the_same_words(env_id, settings):
    assert error_of(env_id, 1, **settings) == error_of(env_id, 0, **settings)


def test_envs_that_step_together_are_refused():
    with pytest.raises(EnvError, match="steps all its envs at once"):
        make(f"{PLANTED}:SameStepVector", 2, 1)
    with pytest.raises(SettingsError, match="steps all its envs at once"):
        make("cartpole", 2, 1)
    with pytest.raises(SettingsError, match="both set"):
        EnvSettings(id="CartPole-v1", num_envs=2, workers=2, batched=True)
    with pytest.raises(SettingsError, match="3 for 2 envs"):
        EnvSettings(id="CartPole-v1", num_envs=2, workers=3)


def test_workers_that_disagree_about_the_spaces_are_refused():
    with pytest.raises(EnvError, match="other spaces or masks in one worker than in another"):
        make(f"{WORKER_ENVS}:Moody", 2, 2)


def test_an_id_that_only_this_program_registered_is_refused_with_what_to_do():
    gymnasium.register("OnlyHere-v0", entry_point=planted_worker_envs.Steady)
    try:
        with pytest.raises(EnvError, match=r"registered by your program.*\n\n.*`module:OnlyHere-v0`"):
            make("OnlyHere-v0", 1, 1)
    finally:
        del gymnasium.registry["OnlyHere-v0"]


def test_code_of_the_users_is_run_only_with_trust():
    settings = EnvSettings(id=f"{WORKER_ENVS}:Steady", num_envs=2, workers=2)
    with pytest.raises(EnvError, match="runs code from outside hotloop"):
        make_envs(settings, 2, np.zeros(2, np.uint64), trust=False)


def test_fewer_envs_than_workers_get_one_worker_each():
    settings = EnvSettings(id="CartPole-v1", num_envs=4, workers=4)
    pool: Any = make_envs(settings, 2, np.zeros(2, np.uint64))
    assert len(pool.worker_pids) == 2
    pool.close()


def test_actions_of_another_shape_are_refused_and_nothing_is_lost():
    pool = make("CartPole-v1", 2, 1)
    pool.reset()
    with pytest.raises(EnvError, match=r"shape \(3,\); expected \(2,\)"):
        pool.step(np.zeros(3, np.int64))
    pool.step(np.zeros(2, np.int64))
    pool.close()


def test_closed_envs_say_so_and_close_again():
    pool = make("CartPole-v1", 2, 1)
    pool.close()
    pool.close()
    for call in (pool.reset, lambda: pool.step(np.zeros(2, np.int64))):
        with pytest.raises(EnvError, match="these envs are closed"):
            call()
    with pytest.raises(EnvError, match="cannot save its state"):
        pool.get_state()


def test_a_pool_that_is_forgotten_ends_its_workers():
    pool = make("CartPole-v1", 2, 1)
    pids = pool.worker_pids
    del pool
    gc.collect()
    assert not any(os.path.exists(f"/proc/{pid}") for pid in pids)


def test_a_file_that_was_edited_does_not_change_the_envs_of_a_running_program(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(WORKER_ENVS.read_text())
    make(f"{file}:Steady", 1, 1).close()
    file.write_text(WORKER_ENVS.read_text() + "\n# edited\n")
    with pytest.raises(EnvError, match="was changed since"):
        make(f"{file}:Steady", 1, 1)


def test_a_worker_does_not_import_torch():
    pool = make(f"{WORKER_ENVS}:ShowsTorch", 1, 1)
    obs, _ = pool.reset()
    pool.close()
    assert obs[0, 1] == 0.0


def test_a_script_without_a_main_guard_can_use_workers(tmp_path):
    """`multiprocessing` would run the script again in every worker."""
    script = tmp_path / "script.py"
    script.write_text(
        "import numpy as np\n"
        "from hotloop.envs.registry import make_envs\n"
        "from hotloop.presets.env_settings import EnvSettings\n"
        "envs = make_envs(EnvSettings(id='CartPole-v1', num_envs=2, workers=2), 2, np.zeros(2, np.uint64))\n"
        "print(envs.reset()[0].shape)\n"
    )  # and nobody closes them
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "(2, 4)\n", "")


@pytest.mark.parametrize("preset", ["cartpole-dqn", pytest.param("cartpole-ppo", marks=pytest.mark.slow)])
def test_a_run_with_workers_has_the_digest_of_one_without(preset, tmp_path):
    results = []
    for workers in (0, 2):
        changes: dict[str, Any] = {
            "env": {"id": "CartPole-v1", "num_envs": 4, "workers": workers},
            "total_env_steps": 600,
            "evaluation": {"every": 0, "episodes": 2, "final_episodes": 2},
            "checkpoint": {"every": 400},
            "run_dir": str(tmp_path / str(workers)),
        }
        result = hotloop.train(hotloop.preset(preset, **changes))
        results.append({key: result[key] for key in ("digest", "evaluation", "final_evaluation")})
    assert results[0] == results[1]


def test_memory_is_laid_out_apart_and_found_again():
    obs = {"image": ArraySpec((2, 2), np.dtype(np.uint8)), "speed": ArraySpec((1,))}
    choices, numbers = MultiDiscreteActions((2, 3), (0, 1)), BoxActions((-np.inf, 0.1), (np.inf, 0.3), (2,))
    plan = BufferPlan(3, obs, HybridActions(choices, numbers), True)
    assert messages.plan_from_data(messages.plan_as_data(plan)) == plan
    descriptor = new_memory(plan)
    first, second = slabs_in(descriptor, plan), slabs_in(descriptor, plan)
    os.close(descriptor)
    arrays = [array for slab in first for array in flat(slab)]
    for number, array in enumerate(arrays):
        array[...] = number % 2 if array.dtype == np.bool_ else number
    for number, array in enumerate(array for slab in second for array in flat(slab)):
        assert (array == (number % 2 if array.dtype == np.bool_ else number)).all()
    assert first[0].rows(slice(1, 3)).final_mask.shape == (2, 5)


def flat(slab: Any) -> list[Array]:
    values = vars(slab).values()
    return [part for value in values for part in (value.values() if isinstance(value, dict) else [value])]
