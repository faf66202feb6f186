"""Stable-Baselines3 in place: what `hotloop.adapters.sb3.accelerate` would gain."""

from __future__ import annotations

import ast

from hotloop.doctor.finding import KNOBS, TO_ROUNDING, Finding, Knob, Remedy, rule
from hotloop.doctor.rules.evidence import number, own_microseconds
from hotloop.doctor.rules.updating import arithmetic_microseconds
from hotloop.doctor.trace import ACT, ENV, EVALUATE, OTHER, SAMPLE, STORE, STORE_AND_SAMPLE, UPDATE, Trace
from hotloop.render.numbers import percent

SB3, ZOO, ALGORITHM = "stable_baselines3", "rl_zoo3", "algorithm"
UPDATE_CALL, PRODUCTS = 25.0, 0.5
"""Microseconds of a native update besides its products (DQN 44, PPO 26 in all), and its products over what PyTorch's
take (SAC 0.45, TD3 0.46 at 256 and 400-300 units): gradients that nobody uses are not computed."""
LEAST_PRODUCTS = 0.3
"""Of an update: from here on the gain is not in the calls alone, and that is said."""
ACTING, ACTING_DQN, STORING = 15.0, 6.0, 5.0
"""Microseconds per env call afterwards: 6 for DQN to 33 for SAC; 4."""
COPIES, COPIES_DQN, LEAST_LEFT = 25.0, 35.0, 0.4
"""Microseconds per env call that `DummyVecEnv` and the loop around it lose at most, and what is left at least: measured
are 30 to 38 of DQN's and PPO's 51 to 80."""
EVALUATING, EVALUATING_PPO = 0.3, 0.66
"""What is left of an evaluation, which asks the same model: of 87 microseconds an env step 20 for DQN on CartPole, of
168 49 for SAC on Pendulum, of 138 91 for PPO on CartPole."""
LEAST_GAIN = 1.2


def accelerate_snippet(trace: Trace, where: str = "") -> str:
    """The program's own line, and the one to write below it."""
    line = trace.sources.get(trace.made.get(ALGORITHM, ""), "").strip()
    name = _assigned(line)
    below = f"{line}\naccelerate({name})" if name else "accelerate(model)  # once it is made, before it learns"
    return f"from hotloop.adapters.sb3 import accelerate\n\n{below}"


def _assigned(line: str) -> str:
    """The name that a line of code gives a value to; nothing where it is no whole statement or does anything else."""
    try:
        (statement,) = ast.parse(line).body
    except (SyntaxError, ValueError):
        return ""
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    return target.id if isinstance(target, ast.Name) else ""


ACCELERATE = Remedy(
    "Let machine code act and learn for the same model, in place: `accelerate` keeps its API, callbacks, draws and "
    "files. hotloop must be installed where the program runs.",
    'from stable_baselines3 import DQN\n\nmodel = DQN("MlpPolicy", "CartPole-v1", seed=1)',
    "from stable_baselines3 import DQN\n\nfrom hotloop.adapters.sb3 import accelerate\n\n"
    'model = DQN("MlpPolicy", "CartPole-v1", seed=1)\naccelerate(model)',
    fill=accelerate_snippet,
    takes_over=True,
)
IN_ZOO = Remedy(
    "rl_zoo3 makes the model, so the line is not yours; its hyperparameters take a callback that makes the model fast "
    "in place before it learns. In its yaml file it is `callback`.",
    "python -m rl_zoo3.train --algo dqn --env CartPole-v1",
    "--hyperparams \"callback:'hotloop.adapters.sb3.AccelerateCallback'\"",
    takes_over=True,
)


@rule("UPDATE018", remedy=ACCELERATE, kind=TO_ROUNDING)
def stable_baselines_by_calls(trace: Trace) -> Finding | None:
    """Stable-Baselines3 acts and learns call by call.

    An update of a small network is a few microseconds of arithmetic in half a millisecond of Python and PyTorch; acting
    checks, copies and switches modes for each action. Found for its DQN, PPO, SAC, TD3 and DDPG with a multilayer
    policy on a CPU. What is promised is the whole loop: update, acting, storing and the vector env.
    """
    setup, counts = trace.setup, trace.counts
    if not setup.accelerates or not counts.updates or not counts.env_calls or trace.loop_seconds <= 0:
        return None
    now = own_microseconds(trace, 1.0, counts.env_calls)
    then = accelerated_microseconds(trace)
    if now < LEAST_GAIN * then:
        return None
    share = trace.share(UPDATE, SAMPLE, STORE, STORE_AND_SAMPLE, ACT, EVALUATE)
    evidence = (
        f"an env call takes {number(now)} microseconds with its share of updates, {percent(trace.share(UPDATE))} of it "
        f"updates and {percent(trace.share(ACT))} acting; accelerated about {number(then)}."
    )
    if products_microseconds(trace) > LEAST_PRODUCTS * own_microseconds(trace, trace.share(UPDATE), counts.updates):
        evidence += " Much of an update is matrix products, which take about half as long in machine code."
    where = trace.made.get(ALGORITHM, "")
    return Finding(share=share, evidence=evidence, where=where, expected_gain=now / then)


def accelerated_microseconds(trace: Trace) -> float:
    """Per env call, once the model is accelerated."""
    counts, calls = trace.counts, trace.counts.env_calls

    def per_call(*phases: str) -> float:
        return own_microseconds(trace, trace.share(*phases), calls)

    around, is_dqn = per_call(ENV, OTHER), trace.setup.algorithm == "DQN"
    around = max(LEAST_LEFT * around, around - (COPIES_DQN if is_dqn else COPIES))
    acting = min(ACTING_DQN if is_dqn else ACTING, per_call(ACT)) + min(STORING, per_call(STORE, STORE_AND_SAMPLE))
    replaced = per_call(UPDATE, SAMPLE, STORE, STORE_AND_SAMPLE, ACT, ENV, OTHER)
    evaluating = EVALUATING_PPO if trace.setup.algorithm == "PPO" else EVALUATING
    rest = own_microseconds(trace, 1.0, calls) - replaced - (1 - evaluating) * per_call(EVALUATE)
    return rest + around + acting + counts.updates / calls * (UPDATE_CALL + PRODUCTS * products_microseconds(trace))


def products_microseconds(trace: Trace) -> float:
    """Of one update, as PyTorch makes them on one core; by the counts of parameters and rows where they were not
    counted."""
    counted = trace.counted
    if counted.update_operations and counted.matrix_speed:
        return 1e6 * counted.update_operations / counted.matrix_speed
    return arithmetic_microseconds(trace)


KNOBS += [Knob(ZOO, "UPDATE018", ALGORITHM, IN_ZOO)]
