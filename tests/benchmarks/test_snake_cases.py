"""What the snake cases are made of: the stretch of play that is timed, the boards, and the plain program that runs."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch

from benchmarks.all_cases import known
from benchmarks.snake_loop import SMALL, OurStretch, PlainStretch, make_config, make_settings
from benchmarks.snake_parts import grow_snake, random_boards, timed_calls
from benchmarks.snake_step import (
    SPREAD,
    RecordedPlay,
    at_random,
    carefully,
    compare_step,
    make_ours,
    plain_from,
    record,
)
from benchmarks.witnesses.snake_dqn import Config, ReplayBuffer, push_batch, push_one_by_one, train
from benchmarks.witnesses.snake_env import SnakeGames


def test_the_careful_guide_grows_long_snakes_and_the_random_one_does_not():
    careful, _ = record(32, 1, carefully, skipped=SPREAD)
    hasty, _ = record(32, 1, at_random, skipped=SPREAD)
    assert careful["game"][:, 1].max() >= 25  # cells; the random one dies young
    assert hasty["game"][:, 1].max() <= 8


def test_plain_games_go_on_from_where_ours_stand():
    start, actions = record(6, 30, carefully, skipped=150)
    ours, plain = make_ours("enhanced", 6), plain_from("enhanced", start)
    ours.set_state(start)
    assert max(len(snake) for snake in plain.snakes) > 10
    assert all(compare_step(ours, plain, action, "").max_error == 0 for action in actions)


def test_a_difference_in_one_game_is_found():
    start, actions = record(4, 1, carefully, skipped=20)
    ours, plain = make_ours("basic", 4), plain_from("basic", start)
    ours.set_state(start)
    x, y = plain.foods[2]
    plain.foods[2] = (9 - x, 9 - y)
    assert compare_step(ours, plain, actions[0], "").max_error > 0


def test_a_timed_stretch_repeats_from_the_same_state():
    stretch = RecordedPlay(4)
    stretch.actions = stretch.actions[:3]
    for call, first in ((stretch.fast("basic"), lambda step: step.obs), (stretch.plain("basic"), lambda step: step[0])):
        seen = [first(call()).copy() for _ in range(6)]
        np.testing.assert_array_equal(seen[:3], seen[3:])


def test_both_programs_time_the_same_fills():
    plain, fast = timed_calls(10, num_boards=20)
    assert fast().tolist() == [len(cells) for cells in plain()]


@pytest.mark.parametrize("size", [5, 10, 64])
def test_a_grown_snake_does_not_cross_itself_and_has_a_way_to_go(size):
    for seed in range(20):
        body, start = grow_snake(size, np.random.default_rng(seed))
        assert len(set(body)) == len(body)
        assert start not in body
        path = [*body, start]
        assert all(abs(x - u) + abs(y - v) == 1 for (x, y), (u, v) in zip(path[:-1], path[1:], strict=True))


def test_random_boards_reach_from_empty_to_nearly_full():
    blocked, start = random_boards(200, 10, np.random.default_rng(0))
    shares = blocked.mean(axis=(1, 2))
    assert shares.min() == 0.0
    assert shares.max() > 0.75
    assert start.min() == 0
    assert start.max() == 9


def test_one_by_one_and_batched_pushes_store_the_same():
    fields = (
        torch.tensor([[1.0, 2.0], [3.0, 4.0]]),
        torch.tensor([2, 0]),
        torch.tensor([0.5, -10.0]),
        torch.tensor([[5.0, 6.0], [7.0, 8.0]]),
        torch.tensor([False, True]),
    )
    one, other = ReplayBuffer(10), ReplayBuffer(10)
    push_one_by_one(one, *fields)
    push_batch(other, *fields)
    assert [row[1:3] + row[4:] for row in one.buffer] == [(2, 0.5, False), (0, -10.0, True)]
    for mine, theirs in zip(one.buffer, other.buffer, strict=True):
        assert all(np.array_equal(left, right) for left, right in zip(mine, theirs, strict=True))


def test_the_plain_loop_makes_its_updates_and_decays_epsilon_per_finished_game():
    torch.manual_seed(0)
    random.seed(0)
    env = SnakeGames(8, lambda game, count: random.randrange(count), max_steps=5)
    agent, buffer, scores = train(Config(num_games=8, updates_per_step=3, learning_starts=64, target_every=40), env, 12)
    assert agent.updates == 3 * 4  # after 64 transitions, 8 at a time
    assert len(buffer) == agent.env_steps == 96
    assert agent.episodes == len(scores) >= 16
    assert agent.epsilon == pytest.approx(0.995 ** len(scores))


def test_our_loop_goes_back_at_the_end_of_its_stretch():
    settings = make_settings("basic", 1, SMALL)
    stretch = OurStretch(settings, 160, 4)
    for _ in range(2):
        stretch.advance(2)
    assert stretch.session.counters.env_steps == 160 + 4 * 16
    assert stretch.session.replay.size == 160 + 4 * 16
    stretch.advance(2)
    assert stretch.session.counters.env_steps == 160 + 2 * 16
    assert stretch.session.replay.size == 160 + 2 * 16


def test_the_plain_loop_starts_from_the_weights_games_and_rows_of_ours():
    settings = make_settings("flood-fill", 1, SMALL)
    session = OurStretch(settings, SMALL.capacity, 4).session
    plain = PlainStretch(session, "flood-fill", make_config(settings, 1))
    np.testing.assert_array_equal(plain._states.numpy(), session.collector.state()["last_obs"]["obs"])
    assert len(plain.buffer) == session.replay.size == SMALL.capacity
    assert plain.agent.epsilon == session.policy.epsilon < 1.0


def test_the_small_set_holds_one_case_of_each_snake_family():
    families = ("snake-step", "flood-fill", "replay-push", "snake-loop")
    names = [case.name for case in known().cases if case.quick and case.family in families]
    assert names == [
        "snake-loop/flood-fill/8",
        "flood-fill/10x10",
        "replay-push/one-by-one/256",
        "snake-step/flood-fill/256",
    ]
