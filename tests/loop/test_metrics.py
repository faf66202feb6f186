"""What a log row says, and that it costs one read from the device."""

import numpy as np
import pytest
import torch

from hotloop.core.errors import NonFiniteError
from hotloop.core.schedules import Counters
from hotloop.core.types import UpdateStats
from hotloop.lanes.q_objective import QObjective
from hotloop.loop.metrics import WINDOW_EPISODES, Metrics

MEASURES = QObjective.measures


def stats(*columns: tuple[float, float, float], numpy: bool = False) -> UpdateStats:
    scalars = np.array(columns, np.float32).T
    return UpdateStats(scalars if numpy else torch.from_numpy(scalars.copy()))


def noted(*many: UpdateStats) -> Metrics:
    metrics = Metrics(MEASURES)
    for one in many:
        metrics.note_updates(one)
    return metrics


@pytest.mark.parametrize("numpy", [False, True])
def test_a_row_holds_means_over_every_update_since_the_last(numpy):
    metrics = noted(stats((1, 10, 0), numpy=numpy), stats((2, 20, 0), (6, 60, 3), numpy=numpy))
    row = metrics.row(Counters(env_steps=5, updates=3, episodes=1))
    assert (row["loss"], row["q_mean"], row["gradient_norm"]) == (3.0, 30.0, 1.0)
    assert (row["env_steps"], row["updates"], row["episodes"]) == (5, 3, 1)
    assert metrics.row(Counters())["loss"] is None


def test_nothing_yet_is_none():
    row = Metrics(MEASURES).row(Counters())
    assert {row[name] for name in ("mean_return", "mean_length", *MEASURES)} == {None}


def test_returns_are_averaged_over_the_last_hundred_episodes():
    metrics = Metrics(MEASURES)
    metrics.note_episodes(np.full(50, 1_000.0), np.full(50, 9))
    metrics.note_episodes(np.arange(100.0), np.full(100, 3))
    row = metrics.row(Counters())
    assert (row["mean_return"], row["mean_length"]) == (49.5, 3.0)
    assert metrics.row(Counters())["mean_return"] == 49.5  # a window, not an interval
    assert WINDOW_EPISODES == 100


def test_one_read_from_the_device_per_row(monkeypatch):
    reads = []
    for name in ("cpu", "item", "tolist", "numpy", "__float__", "__bool__", "__array__"):
        original = getattr(torch.Tensor, name)

        def counted(self, *arguments, original=original, name=name, **options):
            reads.append(name)
            return original(self, *arguments, **options)

        monkeypatch.setattr(torch.Tensor, name, counted)
    metrics = noted(*(stats((1, 2, 3)) for _ in range(2_500)))
    assert reads == []
    assert metrics.row(Counters())["loss"] == 1.0
    assert reads == ["cpu", "numpy"]  # one copy, then a view of it


def test_many_small_calls_are_kept_compact_and_exact():
    metrics = noted(*(stats((value, 0, 0)) for value in range(2_001)))
    assert metrics.row(Counters())["loss"] == 1_000.0


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("position", range(3))
def test_a_number_that_is_none_stops_the_run_and_is_named(bad, position):
    column = [1.0, 1.0, 1.0]
    column[position] = bad
    metrics = noted(stats((1, 1, 1), tuple(column), (1, 1, 1)))
    with pytest.raises(NonFiniteError, match=MEASURES[position]) as caught:
        metrics.row(Counters(updates=3))
    assert caught.value.hint


@pytest.mark.parametrize("numpy", [False, True])
def test_a_restored_account_continues_exactly(numpy):
    one = noted(stats((1, 2, 3), (5, 6, 7), numpy=numpy))
    one.note_episodes(np.array([3.0, 4.0]), np.array([1, 2]))
    saved = one.state()
    other = Metrics(MEASURES)
    other.load_state(saved)
    for metrics in (one, other):
        metrics.note_updates(stats((9, 9, 9), numpy=numpy))
        metrics.note_episodes(np.array([5.0]), np.array([3]))
    assert one.row(Counters()) == other.row(Counters())


def test_restoring_replaces_what_was_there():
    one, other = Metrics(MEASURES), noted(stats((50, 50, 50)))
    one.note_episodes(np.array([1.0]), np.array([1]))
    other.note_episodes(np.array([100.0]), np.array([100]))
    other.load_state(one.state())
    assert other.row(Counters()) == one.row(Counters())


def test_the_state_of_an_empty_account_loads():
    metrics = Metrics(MEASURES)
    metrics.load_state(Metrics(MEASURES).state())
    assert metrics.row(Counters())["loss"] is None


def test_terms_of_a_reward_are_means_over_whole_episodes_and_survive_a_checkpoint():
    names = ("reward_a", "reward_b")
    metrics, again = Metrics(MEASURES, terms=names), Metrics(MEASURES, terms=names)
    ended = {"reward_a": np.array([1.0, 7.0, 3.0]), "reward_b": np.array([np.nan, 7.0, 4.0]), "other": np.zeros(3)}
    metrics.note_terms(ended, np.array([True, False, True]))
    again.load_state(metrics.state())
    for each in (metrics, again):
        row = each.row(Counters())
        assert (row["reward_a"], row["reward_b"]) == (2.0, 4.0)  # NaN: of an episode that was not seen whole
    assert Metrics(MEASURES, terms=names).row(Counters())["reward_a"] is None
    older = {name: value for name, value in metrics.state().items() if name != "terms"}
    again.load_state(older)
    assert again.row(Counters())["reward_b"] is None


def test_the_display_has_a_return_as_soon_as_an_episode_has_ended(capsys):
    """Not only with the next log row, thousands of env steps later."""
    from types import SimpleNamespace

    from hotloop.cli.progress import TerminalProgress

    metrics = Metrics(MEASURES)
    settings = SimpleNamespace(total_env_steps=100)
    session = SimpleNamespace(
        settings=settings, counters=Counters(), metrics=metrics, best=SimpleNamespace(env_steps=-1)
    )
    session.facts = dict
    timer = SimpleNamespace(last_ns=0, totals_ns=dict)
    progress = TerminalProgress()
    progress.show(session, timer)
    for last_ns, episode in ((10**10, None), (2 * 10**10, 7.5)):
        if episode is not None:
            metrics.note_episodes(np.array([episode]), np.array([3]))
        timer.last_ns = last_ns
        progress.show(session, timer)
    first, second = capsys.readouterr().err.splitlines()
    assert "return - " in first
    assert "return 7.5 " in second


def displayed(metrics, moments):
    """What a display without a terminal prints at each of these moments: (seconds, env steps, updates)."""
    from types import SimpleNamespace

    from hotloop.cli import progress as module

    now = [0.0]
    counters = Counters()
    session = SimpleNamespace(
        settings=SimpleNamespace(total_env_steps=4_000),
        counters=counters,
        metrics=metrics,
        best=SimpleNamespace(env_steps=-1),
        facts=dict,
    )
    timer = SimpleNamespace(last_ns=0, totals_ns=dict)
    progress = module.TerminalProgress()
    clock, module.time = module.time, SimpleNamespace(monotonic=lambda: now[0])
    try:
        for seconds, counters.env_steps, counters.updates in moments:
            now[0], timer.last_ns = seconds, int(seconds * 1e9)
            progress.show(session, timer)
    finally:
        module.time = clock


def test_the_rate_does_not_carry_the_warm_up_and_no_time_is_left_at_the_end(capsys):
    """1,000 env steps in a second of warm-up, then 100 a second: 20 seconds for the 2,000 left; the last batch of
    envs may go beyond the total."""
    moments = [(0.0, 0, 0), (1.0, 1_000, 1), (11.0, 2_000, 1_000), (31.0, 4_010, 3_000)]
    displayed(Metrics(MEASURES), moments)
    learning, ended = capsys.readouterr().err.splitlines()
    assert "rate 100 env steps/s | left 0:20" in learning
    assert "left 0:00" in ended


def test_the_display_has_a_loss_before_a_row_has_one(capsys):
    metrics = Metrics(MEASURES)
    metrics.note_updates(UpdateStats(np.array([[1.0, 3.0], [0.0, 0.0], [0.0, 0.0]], np.float32)))
    displayed(metrics, [(0.0, 0, 0), (10.0, 1_000, 2)])
    assert "loss 2 " in capsys.readouterr().err
    assert metrics.row(Counters())["loss"] == 2.0  # which takes them as if nobody had looked


def test_compiling_says_what_and_how_much_is_left(monkeypatch):
    from types import SimpleNamespace

    from hotloop.loop import machine

    now, said = [0.0], []
    monkeypatch.setattr(machine.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(machine, "uncompiled", lambda: 40)
    timer = SimpleNamespace(phase=lambda name: SimpleNamespace(__enter__=lambda: None, __exit__=lambda: None))
    listener = machine._CompileListener(timer, said.append)
    dispatcher = SimpleNamespace(py_func=SimpleNamespace(__name__="gather"))
    for seconds in (0.0, 1.0, 6.0):
        now[0] = seconds
        listener.on_start(SimpleNamespace(data={"dispatcher": dispatcher}))
        listener.on_end(None)
    assert said[0].startswith("compiling machine-code kernels that no run here has needed before, 40 at most")
    assert said[1:] == ["compiled 2 kernels, 40 left at most; now `gather`"]


def test_kernels_without_machine_code_are_counted_in_the_files_that_are_loaded():
    import hotloop.envs.cartpole_kernels  # noqa: F401
    from hotloop.loop.machine import uncompiled

    before = uncompiled()
    assert before > 0
