"""Every one-edit typo of every key is an error that suggests the right key, from a file and from the command line."""

import functools
import re
from collections.abc import Iterator
from typing import Any

import pytest

from hotloop.core import settings as loader
from hotloop.core.errors import SettingsError
from hotloop.core.overrides import parse_overrides
from hotloop.core.settings import build, leaf_types
from hotloop.core.vocabulary import ELSEWHERE
from hotloop.presets.dqn_settings import DQNSettings
from hotloop.presets.ppo_settings import PPOSettings

KEYS = list(leaf_types(DQNSettings))
TABLES = sorted({key.rsplit(".", depth)[0] for key in KEYS for depth in range(1, key.count(".") + 1)})
_NEAREST = loader.nearest


def one_edit(word: str) -> Iterator[str]:
    """Delete, swap, substitute and insert at each position; the letter changes with the position."""
    for i in range(len(word) + 1):
        letter = "exqas"[i % 5]
        yield word[:i] + letter + word[i:]
        if i < len(word):
            yield word[:i] + word[i + 1 :]
            yield word[:i] + ("_" if i % 7 == 3 else letter) + word[i + 1 :]
        if i + 1 < len(word):
            yield word[:i] + word[i + 1] + word[i] + word[i + 2 :]


def distance(a: str, b: str) -> int:
    """Insertions, deletions, substitutions and swaps of neighbors between two words."""
    rows = [[i + j if i * j == 0 else 0 for j in range(len(b) + 1)] for i in range(len(a) + 1)]
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            rows[i][j] = min(rows[i - 1][j] + 1, rows[i][j - 1] + 1, rows[i - 1][j - 1] + (a[i - 1] != b[j - 1]))
            if i > 1 and j > 1 and a[i - 1] == b[j - 2] and a[i - 2] == b[j - 1]:
                rows[i][j] = min(rows[i][j], rows[i - 2][j - 2] + 1)
    return rows[-1][-1]


def typos(name: str) -> list[str]:
    real = {*KEYS, *TABLES}
    return [typo for typo in dict.fromkeys(one_edit(name)) if typo not in real]


def suggestion(error: SettingsError) -> str:
    found = re.search(r"did you mean `([^`]+)`", error.hint)
    return found.group(1) if found else ""


def nested(path: str, value: Any) -> dict[str, Any]:
    for name in reversed(path.split(".")):
        value = {name: value}
    return value


def is_right(suggested: str, key: str, typo: str) -> bool:
    return suggested == key or (suggested in KEYS and distance(suggested, typo) <= 1)


@pytest.fixture(autouse=True)
def quick_nearest(monkeypatch):
    """The same answers, each worked out once: the two ways in ask for the same paths."""
    cached = functools.cache(lambda wrong: _NEAREST(wrong, [*KEYS, *TABLES]))
    monkeypatch.setattr(loader, "nearest", lambda wrong, known: cached(wrong))


@pytest.mark.parametrize("key", KEYS)
def test_a_typo_in_the_last_part_of_a_key_suggests_it(key):
    folder, _, last = key.rpartition(".")
    for typo in typos(last):
        path = f"{folder}.{typo}" if folder else typo
        if path in KEYS or path in TABLES or typo == "":
            continue
        with pytest.raises(SettingsError) as from_file:
            build(DQNSettings, nested(path, 1))
        with pytest.raises(SettingsError) as from_text:
            parse_overrides([f"--{path.replace('_', '-')}", "1"], DQNSettings)
        for caught in (from_file, from_text):
            assert f"unknown setting `{path}`" in caught.value.message
            assert is_right(suggestion(caught.value), key, path), (path, str(caught.value))


@pytest.mark.parametrize("table", TABLES)
def test_a_typo_in_the_name_of_a_table_suggests_something_of_that_table(table):
    wrong = {}
    for typo in typos(table.rpartition(".")[2]):
        path = ".".join([*table.split(".")[:-1], typo])
        if path in KEYS or path in TABLES:
            continue
        with pytest.raises(SettingsError) as caught:
            build(DQNSettings, nested(path, {"x": 1}))
        near = suggestion(caught.value)
        if not (near == table or near.startswith(f"{table}.")):
            wrong[path] = near
    assert not wrong


@pytest.mark.parametrize("key", [key for key in KEYS if "." in key])
def test_a_typo_in_the_first_part_of_a_command_line_key_suggests_the_whole_key(key):
    first, _, rest = key.partition(".")
    for typo in typos(first)[::3]:
        path = f"{typo}.{rest}"
        with pytest.raises(SettingsError) as caught:
            parse_overrides([f"--{path}", "1"], DQNSettings)
        assert is_right(suggestion(caught.value), key, path), (path, str(caught.value))


def test_a_forgotten_folder_is_suggested_too():
    with pytest.raises(SettingsError) as caught:
        parse_overrides(["--num-envs", "8"], DQNSettings)
    assert suggestion(caught.value) == "env.num_envs"


def test_nonsense_suggests_the_list_instead_of_a_guess():
    with pytest.raises(SettingsError) as caught:
        build(DQNSettings, {"qqqqqqqqqqqq": 1})
    assert suggestion(caught.value) == ""
    assert "hotloop settings dqn" in caught.value.hint


@pytest.mark.parametrize(
    ("foreign", "dqn", "ppo"),
    [
        ("learning_rate", "optimizer.learning_rate", "optimizer.learning_rate"),
        ("lr", "optimizer.learning_rate", "optimizer.learning_rate"),
        ("buffer_size", "replay.buffer_size", None),
        ("start_steps", "learning_starts", None),
        ("train_freq", "train_every", None),
        ("gradient_steps", "updates_per_env_step", None),
        ("exploration_fraction", "exploration.over", None),
        ("target_update_interval", "target.every", None),
        ("n_steps", "n_step", "rollout_steps"),
        ("entropy_coef", None, "ent_coef"),
        ("value_coef", None, "vf_coef"),
        ("clip_coef", None, "clip_range"),
        ("total_timesteps", "total_env_steps", "total_env_steps"),
        ("policy_kwargs", "network.hidden", "network.hidden"),
        ("num_envs", "env.num_envs", "env.num_envs"),
        ("max_grad_norm", "optimizer.max_grad_norm", "optimizer.max_grad_norm"),
        ("env_id", "env.id", "env.id"),
    ],
)
def test_what_other_libraries_call_a_setting_leads_to_ours(foreign, dqn, ppo):
    for cls, ours in ((DQNSettings, dqn), (PPOSettings, ppo)):
        with pytest.raises(SettingsError, match=f"unknown setting `{foreign}`") as caught:
            build(cls, {foreign: 1})
        assert ours is None or f"did you mean `{ours}`" in caught.value.hint


@pytest.mark.parametrize(
    ("typo", "ours"),
    [
        ("lerning_rate", "optimizer.learning_rate"),
        ("bufer_size", "replay.buffer_size"),
        ("learning_start", "learning_starts"),
        ("total_timestep", "total_env_steps"),
        ("gama", "gamma"),  # one of ours is nearer than anybody's
        ("bach_size", "batch_size"),
    ],
)
def test_a_typo_in_what_other_libraries_call_a_setting_leads_to_ours(typo, ours):
    with pytest.raises(SettingsError) as caught:
        build(DQNSettings, {typo: 1})
    assert f"did you mean `{ours}`" in caught.value.hint


def test_every_name_that_others_use_leads_to_a_setting_that_is_there_and_is_none_of_ours():
    ours = {cls: set(leaf_types(cls)) for cls in (DQNSettings, PPOSettings)}
    for foreign, places in ELSEWHERE.items():
        for path, _ in places:
            assert any(path in known for known in ours.values()), path
        assert not all(foreign in known for known in ours.values()), foreign
