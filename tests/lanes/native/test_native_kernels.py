"""The parts under the native update: matrix tiles, activations, memory plan, acting, and what they refuse."""

from __future__ import annotations

from dataclasses import replace

import numba
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from hotloop.lanes.native import activation_kernels, matrix_kernels
from hotloop.lanes.native.lane import NativeActor, NativeBatch, NativeUpdater
from hotloop.lanes.native.layout import NativeLayout, UpdateConstants, padded_stride
from hotloop.lanes.native.unit_kernels import prepare_units
from hotloop.lanes.native.vector_kernels import float_mode
from tests.oracles.torch_dqn_update import QNetwork, TorchDQN

multiply, transpose = matrix_kernels.multiply, matrix_kernels.transpose
functions = {"exp": activation_kernels.exp, "tanh": activation_kernels.tanh}
SMALL = NativeLayout(obs_size=2, hidden=(3,), num_actions=2)


@numba.njit
def run_multiply(c, a, b, bias, sizes, steps, floor, add):
    columns = sizes[1]
    multiply((c, 0, columns), (a, 0, steps[0], steps[1]), (b, 0, columns), (bias, 0), sizes, floor, add)


@numba.njit
def run_transpose(target, source, rows, columns):
    transpose((target, 0, rows), (source, 0, columns), rows, columns)


@numba.njit
def current_mode():
    return float_mode()


@settings(max_examples=60, deadline=None)
@given(
    sizes=st.tuples(st.integers(1, 20), st.integers(1, 70), st.integers(1, 9)),
    transposed=st.booleans(),
    add=st.booleans(),
    seed=st.integers(0, 99),
)
def test_product_of_any_size_equals_numpys_and_writes_nothing_else(sizes, transposed, add, seed):
    prepare_units(run_multiply)
    rng = np.random.default_rng(seed)
    rows, columns, depth = sizes
    a, b, bias = rng.standard_normal((rows, depth)), rng.standard_normal((depth, columns)), rng.standard_normal(rows)
    a, b, bias = a.astype(np.float32), b.astype(np.float32), bias.astype(np.float32)
    c = np.full(rows * columns + 40, 0.5, np.float32)
    stored, steps = (a.T.copy(), (1, rows)) if transposed else (a, (depth, 1))
    run_multiply(c, stored.ravel(), b.ravel(), bias, sizes, steps, np.float32(-np.inf), int(add))
    expected = a @ b + bias[:, None] + (0.5 if add else 0.0)
    np.testing.assert_allclose(c[: rows * columns].reshape(rows, columns), expected, rtol=1e-5, atol=1e-5)
    assert (c[rows * columns :] == 0.5).all()


def test_floor_of_a_product_holds_negatives_and_lets_nan_pass():
    prepare_units(run_multiply)
    c, one = np.zeros(3, np.float32), np.ones(1, np.float32)
    row = np.array([-2.0, 3.0, np.nan], np.float32)
    run_multiply(c, one, row, np.zeros(1, np.float32), (1, 3, 1), (1, 1), np.float32(0.0), 0)
    np.testing.assert_array_equal(c, [0.0, 3.0, np.nan])


@settings(max_examples=30, deadline=None)
@given(rows=st.integers(1, 40), columns=st.integers(1, 40))
def test_transpose_of_any_size_equals_numpys(rows, columns):
    prepare_units(run_transpose)
    source = np.arange(rows * columns, dtype=np.float32)
    target = np.zeros(rows * columns + 16, np.float32)
    run_transpose(target, source, rows, columns)
    np.testing.assert_array_equal(target[: source.size], source.reshape(rows, columns).T.ravel())
    assert (target[source.size :] == 0).all()


@pytest.mark.parametrize(("name", "exact", "error"), [("exp", np.exp, 2e-7), ("tanh", np.tanh, 3.4e-7)])
def test_polynomials_stay_within_their_stated_error(name, exact, error):
    function = functions[name]

    @numba.njit
    def over(x, y):
        for i in range(x.size):
            y[i] = function(x[i])

    x = np.concatenate([np.linspace(-87, 88, 200_001), np.linspace(-2, 2, 200_001)]).astype(np.float32)
    y = np.empty_like(x)
    over(x, y)
    expected = exact(x.astype(np.float64))
    np.testing.assert_allclose(y, expected, rtol=error)
    assert name != "tanh" or np.abs(y).max() == 1.0
    over(np.array([np.nan], np.float32), y)
    assert np.isnan(y[0])


def test_rows_never_lie_a_multiple_of_512_bytes_apart():
    assert [padded_stride(length) % 128 != 0 for length in (1, 32, 100, 128, 256, 512)] == [True] * 6
    assert padded_stride(256) >= 256


def network_and_parameters(layout: NativeLayout) -> tuple[TorchDQN, np.ndarray]:
    torch.manual_seed(0)
    network = QNetwork(
        layout.obs_size, layout.hidden, layout.num_actions, layout.activation, layout.dueling, layout.atoms
    )
    parameters = torch.cat([parameter.detach().reshape(-1) for parameter in network.parameters()]).numpy().copy()
    return TorchDQN(network, UpdateConstants(), layout.v_min, layout.v_max), parameters


@pytest.mark.parametrize("activation", ["relu", "selu"])
@pytest.mark.parametrize("head", [{}, {"dueling": True}, {"atoms": 7, "v_min": -1.0, "v_max": 2.0, "dueling": True}])
@pytest.mark.parametrize("hidden", [(), (33,), (16, 40)])
@pytest.mark.parametrize("rows", [1, 3, 4, 37])
def test_values_and_greedy_actions_are_those_of_the_torch_module(rows, hidden, head, activation):
    layout = NativeLayout(obs_size=17, hidden=hidden, num_actions=4, activation=activation, **head)
    oracle, parameters = network_and_parameters(layout)
    rng = np.random.default_rng(1)
    obs, mask = rng.standard_normal((rows, 17), np.float32), rng.random((rows, 4)) < 0.5
    expected = oracle.q(oracle.online, torch.from_numpy(obs)).detach()
    actor = NativeActor(layout, rows + 2)
    assert_close(torch.from_numpy(actor.values(parameters, obs)), expected, rtol=1e-5, atol=2e-6)
    np.testing.assert_array_equal(actor.greedy(parameters, obs), expected.argmax(-1))
    allowed = torch.where(torch.from_numpy(mask), expected, -torch.inf)
    np.testing.assert_array_equal(actor.greedy(parameters, obs, mask), allowed.argmax(-1))


def small_batch(k: int = 1, reward: float = 0.0) -> NativeBatch:
    """Two rows, all zeros but the reward."""
    obs, row = np.zeros((k, 2, 2), np.float32), np.zeros((k, 2), np.float32)
    return NativeBatch(obs, np.zeros((k, 2), np.int64), row + np.float32(reward), row, obs, row + 1, None)


def small_vectors() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    return tuple(np.zeros(SMALL.num_parameters, np.float32) for _ in range(4))


def split(vectors):
    parameters, target, mean, square = vectors
    return parameters, target, (mean, square)


def test_one_update_by_hand():
    # All zero but the reward 3: q = 0, e = -3, Huber loss 2.5, slope -1 for the bias of action 0, two rows of 1/2 each.
    updater = NativeUpdater(SMALL, UpdateConstants(max_norm=0.5), rows=2)
    vectors = small_vectors()
    made, td_error, stats = updater.update(*split(vectors), small_batch(reward=3.0), np.array([0.1]), first_update=0)
    assert made == 1
    np.testing.assert_array_equal(td_error, [[3.0, 3.0]])
    np.testing.assert_allclose(stats[:, 0], [2.5, 0.0, 1.0])
    np.testing.assert_allclose(vectors[2][-2:], [-0.05, 0.0], rtol=1e-5)  # (1 - 0.9) x the gradient, clipped to -0.5
    np.testing.assert_allclose(vectors[0][-2:], [0.1, 0.0], rtol=1e-5)  # Adam's first step is lr times the sign


@pytest.mark.parametrize(("tau", "expected"), [(1.0, 8.0), (0.25, 2.0)])
def test_target_moves_after_every_third_update_counted_from_the_start_of_the_run(tau, expected):
    constants = UpdateConstants(tau=tau, target_every=3)
    updater = NativeUpdater(SMALL, constants, rows=2)
    vectors = small_vectors()
    vectors[0][:] = 8.0  # parameters; lr 0 keeps them
    updater.update(*split(vectors), small_batch(), np.zeros(1), first_update=0)
    assert (vectors[1] == 0.0).all()
    updater.update(*split(vectors), small_batch(2), np.zeros(2), first_update=1)
    np.testing.assert_allclose(vectors[1], expected)


def random_batch(k: int) -> NativeBatch:
    rng = np.random.default_rng(3)
    obs, next_obs = rng.standard_normal((2, k, 2, 2), np.float32)
    reward, discount, weight = rng.random((3, k, 2), np.float32)
    return NativeBatch(obs, rng.integers(0, 2, (k, 2)), reward, discount, next_obs, weight, None)


def test_five_updates_in_one_call_are_bit_identical_to_five_calls():
    batch, lr = random_batch(5), np.full(5, 0.01)
    together, apart = [np.random.default_rng(4).random((4, SMALL.num_parameters), np.float32) for _ in range(2)]
    updater = NativeUpdater(SMALL, UpdateConstants(double=True, target_every=2), rows=2)
    _, td_error, stats = updater.update(*split(together), batch, lr, 10)
    for j in range(5):
        one = NativeBatch(*(None if part is None else part[j : j + 1] for part in batch))
        _, td_error_j, stats_j = updater.update(*split(apart), one, lr[j : j + 1], 10 + j)
        np.testing.assert_array_equal(td_error_j[0], td_error[j])
        np.testing.assert_array_equal(stats_j[:, 0], stats[:, j])
    np.testing.assert_array_equal(together, apart)


@pytest.mark.parametrize(("bad", "atoms"), [(np.nan, 1), (np.inf, 1), (np.nan, 5)])  # C51 clips an infinite target
@pytest.mark.parametrize("field", ["obs", "reward", "next_obs"])
def test_numbers_that_are_not_finite_stop_before_the_optimizer_sees_them(field, bad, atoms):
    layout = replace(SMALL, atoms=atoms, v_max=1.0)
    updater = NativeUpdater(layout, UpdateConstants(huber=False), rows=2)
    vectors = tuple(np.random.default_rng(0).random((4, layout.num_parameters), np.float32))
    batch = random_batch(3)
    getattr(batch, field)[1, 0] = bad
    made, _, stats = updater.update(*split(vectors), batch, np.full(3, 0.1), 0)
    assert made == 1
    assert np.isfinite(stats[:, 0]).all()
    assert not np.isfinite(stats[[0, 2], 1]).all()
    assert all(np.isfinite(vector).all() for vector in vectors)


def test_denormals_are_flushed_inside_and_the_threads_own_mode_is_kept():
    before = current_mode()
    updater = NativeUpdater(SMALL, UpdateConstants(), rows=2)
    vectors = small_vectors()
    vectors[2][:] = 1e-39  # a moment that would decay through denormals for thousands of updates
    updater.update(*split(vectors), small_batch(), np.array([0.1]), 0)
    assert (vectors[2] == 0.0).all()
    assert current_mode() == before


def test_arrays_that_do_not_fit_are_refused():
    updater, lr = NativeUpdater(SMALL, UpdateConstants(), rows=2), np.array([0.1])
    batch = small_batch()
    with pytest.raises(ValueError, match="do not fit"):
        updater.update(*split(np.zeros((4, 3), np.float32)), batch, lr, 0)
    for field in ("obs", "action", "reward", "discount", "next_obs", "weight"):
        with pytest.raises(ValueError, match="does not fit"):
            updater.update(
                *split(small_vectors()), batch._replace(**{field: getattr(batch, field)[:, :1].copy()}), lr, 0
            )
    with pytest.raises(ValueError, match="action outside"):
        updater.update(*split(small_vectors()), batch._replace(action=np.full((1, 2), 2)), lr, 0)
    with pytest.raises(ValueError, match="does not fit"):
        updater.update(*split(small_vectors()), batch._replace(next_action_mask=np.ones((1, 1, 2), np.bool_)), lr, 0)
    with pytest.raises(TypeError):
        updater.update(*split(small_vectors()), batch._replace(reward=np.zeros((1, 2))), lr, 0)


def test_more_observations_than_planned_are_refused():
    actor = NativeActor(SMALL, 2)
    parameters = np.zeros(SMALL.num_parameters, np.float32)
    for obs in (np.zeros((3, 2), np.float32), np.zeros((1, 3), np.float32)):
        with pytest.raises(ValueError, match="do not fit"):
            actor.values(parameters, obs)
    with pytest.raises(ValueError, match="mask"):
        actor.greedy(parameters, np.zeros((1, 2), np.float32), np.ones((1, 3), np.bool_))
    with pytest.raises(ValueError, match="parameters"):
        actor.values(parameters[1:], np.zeros((1, 2), np.float32))
