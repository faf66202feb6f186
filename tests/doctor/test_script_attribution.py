"""Phases worked out from the order of events, on times one can add up by eye."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotloop.doctor.recorder import words as a
from hotloop.doctor.recorder.attribution import Attribution
from hotloop.doctor.recorder.words import Seen


def run(*events, end=None, **options):
    """Events as (kind, start, end) or (kind, start, end, rows, grad); the loop begins at 0."""
    seen = Attribution(0.0, **options)
    for kind, start, stop, *rest in events:
        rows, grad = [*rest, False][:2] if rest else (0, False)
        seen.events([Seen(kind, start, stop, forward=(rows, grad, 7) if kind == a.FORWARD else None)])
    seen.finish(events[-1][2] if end is None else end)
    return seen


def phases(seen):
    return {name: value for name, value in seen.phases.items() if value}


def test_a_forward_before_an_env_call_acts_and_so_does_the_choice_of_the_action():
    seen = run((a.ENV, 0, 1), (a.FORWARD, 3, 4), (a.ENV, 6, 7))
    assert phases(seen) == {"env": 2, "store-and-sample": 2, "act": 1 + 2}
    assert seen.counts["act_forwards"] == 1


def test_a_dqn_iteration_is_split_into_its_phases():
    seen = run(
        (a.ENV, 0, 10),
        (a.FORWARD, 12, 15, 64, False),  # 2 to store and sample
        (a.FORWARD, 16, 20, 64, True),  # 1 of rest
        (a.BACKWARD, 21, 26),  # 1 of rest: the loss
        (a.OPTIMISER, 27, 30),  # 1 of rest: clipping
        (a.FORWARD, 34, 35, 1, False),  # 4 of other, then acting
        (a.ENV, 37, 47),  # 2 to choose the action
    )
    assert phases(seen) == {"env": 20, "store-and-sample": 2, "update": 18, "other": 4, "act": 3}
    assert seen.parts == {"forward": 7, "rest": 3, "backward": 5, "optimiser": 3}
    assert seen.counts == {
        "act_forwards": 1,
        "act_forwards_with_grad": 0,
        "act_rows": 1,
        "update_forwards": 2,
        "backwards": 1,
        "updates": 1,
        "optimiser_steps": 1,
        "optimisers": 1,
        "batch_size": 64,
    }
    assert seen.learning_modules == {7: 1}


def test_the_batch_is_what_is_learned_from_not_what_the_target_is_asked():
    """PyTorch's tutorial asks its target network for the rows that did not end an episode."""
    for forwards in (((a.FORWARD, 1, 2, 128, True), (a.FORWARD, 2, 3, 121, False)),
                     ((a.FORWARD, 1, 2, 121, False), (a.FORWARD, 2, 3, 128, True))):  # fmt: skip
        seen = run((a.ENV, 0, 1), *forwards, (a.BACKWARD, 3, 4), (a.OPTIMISER, 4, 5))
        assert seen.counts["batch_size"] == 128


def test_hooked_replay_is_told_from_what_comes_between():
    seen = run(
        (a.ENV, 0, 1),
        (a.STORE, 2, 4),  # 1 to build the transition, 2 to store
        (a.SAMPLE, 5, 8),  # 1 + 3
        (a.FORWARD, 9, 10),  # 1 to make tensors
        (a.BACKWARD, 10, 12),
        (a.OPTIMISER, 12, 13),
    )
    assert phases(seen) == {"env": 1, "store-and-sample": 1 + 2 + 1 + 3 + 1, "update": 4}


def test_a_batch_drawn_between_two_updates_parts_the_gap():
    """What comes before the draw (a target update, say) is the update's; what follows prepares the batch."""
    seen = run(
        (a.ENV, 0, 1),
        (a.FORWARD, 1, 2),
        (a.BACKWARD, 2, 3),
        (a.OPTIMISER, 3, 4),
        (a.DRAW, 6, 7),  # 2 of rest, 1 drawing
        (a.FORWARD, 10, 11),  # 3 making tensors
        (a.BACKWARD, 11, 12),
        (a.OPTIMISER, 12, 13),
    )
    assert phases(seen) == {"env": 1, "update": 6 + 2, "store-and-sample": 4}


def test_a_random_draw_for_exploration_is_no_sampling():
    assert phases(run((a.ENV, 0, 1), (a.DRAW, 2, 3), (a.ENV, 4, 5))) == {"env": 2, "other": 3}


def test_minibatches_without_a_draw_are_one_update_after_another():
    one = [(a.FORWARD, 0, 1, 32), (a.BACKWARD, 1, 2), (a.OPTIMISER, 2, 3)]
    moved = [(kind, start + 5, stop + 5, *rest) for kind, start, stop, *rest in one]
    seen = run((a.ENV, 0, 0), *one, *moved, end=9)
    assert phases(seen) == {"update": 3 + 2 + 3, "other": 1}
    assert seen.bursts == 0  # no env call followed
    assert seen.counts["updates"] == 2


def test_printing_does_not_change_what_the_time_around_it_is():
    seen = run((a.ENV, 0, 1), (a.LOG, 2, 4), (a.FORWARD, 5, 6), (a.BACKWARD, 6, 7))
    assert phases(seen) == {"env": 1, "log": 2, "store-and-sample": 2, "update": 2}


def test_forwards_kept_for_a_later_backward_are_acting():
    """REINFORCE: forwards with gradients, an episode long, then one backward."""
    seen = run(
        (a.ENV, 0, 1), (a.FORWARD, 1, 2, 1, True), (a.ENV, 2, 3), (a.BACKWARD, 4, 6), (a.OPTIMISER, 6, 7),
    )  # fmt: skip
    assert phases(seen) == {"env": 2, "act": 1, "update": 1 + 2 + 1}
    assert seen.counts["act_forwards_with_grad"] == 1


def test_a_loop_that_acts_then_learns_then_steps_is_recognised():
    """The forward with as many rows as envs, first after the env call, chose the action."""
    events, clock = [(a.ENV, 0, 1)], 1
    for _ in range(4):
        for kind, rows in ((a.FORWARD, 1), (a.FORWARD, 64), (a.BACKWARD, 0), (a.OPTIMISER, 0), (a.ENV, 0)):
            events.append((kind, clock, clock + 1, rows))
            clock += 1
    seen = run(*events)
    assert seen.counts["act_forwards"] == 2  # from the third turn on, when the order is known
    assert seen.counts["update_forwards"] == 6


def test_an_update_made_in_one_call_counts_as_one():
    seen = run((a.ENV, 0, 1), (a.FORWARD, 2, 3), (a.LEARN, 4, 9), (a.ENV, 10, 11))
    assert phases(seen) == {"env": 2, "store-and-sample": 1, "update": 1 + 1 + 5, "other": 1}
    assert (seen.counts["updates"], seen.bursts) == (1, 1)


def test_what_was_noted_goes_to_the_phase_in_order_of_time():
    told = []
    seen = Attribution(0.0, lambda phase, end, note: told.append((phase, end, note)))
    seen.events([Seen(a.ENV, 0, 1, notes=("before", "env"))])
    seen.events([Seen(a.FORWARD, 2, 3, notes=("store", "forward"))])
    assert len(told) == 2  # what the forward is for is not known yet
    seen.events([Seen(a.ENV, 3, 4, notes=("choose", "env"))])
    assert told[2:] == [
        ("store-and-sample", 2, "store"), ("act", 3, "forward"), ("act", 3, "choose"), ("env", 4, "env"),
    ]  # fmt: skip


KINDS = st.sampled_from(sorted({*a.FIXED, a.FORWARD, a.DRAW}))


@given(st.lists(st.tuples(KINDS, st.integers(0, 9), st.integers(0, 9), st.integers(0, 3)), max_size=60))
def test_every_moment_is_charged_exactly_once(stretches):
    seen, clock = Attribution(0.0), 0
    for kind, gap, length, rows in stretches:
        forward = (rows, bool(rows), 7) if kind == a.FORWARD else None
        seen.events([Seen(kind, clock + gap, clock + gap + length, forward=forward)])
        clock += gap + length
    seen.finish(clock + 1)
    assert sum(seen.phases.values()) == clock + 1
    assert sum(seen.parts.values()) == pytest.approx(seen.phases.get("update", 0))


def test_the_first_update_of_a_real_program_is_start_up():
    """PyTorch sets itself up in it: 5 s, where the second update takes 1."""
    seen = Attribution(0.0)
    seen.setting_up = True
    for start in (0, 10):
        slow = 5 if start == 0 else 1
        for kind, begin, end in ((a.ENV, 0, 1), (a.FORWARD, 1, 2), (a.BACKWARD, 2, 2 + slow), (a.OPTIMISER, 8, 9)):
            seen.events([Seen(kind, start + begin, start + end, forward=(32, True, 7) if kind == a.FORWARD else None)])
    seen.finish(20)
    assert seen.counts["updates"] == 2
    assert phases(seen)["start-up"] == 1 + 5 + 1 + 1  # forward, backward, the gap after it, optimizer
    assert phases(seen)["update"] == 1 + 1 + 5 + 1
    assert sum(seen.phases.values()) == 20
