"""Keras, TensorFlow and JAX used call by call: `predict` and `fit` for a few rows, operations that nothing compiled."""

from __future__ import annotations

from collections.abc import Sequence

from hotloop.doctor.finding import TO_ROUNDING, Finding, Remedy, rule
from hotloop.doctor.rules.beneath import Patterns, is_in, lines_above, share_of, stacks_in
from hotloop.doctor.rules.evidence import (
    by_cost,
    function_at,
    microseconds_text,
    number,
    own_microseconds,
    place_of,
    sampled_share,
    suggest,
)
from hotloop.doctor.trace import ACT, ENV, UPDATE, StackCost, Trace
from hotloop.render.numbers import percent

KERAS = ("keras/*", "tf_keras/*")
PREDICT: Patterns = tuple((file, name) for file in KERAS for name in ("predict", "*.predict"))
FIT: Patterns = tuple((file, name) for file in KERAS for name in ("fit", "*.fit"))
TENSORFLOW: Patterns = (("tensorflow/*", "*"), *((file, "*") for file in KERAS))
EAGER_OPERATION: Patterns = (("tensorflow/python/ops/gen_*.py", "*"),)
"""An operation by itself; compiled functions run many without them."""
TRACING: Patterns = (("tensorflow/python/framework/func_graph.py", "*"),)
JAX_LIBRARIES = ("flax", "optax", "haiku", "equinox", "distrax", "rlax", "chex")
JAX: Patterns = (("jax/_src/*", "*"), *((f"{library}/*", "*") for library in JAX_LIBRARIES))
"""With what is written on top of it: a compiled function passes its Python by too."""
JAX_COMPILING: Patterns = (("jax/_src/compiler.py", "*"), ("jax/_src/interpreters/mlir.py", "*"))
"""Once for each operation and shape, when it is first met."""
JAX_WAITING: Patterns = (
    ("jax/_src/array.py", "*"),
    ("jax/_src/numpy/array_methods.py", "_item"),
    ("jax/_src/core.py", "concrete_or_error"),
)
"""A result is read, for which the program waits until the compiled function has made it."""
MOST_ROWS = 512
"""Rows of a `predict` or `fit` above which its machinery of batches is worth its price."""
PREDICT_MICROSECONDS, FIT_MICROSECONDS = 200.0, 550.0
"""What `predict_on_batch` and `train_on_batch` take instead, for a small model (177 and 498 on a quiet core, where
`predict` takes 30,100 and `fit` 28,900)."""
MOST_KERAS_GAINS = 150.0
LEAST_SHARE = 0.2
COMPILED_SPEEDUP = 4.0
"""A step of a small Keras model took 34 times as long without `tf.function`; steps that return to Python gain less."""
JIT_SPEEDUP, MOST_JIT_GAINS = 15.0, 120.0
JIT_MICROSECONDS = 150.0
"""What a compiled update of a small network and the choice of an action take, with their arrays going in and out: a DQN
on CartPole takes 167 microseconds per env step with all of its loop once it is compiled, 23,000 before."""
MOST_COMPILING, LEAST_TOLD = 0.5, 0.02
LEAST_EAGER = 0.3
"""Of the samples inside TensorFlow: in single operations."""

CALLED = Remedy(
    "Ask for the batch with one call: `predict` sets up a data set, a loop over batches and callbacks every time, and "
    "is meant for thousands of rows. `model(obs, training=False)` gives the same, and is what `tf.function` compiles.",
    "q = model.predict(obs, verbose=0)",
    "q = model.predict_on_batch(obs)",
)
ON_BATCH = Remedy(
    "Train on the batch with one call: `fit` sets up a loop over batches and epochs, shuffling and callbacks for every "
    "call. The same update where the batch is one (`batch_size` rows or fewer, one epoch).",
    "model.fit(obs, target, epochs=1, verbose=0)",
    "model.train_on_batch(obs, target)",
)
COMPILED = Remedy(
    "Compile the step with `tf.function`: it is traced once, and then runs as one call. Keep Python numbers that "
    "change out of its arguments: every new value is traced again; tensors of one shape are not.",
    "def step(obs, target):\n"
    "    error = tf.matmul(obs, weights) - target\n"
    "    weights.assign_sub(0.01 * tf.matmul(tf.transpose(obs), error))\n"
    "    return tf.reduce_mean(tf.square(error))\n\n\n"
    "# in the loop\n"
    "loss = float(step(tf.constant(obs), tf.constant(target)))",
    "import tensorflow as tf\n\n\n"
    "@tf.function\n"
    "def step(obs, target):\n"
    "    error = tf.matmul(obs, weights) - target\n"
    "    weights.assign_sub(0.01 * tf.matmul(tf.transpose(obs), error))\n"
    "    return tf.reduce_mean(tf.square(error))\n\n\n"
    "# in the loop\n"
    "loss = float(step(tf.constant(obs), tf.constant(target)))",
)
JITTED = Remedy(
    "Compile the whole update, and the choice of an action, with `jax.jit`: operations are dispatched one by one "
    "otherwise, and a gradient is derived anew at every call. What changes goes in as arguments and comes back as "
    "results.",
    "def step(weights, obs, target):\n"
    "    error = jnp.dot(obs, weights) - target\n"
    "    return weights - 0.01 * jnp.dot(obs.T, error)\n\n\n"
    "# in the loop\n"
    "weights = step(weights, obs, target)",
    "import jax\nimport jax.numpy as jnp\n\n\n"
    "@jax.jit\n"
    "def step(weights, obs, target):\n"
    "    error = jnp.dot(obs, weights) - target\n"
    "    return weights - 0.01 * jnp.dot(obs.T, error)\n\n\n"
    "# in the loop\n"
    "weights = step(weights, obs, target)",
)


@rule("ACT003", remedy=CALLED, kind=TO_ROUNDING, condition="the model has no layers that must see fewer rows at once")
def predicted_by_the_row(trace: Trace) -> Finding | None:
    """Keras's `predict` is called for a few rows.

    It makes a data set of its input, a loop over its batches and callbacks for it: tens of milliseconds, whatever the
    network. Found where `predict` takes a part of the loop, on no more than 512 rows at a time.
    """
    counts = trace.counts
    stacks, rows = stacks_in(trace, PREDICT), _rows(trace)
    asked = {stack.phase for stack in stacks}  # other networks may be asked elsewhere
    forwards = counts.act_forwards * (ACT in asked) + counts.update_forwards * (UPDATE in asked)
    forwards = forwards or counts.act_forwards + counts.update_forwards
    if not stacks or not forwards or rows > MOST_ROWS:
        return None
    places = lines_above(trace, stacks, PREDICT)
    share = max(share_of(trace, stacks), sampled_share(trace, places))
    took = own_microseconds(trace, share, forwards)
    evidence = (
        f"`predict` is called {number(forwards / max(1, counts.env_steps))} times per env step, on {number(rows)} rows "
        f"or so, and takes {microseconds_text(trace, share, forwards)} each time: {percent(share)} of the loop."
    )
    speedup = max(1.0, min(MOST_KERAS_GAINS, took / PREDICT_MICROSECONDS))
    return suggest(trace, share, speedup, evidence=evidence, places=places)


def _rows(trace: Trace) -> float:
    counts = trace.counts
    return max(counts.batch_size, counts.act_rows / max(1, counts.act_forwards))


@rule(
    "UPDATE015",
    remedy=ON_BATCH,
    kind=TO_ROUNDING,
    condition="the batch is one of `fit`'s, and callbacks of it are not wanted",
)
def fitted_by_the_step(trace: Trace) -> Finding | None:
    """Keras's `fit` is called for every update.

    It is made for epochs over a data set, and sets all of that up at each call: tens of milliseconds beside an update
    of one. Found where `fit` takes a part of the loop and is called for every twenty-fifth env call or more often.
    """
    counts, stacks = trace.counts, stacks_in(trace, FIT)
    if not stacks or counts.updates < 0.04 * counts.env_calls or counts.batch_size > MOST_ROWS:
        return None
    places = lines_above(trace, stacks, FIT)
    share = max(share_of(trace, stacks), sampled_share(trace, places))
    took = own_microseconds(trace, share, counts.updates)
    evidence = (
        f"`fit` is called {number(counts.updates / max(1, counts.env_steps))} times per env step and takes "
        f"{microseconds_text(trace, share, counts.updates)} each time: {percent(share)} of the loop."
    )
    speedup = max(1.0, min(MOST_KERAS_GAINS, took / FIT_MICROSECONDS))
    return suggest(trace, share, speedup, evidence=evidence, places=places)


@rule(
    "UPDATE016",
    remedy=COMPILED,
    kind=TO_ROUNDING,
    condition="the step neither prints, counts nor draws random numbers in Python",
)
def tensorflow_uncompiled(trace: Trace) -> Finding | None:
    """TensorFlow runs operation by operation.

    Outside `tf.function` every operation is a call from Python into TensorFlow and back, noted on the gradient tape:
    tens of microseconds each, for small networks more than the arithmetic by far. Found where a fifth of the loop or
    more is spent in TensorFlow and Keras, a third of that or more in single operations.
    """
    stacks = _without(stacks_in(trace, TENSORFLOW), (*PREDICT, *FIT, *TRACING))
    single = [stack for stack in stacks if any(is_in(frame, EAGER_OPERATION) for frame in stack.frames)]
    share = share_of(trace, stacks)
    if share < LEAST_SHARE or share_of(trace, single) < LEAST_EAGER * share:
        return None
    evidence = (
        f"{percent(share)} of the loop is spent in TensorFlow outside compiled functions, "
        f"{percent(share_of(trace, single))} inside single operations."
    )
    places = lines_above(trace, [stack for stack in stacks if stack.phase in (UPDATE, ACT)] or stacks, TENSORFLOW)
    return suggest(trace, share, COMPILED_SPEEDUP, evidence=evidence, places=places)


@rule("UPDATE017", remedy=JITTED, kind=TO_ROUNDING, condition="the step is a function of its arguments alone")
def jax_uncompiled(trace: Trace) -> Finding | None:
    """JAX runs operation by operation.

    Outside `jax.jit` every operation is dispatched by Python, and `jax.grad` derives the gradient again at each call:
    hundreds of microseconds where the compiled step takes ten. Found where a fifth of the loop or more is spent in
    JAX's own Python, compiling and waiting for results apart: a compiled function passes it by. What is compiled at
    first, operation by operation, counts neither for nor against: it does not come again. Where a library runs the
    loop, what to compile is not the program's to say.
    """
    if trace.beneath:
        return None
    inside = [stack for stack in stacks_in(trace, JAX) if stack.phase != ENV]
    stacks = _without(inside, (*JAX_COMPILING, *JAX_WAITING))
    compiling = share_of(trace, inside) - share_of(trace, _without(inside, JAX_COMPILING))
    share = share_of(trace, stacks) / (1 - min(MOST_COMPILING, compiling))
    if share < LEAST_SHARE:
        return None
    waited = share_of(trace, inside) - compiling - share_of(trace, stacks)
    share += waited / (1 - min(MOST_COMPILING, compiling))  # what single operations are waited for goes with them
    took = own_microseconds(trace, share_of(trace, stacks), trace.counts.env_calls)
    evidence = (
        f"{percent(share)} of the loop{', compiling apart,' if compiling > LEAST_TOLD else ''} is spent in JAX's "
        f"Python, which dispatches operations one by one ({number(took)} microseconds per call of `step`)."
    )
    speedup = max(JIT_SPEEDUP, min(MOST_JIT_GAINS, took / JIT_MICROSECONDS))
    places = _one_per_function(trace, [*lines_above(trace, stacks, JAX), *by_cost(trace, _own_lines(trace, stacks))])
    return suggest(trace, share, speedup, evidence=evidence, places=places)


def _own_lines(trace: Trace, stacks: Sequence[StackCost]) -> list[str]:
    """The user's own that JAX calls back, to derive or to trace them: they cost what it costs to dispatch them."""
    own = {line.where for line in trace.lines}
    return list(dict.fromkeys(place for stack in stacks for place in map(place_of, stack.frames) if place in own))


def _one_per_function(trace: Trace, places: Sequence[str]) -> list[str]:
    first: dict[tuple[str, str], str] = {}
    for place in places:
        first.setdefault(function_at(trace, place), place)
    return list(first.values())


def _without(stacks: Sequence[StackCost], patterns: Patterns) -> list[StackCost]:
    return [stack for stack in stacks if not any(is_in(frame, patterns) for frame in stack.frames)]
