"""Our own loop, run an interval at a time and with one thing changed."""

import contextlib

import pytest

from hotloop import api
from hotloop.core.values import exact_fraction
from hotloop.diagnosis.training_loop import TrainingLoop
from hotloop.diagnosis.variations import training_alone, variations
from hotloop.loop.cadence import UpdatePlan


@pytest.fixture
def settings():
    return api.preset("cartpole-dqn", env={"num_envs": 4}, learning_starts=100, total_env_steps=2_000)


def test_a_stretch_counts_what_it_did_and_its_phases_sum_to_its_time(settings, tmp_path):
    with contextlib.closing(TrainingLoop(settings, tmp_path / "run")) as loop:
        first, second = loop.advance(400), loop.advance(1)
        assert (first.env_steps, second.env_steps) == (400, 4)
        assert first.updates == loop.counts().updates - second.updates > 0
        assert sum(first.phases.values()) == pytest.approx(first.seconds)
        assert {"act", "env", "store", "sample", "update"} <= set(first.phases)
        assert loop.counts().env_calls == 101


def test_stretches_train_exactly_as_one_run_does(settings, tmp_path):
    with contextlib.closing(TrainingLoop(settings, tmp_path / "one")) as whole:
        whole.advance(1_200)
    with contextlib.closing(TrainingLoop(settings, tmp_path / "two")) as parts:
        for _ in range(3):
            parts.advance(400)
    assert (whole.session.learner.lane.parameters() == parts.session.learner.lane.parameters()).all()


def test_a_loop_at_its_end_goes_no_further(settings, tmp_path):
    with contextlib.closing(TrainingLoop(settings, tmp_path / "run")) as loop:
        assert loop.advance(10_000).env_steps == 2_000
        assert loop.advance(1).env_steps == 0


def test_every_variation_changes_one_thing_and_says_whether_it_is_exact(settings):
    alone = training_alone(settings, "native")
    made = {one.name: one for one in variations(alone, "native", ["eager", "compiled", "native"], cores=2)}
    assert list(made) == [
        "control", "no updates", "updates x1/4", "updates x1/16", "num_envs 1", "num_envs 32", "logging off",
        "lane eager", "lane compiled", "threads 2",
    ]  # fmt: skip
    assert made["control"].settings == alone
    assert made["num_envs 32"].settings.env.num_envs == 32
    assert made["lane eager"].kind == "to rounding"
    assert made["updates x1/4"].kind == "changes learning"


def test_more_envs_warm_up_until_their_first_rows_of_several_steps_are_stored():
    settings = api.preset("snake-dqn", env={"num_envs": 16}, n_step=3, learning_starts=40)
    made = {one.name: one.settings for one in variations(training_alone(settings, "native"), "native", [], cores=1)}
    assert [made[f"num_envs {games}"].learning_starts for games in (32, 64, 256)] == [64, 128, 512]
    many = training_alone(api.preset("snake-dqn", env={"num_envs": 2_048}, n_step=3, learning_starts=9_000), "native")
    assert many.learning_starts == 4_096


def test_fewer_updates_keep_bursts_that_share_a_batch_whole():
    slm = training_alone(api.preset("cartpole-slm"), "native")  # bursts of updates that share a batch
    for one in variations(slm, "native", [], cores=1):
        if one.name.startswith("updates"):
            assert one.settings.updates_per_batch == slm.updates_per_batch


def test_expensive_observations_are_taken_off_only_where_there_are_any():
    snake = training_alone(api.preset("snake-dqn"), "native")
    found = {one.name: one for one in variations(snake, "native", [], cores=1)}
    assert found["basic observation"].settings.env.options["observation"] == "basic"
    cartpole = training_alone(api.preset("cartpole-dqn"), "native")
    assert "basic observation" not in {one.name for one in variations(cartpole, "native", [], cores=1)}


def test_snake_is_looked_into_with_the_arms_of_its_plan():
    """64, 16 and 1 updates per vector step, 16 at every 4th; 32, 64 and 256 games."""
    arms = {}
    for name in ("snake-original-64", "snake-original-1", "snake-dqn"):
        made = variations(training_alone(api.preset(name), "native"), "native", [], cores=1)
        arms[name] = {one.name: one for one in made if "update" in one.name or "num_envs" in one.name}
    sixteen = ["16 updates", "1 update", "16 updates, every 4th step", "num_envs 32", "num_envs 64"]
    assert list(arms["snake-original-64"]) == ["no updates", *sixteen]  # 64 it makes already
    many = ["64 updates", "16 updates", "16 updates, every 4th step"]
    assert list(arms["snake-original-1"])[:4] == ["no updates", *many]
    assert list(arms["snake-dqn"])[-2:] == ["num_envs 32", "num_envs 256"]
    fourth = arms["snake-original-64"]["16 updates, every 4th step"].settings
    plan = UpdatePlan(exact_fraction(fourth.updates_per_env_step), fourth.train_every, fourth.learning_starts, 64)
    due = [sum(plan.due(256 * step, 256 * step + 256)) for step in range(8, 16)]
    assert due == [0, 0, 0, 16, 0, 0, 0, 16]
    assert {one.kind for one in arms["snake-dqn"].values()} == {"changes learning"}


def test_rollouts_are_taken_as_whole_stretches_and_have_variations_of_their_own(tmp_path):
    settings = api.preset("cartpole-ppo", env={"num_envs": 2}, rollout_steps=32, batch_size=32)
    with contextlib.closing(TrainingLoop(settings, tmp_path / "run")) as loop:
        stretch = loop.advance(100)
        assert stretch.env_steps == 128  # two rollouts of 64 rows
        assert stretch.updates == 2 * settings.n_epochs * 2
        assert {"act", "env", "store", "advantage", "update"} <= set(stretch.phases)
        assert loop.counts().env_calls == 64
    made = {one.name: one for one in variations(training_alone(settings, "native"), "native", ["eager"], cores=1)}
    assert list(made) == ["control", "one epoch", "num_envs 1", "num_envs 16", "logging off", "lane eager"]
    assert made["num_envs 16"].settings.rollout_rows == settings.rollout_rows
