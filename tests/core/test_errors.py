"""The tree of user mistakes."""

import pytest

from hotloop.core import errors


def test_a_hint_is_shown_below_the_message_and_only_where_there_is_one():
    assert str(errors.SettingsError("wrong", "do that")) == "wrong\n\nhint: do that"
    assert str(errors.SettingsError("wrong")) == "wrong"


@pytest.mark.parametrize(
    "name", ["SettingsError", "EnvError", "LaneError", "NonFiniteError", "MissingExtraError", "RunError"]
)
def test_every_mistake_is_a_hotloop_error(name):
    assert issubclass(getattr(errors, name), errors.HotloopError)


def test_a_damaged_checkpoint_is_a_mistake_about_a_run():
    assert issubclass(errors.CheckpointError, errors.RunError)


def test_the_drawn_tree_names_every_class():
    classes = {name for name, value in vars(errors).items() if isinstance(value, type)}
    assert all(name in errors.__doc__ for name in classes)
