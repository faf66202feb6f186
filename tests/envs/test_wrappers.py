"""Gymnasium's wrappers by name: what is read, what is refused, and what the envs then give."""

import sys

import gymnasium.wrappers
import numpy as np
import pytest

from hotloop.core.errors import HotloopError, MissingExtraError, SettingsError
from hotloop.core.rng import derive_seeds
from hotloop.core.settings import as_tree, build
from hotloop.core.types import VecEnv
from hotloop.envs.registry import make_envs
from hotloop.presets.env_settings import EnvSettings
from hotloop.presets.env_wrappers import REFUSED, parse_wrapper
from tests.envs import planted_envs

PLANTED = planted_envs.__file__


def make(name: str, *wrappers: str, **settings: object) -> VecEnv:
    env_id = name if "-v" in name or name == "cartpole" else f"{PLANTED}:{name}"
    return make_envs(EnvSettings(id=env_id, wrappers=wrappers, **settings), 2, derive_seeds(0, 2, "env"))


def refusal(*arguments: str, **settings: object) -> HotloopError:
    with pytest.raises(HotloopError) as caught:
        make(*arguments, **settings)
    return caught.value


@pytest.mark.parametrize(
    ("text", "name", "positional", "named"),
    [
        ("ClipAction", "ClipAction", (), {}),
        ("ClipReward(-1, 1.5)", "ClipReward", (-1, 1.5), {}),
        (" ResizeObservation( shape=(84, 84) ) ", "ResizeObservation", (), {"shape": (84, 84)}),
        ("FilterObservation(['a', 'b'])", "FilterObservation", (["a", "b"],), {}),
    ],
)
def test_a_wrapper_is_a_name_and_plain_values(text, name, positional, named):
    wrapper = parse_wrapper(text)
    assert (wrapper.name, wrapper.positional, wrapper.named) == (name, positional, named)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ClipReward(",
        "os.system('ls')",
        "gymnasium.wrappers.ClipAction",
        "ClipReward(__import__('os').getpid())",
        "ClipReward(*[1, 2])",
        "ClipReward(**{'min_reward': 1})",
        "ClipReward(1)(2)",
        "(lambda env: env)",
        "ClipReward([x for x in (1, 2)])",
        "ClipReward(" + "(" * 400 + ")" * 400 + ")",
        "ClipReward(" + "1" * 2_000 + ")",
    ],
)
def test_anything_else_is_refused_unread(text):
    with pytest.raises(SettingsError, match="expected the name of a wrapper with plain values"):
        EnvSettings(id="CartPole-v1", wrappers=(text,))


def test_frames_are_stacked_first_to_last_and_an_episode_ends_with_its_own():
    envs = make("Film", "FrameStackObservation(stack_size=3)", "ReshapeObservation((3, 12, 10))")
    obs, _ = envs.reset()
    assert (obs.shape, obs.dtype) == ((2, 3, 12, 10), np.uint8)
    assert obs[0, :, 0, 0].tolist() == [0, 0, 0]
    steps = [envs.step(np.zeros(2, np.int64)) for _ in range(5)]
    assert [step.obs[0, :, 5, 5].tolist() for step in steps] == [[0, 0, 1], [0, 1, 2], [1, 2, 3], [2, 3, 4], [0, 0, 0]]
    assert steps[-1].final_obs[0, :, 5, 5].tolist() == [3, 4, 5]


def test_the_first_wrapper_is_the_innermost():
    def reward(*wrappers: str) -> float:
        envs = make("Counter", *wrappers)
        envs.reset()
        return float(envs.step(np.ones(2, np.int64)).reward[0])

    assert reward() == 1.0
    assert reward("RepeatAction(3)", "ClipReward(0, 2)") == 2.0  # three times 1, then cut off
    assert reward("ClipReward(0, 0.5)", "RepeatAction(3)") == 1.5


def test_wrappers_are_text_in_a_file_and_part_of_the_settings():
    tree = as_tree(EnvSettings(id="CartPole-v1", wrappers=("ClipAction", "ClipReward(-1, 1)")))
    assert tree["wrappers"] == ["ClipAction", "ClipReward(-1, 1)"]
    assert build(EnvSettings, tree).wrappers == ("ClipAction", "ClipReward(-1, 1)")
    with pytest.raises(SettingsError, match="expected a list, each text"):
        build(EnvSettings, {"wrappers": [4]})


@pytest.mark.parametrize(
    ("typo", "meant"),
    [
        ("FrameStack(4)", "FrameStackObservation"),
        ("GrayScaleObservation", "GrayscaleObservation"),
        ("framestackobservation(4)", "FrameStackObservation"),
        ("ClipRewards(0, 1)", "ClipReward"),
    ],
)
def test_an_unknown_wrapper_suggests_the_one_that_was_meant(typo, meant):
    assert refusal("CartPole-v1", typo).hint == f"did you mean `{meant}`?"


@pytest.mark.parametrize(
    ("wrapper", "words"),
    [
        ("FrameStackObservation()", "missing a required argument: 'stack_size'"),
        ("FrameStackObservation(4, 5)", "too many positional arguments"),
        ("FrameStackObservation(4, depth=5)", "unexpected keyword argument 'depth'"),
        ("FrameStackObservation(-1)", "cannot wrap `CartPole-v1`: "),
        ("FrameStackObservation('four')", "cannot wrap `CartPole-v1`: "),
    ],
)
def test_arguments_that_do_not_fit_are_one_sentence_with_the_signature(wrapper, words):
    error = refusal("CartPole-v1", wrapper)
    assert words in error.message
    assert "\n" not in error.message
    assert error.hint == "`FrameStackObservation(stack_size, *, padding_type='reset')`"


@pytest.mark.parametrize("name", REFUSED)
def test_wrappers_that_make_no_sense_say_why(name):
    assert name in gymnasium.wrappers.__all__
    with pytest.raises(SettingsError, match=f"`{name}` makes no sense"):
        EnvSettings(id="CartPole-v1", wrappers=(name,))


def test_wrappers_of_vector_envs_and_around_them_are_refused():
    assert "takes a vector env" in refusal("CartPole-v1", "DictInfoToList").message
    assert "both set" in refusal("CartPole-v1", "ClipAction", batched=True).message
    assert "all its envs at once" in refusal("SameStepVector", "ClipAction").message
    assert "all its envs at once" in refusal("cartpole", "ClipAction").message


def test_what_a_wrapper_needs_and_is_not_there_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "cv2", None)
    with pytest.raises(MissingExtraError, match=r"gymnasium\[other\]"):
        make("Film", "ResizeObservation((6, 5))").close()
