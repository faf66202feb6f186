"""Random games, held equal with the slow rules in every observation, reward, flag and measure."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hotloop.core.rng import derive_seeds
from hotloop.workloads.snake.env import Snake
from tests.oracles.snake_oracle import SnakeOracle, splitmix_tape

MODES = ["basic", "basic10", "flood_fill", "selective", "enhanced", "foresight", "grid"]
sizes = st.one_of(st.integers(5, 12), st.integers(5, 12), st.sampled_from([17, 32, 33, 63, 64]))


@st.composite
def rules(draw):
    size, mode = draw(sizes), draw(st.sampled_from(MODES))
    return {
        "board_size": size,
        "observation": mode,
        "actions": draw(st.sampled_from(["auto", "absolute"] + ["relative"] * (mode != "grid"))),
        "max_steps": draw(st.sampled_from([0, 1000, 7, 40])),
        "max_steps_without_food": draw(st.sampled_from([0, 0, 15])),
        "free_tail": draw(st.booleans()),
        "start_length": draw(st.integers(2, size // 2 + 1)),
        "death_reward": draw(st.sampled_from([-10.0, -100.0])),
        "distance_reward": draw(st.sampled_from([0.5, 0.3])),
    }


def play_both(options, seed, calls, choose):
    """Play 3 games of ours beside 3 slow ones and compare after every step; the measures of every episode."""
    seeds = derive_seeds(seed, 3, "env")
    ours, slow = Snake(3, seeds, **options), [SnakeOracle(splitmix_tape(int(one)), **options) for one in seeds]
    obs, _ = ours.reset()
    np.testing.assert_array_equal(obs, [game.observe() for game in slow])
    ended = []
    for _ in range(calls):
        action = np.array([choose(game) for game in slow])
        step = ours.step(action)
        answers = [game.step(int(one)) for game, one in zip(slow, action, strict=True)]
        reward, terminated, truncated, stats = zip(*answers, strict=True)
        seen = [game.observe() for game in slow]
        np.testing.assert_array_equal(step.final_obs, seen)
        np.testing.assert_array_equal(step.reward, np.array(reward, np.float32))
        np.testing.assert_array_equal(step.terminated, terminated)
        np.testing.assert_array_equal(step.truncated, truncated)
        for index, game in enumerate(slow):
            if terminated[index] or truncated[index]:
                ended.append({name: values[index] for name, values in step.episode_stats.items()})
                assert ended[-1] == stats[index]
                game.restart()
                seen[index] = game.observe()
        np.testing.assert_array_equal(step.obs, seen)
    return ended


def random_choice(seed):
    draw = np.random.default_rng(seed)
    return lambda game: int(draw.integers(4 if game.absolute else 3))


def careful_choice(seed, greed=0.9):
    """Towards the food where that does not kill, otherwise any way that does not: long snakes, all sorts of deaths."""
    draw = np.random.default_rng(seed)

    def choose(game):
        actions = list(range(4 if game.absolute else 3))
        draw.shuffle(actions)
        alive = [one for one in actions if not game.kills(game.next_cell(game.turn(one)))]
        if draw.random() < greed and alive and game.food:
            return min(alive, key=lambda one: game.distance(game.next_cell(game.turn(one)), game.food))
        return (alive if draw.random() < 0.95 and alive else actions)[0]

    return choose


@given(options=rules(), seed=st.integers(0, 2**32), careful=st.booleans())
@settings(max_examples=80)
def test_every_observation_reward_flag_and_measure_equals_the_slow_rules(options, seed, careful):
    calls = 60 if options["board_size"] <= 12 else 6
    play_both(options, seed, calls, (careful_choice if careful else random_choice)(seed))


@pytest.mark.parametrize("free_tail", [False, True])
@pytest.mark.parametrize("mode", MODES)
def test_long_games_equal_the_slow_rules(mode, free_tail):
    options = {"board_size": 6, "observation": mode, "free_tail": free_tail, "max_steps_without_food": 60}
    ended = play_both(options, 3, 400, careful_choice(5))
    assert max(episode["score"] for episode in ended) > 10
    assert all(sum(episode[cause] for cause in list(episode)[1:]) == 1 for episode in ended)


@given(options=rules(), seed=st.integers(0, 2**63))
@settings(max_examples=2000)
@pytest.mark.slow
def test_very_many_games_equal_the_slow_rules(options, seed):
    play_both(options, seed, 300 if options["board_size"] <= 12 else 60, careful_choice(seed))


def cycle_choice(game):
    """Round the whole board on a Hamiltonian cycle (even sizes): down the left column, back in vertical bends."""
    (x, y), last = game.body[0], game.size - 1
    if y == 0 and x > 0:
        return 3
    if x % 2 == 0:
        return 2 if y < last else 1
    if y > 1 or x == last:
        return 0
    return 1


def test_a_board_filled_to_the_last_cell_is_won():
    """From the middle of a 6 x 6 board along the cycle: 33 foods, the last one worth as much as any."""
    options = {"board_size": 6, "observation": "enhanced", "actions": "absolute", "max_steps": 0, "start_length": 2}
    ended = play_both(options, 1, 1500, cycle_choice)
    won = [episode for episode in ended if episode["win"]]
    assert won
    assert all(
        episode == {"score": 34, "win": True, "death_wall": False, "death_body": False, "timeout": False}
        for episode in won
    )
