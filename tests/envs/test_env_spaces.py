import json
import re

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector.utils import concatenate, create_empty_array

from hotloop.core.errors import EnvError
from hotloop.core.types import ArraySpec, BoxActions, DiscreteActions, HybridActions, MultiDiscreteActions, map_obs
from hotloop.envs.foreign import BadValueError, require_discrete
from hotloop.envs.observations import raw_obs_from_data
from hotloop.envs.spaces import actions_for, first_not_finite, raw_obs_for, split_hybrid
from tests.envs import planted_envs

PARTS = spaces.Dict({"image": spaces.Box(0, 255, (2, 1), np.uint8), "place": spaces.Discrete(3, start=-1)})
RAW = {"image": np.array([[7], [9]], np.uint8), "place": 0}


def encoder_for(env_id: str, space: spaces.Space, dict_obs: str = "flatten"):
    return raw_obs_for(env_id, space, dict_obs).encoder


def encode(space: spaces.Space, raw: object, dict_obs: str = "flatten") -> object:
    encoder = encoder_for("test", space, dict_obs)
    obs = encoder.empty(1)
    encoder.write(obs, 0, raw)
    return obs


@pytest.mark.parametrize(
    ("space", "words"),
    [
        (spaces.Discrete(10_000_000), "one of 10,000,000 states, each an input of the network; at most 1,000,000"),
        (spaces.MultiDiscrete([2_000_000, 3]), "one of 2,000,003 states"),
        (spaces.Dict({"deep": spaces.Tuple([spaces.Discrete(2**40)])}), "part `deep.0` of the observations of"),
        (spaces.Box(-1.0, 1.0, (0,)), "hold no numbers: their shape is (0,)"),
        (spaces.Dict({"a": spaces.Box(-1.0, 1.0, (3, 0)), "b": spaces.Box(-1.0, 1.0, (0,))}), "hold no numbers"),
    ],
)
def test_observations_that_no_network_takes_are_refused(space, words):
    with pytest.raises(EnvError, match=re.escape(words)) as refused:
        raw_obs_for("test", space)
    assert refused.value.hint


@pytest.mark.parametrize("space", [spaces.Discrete(2_000_000), spaces.MultiDiscrete([60_000, 60_000])])
def test_more_choices_than_a_network_has_outputs_for_are_refused(space):
    with pytest.raises(EnvError, match="choices of an action, each an output of the network; at most 100,000") as told:
        actions_for("test", space)
    assert "MultiDiscrete" in told.value.hint


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
@pytest.mark.parametrize("nested", [False, True])
def test_a_batch_encodes_like_its_rows(dict_obs, nested):
    space = NESTED if nested else PARTS
    space.seed(1)
    encoder = encoder_for("test", space, dict_obs)
    rows = [space.sample() for _ in range(3)]
    batch = concatenate(space, rows, create_empty_array(space, 3))
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
        (spaces.MultiDiscrete([3, 2]), np.array([0, 2]), "2 outside 0 .. 1 (choice 1)"),
        (spaces.MultiDiscrete([3, 2]), np.array([0.0, 1.0]), "whole numbers"),
        (spaces.Tuple([spaces.Discrete(2), spaces.Discrete(2)]), (1,), "without part `1`"),
    ],
)
def test_what_a_space_does_not_allow_is_refused_in_words(space, raw, words):
    with pytest.raises(BadValueError, match=re.escape(words)):
        encode(space, raw)


def test_choices_become_one_hot_each_from_its_own_start():
    dials = spaces.MultiDiscrete([3, 2], start=[0, 5])
    assert encode(dials, np.array([2, 5])).tolist() == [[0, 0, 1, 1, 0]]
    table = spaces.MultiDiscrete([[2, 2], [2, 2]])
    assert encode(table, np.array([[0, 1], [1, 0]])).tolist() == [[1, 0, 0, 1, 0, 1, 1, 0]]


def test_bits_become_floats():
    obs = encode(spaces.MultiBinary(3), np.array([1, 0, 1], np.int8))
    assert (obs.dtype, obs.tolist()) == (np.float32, [[1, 0, 1]])


def test_parts_of_parts_have_dotted_names_and_lie_in_the_order_of_their_space():
    raw = {
        "arm": {"grips": np.array([1, 0], np.int8), "joints": (np.array([0.5, 0.25]), np.array([-1.0, 1.0]))},
        "mode": np.array([1, 2]),
        "speed": np.float32(7.0),
    }
    space = planted_envs.Nested.observation_space
    assert encode(space, raw).tolist() == [[1, 0, 0.5, 0.25, -1, 1, 0, 1, 0, 0, 1, 7]]
    kept = {name: part[0].tolist() for name, part in encode(space, raw, "keep").items()}
    assert kept == {
        "arm.grips": [1, 0],
        "arm.joints.0": [0.5, 0.25],
        "arm.joints.1": [-1, 1],
        "mode": [0, 1, 0, 0, 1],
        "speed": [7],
    }


NESTED = spaces.Dict(
    {
        "a": spaces.Tuple(
            [spaces.MultiDiscrete([2, 4], start=[1, -1]), spaces.Dict({"bits": spaces.MultiBinary([2, 2])})]
        ),
        "b": spaces.Discrete(3, start=2),
        "c": spaces.Box(-1, 1, (2, 2)),
    }
)


def test_joined_parts_are_what_gymnasium_flattens_to():
    NESTED.seed(3)
    for _ in range(20):
        raw = NESTED.sample()
        np.testing.assert_allclose(encode(NESTED, raw)[0], spaces.flatten(NESTED, raw))


@pytest.mark.parametrize(
    "space",
    [
        spaces.Text(3),
        spaces.Sequence(spaces.Discrete(2)),
        spaces.Graph(spaces.Box(0, 1, (2,)), None),
        spaces.Dict({"inner": spaces.Tuple([spaces.Discrete(2), spaces.Text(2)])}),
    ],
)
def test_other_observation_spaces_are_refused_with_the_wrapper_that_helps(space):
    with pytest.raises(EnvError, match="of `mine` is") as caught:
        encoder_for("mine", space)
    assert "TransformObservation" in caught.value.hint
    assert ("part `inner.1`" in caught.value.message) == isinstance(space, spaces.Dict)


@pytest.mark.parametrize(
    ("space", "words"),
    [
        (spaces.Dict({}), "has no parts"),
        (spaces.Dict({"a.b": spaces.Discrete(2), "a": spaces.Dict({"b": spaces.Discrete(2)})}), "two parts"),
    ],
)
def test_parts_without_a_name_of_their_own_are_refused(space, words):
    with pytest.raises(EnvError, match=words):
        encoder_for("mine", space)


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
        kept = encoder_for("test", mixed, "auto").spec
        assert kept == {"camera": ArraySpec(image.shape, np.dtype(np.uint8)), "speed": ArraySpec((2,))}
        assert encoder_for("test", mixed, "flatten").spec.size == np.prod(image.shape) + 2


def test_a_stack_of_color_images_is_refused_among_other_parts():
    film = spaces.Dict({"film": spaces.Box(0, 255, (4, 84, 84, 3), np.uint8), "speed": spaces.Box(0, 1, (2,))})
    with pytest.raises(EnvError, match=r"part `film` .* has shape \(4, 84, 84, 3\)") as caught:
        encoder_for("test", film, "auto")
    assert "--env.dict-obs flatten" in caught.value.hint


@pytest.mark.parametrize("kind", ["FromOne", "Dials", "Pair", "Nested", "Cameras", "Parts"])
@pytest.mark.parametrize("dict_obs", ["auto", "keep"])
def test_raw_observations_are_told_from_encoded_ones_also_after_a_checkpoint(kind, dict_obs):
    space = getattr(planted_envs, kind).observation_space
    made = raw_obs_for("test", space, dict_obs)
    raw_obs = raw_obs_from_data(json.loads(json.dumps(made.as_data())), made.encoder.spec)
    space.seed(2)
    rows = [space.sample() for _ in range(5)]
    batch, single = raw_obs.encode(concatenate(space, rows, create_empty_array(space, 5)))
    assert not single
    for index, raw in enumerate(rows):
        assert raw_obs.is_raw(raw)
        one, single = raw_obs.encode(raw)
        assert single
        np.testing.assert_equal(map_obs(lambda part: part[0], one), map_obs(lambda part, i=index: part[i], batch))
        assert not raw_obs.is_raw(map_obs(lambda part: part[0], one))
    assert not raw_obs.is_raw(batch)


def test_parts_that_do_not_make_up_the_observation_are_refused():
    made = raw_obs_for("test", NESTED).as_data()
    spec = encoder_for("test", NESTED).spec
    for part in ({"counts": [2, 4, 1]}, {"shape": [-1]}, {"path": [[1]]}, {"shape": [2.0]}, {"first": []}):
        with pytest.raises(ValueError, match="part|observation"):
            raw_obs_from_data({**made, "parts": [made["parts"][0] | part, *made["parts"][1:]]}, spec)
    with pytest.raises(ValueError, match="do not make up"):
        raw_obs_from_data({**made, "parts": made["parts"][1:]}, spec)
