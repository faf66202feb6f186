import numpy as np
import pytest
from gymnasium import spaces

from hotloop.core.errors import EnvError
from hotloop.core.types import ArraySpec, BoxActions, DiscreteActions, HybridActions, MultiDiscreteActions
from hotloop.envs.foreign import BadValueError, require_discrete
from hotloop.envs.spaces import actions_for, encoder_for, first_not_finite, split_hybrid

PARTS = spaces.Dict({"image": spaces.Box(0, 255, (2, 1), np.uint8), "place": spaces.Discrete(3, start=-1)})
RAW = {"image": np.array([[7], [9]], np.uint8), "place": 0}


def encode(space: spaces.Space, raw: object, dict_obs: str = "flatten") -> object:
    encoder = encoder_for("test", space, dict_obs)
    obs = encoder.empty(1)
    encoder.write(obs, 0, raw)
    return obs


@pytest.mark.parametrize(
    ("given", "kept"),
    [(np.float64, np.float32), (np.float32, np.float32), (np.int64, np.float32), (np.uint8, np.uint8)],
)
def test_numbers_become_float32_except_bytes(given, kept):
    obs = encode(spaces.Box(0, 100, (2,), given), np.array([1, 2], given))
    assert obs.dtype == kept
    assert obs.tolist() == [[1, 2]]


def test_a_box_without_dimensions_becomes_one_number():
    assert encode(spaces.Box(0, 1, ()), np.float32(0.5)).tolist() == [[0.5]]


def test_a_discrete_observation_becomes_one_hot_from_its_own_start():
    assert encode(spaces.Discrete(3, start=-1), np.int64(1)).tolist() == [[0, 0, 1]]


def test_a_dict_is_joined_in_order_or_kept_by_name():
    assert encode(PARTS, RAW).tolist() == [[7, 9, 0, 1, 0]]
    kept = encode(PARTS, RAW, "keep")
    assert kept["image"].tolist() == [[[7], [9]]]
    assert kept["image"].dtype == np.uint8
    assert kept["place"].tolist() == [[0, 1, 0]]
    assert encoder_for("test", PARTS, "keep").spec["image"] == ArraySpec((2, 1), np.dtype(np.uint8))
    assert encoder_for("test", PARTS).spec == ArraySpec((5,))


@pytest.mark.parametrize("dict_obs", ["flatten", "keep"])
def test_a_batch_encodes_like_its_rows(dict_obs):
    encoder = encoder_for("test", PARTS, dict_obs)
    rows = [{"image": np.full((2, 1), i, np.uint8), "place": i - 1} for i in range(3)]
    batch = {"image": np.stack([row["image"] for row in rows]), "place": np.array([-1, 0, 1])}
    one, other = encoder.empty(3), encoder.empty(3)
    encoder.write_all(one, batch)
    for index, row in enumerate(rows):
        encoder.write(other, index, row)
    np.testing.assert_equal(one, other)


@pytest.mark.parametrize(
    ("space", "raw", "words"),
    [
        (spaces.Box(0, 1, (2,)), np.zeros(3), "shape"),
        (spaces.Box(0, 1, (2,)), None, "dtype object"),
        (spaces.Box(0, 1, (2,)), [[1], [1, 2]], "not an array"),
        (spaces.Box(0, 1, (2,)), np.array(["a", "b"]), "dtype <U1"),
        (spaces.Box(0, 255, (2,), np.uint8), np.array([0.5, 1.0]), "dtype float64 where its space has uint8"),
        (spaces.Discrete(3), 3, "3 outside 0 .. 2"),
        (spaces.Discrete(3), 1.5, "whole number"),
        (PARTS, {"image": RAW["image"]}, "without part `place`"),
        (PARTS, {**RAW, "image": np.zeros(2, np.uint8)}, "with part `image` of shape"),
        (PARTS, np.zeros(3), "without part"),
    ],
)
def test_what_a_space_does_not_allow_is_refused_in_words(space, raw, words):
    with pytest.raises(BadValueError, match=words.replace("(", r"\(")):
        encode(space, raw)


@pytest.mark.parametrize(
    ("space", "wrapper"),
    [
        (spaces.Tuple([spaces.Discrete(2)]), "FlattenObservation"),
        (spaces.MultiBinary(3), "FlattenObservation"),
        (spaces.Text(3), "TransformObservation"),
        (spaces.Dict({"inner": spaces.Dict({"x": spaces.Discrete(2)})}), "FlattenObservation"),
    ],
)
def test_other_observation_spaces_are_refused_with_the_wrapper_that_helps(space, wrapper):
    with pytest.raises(EnvError, match="of `mine` is") as caught:
        encoder_for("mine", space)
    assert wrapper in caught.value.hint


def test_actions_are_counted_from_the_spaces_start():
    actions, start = actions_for("mine", spaces.Discrete(4, start=2))
    assert (actions.count, start) == (4, 2)


def test_several_choices_are_counted_from_their_starts():
    actions, first = actions_for("mine", spaces.MultiDiscrete([2, 3], start=[0, 5]))
    assert actions == MultiDiscreteActions((2, 3), (0, 5))
    assert (actions.shape, actions.mask_width, first.tolist()) == ((2,), 5, [0, 5])


def test_a_box_of_numbers_keeps_its_bounds_and_shape():
    low, high = np.array([[-1.0], [0.0]], np.float32), np.array([[1.0], [np.inf]], np.float32)
    actions, first = actions_for("mine", spaces.Box(low, high))
    assert actions == BoxActions((-1.0, 0.0), (1.0, np.inf), (2, 1))
    assert (actions.mask_width, first) == (0, 0)


def test_choices_and_numbers_at_once_are_one_row():
    space = spaces.Tuple([spaces.Discrete(3, start=1), spaces.Box(-1.0, 1.0, (2, 1), np.float32)])
    actions, first = actions_for("mine", space)
    assert actions == HybridActions(MultiDiscreteActions((3,), (1,)), BoxActions((-1.0, -1.0), (1.0, 1.0), (2, 1)))
    assert (actions.shape, actions.mask_width, first.tolist()) == ((3,), 3, [1, 0, 0])
    chosen, numbers = split_hybrid(space, np.array([3.0, 0.5, -0.5], np.float32))
    assert (chosen, numbers.tolist()) == (3, [[0.5], [-0.5]])
    assert space.contains((chosen, numbers))


@pytest.mark.parametrize("space", [spaces.Text(3), spaces.Tuple([spaces.Discrete(2)]), spaces.Box(0, 9, (1,), int)])
def test_other_action_spaces_are_refused_with_a_way_out(space):
    with pytest.raises(EnvError, match="expected Discrete, MultiDiscrete, a Box of floats") as caught:
        actions_for("mine", space)
    assert "TransformAction" in caught.value.hint


def test_continuous_actions_are_refused_for_dqn():
    with pytest.raises(EnvError, match="continuous; DQN needs Discrete"):
        require_discrete("mine", actions_for("mine", spaces.Box(-1, 1, (1,)))[0])
    with pytest.raises(EnvError, match="MultiDiscrete"):
        require_discrete("mine", actions_for("mine", spaces.MultiDiscrete([2, 2]))[0])
    assert require_discrete("mine", DiscreteActions(3)).count == 3


def test_the_first_row_that_is_not_finite_is_found():
    obs = np.zeros((3, 2, 2), np.float32)
    assert first_not_finite(obs) == -1
    obs[1, 1, 0] = np.inf
    assert first_not_finite(obs) == 1
    assert first_not_finite({"a": np.zeros((3, 1), np.uint8), "b": obs}) == 1


def test_a_dict_with_an_image_is_joined_only_where_that_is_asked_for():
    vectors = spaces.Dict({"place": spaces.Discrete(3), "speed": spaces.Box(0, 1, (2,))})
    assert encoder_for("test", vectors, "auto").spec == ArraySpec((5,))
    for image in (spaces.Box(0, 255, (84, 84, 3), np.uint8), spaces.Box(0, 255, (84, 84), np.uint8)):
        mixed = spaces.Dict({"camera": image, "speed": spaces.Box(0, 1, (2,))})
        with pytest.raises(EnvError, match=r"part `camera` .* is an image of shape \(84, 84") as caught:
            encoder_for("test", mixed, "auto")
        assert "--env.dict-obs flatten" in caught.value.hint
        assert encoder_for("test", mixed, "flatten").spec.size == np.prod(image.shape) + 2
