"""Envs and networks that are Python objects: trained on, named in the run, and needed again."""

import gymnasium
import numpy as np
import pytest
from torch import nn

import hotloop
from hotloop.cli.main import main
from hotloop.core import given
from hotloop.core.errors import HotloopError, RunError, SettingsError
from hotloop.presets.registry import settings_of
from hotloop.runs.directory import Run

SMALL = {
    "total_env_steps": 400,
    "log_every": 100,
    "env": {"num_envs": 2},
    "network": {"hidden": [8]},
    "evaluation": {"episodes": 1, "final_episodes": 2},
    "checkpoint": {"every": 200},
}
FAMILIES = {"dqn": {"learning_starts": 100}, "ppo": {"rollout_steps": 50, "batch_size": 50}}


class Corridor(gymnasium.Env):
    """Right is the way out."""

    observation_space = gymnasium.spaces.Box(0.0, 1.0, (3,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, length: int = 5) -> None:
        self.length = length

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.clock = 0, 0
        return self._obs(), {}

    def step(self, action):
        self.place, self.clock = max(0, self.place + 2 * int(action) - 1), self.clock + 1
        out = self.place >= self.length
        return self._obs(), 1.0 if out else -0.1, out, self.clock >= 20, {}

    def _obs(self):
        return np.array([self.place / self.length, self.clock / 20, 1.0], np.float32)


def small(family, folder, **more):
    return hotloop.preset(f"cartpole-{family}", run_dir=str(folder), **{**SMALL, **FAMILIES[family], **more})


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("env", [Corridor, lambda: Corridor(4)], ids=["class", "lambda"])
def test_an_env_of_this_process_is_trained_on_and_given_again(family, env, tmp_path):
    whole = hotloop.train(small(family, tmp_path / "whole"), env=env, verbose=False)
    for row in hotloop.iterate(small(family, tmp_path / "run"), env=env):
        if row["env_steps"] == 200:
            break
    given._objects.clear()  # as in another process
    with pytest.raises(RunError, match="was given as a Python object") as told:
        hotloop.resume(tmp_path / "run", verbose=False)
    assert "`env=...`" in told.value.hint
    assert hotloop.resume(tmp_path / "run", env=env, verbose=False)["digest"] == whole["digest"]
    assert hotloop.load(tmp_path / "run").act(np.zeros(3, np.float32)) in (0, 1)
    assert hotloop.evaluate(tmp_path / "run", env=env, episodes=2)["episodes"] == 2


def test_a_run_of_such_an_env_stays_in_its_process(tmp_path, capsys):
    apart = small("dqn", tmp_path / "workers", env={"workers": 1, "num_envs": 2})
    with pytest.raises(SettingsError, match=r"env\.workers"):
        hotloop.train(apart, env=Corridor, verbose=False)
    assert not (tmp_path / "workers").exists()
    hotloop.train(small("dqn", tmp_path / "run", total_env_steps=120), env=Corridor, verbose=False)
    settings = tmp_path / "settings.toml"
    settings.write_text((tmp_path / "run" / "settings.toml").read_text().replace("trust = false\n", ""))
    given._objects.clear()  # as in another process
    for words in (f"train {settings}", f"compare {settings} --seeds 2", f"evaluate {tmp_path}/run"):
        assert main(words.split()) == 2
        assert "was given as a Python object" in capsys.readouterr().err
    with pytest.raises(HotloopError, match="was given as a Python object"):
        hotloop.tune(str(settings), search=["gamma=0.9,0.99"], trials=2, storage=tmp_path / "search")


def test_what_is_given_must_be_what_it_should(tmp_path):
    with pytest.raises(HotloopError, match="made a int; expected a gymnasium.Env"):
        hotloop.train(small("dqn", tmp_path / "run"), env=lambda: 3, verbose=False)
    shared = Corridor()
    with pytest.raises(HotloopError, match="the same env twice"):
        hotloop.train(small("dqn", tmp_path / "run"), env=lambda: shared, verbose=False)
    assert not (tmp_path / "run").exists()
    hotloop.train(small("dqn", tmp_path / "run", total_env_steps=120), verbose=False)
    with pytest.raises(SettingsError, match="the run has `cartpole`"):
        hotloop.resume(tmp_path / "run", env=Corridor)
    assert Run.open(tmp_path / "run").finished


def test_two_lambdas_are_two_envs(tmp_path):
    given._objects.clear()
    short, long = (lambda length=length: Corridor(length) for length in (3, 9))
    rows = hotloop.iterate(small("dqn", tmp_path / "long"), env=long)
    next(rows)
    inner = hotloop.train(small("dqn", tmp_path / "short"), env=short, verbose=False)  # begun later, ended earlier
    assert list(rows)[-1]["env_steps"] == 400
    assert rows.result["evaluation"] != inner["evaluation"]
    names = [settings_of(Run.open(tmp_path / name)).env.id for name in ("long", "short")]
    assert names == ["given:lambda", "given:lambda-2"]


def test_runs_end_in_the_order_in_which_they_nest(tmp_path):
    rows = [hotloop.iterate(small("dqn", tmp_path / name), env=Corridor) for name in "ab"]
    for one in rows:
        next(one)
    for what in (next, hotloop.loop.iterate.Iteration.close):
        with pytest.raises(RunError, match="begun after this one"):
            what(rows[0])
    rows[1].close()
    assert list(rows[0])[-1]["env_steps"] == 400


class Net(nn.Module):
    """A multilayer network in somebody else's writing: the head is declared first."""

    def __init__(self, outputs: int = 2) -> None:
        super().__init__()
        self.head = nn.Linear(16, outputs)
        self.body = nn.Sequential(nn.Linear(3, 16), nn.Tanh())

    def forward(self, obs):
        return self.head(self.body(obs))


class Critic(Net):
    def __init__(self) -> None:
        super().__init__()
        self.value = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 1))

    def forward(self, obs):
        return super().forward(obs), self.value(obs)


@pytest.mark.parametrize(("family", "network"), [("dqn", Net), ("ppo", Critic)])
@pytest.mark.parametrize("lane", ["eager", "native"])
def test_a_network_of_this_process_is_trained_and_given_again(family, network, lane, tmp_path):
    options = {"env": Corridor, "network": network, "verbose": False}
    whole = hotloop.train(small(family, tmp_path / "whole", learner={"lane": lane}), **options)
    assert whole["lane"] == lane
    for row in hotloop.iterate(small(family, tmp_path / "run"), env=Corridor, network=network):
        assert row.learner.choice.name == "native"  # what it is was read, not told
        if row["env_steps"] == 200:
            break
    given._objects.clear()
    with pytest.raises(RunError, match="the network `.*` was given as a Python object"):
        hotloop.resume(tmp_path / "run", env=Corridor, verbose=False)
    resumed = hotloop.resume(tmp_path / "run", **options)
    if lane == "native":
        assert resumed["digest"] == whole["digest"]
    agent = hotloop.load(tmp_path / "run", network=network)
    assert agent.act(np.zeros(3, np.float32)) in (0, 1)
    assert hotloop.evaluate(tmp_path / "run", env=Corridor, network=network, episodes=2)["episodes"] == 2


def test_a_module_that_is_given_keeps_its_own_weights_and_starts_the_run(tmp_path):
    module = Net()
    before = [parameter.detach().clone() for parameter in module.parameters()]
    settings = small("dqn", tmp_path / "run", optimizer={"learning_rate": 1e-12}, total_env_steps=200)
    hotloop.train(settings, env=Corridor, network=module, verbose=False)
    assert all((old == new).all() for old, new in zip(before, module.parameters(), strict=True))
    learned = dict(hotloop.load(tmp_path / "run", network=module).network.network.named_parameters())
    for name, parameter in module.named_parameters():
        assert (learned[name] - parameter).abs().max() < 1e-6


@pytest.mark.parametrize(
    ("network", "told"),
    [
        (lambda: 3, "made a int"),
        (lambda size: Net(size), "could not be made: TypeError"),
        (lambda: Net("two"), "could not be made: TypeError"),
        (lambda: Net(5), "answers two observations with (2, 5)"),
        (lambda: nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.1), nn.Linear(8, 2)), "Dropout"),
        (lambda: nn.Linear(4, 2), "does not take observations of shape (3,)"),
    ],
)
def test_a_network_that_does_not_fit_is_one_sentence(network, told, tmp_path):
    with pytest.raises(HotloopError) as error:
        hotloop.train(small("dqn", tmp_path / "run"), env=Corridor, network=network, verbose=False)
    assert told in error.value.message
    assert not (tmp_path / "run").exists()


def test_a_saved_agent_of_a_given_network_is_given_it_again(tmp_path):
    hotloop.train(small("dqn", tmp_path / "run", total_env_steps=200), env=Corridor, network=Net, verbose=False)
    agent = hotloop.load(tmp_path / "run", network=Net)
    path = agent.save(tmp_path / "agent")
    given._objects.clear()  # as in another process
    with pytest.raises(RunError, match="was given as a Python object"):
        hotloop.load(path)
    obs = np.random.default_rng(0).random((20, 3), np.float32)
    assert (hotloop.load(path, network=Net).act(obs) == agent.act(obs)).all()
    with pytest.raises(HotloopError) as error:
        hotloop.load(path, network=lambda: nn.Linear(3, 2))  # another one is not overlooked
    assert error.value.hint == "give the network that it was trained with"
    again = hotloop.iterate(small("dqn", tmp_path / "new"), env=Corridor, network=Net, start_from=path, verbose=False)
    assert (next(again).agent.weights() == agent.weights()).all()
    again.close()


def test_mistakes_with_train_are_told(tmp_path):
    for env, told in ((Corridor(), "is a Corridor already"), (lambda size: 3, "could not be made")):
        with pytest.raises(HotloopError, match=told):
            hotloop.train(small("dqn", tmp_path / "run"), env=env, verbose=False)
    with pytest.raises(SettingsError, match="`env` is a dict"):
        hotloop.train(hotloop.DQNSettings(env={"num_envs": 4}), verbose=False)
    hotloop.train(small("dqn", tmp_path / "run", total_env_steps=120), env="CartPole-v1", verbose=False)
    assert hotloop.load(tmp_path / "run").settings.env.id == "CartPole-v1"
    with pytest.raises(SettingsError, match="one of its own"):
        hotloop.load(tmp_path / "run", network=Net)
    with pytest.raises(SettingsError, match="no `eval` rows"):
        hotloop.history(tmp_path / "run", "eval")


@pytest.mark.parametrize("settings", [{"a": 1}, None, 7, ["cartpole-dqn"]], ids=repr)
@pytest.mark.parametrize("train", [hotloop.train, hotloop.iterate])
def test_settings_that_are_none_are_told_in_a_sentence(settings, train):
    with pytest.raises(SettingsError, match=f"`settings` is a {type(settings).__name__}; expected is a preset") as told:
        train(settings)
    assert "hotloop.preset('cartpole-dqn', batch_size=64)" in told.value.hint
