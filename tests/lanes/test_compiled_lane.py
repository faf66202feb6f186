"""The compiled lane against the eager one. Compiling takes seconds: what can, shares one lane's machine code."""

from __future__ import annotations

import copy
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from hotloop.core.errors import LaneError
from hotloop.core.types import Array, ArraySpec, Batch, ObsSpec, UpdateStats, map_obs
from hotloop.lanes import compiling
from hotloop.lanes.compiled import CompiledLane, adam_factors, chunks
from hotloop.lanes.eager import EagerLane
from hotloop.lanes.nonfinite import NonFiniteTensorError, first_nonfinite
from hotloop.lanes.objective import flatten_tensors, restore_tensors
from hotloop.lanes.q_objective import QObjective, QSpec, TransitionBatch
from hotloop.lanes.spec import Lane
from hotloop.nets.build import build_q_network
from hotloop.presets.network_settings import NetworkSettings

pytestmark = pytest.mark.skipif(
    compiling.compiler_problem() != "", reason=f"compiled lane: {compiling.compiler_problem()}"
)
FLAT = ArraySpec((4,))
NUM_ENVS, NUM_ACTIONS, ROWS = 2, 3, 8
VECTORS = ("online", "target", "mean", "square")


def make_spec(**changes: Any) -> QSpec:
    """A large epsilon, so that Adam does not blow up the rounding of gradients near zero."""
    values: dict[str, Any] = dict(
        loss="huber", double=False, atoms=1, v_min=0.0, v_max=20.0, noisy=False, max_grad_norm=0.5, accumulate=1,
        beta1=0.9, beta2=0.999, epsilon=1e-3, target_tau=1.0, target_every=7,
    )  # fmt: skip
    return QSpec(**(values | changes))


def make_batch(k: int, obs_spec: ObsSpec = FLAT, masked: bool = False, seed: int = 0) -> Batch:
    random = np.random.default_rng(seed)

    def observe(spec: ArraySpec) -> Array:
        numbers = random.normal(size=(k, ROWS, *spec.shape))
        return (40 * abs(numbers) if spec.dtype == np.uint8 else numbers).astype(spec.dtype)

    def floats() -> Array:
        return random.random((k, ROWS), dtype=np.float32)

    mask = random.random((k, ROWS, NUM_ACTIONS)) < 0.5
    mask[..., 0] = True
    return Batch(
        obs=map_obs(observe, obs_spec),
        action=random.integers(0, NUM_ACTIONS, (k, ROWS)),
        reward=floats(),
        discount=0.99 * (floats() < 0.9).astype(np.float32),
        next_obs=map_obs(observe, obs_spec),
        weight=floats(),
        index=np.zeros((k, ROWS), np.int64),
        next_action_mask=mask if masked else None,
    )


def rates(k: int) -> Array:
    return np.linspace(1e-3, 2e-3, k)


def make_lanes(
    spec: QSpec, settings: NetworkSettings, obs_spec: ObsSpec = FLAT, **options: Any
) -> tuple[EagerLane, CompiledLane]:
    networks = [build_q_network(settings, obs_spec, NUM_ACTIONS, seed=1) for _ in range(2)]
    return EagerLane(QObjective(spec), networks[0], "cpu", 5), CompiledLane(
        QObjective(spec), networks[1], "cpu", 5, **options
    )


@pytest.fixture(scope="module")
def warm() -> CompiledLane:
    _, lane = make_lanes(make_spec(), NetworkSettings(hidden=(16, 16)), num_envs=NUM_ENVS)
    before = copy.deepcopy(lane.state())
    lane.prepare(make_batch(1), most_updates=11)
    assert_same_state(lane.state(), before)
    return lane


@pytest.fixture
def lanes(warm: CompiledLane) -> tuple[EagerLane, CompiledLane]:
    """Fresh ones, the compiled one with the machine code of `warm`."""
    eager, lane = make_lanes(make_spec(), NetworkSettings(hidden=(16, 16)), num_envs=NUM_ENVS)
    lane._compiled = warm._compiled
    return eager, lane


def assert_same_state(state: dict[str, Any], expected: dict[str, Any]) -> None:
    assert state.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_array_equal(state[name], value, err_msg=name)


def assert_close_lanes(one: Lane, other: Lane, tolerance: float = 1e-5) -> None:
    ours, theirs = one.state(), other.state()
    for name in VECTORS:
        np.testing.assert_allclose(ours[name], theirs[name], rtol=tolerance, atol=tolerance, err_msg=name)
    np.testing.assert_array_equal(ours["generator"], theirs["generator"])


def assert_close_stats(one: UpdateStats, other: UpdateStats, tolerance: float = 1e-4) -> None:
    torch.testing.assert_close(one.td_error, other.td_error, rtol=tolerance, atol=tolerance)
    torch.testing.assert_close(one.scalars, other.scalars, rtol=tolerance, atol=tolerance)


def assert_lanes_agree(eager: EagerLane, lane: CompiledLane, obs_spec: ObsSpec, masked: bool) -> None:
    """Over 20 updates in calls of 11, 8 and 1, and in acting with and without noise."""
    made = 0
    for seed, k in enumerate((11, 8, 1)):
        batches = make_batch(k, obs_spec, masked, seed)
        assert_close_stats(lane.update(batches, rates(k), made), eager.update(batches, rates(k), made))
        made += k
    assert_close_lanes(lane, eager)
    batch = make_batch(1, obs_spec, masked, seed=9)
    for count in (NUM_ENVS, ROWS):
        obs = map_obs(lambda part, count=count: part[0, :count], batch.obs)
        mask = batch.next_action_mask[0, :count] if masked else None
        for noisy in (True, False):
            np.testing.assert_array_equal(lane.infer(obs, mask, noisy)[0], eager.infer(obs, mask, noisy)[0])
    assert_close_lanes(lane, eager)


def test_calls_are_long_while_they_fit_and_end_where_the_target_moves() -> None:
    assert list(chunks(11, 0, 0)) == [(0, 4), (4, 4), (8, 1), (9, 1), (10, 1)]
    assert list(chunks(9, 0, 6)) == [(0, 4), (4, 1), (5, 1), (6, 1), (7, 1), (8, 1)]
    assert list(chunks(9, 3, 8)) == [(0, 4), (4, 1), (5, 4)]  # updates 4 to 12: the target moves after the 8th
    assert list(chunks(3, 100, 1)) == [(0, 1), (1, 1), (2, 1)]


def test_the_parts_of_a_dict_observation_go_by_name_not_by_order() -> None:
    like = TransitionBatch({"b": 2, "a": 1}, 3, 4, 5, {"a": 6, "b": 7}, 8, None)
    tensors = flatten_tensors(like)
    assert tensors == [1, 2, 3, 4, 5, 6, 7, 8]
    assert restore_tensors(tensors, like) == like


def test_adam_factors_undo_the_bias_of_the_first_updates() -> None:
    factors = adam_factors(QObjective(make_spec(beta1=0.5, beta2=0.75)), np.array([1.0, 3.0]), first_update=0)
    np.testing.assert_allclose(factors[:, 0], [[2.0, 0.5], [4.0, 0.4375**0.5]])  # 3 / (1 - 0.25), root of 1 - 0.5625


def test_dqn_computes_what_the_eager_lane_computes(lanes: tuple[EagerLane, CompiledLane]) -> None:
    assert_lanes_agree(*lanes, FLAT, masked=False)


def test_double_dueling_c51_with_masks_and_a_soft_target_computes_what_the_eager_lane_computes() -> None:
    settings = NetworkSettings(hidden=(16,), dueling=True, atoms=7)
    eager, lane = make_lanes(make_spec(double=True, atoms=7, target_every=1, target_tau=0.1), settings)
    batches = make_batch(20, masked=True)
    assert_close_stats(lane.update(batches, rates(20), 3), eager.update(batches, rates(20), 3))
    assert_close_lanes(lane, eager)


def test_eleven_updates_at_once_equal_eleven_single_calls(lanes: tuple[EagerLane, CompiledLane]) -> None:
    _, lane = lanes
    start, batches = copy.deepcopy(lane.state()), make_batch(11)
    together = lane.update(batches, rates(11), 0)
    at_once = copy.deepcopy(lane.state())
    lane.load_state(start)
    for j in range(11):
        rows = {name: getattr(batches, name)[j : j + 1] for name in Batch.__slots__[:7]}
        stats = lane.update(Batch(**rows), rates(11)[j : j + 1], j)
        torch.testing.assert_close(stats.td_error[0], together.td_error[j], rtol=1e-5, atol=1e-5)
    for name in VECTORS:
        np.testing.assert_allclose(lane.state()[name], at_once[name], rtol=1e-5, atol=1e-6)


def test_nothing_compiles_once_prepared(lanes: tuple[EagerLane, CompiledLane]) -> None:
    _, lane = lanes
    before, compiled = copy.deepcopy(torch._dynamo.utils.counters), dict(lane._compiled)
    for k, first_update in ((1, 0), (4, 1), (11, 5), (64, 10**9)):
        lane.update(make_batch(k), rates(k), first_update)
    lane.infer(make_batch(1).obs[0, :NUM_ENVS], None, True)[0]
    assert lane._compiled == compiled
    assert torch._dynamo.utils.counters == before


def test_a_restored_lane_continues_to_the_same_bits(lanes: tuple[EagerLane, CompiledLane]) -> None:
    _, lane = lanes
    lane.update(make_batch(6, seed=1), rates(6), 0)
    saved = copy.deepcopy(lane.state())
    lane.update(make_batch(9, seed=2), rates(9), 6)
    expected = copy.deepcopy(lane.state())
    lane.load_state(saved)
    lane.update(make_batch(9, seed=2), rates(9), 6)
    assert_same_state(lane.state(), expected)


def test_the_module_sees_the_updated_parameters(lanes: tuple[EagerLane, CompiledLane]) -> None:
    _, lane = lanes
    lane.update(make_batch(5), rates(5), 0)
    assert lane.eager.groups["online"].flat.is_attached()
    flat = torch.cat([parameter.detach().reshape(-1) for parameter in lane.network.parameters()])
    np.testing.assert_array_equal(flat.numpy(), lane.parameters())


def test_updating_reads_nothing_back_to_the_host(
    lanes: tuple[EagerLane, CompiledLane], monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: Counter[str] = Counter()
    for name in ("item", "tolist", "numpy", "cpu", "__float__", "__bool__"):
        original = getattr(torch.Tensor, name)

        def counted(tensor: Any, *inputs: Any, name: str = name, original: Any = original) -> Any:
            reads[name] += 1
            return original(tensor, *inputs)

        monkeypatch.setattr(torch.Tensor, name, counted)
    monkeypatch.setattr(lanes[1], "on_host", False)  # on a CPU loss and gradient are looked at after each call
    lanes[1].update(make_batch(11), rates(11), 0)
    assert not reads


@pytest.mark.parametrize("on_host", [True, False], ids=["on a CPU", "elsewhere"])
def test_no_step_is_made_on_numbers_that_are_not_finite_nor_after_it_in_the_same_call(
    lanes: tuple[EagerLane, CompiledLane], on_host: bool
) -> None:
    eager, lane = lanes
    lane.on_host = on_host
    batch = make_batch(4)
    eager.update(make_batch(2), rates(4)[:2], 0)  # the same rows: draws of all fields begin alike
    for name in ("obs", "action", "reward", "discount", "next_obs", "weight"):
        getattr(batch, name)[:2] = getattr(make_batch(2), name)
    batch.reward[2, 5] = np.inf
    if on_host:
        with pytest.raises(NonFiniteTensorError, match="update 3 is NaN or infinite, first of all: reward") as caught:
            lane.update(batch, rates(4), 0)
        failed = caught.value.failed
        assert_same_state(failed.state, lane.state())
        np.testing.assert_array_equal(failed.batch["reward"], batch.reward[2])
        assert first_nonfinite(lane.objective.nan_search_order(eager.network, "float32", failed)) == "reward"
    else:
        assert not lane.update(batch, rates(4), 0).scalars.isfinite().all()
    assert_close_lanes(lane, eager)


def test_a_module_that_draws_or_remembers_is_refused_by_name() -> None:
    for module, words in ((nn.Dropout(), "`1` (Dropout)"), (nn.BatchNorm1d(4), "`running_mean` of `1` (BatchNorm1d)")):
        with pytest.raises(LaneError) as refusal:
            CompiledLane(QObjective(make_spec()), nn.Sequential(nn.Linear(4, 4), module), "cpu", 0)
        assert words in refusal.value.message
        assert "eager" in refusal.value.hint


def test_a_module_that_cannot_be_traced_is_refused_with_the_reason() -> None:
    class Moody(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, NUM_ACTIONS)

        def forward(self, obs: torch.Tensor) -> torch.Tensor:
            return self.layer(obs) if obs.sum() > 0 else -self.layer(obs)

    with pytest.raises(LaneError, match="cannot compile"):
        CompiledLane(QObjective(make_spec()), Moody(), "cpu", 0).prepare(make_batch(1), 1)


def test_a_machine_without_a_compiler_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    assert not compiling.compiler_available()
    with pytest.raises(LaneError, match=r"C\+\+ compiler"):
        make_lanes(make_spec(), NetworkSettings())


PARTS = {"board": ArraySpec((2, 2), np.dtype(np.uint8)), "speed": ArraySpec((3,))}
BOARD = ArraySpec((5, 6, 2), np.dtype(np.uint8))
VARIANTS: dict[str, tuple[dict[str, Any], dict[str, Any], ObsSpec, bool]] = {
    "mse, clipping off": ({"loss": "mse", "max_grad_norm": 0.0}, {"activation": "tanh"}, FLAT, False),
    "noisy double dueling": (
        {"noisy": True, "double": True, "target_every": 5}, {"noisy": True, "dueling": True}, FLAT, True,
    ),
    "dict observation, accumulated": ({"accumulate": 2}, {"activation": "selu"}, PARTS, False),
    "convolutions on bytes": ({"double": True}, {"activation": "leaky_relu"}, BOARD, True),
    "noisy c51": ({"noisy": True, "atoms": 5, "target_every": 0}, {"noisy": True, "atoms": 5}, FLAT, True),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("variant", VARIANTS)
def test_every_variant_computes_what_the_eager_lane_computes(variant: str) -> None:
    changes, network, obs_spec, masked = VARIANTS[variant]
    settings = NetworkSettings(hidden=(16,), **network)
    assert_lanes_agree(*make_lanes(make_spec(**changes), settings, obs_spec, num_envs=NUM_ENVS), obs_spec, masked)


@pytest.mark.slow
def test_another_process_with_an_empty_cache_reaches_the_same_bits(tmp_path: Path) -> None:
    script = f"""
import hashlib, runpy
here = runpy.run_path({str(Path(__file__))!r})
_, lane = here["make_lanes"](here["make_spec"](), here["NetworkSettings"](hidden=(16, 16)))
lane.update(here["make_batch"](11), here["rates"](11), 0)
print(hashlib.sha256(lane.parameters().tobytes()).hexdigest())
"""
    digests = []
    for folder in ("one", "one", "two"):  # compiled, loaded, compiled anew
        environment = os.environ | {"TORCHINDUCTOR_CACHE_DIR": str(tmp_path / folder)}
        command = [sys.executable, "-c", script]
        digests.append(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)
    assert len(set(digests)) == 1


@pytest.mark.slow
def test_a_library_without_a_header_that_a_killed_compiler_left_is_made_anew(tmp_path: Path) -> None:
    program = (
        "import torch; from hotloop.lanes.compiling import compile_function\n"
        "print(compile_function(lambda x: (x + 1.0,), [torch.zeros(2)])(torch.ones(2))[0].tolist())"
    )
    names = {key: value for key, value in os.environ.items() if key != "TORCHINDUCTOR_CACHE_DIR"}
    (tmp_path / "cache").mkdir(mode=0o700)

    def compute() -> str:
        environment = names | {"XDG_CACHE_HOME": str(tmp_path / "cache")}
        return subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True).stdout

    assert compute() == "[2.0, 2.0]\n"
    libraries = list((tmp_path / "cache").rglob("*.main.so"))
    assert libraries
    for library in libraries:
        library.write_bytes(bytes(1_000))  # as was seen; one cut off behind its header crashes the loader itself
    assert compute() == "[2.0, 2.0]\n"
    assert all(len(library.read_bytes()) > 1000 for library in (tmp_path / "cache").rglob("*.main.so"))


@pytest.mark.slow
def test_half_precision_is_near_full_precision_and_not_equal_to_it() -> None:
    eager, lane = make_lanes(make_spec(), NetworkSettings(hidden=(16,)), precision="bfloat16")
    batches = make_batch(4)
    half, full = lane.update(batches, rates(4), 0), eager.update(batches, rates(4), 0)
    assert_close_stats(half, full, tolerance=0.05)
    assert not torch.equal(half.td_error, full.td_error)
    assert lane.parameters().dtype == np.float32
