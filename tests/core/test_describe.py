"""Every setting explains itself."""

import dataclasses

import pytest

from hotloop.core.describe import describe, field_docs
from hotloop.core.settings import field_types, leaf_types
from hotloop.presets.dqn_settings import DQNSettings

ROWS = describe(DQNSettings)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.path)
def test_every_setting_has_a_meaning(row):
    assert len(row.meaning) > 10
    assert row.meaning[0] in "`(" or row.meaning[0].isupper() or row.meaning[0].isdigit()
    assert row.meaning.endswith((".", ")")), row.meaning
    assert row.type


def test_every_settable_path_is_described_once_and_in_order():
    assert [row.path for row in ROWS] == list(leaf_types(DQNSettings))


def test_defaults_are_those_of_the_whole_not_of_the_part():
    defaults = {row.path: row.default for row in ROWS}
    assert defaults["exploration.kind"] == "linear"  # a bare Schedule is constant
    assert defaults["optimizer.lr_schedule.kind"] == "constant"
    assert defaults["network.hidden"] == (64, 64)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sample:
    first: int = 1
    """The first,
    over two lines."""
    second: int = 2
    third: int = 3
    """The third."""


def test_a_meaning_is_the_string_right_below_its_field():
    assert field_docs(Sample) == {"first": "The first, over two lines.", "third": "The third."}
    assert [row.meaning for row in describe(Sample)] == ["The first, over two lines.", "", "The third."]


def settings_classes(cls: type) -> list[type]:
    nested = [hint for hint in field_types(cls).values() if dataclasses.is_dataclass(hint)]
    return [cls, *(below for part in nested for below in settings_classes(part))]


@pytest.mark.parametrize("cls", dict.fromkeys(settings_classes(DQNSettings)), ids=lambda cls: cls.__name__)
def test_settings_are_frozen_keyword_only_and_have_defaults(cls):
    assert cls.__dataclass_params__.frozen
    assert all(field.kw_only for field in dataclasses.fields(cls))
    cls()
