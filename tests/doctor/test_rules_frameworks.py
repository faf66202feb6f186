"""Rules on Keras, TensorFlow, JAX, devices and workers, on traces made by hand."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from hotloop.doctor.finding import expected_gain
from hotloop.doctor.hottest import unexplained
from hotloop.doctor.recorder.remarks import Remarks
from hotloop.doctor.recorder.watch import Watch
from hotloop.doctor.trace import Counts, Mention
from tests.doctor.rule_traces import call, found, judge, line, made, stack

OWN = "train (train.py:30)"
PREDICT = "TensorFlowTrainer.predict (keras/src/backend/tensorflow/trainer.py:522)"
FIT = "TensorFlowTrainer.fit (keras/src/backend/tensorflow/trainer.py:315)"
EAGER = ("Dense.call (keras/src/layers/core/dense.py:140)", "mat_mul (tensorflow/python/ops/gen_math_ops.py:6209)")
COMPILED = (
    "Function.__call__ (tensorflow/python/eager/polymorphic_function/polymorphic_function.py:833)",
    "quick_execute (tensorflow/python/eager/execute.py:53)",
)
BOUND = ("dot (jax/_src/numpy/tensor_contractions.py:150)", "Primitive.bind (jax/_src/core.py:500)")


def test_predict_on_a_row_is_found_where_the_user_calls_it() -> None:
    """200 calls of 40 milliseconds; a call of a batch takes 0.3, so that nine of ten seconds become a hundredth."""
    counts = Counts(env_steps=200, env_calls=200, act_forwards=200, act_rows=200)
    trace = made({"act": 8.0}, stacks=[stack(8.0, "act", OWN, PREDICT)], lines=[line(30, 8.0, "act")], counts=counts)
    finding = found("ACT003", trace)
    assert (finding.where, finding.share) == ("train.py:30", pytest.approx(0.8))
    assert "40,000 microseconds" in finding.evidence
    assert finding.expected_gain > 4.5


def test_predict_on_a_data_set_is_what_it_is_for() -> None:
    counts = Counts(env_steps=200, env_calls=200, act_forwards=20, act_rows=20_000)
    assert judge("ACT003", made({"act": 8.0}, stacks=[stack(8.0, "act", OWN, PREDICT)], counts=counts)) is None


def test_fit_for_every_update_is_found_and_fit_now_and_then_is_not() -> None:
    stacks, lines = [stack(6.0, "update", OWN, FIT)], [line(30, 6.0, "update")]
    often = Counts(env_steps=200, env_calls=200, updates=150, batch_size=32)
    finding = found("UPDATE015", made({"update": 6.0}, stacks=stacks, lines=lines, counts=often))
    assert finding.where == "train.py:30"
    assert finding.after.endswith("\nmodel.train_on_batch(obs, target)")
    seldom = Counts(env_steps=20_000, env_calls=20_000, updates=20, batch_size=32)
    assert judge("UPDATE015", made({"update": 6.0}, stacks=stacks, lines=lines, counts=seldom)) is None


def test_single_operations_of_tensorflow_are_found_and_compiled_ones_are_not() -> None:
    lines = [line(30, 6.0, "update")]
    eager = made({"update": 6.0}, stacks=[stack(6.0, "update", OWN, *EAGER)], lines=lines)
    assert found("UPDATE016", eager).where == "train.py:30"
    compiled = made({"update": 6.0}, stacks=[stack(6.0, "update", OWN, *COMPILED)], lines=lines)
    assert judge("UPDATE016", compiled) is None
    predicted = made({"act": 6.0}, stacks=[stack(6.0, "act", OWN, PREDICT, *EAGER)], lines=lines)
    assert judge("UPDATE016", predicted) is None  # ACT003's


def test_jax_that_dispatches_is_found_and_jax_that_compiles_is_not() -> None:
    lines = [line(30, 6.0, "other")]
    assert found("UPDATE017", made(stacks=[stack(6.0, "other", OWN, *BOUND)], lines=lines)).where == "train.py:30"
    compiling = (*BOUND, "backend_compile (jax/_src/compiler.py:300)")
    assert judge("UPDATE017", made(stacks=[stack(6.0, "other", OWN, *compiling)], lines=lines)) is None
    waiting = ("ArrayImpl.__float__ (jax/_src/array.py:300)", "ArrayImpl._value (jax/_src/array.py:600)")
    assert judge("UPDATE017", made(stacks=[stack(6.0, "other", OWN, *waiting)], lines=lines)) is None
    reading = ("_item (jax/_src/numpy/array_methods.py:275)", "concrete_or_error (jax/_src/core.py:1976)")
    assert judge("UPDATE017", made(stacks=[stack(6.0, "other", OWN, *reading)], lines=lines)) is None
    library = made(stacks=[stack(6.0, "other", OWN, *BOUND)], lines=lines, beneath=(line(30, 6.0, "other"),))
    assert judge("UPDATE017", library) is None, "what a library runs is not the program's to compile"


def test_what_jax_compiles_at_first_does_not_hide_what_it_dispatches_later() -> None:
    """Three of ten seconds do not come again, and six of the other seven are dispatching: 50 ms a step."""
    compiling = (*BOUND, "backend_compile (jax/_src/compiler.py:300)")
    stacks = [stack(6.0, "other", OWN, *BOUND), stack(3.0, "other", OWN, *compiling)]
    counts = Counts(env_steps=120, env_calls=120)
    finding = found("UPDATE017", made(stacks=stacks, lines=[line(30, 9.0, "other")], counts=counts))
    assert finding.share == pytest.approx(6 / 7)
    assert finding.expected_gain == pytest.approx(expected_gain(6 / 7, 120.0))
    assert "of the loop, compiling apart, is spent" in finding.evidence
    waiting = stack(0.7, "other", OWN, "ArrayImpl._value (jax/_src/array.py:600)")
    finding = found("UPDATE017", made(stacks=[*stacks, waiting], lines=[line(30, 9.7, "other")], counts=counts))
    assert finding.share == pytest.approx(6.7 / 7), "what single operations are waited for goes with them"


def test_functions_that_jax_calls_back_are_part_of_the_finding() -> None:
    """`value_and_grad(loss)(...)` on line 30 calls the network on line 8: both are told, and nothing is unexplained."""
    lines = [line(30, 3.0, "other", function="train"), line(8, 4.0, "other", function="Net.__call__")]
    stacks = [
        stack(3.0, "other", OWN, *BOUND),
        stack(4.0, "other", OWN, "grad (jax/_src/api.py:5)", "Net.__call__ (train.py:8)", *BOUND),
    ]
    trace = made(stacks=stacks, lines=lines)
    finding = found("UPDATE017", trace)
    assert (finding.where, finding.lines) == ("train.py:30", ("train.py:8",))
    assert unexplained(trace, [finding]) == []


ON_DEVICE = Counts(
    env_steps=1000, env_calls=1000, updates=1000, parameters=4_610, parameter_tensors=6, batch_size=32, device="cuda"
)


def test_a_small_network_on_a_device_is_found() -> None:
    """An update of 2 milliseconds, where a CPU takes half a one."""
    mentions = (Mention(name="device", where="train.py:5"),)
    finding = found("MACHINE007", made({"update": 2.0, "act": 4.0}, counts=ON_DEVICE, mentions=mentions))
    assert finding.where == "train.py:5"
    assert "4,610 parameters are on `cuda`" in finding.evidence
    assert finding.expected_gain == pytest.approx(1 / (0.4 + 0.6 / 4.0), rel=0.01)
    two = Counts(**{**vars(ON_DEVICE), "optimiser_steps": 2000})  # an actor's and a critic's: 1 millisecond on a CPU
    finding = found("MACHINE007", made({"update": 2.0, "act": 4.0}, counts=two, mentions=mentions))
    assert finding.expected_gain == pytest.approx(1 / (0.4 + 0.6 / 2.0), rel=0.01)


@pytest.mark.parametrize(
    "changed", [{"device": "cpu"}, {"device": ""}, {"parameters": 30_000_000}, {"updates": 100_000}]
)
def test_what_belongs_on_a_device_stays_there(changed: dict[str, object]) -> None:
    """On the CPU already; large; or faster than a CPU would be."""
    counts = Counts(**{**vars(ON_DEVICE), **changed})
    assert judge("MACHINE007", made({"update": 2.0, "act": 4.0}, counts=counts)) is None


def test_copies_by_the_row_are_counted_with_their_bytes() -> None:
    """100 env calls in the counting run: 16 copies each; obs there and actions back are two."""
    many = [call("copied:to device", 12, "act", 1600, largest=16)]
    finding = found("SYNC003", made({"act": 5.0}, calls=many, lines=[line(12, 4.0, "act")]))
    assert finding.where == "train.py:12"
    assert "16 copies" in finding.evidence
    few = [call("copied:to device", 12, "act", 100, largest=16), call("copied:to host", 13, "act", 100, largest=8)]
    assert judge("SYNC003", made({"act": 5.0}, calls=few, lines=[line(12, 4.0, "act")])) is None


def test_tensors_made_on_the_device_are_copies_too() -> None:
    calls = [call("torch.tensor", 12, "act", 800)]
    lines = [line(12, 4.0, "act", "x = torch.tensor(row, device=device)")]
    assert found("SYNC003", made({"act": 5.0}, calls=calls, lines=lines, counts=ON_DEVICE)).where == "train.py:12"
    assert judge("SYNC003", made({"act": 5.0}, calls=calls, lines=lines)) is None  # the device is the CPU


WORKERS = Counts(env_steps=16_000, env_calls=1_000, workers=16, worker_seconds=2.4)


def test_more_workers_than_cores_cost_their_messages() -> None:
    """16,000 answers in 2.4 seconds: 150 microseconds each, 30 of them for the message; 14 of 16 messages go."""
    mentions = (Mention(name="AsyncVectorEnv", where="train.py:8"),)
    finding = found("MACHINE008", made({"wait": 8.0}, counts=WORKERS, mentions=mentions))
    assert finding.where == "train.py:8"
    saved = 16_000 * 30e-6 * 14 / 16
    assert finding.expected_gain == pytest.approx(1 / (0.2 + 0.8 * (2.4 - saved) / 2.4))


@pytest.mark.parametrize("changed", [{"workers": 2}, {"worker_seconds": 2.0}])
def test_a_worker_for_each_core_and_cheap_envs_are_no_crowd(changed: dict[str, object]) -> None:
    """Cheap envs are MACHINE003's: they belong in this process."""
    assert judge("MACHINE008", made({"wait": 8.0}, counts=Counts(**{**vars(WORKERS), **changed}))) is None


def test_a_program_that_uses_ray_is_told_what_cannot_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", ModuleType("ray"))
    remarks = Remarks()
    remarks.watch = Watch(1.0, None)
    trace: dict[str, list[str]] = {"notes": []}
    remarks.add_to(trace)
    assert [note.startswith("Ray runs envs and learners in processes of its own") for note in trace["notes"]] == [True]
