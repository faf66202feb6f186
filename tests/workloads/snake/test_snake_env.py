"""Snake by hand: numbers and boards that can be checked by eye."""

import math

import numpy as np
import pytest

from hotloop.core.errors import EnvError, SettingsError
from hotloop.core.rng import derive_seeds
from hotloop.envs.contract import check_env
from hotloop.workloads.snake import draw
from hotloop.workloads.snake.board import pack
from hotloop.workloads.snake.env import Snake

STRAIGHT, LEFT, RIGHT = np.array([0]), np.array([1]), np.array([2])


def made(num_envs: int = 1, **options: object) -> Snake:
    envs = Snake(num_envs, derive_seeds(7, num_envs, "env"), **options)
    envs.reset()
    return envs


def put(envs: Snake, picture: str, direction: int) -> None:
    """Lay game 0 out as drawn: `0` is the head, then 1, 2, ... a, b, ... to the tail, `*` the food."""
    rows = picture.split()
    cells = {mark: (x, y) for y, row in enumerate(rows) for x, mark in enumerate(row) if mark != "."}
    food = cells.pop("*", None)
    body = [cells[mark] for mark in sorted(cells, reverse=True)]  # tail first
    state, size = envs.get_state(), len(rows)
    blocked = np.zeros((1, size, size), np.bool_)
    for slot, (x, y) in enumerate(body):
        state["body"][0, slot] = y * 64 + x
        blocked[0, y, x] = True
    state["occupied"][0] = pack(blocked)[0]
    state["game"][0] = [len(body) - 1, len(body), direction, food[1] * 64 + food[0] if food else -1, 0, 0]
    envs.set_state(state)


def test_a_new_snake_lies_left_of_the_middle_and_heads_right():
    envs = made()
    size, body, food = draw.cells(envs.get_state(), 0)
    assert (size, body) == (10, [(5, 5), (4, 5), (3, 5)])
    assert food not in body


def test_basic_features_come_in_their_order():
    envs = made(board_size=5)
    put(envs, "..10* ..2.. ..... ..... .....", direction=1)
    obs = envs.step(STRAIGHT).obs[0]  # the head eats at (4, 0); wall ahead and to its left
    assert obs[:4].tolist() == [1, 1, 0, 1]
    assert obs[8:].tolist() == [0, 1, 0]


def test_food_sides_are_strict_and_absolute():
    envs = made(board_size=5)
    put(envs, "..... .*... ..... 210.. .....", direction=1)
    step = envs.step(LEFT)  # head to (2, 2), food at (1, 1): up and left of it
    assert step.obs[0, 4:8].tolist() == [1, 0, 0, 1]
    step = envs.step(STRAIGHT)  # head to (2, 1), level with the food
    assert step.obs[0, 4:8].tolist() == [0, 0, 0, 1]


def test_rewards_of_coming_nearer_going_away_and_eating():
    envs = made()
    put(envs, "." * 10 + " " + "210..*...." + " " + " ".join(["." * 10] * 8), direction=1)
    nearer = envs.step(STRAIGHT).reward[0]
    away = envs.step(RIGHT).reward[0]
    assert nearer == np.float32(-0.01 + 0.05)
    assert away == np.float32(-0.01 - 0.05)
    put(envs, "." * 10 + " " + "210*......" + " " + " ".join(["." * 10] * 8), direction=1)
    step = envs.step(STRAIGHT)
    assert step.reward[0] == 10
    assert len(draw.cells(envs.get_state(), 0)[1]) == 4


SQUARE = "..... .03.. .12.. ..... ....*"


def test_the_tail_that_moves_away_kills_unless_it_is_free():
    envs = made(board_size=5)
    put(envs, SQUARE, direction=0)
    step = envs.step(RIGHT)
    assert (step.reward[0], step.terminated[0]) == (-10, True)
    assert step.episode_stats["death_body"][0]
    envs = made(board_size=5, free_tail=True)
    put(envs, SQUARE, direction=0)
    step = envs.step(RIGHT)
    assert not step.terminated[0]
    assert draw.cells(envs.get_state(), 0)[1] == [(2, 1), (1, 1), (1, 2), (2, 2)]


def test_running_into_a_wall_is_told_apart_from_biting_oneself():
    envs = made(board_size=5, death_reward=-100.0)
    put(envs, "..... ..... ..210 ..... *....", direction=1)
    step = envs.step(STRAIGHT)
    assert step.reward[0] == -100
    assert step.episode_stats["death_wall"][0]
    assert not step.episode_stats["death_body"][0]
    assert draw.cells(envs.get_state(), 0)[1] == [(2, 2), (1, 2), (0, 2)]  # and the next game has begun


def test_a_way_to_all_free_cells_has_room_one():
    envs = made(board_size=5, observation="flood_fill")
    put(envs, "*.... 43210 ..... ..... .....", direction=1)
    step = envs.step(LEFT)  # walls straight and right of the head at (4, 0); the tail has just opened (0, 1)
    assert step.obs[0, 11:].tolist() == [0, 0, 1]


POCKET = "...0* 65.1. 7432. ..... ....."


def test_room_is_the_share_of_free_cells_that_can_be_reached():
    """Head to (2, 0): two cells straight on, the wall to the right, one cell to the left, of 25 - 8 free ones."""
    envs = made(board_size=5, observation="flood_fill")
    put(envs, POCKET, direction=0)
    np.testing.assert_allclose(envs.step(LEFT).obs[0, 11:], [2 / 17, 0, 1 / 17], rtol=1e-6)


def test_enhanced_features_come_in_their_order():
    """There: one free neighbor straight on; the tail at (0, 1), down and left, 3 cells off and within reach."""
    envs = made(board_size=5, observation="enhanced")
    put(envs, POCKET, direction=0)
    obs = envs.step(LEFT).obs[0]
    expected = [1 / 4, 0, 0, 0, 0, 1, 1, 1, 3 / 8, 8 / 25]
    np.testing.assert_allclose(obs[14:], expected, rtol=1e-6)
    envs = made(board_size=5, observation="selective")
    put(envs, POCKET, direction=0)
    assert envs.step(LEFT).obs[0, 14:].tolist() == expected[3:8]


def test_a_tail_wound_up_in_the_body_cannot_be_reached():
    envs = made(board_size=5, observation="selective")
    put(envs, "..... .654. .783. *012. .....", direction=3)
    step = envs.step(STRAIGHT)  # eats, so that the tail stays at (2, 2): up and right of the head
    assert step.reward[0] == 10
    assert step.obs[0, 14:].tolist() == [1, 1, 0, 0, 0]


@pytest.mark.parametrize(("free_tail", "follows"), [(False, [1, 0, 0]), (True, [1, 0, 1])])
def test_foresight_tells_after_which_step_the_tail_can_be_followed(free_tail, follows):
    """Head to (2, 0): straight on there is a way round to the tail; to the left only the tail's own cell is ahead."""
    envs = made(board_size=5, observation="foresight", free_tail=free_tail)
    put(envs, POCKET, direction=0)
    assert envs.step(LEFT).obs[0, 24:27].tolist() == follows


def test_foresight_tells_the_shortest_ways_to_the_food_and_hunger():
    """Head to (2, 2), heading up, food at (0, 1): two more steps from straight or left, four from the right."""
    envs = made(board_size=5, observation="foresight")
    put(envs, "..... *.... ..... 210.. .....", direction=1)
    obs = envs.step(LEFT).obs[0]
    assert obs[27:30].tolist() == [1, 0, 1]
    np.testing.assert_allclose(obs[30], 1 / 26, rtol=1e-6)


def test_a_way_to_the_food_may_lead_over_the_tail_which_will_have_moved_on():
    """The food in the corner is shut in by the tail at (1, 0) alone: up, which is left of the head at (2, 3)."""
    envs = made(board_size=5, observation="foresight")
    put(envs, "*56.. 34... 2.... 10... .....", direction=1)
    assert envs.step(STRAIGHT).obs[0, 27:30].tolist() == [0, 0, 1]


def test_a_time_out_truncates_and_adds_its_reward():
    envs = made(board_size=5, max_steps=2)
    put(envs, "..... ..... 210.. ..... *....", direction=1)
    envs.step(STRAIGHT)
    step = envs.step(STRAIGHT)
    assert (step.terminated[0], step.truncated[0]) == (False, True)
    assert step.reward[0] == np.float32(-0.01 - 0.5 / 5 - 5)
    assert step.episode_stats["timeout"][0]


def test_hunger_times_out_only_when_nothing_was_eaten():
    envs = made(board_size=5, max_steps=0, max_steps_without_food=2)
    put(envs, "..... ..... 210*. ..... .....", direction=1)
    assert not envs.step(STRAIGHT).truncated[0]
    assert not envs.step(LEFT).truncated[0]
    assert envs.step(STRAIGHT).truncated[0] or envs.get_state()["game"][0, 5] == 0


def test_dying_at_the_time_limit_is_a_death():
    envs = made(board_size=5, max_steps=1)
    put(envs, "..... ..... ..210 ..... *....", direction=1)
    step = envs.step(STRAIGHT)
    assert (step.terminated[0], step.truncated[0], step.reward[0]) == (True, True, -10)
    assert not step.episode_stats["timeout"][0]


def test_absolute_actions_ignore_a_reversal():
    envs = made(board_size=5, actions="absolute")
    put(envs, "..... ..... 210.. ..... ....*", direction=1)
    envs.step(np.array([3]))
    assert draw.cells(envs.get_state(), 0)[1][0] == (3, 2)
    envs.step(np.array([0]))
    assert draw.cells(envs.get_state(), 0)[1][0] == (3, 1)


def test_a_grid_shows_head_body_and_food_as_bytes():
    envs = made(board_size=5, observation="grid")
    put(envs, "..... ..... 210.. ..... ....*", direction=1)
    obs = envs.step(np.array([1])).obs[0]
    assert (obs.shape, obs.dtype) == ((5, 5, 3), np.uint8)
    assert [np.argwhere(obs[:, :, plane]).tolist() for plane in range(3)] == [[[2, 3]], [[2, 1], [2, 2]], [[4, 4]]]
    assert set(np.unique(obs).tolist()) == {0, 255}


def test_food_falls_on_every_empty_cell_about_equally_often():
    envs = made(4_000, board_size=5)
    foods = [draw.cells(envs.get_state(), index)[2] for index in range(4_000)]
    counts = np.array(
        [foods.count((x, y)) for y in range(5) for x in range(5) if (x, y) not in [(0, 2), (1, 2), (2, 2)]]
    )
    assert counts.sum() == 4_000
    assert ((counts - 4_000 / 22) ** 2 / (4_000 / 22)).sum() < 46.8  # chi-squared, 21 degrees of freedom, p 0.001


@pytest.mark.parametrize("options", [{"observation": "enhanced"}, {"observation": "grid", "board_size": 12}])
def test_it_keeps_the_contract(options):
    results = check_env(lambda num_envs, seeds: Snake(num_envs, seeds, **options))
    assert [result for result in results if not result.ok] == []


def test_a_state_of_another_board_is_refused_and_nothing_is_restored():
    envs, other = made(board_size=6), made(board_size=7)
    before = envs.get_state()
    with pytest.raises(EnvError, match="saved `body`"):
        envs.set_state(other.get_state())
    assert all(np.array_equal(before[name], value) for name, value in envs.get_state().items())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"board_size": 4}, "5 to 64"),
        ({"board_size": 65}, "5 to 64"),
        ({"board_size": 7, "start_length": 5}, "2 to 4"),
        ({"start_length": 1}, "2 to 6"),
        ({"observation": "floodfill"}, "flood_fill"),
        ({"observation": "grid", "actions": "relative"}, "absolute"),
        ({"max_steps": -1}, "no limit"),
        ({"food_reward": math.inf}, "number"),
        ({"bord_size": 8}, "board_size"),
        ({"free_tail": 1}, "true or false"),
    ],
)
def test_impossible_options_are_refused_in_words(options, words):
    with pytest.raises(SettingsError, match=words):
        made(**options)


def test_the_limit_that_every_env_takes_shortens_the_games_own():
    assert made(max_episode_steps=4).settings.max_steps == 4
    assert made(max_episode_steps=4, max_steps=3).settings.max_steps == 3
    assert made(max_episode_steps=4, max_steps=0).settings.max_steps == 4
    assert made(max_steps=0).settings.max_steps == 0
