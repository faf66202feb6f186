"""Recordings of two programs: aligned by env and env step, and the first place at which they part."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotloop.proof.program_gaps import gaps
from hotloop.proof.program_judgement import judge
from hotloop.proof.programs import EnvCall, Fingerprint, ProgramRecording, Update, in_order


def value(number: float) -> Fingerprint:
    return Fingerprint(repr(number), abs(number), (number, 2 * number))


def choice(number: float) -> Fingerprint:
    """One of a few: there is no near."""
    return Fingerprint(f"{number:.0f}", shown=f"{number:.0f}")


def recording(env_steps: int, num_envs: int = 2, every: int = 3) -> ProgramRecording:
    """Envs stepped in turn, an update after every few rounds."""
    calls, updates, moment = [], [], 0
    for step in range(1, env_steps + 1):
        for env in range(num_envs):
            fields = {"observation": value(step + env / 10), "action": choice(step % 2), "reward": value(1.0)}
            calls.append(EnvCall(env, step, fields, moment := moment + 1))
        if step % every == 0:
            number = step // every
            names = {"0.weight": value(number + 0.5), "0.bias": value(number + 0.25)}
            updates.append(Update(number, names, moment := moment + 1, "train.py:88"))
    return ProgramRecording(calls, updates)


def changed_call(plain: ProgramRecording, place: int, name: str, number: float) -> ProgramRecording:
    calls = list(plain.env_calls)
    new = choice(number) if name == "action" else value(number)
    calls[place] = dataclasses.replace(calls[place], values={**calls[place].values, name: new})
    return ProgramRecording(calls, plain.updates)


def changed_update(plain: ProgramRecording, place: int, name: str, number: float) -> ProgramRecording:
    updates = list(plain.updates)
    updates[place] = dataclasses.replace(updates[place], values={**updates[place].values, name: value(number)})
    return ProgramRecording(plain.env_calls, updates)


def test_the_same_program_is_the_same_for_all_it_did() -> None:
    found = judge(recording(12), recording(12))
    assert (found.ending, found.env_steps, found.updates, found.difference) == ("same", 24, 4, None)


def test_a_parameter_is_named_with_update_and_line() -> None:
    found = judge(recording(12), changed_update(recording(12), 1, "0.bias", 9.0))
    assert found.difference is not None
    assert (found.difference.what, found.env_steps, found.updates) == ("0.bias", 12, 1)
    assert found.difference.when == "after update 2, made by train.py:88"
    assert found.ending == "different"


def test_batched_and_single_envs_are_aligned_by_env_and_env_step() -> None:
    plain = recording(6, num_envs=3)
    by_env = sorted(plain.env_calls, key=lambda call: (call.env, call.step))  # as envs played one after the other
    fast = [dataclasses.replace(call, moment=place) for place, call in enumerate(by_env)]
    assert judge(plain, ProgramRecording(fast, plain.updates)).ending == "same"


def test_fewer_updates_are_a_verdict_of_their_own() -> None:
    plain = recording(12)
    found = judge(plain, ProgramRecording(plain.env_calls, plain.updates[:1]))
    assert found.difference is not None
    assert (found.difference.what, found.difference.plain, found.difference.fast) == ("number of updates", "4", "1")
    assert found.updates == 1
    shorter = recording(9)
    found = judge(plain, shorter)
    assert found.difference is not None
    assert found.difference.what == "number of updates"
    found = judge(recording(5), recording(4))
    assert found.difference is not None
    assert found.difference.what == "number of env steps"


def test_a_near_tie_that_flips_an_action_is_rounding_and_without_rounding_before_it_is_not() -> None:
    plain = recording(12)
    rounded = changed_update(plain, 0, "0.weight", 1.5 * (1 + 1e-9))
    flipped = changed_call(rounded, 10, "action", 7.0)
    assert judge(plain, rounded, 1e-6).ending == "same"
    assert judge(plain, rounded).ending == "different"
    found = judge(plain, flipped, 1e-6)
    assert (found.ending, found.env_steps) == ("rounding", 10)
    assert judge(plain, changed_call(plain, 10, "action", 7.0), 1e-6).ending == "different"
    assert judge(plain, changed_call(rounded, 10, "reward", 7.0), 1e-6).ending == "different"


def walked(moves: list[float], every_env: float = 1.0) -> ProgramRecording:
    """One parameter that moves by these lengths from 1,000 on, an env call before each update."""
    calls, updates, at = [], [Update(0, {"w": value(1000.0)}, 0)], 1000.0
    for number, move in enumerate(moves, 1):
        at += move
        calls.append(EnvCall(0, number, {"reward": value(every_env * number)}, 2 * number))
        updates.append(Update(number, {"w": value(at)}, 2 * number + 1))
    return ProgramRecording(calls, updates)


def test_rounding_is_measured_by_the_way_that_parameters_have_come() -> None:
    """However large they are: a tenth of a move of 1 is a ten-thousandth of 1,000, but no rounding."""
    plain = walked([1.0] * 50)
    assert judge(plain, walked([1.0] * 50), None).identical
    found = judge(plain, walked([1.0 + 1e-7] * 50), None)
    assert (found.ending, found.identical, found.updates) == ("same", False, 50)
    found = judge(plain, walked([1.0] * 20 + [1.1] + [1.0] * 29), None)
    assert (found.ending, found.updates) == ("different", 20)
    assert judge(plain, walked([1.0] * 50, every_env=1.0 + 1e-5), None).ending == "different"


def test_rounding_may_grow_but_not_jump_and_not_without_end() -> None:
    plain = walked([1.0] * 60)
    grows = [1.0 + min(1e-8 * 1.5**number, 0.5) for number in range(60)]
    found = judge(plain, walked(grows), None)
    assert found.ending == "rounding"
    assert 20 < found.updates < 45
    assert judge(plain, walked([1.0 + 1e-7] * 30 + [1.5] * 30), None).ending == "different"


def only(one: ProgramRecording, *kinds: str) -> ProgramRecording:
    return ProgramRecording(one.env_calls if "env" in kinds else [], one.updates if "updates" in kinds else [])


def test_what_only_one_shows_is_told_and_what_both_show_is_compared_to_its_end() -> None:
    plain, data = recording(12), ({}, {})
    names = ("old.py", "new.py")
    for fast, said in (
        (only(plain, "updates"), "24 env steps were seen in old.py only"),
        (only(plain, "env"), "4 updates were seen in old.py only"),
    ):
        assert judge(plain, fast).ending == "same"
        assert gaps((plain, fast), data, names)[0] == said
        assert gaps((fast, plain), data, names)[0] == said.replace("old.py", "new.py")
    wrong = only(changed_update(plain, 3, "0.bias", 9.0), "updates")
    assert judge(plain, wrong).ending == "different"
    one_env = ProgramRecording([call for call in plain.env_calls if call.env == 0], plain.updates)
    assert judge(plain, one_env).ending == "same"
    assert gaps((plain, one_env), data, names)[0] == "12 env steps were seen in old.py only"
    assert gaps((plain, plain), data, names) == []
    assert (
        gaps((ProgramRecording(), ProgramRecording()), data, names)[0] == "no env step and no update was seen in either"
    )
    quiet = only(plain, "env")
    assert gaps((quiet, quiet), data, names) == []
    assert (
        gaps((quiet, quiet), ({"others": ["jax"]}, {}), names)[0] == "no update was seen in either, and jax is loaded"
    )


def test_of_programs_that_we_ended_only_what_both_had_time_for_counts() -> None:
    plain, ended = (
        ProgramRecording(
            one.env_calls, [dataclasses.replace(made, env_steps=6 * made.number) for made in one.updates], {}, True
        )
        for one in (recording(12), recording(9))
    )
    for pair in ((plain, ended), (ended, plain)):
        assert judge(*pair).ending == "same"
        assert gaps(pair, ({}, {}), ("old.py", "new.py")) == []


def test_digests_alone_have_no_near() -> None:
    assert Fingerprint("a").error(Fingerprint("b")) == float("inf")
    assert Fingerprint("a", 2.0, (1.0,)).error(Fingerprint("b", 2.0, (1.5,))) == pytest.approx(0.25)
    assert Fingerprint("a", float("nan"), (1.0,)).error(Fingerprint("b", 2.0, (1.0,))) == float("inf")


def test_a_value_that_only_one_has_is_told() -> None:
    found = judge(recording(3), changed_call(recording(3), 0, "action_mask", 1.0)).difference
    assert found is not None
    assert (found.what, found.kind, found.plain) == ("action_mask", "keys", "none")


@given(st.integers(1, 20), st.integers(1, 3), st.data())
def test_a_change_is_found_where_it_was_made(env_steps: int, num_envs: int, data: st.DataObject) -> None:
    plain = recording(env_steps, num_envs)
    place = data.draw(st.integers(0, len(plain.env_calls) - 1))
    name = data.draw(st.sampled_from(["observation", "action", "reward"]))
    found = judge(plain, changed_call(plain, place, name, -5.0))
    call = plain.env_calls[place]
    assert found.difference is not None
    assert found.difference.what == name
    assert found.difference.when == f"at env step {call.step} of env {call.env}"
    before = [event for event in in_order(plain) if event.moment < call.moment]
    assert found.env_steps == sum(isinstance(event, EnvCall) for event in before)
    assert found.updates == sum(isinstance(event, Update) for event in before)


@given(st.integers(2, 15), st.data())
def test_of_two_changes_the_earlier_is_told(env_steps: int, data: st.DataObject) -> None:
    plain = recording(env_steps)
    first, second = data.draw(st.lists(st.integers(0, len(plain.env_calls) - 1), min_size=2, max_size=2, unique=True))
    changed = changed_call(changed_call(plain, first, "reward", -5.0), second, "observation", -5.0)
    found = judge(plain, changed).difference
    assert found is not None
    assert found.what == ("reward" if first < second else "observation")


@given(st.integers(1, 15), st.randoms(use_true_random=False))
def test_the_order_in_which_it_was_written_down_does_not_matter(env_steps: int, shuffle: object) -> None:
    plain = recording(env_steps)
    calls = list(plain.env_calls)
    shuffle.shuffle(calls)  # type: ignore[attr-defined]
    assert judge(ProgramRecording(calls, plain.updates), plain) == judge(plain, plain)
