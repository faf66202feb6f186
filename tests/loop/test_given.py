"""Envs and networks that are Python objects: trained on, named in the run, and needed again."""

import gymnasium
import numpy as np
import pytest

import hotloop
from hotloop.algos.registry import settings_of
from hotloop.cli.main import main
from hotloop.core import given
from hotloop.core.errors import HotloopError, RunError, SettingsError
from hotloop.runs.directory import Run

SMALL = {
    "total_env_steps": 400,
    "log_every": 100,
    "env": {"num_envs": 2},
    "network": {"hidden": [8]},
    "evaluation": {"episodes": 1, "final_episodes": 2},
    "checkpoint": {"every": 200},
}
FAMILIES = {"dqn": {"warmup_env_steps": 100}, "ppo": {"rollout_steps": 50, "batch_size": 50}}


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
    assert "hotloop.resume(run, env=...)" in told.value.hint
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
