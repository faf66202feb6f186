"""The same training as a command of ours, with the sizes and settings that were recorded.

Where the program is one that `hotloop train` can run, a multilayer network on a Gymnasium env, it is offered once,
below the findings.
"""

from __future__ import annotations

from hotloop.doctor.trace import Trace

DQN, PPO = "dqn", "ppo"
ACTIVATIONS = ("relu", "tanh", "selu", "leaky_relu")
LEAST_UPDATES_PER_CALL = 0.04
"""Fewer come from rollouts, not from replay."""


def port_command(trace: Trace) -> str:
    """`hotloop train dqn --env.id CartPole-v1 ...`, or nothing where it would not be the same kind of training."""
    setup, family = trace.setup, family_of(trace)
    if not family or not setup.env_id or len(setup.layers) < 3:
        return ""
    words = ["hotloop train", family, f"--env.id {setup.env_id}", *_envs(trace)]
    words.append("--network.hidden " + " ".join(map(str, _hidden(trace))))
    if setup.activation in ACTIVATIONS and setup.activation != "relu":
        words.append(f"--network.activation {setup.activation}")
    words += _dqn(trace) if family == DQN else []
    words += [f"--optimizer.learning-rate {setup.lr:g}"] if setup.lr else []
    words += [f"--gamma {setup.gamma:g}"] if setup.gamma else []
    return " ".join(words)


def family_of(trace: Trace) -> str:
    """By the library's name for it, or by what a DQN does: one optimizer, an update every few env calls, one value for
    each of the actions."""
    setup, counts = trace.setup, trace.counts
    if setup.algorithm:
        return {"DQN": DQN, "PPO": PPO}.get(setup.algorithm, "")
    replayed = counts.updates >= LEAST_UPDATES_PER_CALL * max(1, counts.env_calls) and not trace.learns_from_rollouts
    valued = bool(setup.layers) and setup.num_actions > 0 and setup.layers[-1] == setup.num_actions
    return DQN if valued and replayed and counts.optimisers <= 1 and counts.backwards == counts.updates else ""


def _hidden(trace: Trace) -> tuple[int, ...]:
    """Without the head, where there is one: a policy may call its body and its heads apart, and then the body is
    seen."""
    layers = tuple(trace.setup.layers)
    return layers[1:-1] if layers[-1] in (1, trace.setup.num_actions) else layers[1:]


def _envs(trace: Trace) -> list[str]:
    num_envs = envs_of(trace)
    return [f"--env.num-envs {num_envs}"] if num_envs > 1 else []


def envs_of(trace: Trace) -> int:
    """Stepped together, or one after another by the program itself."""
    counts = trace.counts
    together = counts.main_env_steps / counts.main_env_calls if counts.main_env_calls else trace.envs_at_once
    return max(1, round(together), trace.envs_in_turn)


def _dqn(trace: Trace) -> list[str]:
    counts, setup = trace.counts, trace.setup
    stepped = counts.main_env_steps if trace.envs_in_turn < 2 else 0  # those of others do not train
    ratio = counts.updates / max(1, stepped or counts.env_steps)
    words = [f"--updates-per-env-step {_fraction(ratio)}"]
    words += [f"--batch-size {counts.batch_size}"] if counts.batch_size else []
    words += [f"--replay.buffer-size {setup.replay_capacity}"] if setup.replay_capacity else []
    return words + ([f"--target.every {setup.target_every}"] if setup.target_every else [])


def _fraction(ratio: float) -> str:
    """Of updates per env step: whole numbers and their inverses, which programs are written with."""
    return f"{round(ratio)}" if ratio >= 0.75 else f"1/{round(1 / max(ratio, 1e-6))}"
