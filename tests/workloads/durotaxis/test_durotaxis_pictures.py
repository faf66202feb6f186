"""A known colony, drawn: text as a reader sees it, the colors of a few pixels, and an episode watched to its end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hotloop import api
from hotloop.cli import watch
from hotloop.core.rng import derive_seeds
from hotloop.envs.registry import AtRandom
from hotloop.presets.env_settings import EnvSettings
from hotloop.viewing.play import Episode, play_episodes
from hotloop.viewing.scenes import make_scene
from hotloop.viewing.screen import size_of
from hotloop.workloads.durotaxis import draw
from hotloop.workloads.durotaxis import picture as field
from hotloop.workloads.durotaxis.baselines import Forward
from hotloop.workloads.durotaxis.env import Durotaxis
from hotloop.workloads.durotaxis.picture import (
    ACTIONS,
    FIELD,
    GOAL_LINE,
    NEW,
    OLD,
    PROFILE,
    SOFT,
    STIFF,
    TRACES,
    TRACK,
    YOUNG,
    Past,
    age_color,
    horizon,
    picture,
)


def colony(**changes: Any) -> dict[str, Any]:
    """Three nodes in the usual field, the right-most just born."""
    return {
        "positions": np.array([[60.0, 300.0], [61.0, 300.0], [300.0, 100.0]]),
        "ages": np.array([20, 1, 0]),
        "edges": np.array([[0, 1], [1, 2]]),
        "field": [600.0, 400.0],
        "substrate": "linear",
        "m": 0.05,
        "b": 1.0,
        "centroid": [140.0, 233.0],
        "step": 1,
        "action": [0.35, 0.5, 4.0, 0.5, 0.0],
        **changes,
    }


def past_of(*moments: dict[str, Any]) -> Past:
    past = Past(highest_ratio=0.7)
    for moment in moments:
        past.add(moment)
    return past


def played(**options: Any) -> tuple[Episode, Any]:
    """The forward rule to the end of an episode."""
    settings = EnvSettings(id="durotaxis", options=options)
    rule = Forward(Durotaxis(1, np.zeros(1, np.uint64), **options))
    *_, last = play_episodes(rule, settings, 1, 0, trust=False, pictures=True)
    return last, last.scene


def test_a_colony_in_plain_characters() -> None:
    start = colony(positions=np.array([[1.0, 1.0]]), ages=np.array([0]), edges=np.empty((0, 2), int), step=0)
    start["centroid"] = [1.0, 1.0]
    lines = draw.text_of(colony(), past_of(start, colony()), color=False).split("\n")
    goal = 70  # 0.95 of 74 columns
    assert lines[0] == "step 1   3 nodes   2 edges   linear m 0.05 b 1"
    assert lines[1] == "+" + "-" * 74 + "+"
    assert lines[4] == "|" + " " * 7 + "2" + " " * (goal - 8) + ":   |"  # two at a tenth, a quarter down
    assert lines[9] == "|" + " " * 37 + "o" + " " * (goal - 38) + ":   |"
    assert lines[12].startswith("+        .......:::::::--------===")
    assert lines[12].endswith("@@@+")
    assert lines[13:] == [
        "centroid x    140.00  0 to 600        02",
        "stiffness       8.00  1 to 31         02",
        "delete ratio    0.35  0 to 0.7        5",
        "gamma           0.50  0.5 to 15       0",
        "alpha           4.00  0.5 to 4        9",
        "noise           0.50  0.05 to 0.5     9",
        "theta           0.00  -30 to 30       5",
    ]


def test_the_colored_text_fits_a_usual_terminal_however_long_the_episode() -> None:
    crowd = colony(positions=np.tile([[599.0, 399.0]], (12, 1)), ages=np.zeros(12, int), step=1000)
    crowd |= {"substrate": "exponential", "m": 0.00217, "b": 1.4713}
    text = draw.text_of(crowd, past_of(*[crowd] * 1_001), color=True)
    columns, rows = size_of(text)
    assert columns < 80
    assert rows <= 20  # of 24, three being taken by numbers and keys
    assert "\x1b[38;2;64;210;130m#" in text  # twelve in one place, all new
    assert text.split("\n")[-1].endswith("▅" * draw.TRACE)


def test_a_colony_is_drawn_where_it_is_on_ground_that_grows_brighter() -> None:
    frame = picture(colony(), past_of(colony(), colony()))
    assert frame.shape == (656, 1000, 3)
    assert frame.dtype == np.uint8
    assert tuple(frame[FIELD.bottom - 100, FIELD.left + 300]) == NEW
    assert tuple(frame[FIELD.bottom - 300, FIELD.left + 61]) == YOUNG
    assert tuple(frame[FIELD.top + 4, FIELD.left + 570]) == GOAL_LINE
    np.testing.assert_allclose(frame[FIELD.top + 4, FIELD.left], SOFT, atol=1)
    np.testing.assert_allclose(frame[FIELD.top + 4, FIELD.right - 1], STIFF, atol=1)


def test_a_small_colony_is_shown_larger_in_a_corner_and_a_wide_one_is_not() -> None:
    """Right of the middle and above it: the glass is at the lower left."""
    corner = (FIELD.bottom - 13, FIELD.left + 13)
    small = colony(positions=np.array([[500.0, 210.0], [510.0, 210.0], [505.0, 220.0]]), centroid=[505.0, 213.0])
    wide = colony()
    glass, plain = (picture(one, past_of(one))[corner] for one in (small, wide))
    assert glass.sum() < plain.sum()
    np.testing.assert_allclose(plain, SOFT, atol=2)


def test_the_profile_the_track_and_the_traces_follow_the_numbers() -> None:
    now = colony(action=[0.7, 15.0, 0.5, 0.05, 30.0])
    frame = picture(now, past_of(*[now] * 26))  # 25 steps: the whole of both axes
    column = frame[PROFILE.top : PROFILE.bottom, PROFILE.left + 200]  # from 1 at the left to 31 at the right, 290 wide
    (rows,) = np.nonzero((column == YOUNG).all(axis=-1))
    assert rows.mean() + 0.5 == pytest.approx(PROFILE.height * (1 - 0.92 * (31 * 200 + 90) / 290 / 31), abs=1)
    assert _has(frame[TRACK.top : TRACK.bottom, TRACK.left + 300], (216, 220, 228))
    heights = [_row_of(frame, index) for index in range(5)]
    assert heights == ["top", "top", "bottom", "bottom", "top"]
    empty = picture(now, past_of(now))
    assert not _has(empty[ACTIONS.top + 30 : ACTIONS.top + 60, ACTIONS.left + 100], TRACES[0])


def _has(pixels: np.ndarray, color: tuple[int, int, int]) -> bool:
    return bool((pixels == color).all(axis=-1).any())


def _row_of(frame: np.ndarray, index: int) -> str:
    """Whether a trace runs along the upper or the lower end of its strip."""
    height = ACTIONS.height // 5
    top = ACTIONS.top + index * height + 24
    strip = frame[top : top + height - 32, ACTIONS.left + 100]
    (rows,) = np.nonzero((strip == TRACES[index]).all(axis=-1))
    return "top" if rows.mean() < len(strip) / 2 else "bottom"


def test_nodes_turn_from_new_through_young_to_old() -> None:
    assert [age_color(age) for age in (0, 1, 10, 999)] == [NEW, YOUNG, OLD, OLD]


def test_an_axis_of_steps_grows_by_leaps() -> None:
    assert [horizon(steps) for steps in (0, 25, 26, 600, 1_000, 1_001)] == [25, 25, 50, 1_000, 1_000, 2_000]


@pytest.mark.parametrize("size", [(20.0, 100_000.0), (100_000.0, 20.0), (50.0, 50.0)])
def test_fields_of_any_shape_and_empty_colonies_can_be_drawn(size: tuple[float, float]) -> None:
    width, height = size
    envs = Durotaxis(2, derive_seeds(0, 2, "env"), width=width, height=height)
    envs.reset()
    assert draw.frame(envs.get_state(), 0).shape == (656, 1000, 3)
    nobody = colony(positions=np.empty((0, 2)), ages=np.empty(0, int), edges=np.empty((0, 2), int), field=list(size))
    assert picture(nobody, past_of(nobody)).shape == (656, 1000, 3)
    assert "0 nodes" in draw.text_of(nobody, past_of(nobody), color=False)
    assert draw.text(envs.get_state(), 1, color=False).count("o") >= 1


def test_flat_ground_has_one_shade() -> None:
    assert np.ptp(field.shades(colony(m=0.0), 10), axis=0).max() == 0


def test_an_episode_remembers_its_way_and_ends_at_the_goal() -> None:
    last, scene = played(substrate="exponential")
    assert isinstance(scene, draw.DurotaxisScene)
    assert last.stats["success"]
    assert scene.measures() == {"centroid": last.stats["final_centroid"], "colony_size": 6}
    rows = scene.text(color=False).split("\n")
    assert rows[0].startswith(f"step {last.length} ")
    track = rows[13].split()[-1]
    assert len(track) == min(last.length + 1, draw.TRACE)
    assert list(track) == sorted(track)  # it only ever moved right
    reached = scene.frame()[12:30, 850:980]
    assert _has(reached, NEW)  # "goal reached"


def test_a_second_episode_begins_without_a_past() -> None:
    scene = make_scene(EnvSettings(id="durotaxis"), 0, trust=False, pictures=True)
    policy = AtRandom(scene.envs.action_spec, 0)
    for steps in (5, 2):
        obs, mask = scene.envs.reset()
        scene.note(None)
        for _ in range(steps):
            step = scene.envs.step(policy.act(obs, mask))
            scene.note(step)
            obs, mask = step.obs, step.action_mask
    gamma = scene.text(color=False).split("\n")[16].split()
    assert gamma[0] == "gamma"
    assert len(gamma[-1]) == 2


def test_where_nodes_choose_the_ratio_is_the_share_that_was_deleted() -> None:
    _, scene = played(action="per_node")
    ratio = scene.text(color=False).split("\n")[15].split()
    assert ratio[:6] == ["delete", "ratio", "0.50", "0", "to", "1"]  # of six nodes three


def test_a_run_is_watched_as_pictures_and_as_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = str(tmp_path / "run")
    tiny: dict[str, Any] = {
        "env": {"num_envs": 2, "options": {"max_nodes": 30, "max_steps": 4}},
        "network": {"graph": {"width": 8, "heads": 2, "layers": 1, "groups": 2, "feed_forward": 8}},
        "evaluation": {"episodes": 2, "final_episodes": 2},
    }
    api.train(api.preset("durotaxis-ppo", total_env_steps=16, rollout_steps=8, batch_size=8, **tiny, run_dir=run))
    capsys.readouterr()
    assert watch.run([run, "--frames", str(tmp_path / "frames"), "--json"]) == 0
    (episode,) = json.loads(capsys.readouterr().out)["episodes"]
    assert {"success", "final_centroid", "colony_size"} <= episode.keys()
    assert len(list((tmp_path / "frames").iterdir())) == episode["length"] + 1
    assert api.evaluate(run, episodes=1)["mean_return"] == pytest.approx(episode["return"])
