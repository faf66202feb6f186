"""Snippets filled with what was recorded, and the settings of libraries, run as programs as they are printed."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

import hotloop
from hotloop.cli.arguments import settings_from_argv
from hotloop.doctor.finding import KNOBS, RULES, knob_of
from hotloop.doctor.port import port_command
from hotloop.doctor.recorder.workshop import Workshop
from hotloop.doctor.rules import load_rules
from hotloop.doctor.trace import Counts, Setup, Trace
from tests.doctor.remedy_trials import mlp
from tests.doctor.sample_trace import make_trace
from tests.doctor.test_remedies import parts_of

load_rules()
SETUP = Setup(
    env_id="CartPole-v1",
    obs_shape=(4,),
    num_actions=2,
    layers=(4, 64, 64, 2),
    lr=5e-4,
    gamma=0.98,
    target_every=500,
    replay_capacity=5_000,
)
COUNTS = Counts(env_steps=8_000, env_calls=1_000, updates=2_000, backwards=2_000, optimisers=1, batch_size=32)


def recorded(**changed: Any) -> Trace:
    """8 envs, an update of 32 rows for every fourth env step."""
    return make_trace(**{"setup": SETUP, "counts": COUNTS} | changed)


def run(rule: str, names: dict[str, Any], **changed: Any) -> dict[str, Any]:
    """The snippet that a reader of this trace sees, executed: its first part, then its loop."""
    text = RULES[rule].remedy.written(recorded(**changed))
    once, loop = parts_of(text, once=True)
    exec(once, names)
    exec(loop, names)
    return names


def transitions(count: int) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    return {
        "obs": rng.normal(size=(count, 4)).astype(np.float32),
        "final_obs": rng.normal(size=(count, 4)).astype(np.float32),
        "action": rng.integers(0, 2, count),
        "reward": np.ones(count, np.float32),
        "terminated": np.zeros(count, bool),
        "truncated": np.zeros(count, bool),
    }


NOT_OURS = r"(?<![\w.])(?!(?:0|1|255\.0)\b)\d[\d_.]*(?![\w.])"
"""Numbers that are no choice of a remedy's own."""
TAKEN_FROM_THE_PROGRAM = ("STORE001", "STORE002", "STORE006", "STORE008", "STORE009", "UPDATE006", "ENV002", "ACT001")


@pytest.mark.parametrize("code", TAKEN_FROM_THE_PROGRAM)
def test_a_value_that_was_not_recorded_is_not_printed(code: str) -> None:
    nothing = make_trace(counts=Counts(), setup=Setup(), stored=(), lines=(), sources={})
    text = RULES[code].remedy.written(nothing)
    values = [value for line in text.splitlines() for value in re.findall(NOT_OURS, line.partition("#")[0])]
    assert values == []
    assert "huber" not in text.replace('# yours: "huber" or "mse"', "")
    assert "km" not in text
    assert "argmax" not in text


def test_replay_has_the_envs_observation_discount_and_batch_of_the_program() -> None:
    text = RULES["STORE001"].remedy.written(recorded())
    assert "hotloop.Replay(5_000, obs=(4,), num_envs=8, gamma=0.98)" in text
    assert "replay.sample(32)" in text
    once, loop = parts_of(text, once=True)
    names = transitions(8)
    exec(once, names)
    store = loop.splitlines()[0]
    for _ in range(4):
        exec(store, names)
    exec(loop, names)
    assert names["batch"].obs.shape == (32, 4)
    assert np.allclose(names["batch"].discount, 0.98)


def test_rows_lie_in_an_array_of_the_programs_size() -> None:
    names = run("STORE002", {"added": 100, "batch_size": 16})
    assert names["obs"].shape == (5_000, 4)
    assert tuple(names["states"].shape) == (16, 4)


def test_the_fused_optimiser_has_the_class_and_the_rate_of_the_program() -> None:
    trace = recorded()
    trace = replace(trace, counts=replace(trace.counts, optimiser="AdamW (foreach)"))
    text = RULES["UPDATE007"].remedy.written(trace)
    names: dict[str, Any] = {"network": mlp()}
    exec(text, names)
    assert type(names["optimizer"]) is torch.optim.AdamW
    assert (names["optimizer"].defaults["lr"], names["optimizer"].defaults["fused"]) == (5e-4, True)


@pytest.mark.parametrize(
    ("own", "told"),
    [
        ("opt = optim.Adam(net.parameters(), eps=1e-2)", "opt = optim.Adam(net.parameters(), eps=1e-2, fused=True)"),
        ("self.é = Adam(list(net.parameters()),)  # é", "self.é = Adam(list(net.parameters()), fused=True)  # é"),
    ],
)
def test_the_fused_optimiser_keeps_the_arguments_of_the_programs_own_line(own: str, told: str) -> None:
    trace = recorded(made={"optimiser": "train.py:9"}, sources={"train.py:9": own})
    trace = replace(trace, counts=replace(trace.counts, optimiser="Adam"))
    assert RULES["UPDATE007"].remedy.written(trace) == told


@pytest.mark.parametrize("own", ["optimizer = optim.Adam(", "agent = Agent(net)", "optimizer = optim.Adam(**settings)"])
def test_where_the_line_is_no_whole_call_the_reader_keeps_his_arguments(own: str) -> None:
    trace = recorded(made={"optimiser": "train.py:9"}, sources={"train.py:9": own})
    text = RULES["UPDATE007"].remedy.written(replace(trace, counts=replace(trace.counts, optimiser="Adam")))
    assert text.endswith("lr=0.0005, fused=True)  # and your other arguments")


def test_the_learner_has_the_rate_and_the_target_of_the_program() -> None:
    text = RULES["UPDATE006"].remedy.written(recorded())
    assert "learning_rate=0.0005" in text
    assert "target_every=500" in text
    assert "obs [32, 4]" in text
    fields = transitions(32)
    batch = {name: fields[name] for name in ("obs", "action", "reward")}
    batch |= {"next_obs": fields["final_obs"], "discount": np.full(32, 0.98, np.float32)}
    network = mlp()
    before = torch.nn.utils.parameters_to_vector(network.parameters()).detach().clone()
    names = run("UPDATE006", {"network": network, "batch": batch})
    assert names["learner"].updates == 1
    assert not torch.equal(torch.nn.utils.parameters_to_vector(network.parameters()), before)


class ActorCritic(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.actor, self.critic = mlp(), torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.Linear(16, 1))

    def forward(self, obs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return self.actor(obs), self.critic(obs)


def test_a_policy_that_learns_from_rollouts_is_offered_the_learner_of_policies() -> None:
    """16 env calls of 8 envs, then 8 updates of 32 rows: a Q-learner would compute something else."""
    counts = Counts(env_steps=1280, env_calls=160, updates=80, backwards=80, update_bursts=10, batch_size=32)
    assert "QLearner" in RULES["UPDATE006"].remedy.written(recorded(counts=counts)), "it moves a target network"
    setup = replace(SETUP, target_every=0)
    text = RULES["UPDATE006"].remedy.written(recorded(counts=counts, setup=setup))
    assert "QLearner" not in text
    assert "hotloop.Rollout(num_steps=16, num_envs=8, obs=(4,), num_actions=2)" in text
    assert port_command(recorded(counts=counts, setup=setup)) == ""
    once, loop = parts_of(text, once=True)
    envs = hotloop.vector("cartpole", num_envs=8)
    names: dict[str, Any] = {"network": ActorCritic(), "envs": envs, "obs": envs.reset()[0]}
    exec(once, names)
    for _ in range(16):
        exec(loop, names)
    assert names["stats"].updates == 16  # four epochs of 128 rows in minibatches of 32


def test_the_batched_env_is_the_programs_where_we_have_it() -> None:
    names = run("ENV005", {"action": np.zeros(8, np.int64)})
    assert names["obs"].shape == (8, 4)


def test_ones_own_env_becomes_arrays() -> None:
    envs = [SimpleNamespace(state=np.arange(4.0)) for _ in range(8)]
    own = Setup(env_class="__main__.Own")

    def step_all(state: Any, action: Any) -> Any:
        return state + action[:, None], state[:, 0], state[:, 1] > 3

    given = {"envs": envs, "action": np.ones(8), "state_of": lambda env: env.state, "step_all": step_all}
    names = run("ENV005", given, setup=own)
    assert names["state"].shape == (8, 4)
    assert names["reward"].shape == names["terminated"].shape == (8,)
    assert "0.98" not in RULES["ENV005"].remedy.written(recorded(setup=own))


def test_the_same_training_is_a_command_that_hotloop_takes() -> None:
    words = shlex.split(port_command(recorded()))
    assert words[:3] == ["hotloop", "train", "dqn"]
    settings = settings_from_argv(words[2], words[3:])
    assert (settings.env.id, settings.env.num_envs, settings.batch_size) == ("CartPole-v1", 8, 32)
    assert (settings.optimizer.learning_rate, settings.gamma, settings.target.every) == (5e-4, 0.98, 500)
    assert tuple(settings.network.hidden) == (64, 64)


def test_the_envs_of_evaluation_are_not_in_the_command() -> None:
    """Ten envs train, a hundred play episodes for an evaluation: the command has ten."""
    both = {"env_calls": 300, "env_steps": 12_000, "main_env_calls": 200, "main_env_steps": 2_000}
    words = shlex.split(port_command(recorded(counts=replace(COUNTS, **both, updates=200, backwards=200))))
    assert words[words.index("--env.num-envs") + 1] == "10"
    assert words[words.index("--updates-per-env-step") + 1] == "1/10"


LIBRARY = {"DQN": "CartPole-v1", "PPO": "CartPole-v1", "SAC": "Pendulum-v1"}


@pytest.mark.parametrize("algorithm", LIBRARY)
@pytest.mark.parametrize("rule", sorted({knob.rule for knob in KNOBS}))
def test_the_setting_of_a_library_is_one_that_it_takes(rule: str, algorithm: str) -> None:
    pytest.importorskip("stable_baselines3")
    setup = Setup(library="stable_baselines3", algorithm=algorithm, env_id=LIBRARY[algorithm])
    knob = knob_of(recorded(setup=setup), rule)
    if knob is None:
        assert (rule, algorithm) in {("UPDATE005", "PPO"), *(("UPDATE018", name) for name in LIBRARY)}
        return
    line = f'model = {algorithm}("MlpPolicy", "{LIBRARY[algorithm]}")'
    with_line = recorded(setup=setup, made={"algorithm": "train.py:3"}, sources={"train.py:3": line})
    for text in (knob.remedy.after, knob.remedy.written(with_line)):
        names: dict[str, Any] = {}
        exec(text, names)
        assert {"model", "env", "callback"} & names.keys() or rule == "UPDATE011"
        if rule == "UPDATE007":
            model = names["model"]
            assert getattr(model, "actor", model.policy).optimizer.defaults["fused"]


@pytest.mark.parametrize("line", ["", 'agent = DQN("MlpPolicy", "CartPole-v1")', "agent = DQN("])
def test_accelerate_stands_below_the_programs_own_line(line: str) -> None:
    sb3 = pytest.importorskip("stable_baselines3")
    trace = recorded(made={"algorithm": "train.py:3"}, sources={"train.py:3": line})
    names: dict[str, Any] = {"DQN": sb3.DQN, "model": sb3.DQN("MlpPolicy", "CartPole-v1")}
    exec(RULES["UPDATE018"].remedy.written(trace), names)
    from hotloop.adapters.sb3 import report

    assert "train" in report(names["agent" if line.endswith(")") else "model"]).fast


def test_evaluation_is_asked_for_a_fifth_as_often_as_the_program_does() -> None:
    setup = Setup(library="stable_baselines3", algorithm="PPO", env_id="Acrobot-v1", eval_freq=200, n_eval_episodes=5)
    knob = knob_of(recorded(setup=setup), "LOG003")
    assert knob is not None
    asked = 'EvalCallback(gymnasium.make("Acrobot-v1"), eval_freq=1000, n_eval_episodes=5)'
    assert asked in knob.remedy.written(recorded(setup=setup))


def test_the_zoos_setting_names_a_callback_that_accelerates() -> None:
    sb3 = pytest.importorskip("stable_baselines3")
    from hotloop.adapters import sb3 as ours

    knob = knob_of(recorded(setup=Setup(library="rl_zoo3", algorithm="DQN")), "UPDATE018")
    assert knob is not None
    name = knob.remedy.after.split("'")[1]
    module, _, kind = name.rpartition(".")
    assert module == ours.__name__
    model = sb3.DQN("MlpPolicy", "CartPole-v1", learning_starts=20, seed=0)
    model.learn(60, getattr(ours, kind)())
    before = sb3.DQN("MlpPolicy", "CartPole-v1", learning_starts=20, seed=0)
    ours.accelerate(before, verbose=False).learn(60)
    assert "train" in ours.report(model).fast
    for one, other in zip(model.policy.parameters(), before.policy.parameters(), strict=True):
        assert torch.equal(one, other)  # as if it had been accelerated when it was made


def test_an_optimiser_that_a_library_made_is_fused_after_the_fact() -> None:
    maker = {"optimiser": ("skrl", "skrl/dqn.py:120")}
    source = {"skrl/dqn.py:120": "self.optimizer = torch.optim.Adam(self.q.parameters())"}
    setup = replace(SETUP, library="skrl")
    trace = recorded(setup=setup, makers=maker, sources=source, made={"optimiser": "train.py:9"})
    knob = knob_of(trace, "UPDATE007")
    assert knob is not None
    text = knob.remedy.written(trace)
    assert "# skrl/dqn.py:120 makes it: self.optimizer = " in text
    networks = [mlp(), mlp()]
    networks[1].load_state_dict(networks[0].state_dict())
    agents = [SimpleNamespace(optimizer=torch.optim.Adam(one.parameters(), lr=1e-2)) for one in networks]
    exec(text, {"agent": agents[0]})
    for _ in range(3):
        for network, agent in zip(networks, agents, strict=True):
            agent.optimizer.zero_grad()
            network(torch.ones(5, 4)).square().sum().backward()
            agent.optimizer.step()
    assert agents[0].optimizer.param_groups[0]["fused"]
    for one, other in zip(*(network.parameters() for network in networks), strict=True):
        assert torch.allclose(one, other, atol=1e-6)


def test_a_finding_names_the_line_where_the_library_was_told() -> None:
    """`model.learn(...)` holds all the time; `SAC(...)` is the line to edit."""
    source = 'model = SAC("MlpPolicy", "Pendulum-v1")'
    setup = Setup(library="stable_baselines3", algorithm="SAC", env_id="Pendulum-v1")
    trace = recorded(
        setup=setup,
        counts=Counts(env_steps=500, env_calls=500, updates=500, optimiser="Adam", parameter_tensors=21),
        made={"algorithm": "sac.py:4", "optimiser": "sac.py:4"},
        sources={"sac.py:4": source},
    )
    found = RULES["UPDATE007"].find(trace)
    assert found is not None
    assert (found.where, found.before) == ("sac.py:4", source)
    assert "optimizer_kwargs=dict(fused=True)" in found.after
    assert 'SAC("MlpPolicy", "Pendulum-v1"' in found.after


@pytest.mark.parametrize(
    ("copied_at", "every"),
    [
        ([100, 600, 1100, 1601], 500),  # begun within an interval; once an update late
        ([0, 0, 250, 250, 500, 500], 250),  # two targets, moved together
        ([7], None),  # one copy tells no interval
        ([1, 2, 3, 4], None),  # in every update: not a target's
    ],
)
def test_the_targets_interval_is_what_lies_between_two_copies(copied_at: list[int], every: int | None) -> None:
    assert Workshop(SimpleNamespace(copied_at=copied_at))._target().get("target_every") == every
