import subprocess
import sys
from pathlib import Path

import gymnasium
import numpy as np
import pytest

from hotloop.core.errors import EnvError, MissingExtraError, SettingsError
from hotloop.core.rng import derive_seeds
from hotloop.core.types import VecEnv
from hotloop.envs.registry import list_envs, make_envs
from hotloop.presets.env_names import needs_trust
from hotloop.presets.env_settings import EnvSettings
from tests.envs import planted_envs

PLANTED = Path(planted_envs.__file__)


def make(env_id: str, num_envs: int = 2, trust: bool = True, **settings: object) -> VecEnv:
    return make_envs(EnvSettings(id=env_id, **settings), num_envs, derive_seeds(0, num_envs, "env"), trust)


@pytest.fixture
def registered():
    gymnasium.register("Planted-v0", entry_point=planted_envs.Counter)
    yield "Planted-v0"
    del gymnasium.registry["Planted-v0"]


def test_each_form_of_id_makes_envs(registered):
    for env_id in ("cartpole", "CartPole-v1", f"tests.envs.planted_envs:{registered}", f"{PLANTED}:Counter"):
        envs = make(env_id)
        obs, _ = envs.reset()
        assert len(obs) == envs.num_envs == 2
        envs.close()


def test_foreign_code_needs_trust():
    assert [needs_trust(one) for one in ("cartpole", "ALE/Pong-v5", "module:Id-v0", "x.py:Class")] == [0, 0, 1, 1]
    with pytest.raises(EnvError, match="pass `--trust`"):
        make(f"{PLANTED}:Counter", trust=False)
    make("CartPole-v1", trust=False).close()


@pytest.mark.parametrize(
    ("typo", "meant"),
    [("cartpol", "`cartpole`"), ("CartPole-v9", "`CartPole-v1`"), ("cartpole-V1", "`CartPole-v1`"), ("CartPole", "v1")],
)
def test_an_unknown_id_suggests_near_ones(typo, meant):
    with pytest.raises(EnvError) as caught:
        make(typo)
    assert meant in caught.value.hint


def test_an_unknown_namespace_suggests_naming_the_module():
    with pytest.raises(EnvError, match="module:Zork/Game-v5"):
        make("Zork/Game-v5")


def test_a_missing_dependency_names_the_extra(monkeypatch):
    def lack(*args, **kwargs):
        raise gymnasium.error.DependencyNotInstalled('Box2D is not installed, run `pip install "gymnasium[box2d]"`')

    monkeypatch.setattr(gymnasium, "make", lack)
    with pytest.raises(MissingExtraError, match=r"pip install .*\[box2d\]"):
        make("LunarLander-v3")


def test_files_and_modules_that_cannot_be_loaded_are_named(tmp_path):
    broken = tmp_path / "broken.py"
    broken.write_text("raise RuntimeError('not today')")
    with pytest.raises(EnvError, match="RuntimeError: not today"):
        make(f"{broken}:Env")
    with pytest.raises(EnvError, match="no file"):
        make(f"{tmp_path}/absent.py:Env")
    with pytest.raises(EnvError, match="Counter"):
        make(f"{PLANTED}:Countr")
    with pytest.raises(EnvError, match=r"no gymnasium\.Env"):
        make(f"{PLANTED}:Any")
    with pytest.raises(EnvError, match="no module `absent_module`"):
        make("absent_module:Id-v0")


def test_a_function_makes_an_env_with_the_options_given():
    envs = make(f"{PLANTED}:make_counter", options={"length": 2})
    envs.reset()
    assert [envs.step(np.zeros(2, np.int64)).terminated[0] for _ in range(3)] == [False, True, False]
    with pytest.raises(EnvError, match="pass `--trust`"):
        make(f"{PLANTED}:make_counter", trust=False)


@pytest.mark.parametrize(
    ("name", "words"),
    [("give_nothing", "made a NoneType; expected a gymnasium.Env"), ("give_the_same", "the same env twice")],
)
def test_a_function_that_makes_no_new_env_is_refused(name, words):
    with pytest.raises(EnvError, match=words):
        make(f"{PLANTED}:{name}")


def test_a_file_without_a_name_tells_what_it_has(tmp_path):
    (tmp_path / "maker.py").write_text("raise RuntimeError('is only read')\ndef make(): ...\ndef _helper(): ...\n")
    with pytest.raises(EnvError, match="which class") as caught:
        make(f"{tmp_path}/maker.py")
    assert caught.value.hint == f"give `{tmp_path}/maker.py:make`"


def test_a_file_may_import_its_neighbors_without_leaving_a_trace_on_the_path(tmp_path):
    (tmp_path / "neighbor_of_env.py").write_text("LENGTH = 3\n")
    (tmp_path / "mine.py").write_text(
        "from neighbor_of_env import LENGTH\n"
        "from tests.envs.planted_envs import Counter\n"
        "class Mine(Counter):\n"
        "    def __init__(self):\n"
        "        super().__init__(LENGTH)\n"
    )
    before = list(sys.path)
    envs = make(f"{tmp_path}/mine.py:Mine")
    envs.reset()
    assert [envs.step(np.zeros(2, np.int64)).terminated[0] for _ in range(3)] == [False, False, True]
    assert sys.path == before


FORMS = ["cartpole", "CartPole-v1", f"{PLANTED}:Counter", f"{PLANTED}:SameStepVector", f"{PLANTED}:make_counter"]


@pytest.mark.parametrize("env_id", FORMS)
def test_max_episode_steps_truncates_every_kind(env_id):
    envs = make(env_id, max_episode_steps=3)
    envs.reset()
    steps = [envs.step(np.array([0, 1])) for _ in range(6)]
    assert [step.truncated.tolist() for step in steps] == [[False] * 2, [False] * 2, [True] * 2] * 2
    envs.close()


def test_options_reach_the_constructor():
    envs = make(f"{PLANTED}:Counter", options={"length": 2})
    envs.reset()
    assert [envs.step(np.zeros(2, np.int64)).terminated[0] for _ in range(2)] == [False, True]
    envs = make("cartpole", options={"sutton_barto_reward": True})
    envs.reset()
    assert envs.step(np.zeros(2, np.int64)).reward.tolist() == [0.0, 0.0]


def test_an_unknown_option_is_refused():
    with pytest.raises(SettingsError, match="did you mean `sutton_barto_reward`"):
        make("cartpole", options={"sutton_barto": True})
    with pytest.raises(EnvError, match="unexpected keyword"):
        make("CartPole-v1", options={"gravity": 1.0})


def test_batched_needs_an_env_that_has_a_batched_form():
    assert type(make("CartPole-v1", batched=True)).__name__ == "GymnasiumVector"
    for env_id in ("Acrobot-v1", "cartpole", f"{PLANTED}:Counter"):
        with pytest.raises((EnvError, SettingsError), match="batched"):
            make(env_id, batched=True)


def test_envs_made_before_one_fails_are_closed(tmp_path):
    source = tmp_path / "second_fails.py"
    source.write_text(
        "from tests.envs.planted_envs import Counter\n"
        "CLOSED = []\n"
        "class Env(Counter):\n"
        "    made = 0\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        Env.made += 1\n"
        "        if Env.made == 2:\n"
        "            raise RuntimeError('no second one')\n"
        "    def close(self):\n"
        "        CLOSED.append(self)\n"
    )
    with pytest.raises(EnvError, match="no second one"):
        make(f"{source}:Env")
    [module] = [module for name, module in sys.modules.items() if name.startswith("second_fails_")]
    assert len(module.CLOSED) == 1


def test_seeds_and_envs_must_be_as_many():
    with pytest.raises(EnvError, match="one seed per env"):
        make_envs(EnvSettings(), 2, derive_seeds(0, 3, "env"))


def test_all_ids_are_listed_with_their_kind():
    listed = dict(list_envs())
    assert listed["cartpole"] == "native"
    assert listed["CartPole-v1"] == "gymnasium"


def test_importing_the_registry_is_cheap():
    code = "import sys, hotloop.envs.registry; sys.exit('gymnasium' in sys.modules or 'numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    "bad",
    [{"id": ""}, {"num_envs": 0}, {"num_envs": 1.5}, {"max_episode_steps": -1}, {"dict_obs": "drop"}, {"batched": 1}],
)
def test_bad_settings_are_refused(bad):
    with pytest.raises(SettingsError) as caught:
        EnvSettings(**bad)
    assert f"`env.{next(iter(bad))}`" in caught.value.message


def test_an_option_that_is_no_plain_value_is_refused():
    with pytest.raises(SettingsError, match="option `table` is a list"):
        EnvSettings(options={"table": [1, 2]})
