"""Rules about how rows are drawn, what envs ask and what loggers drop, on traces made by hand."""

from __future__ import annotations

import pytest

from hotloop.doctor.finding import expected_gain
from hotloop.doctor.trace import Counts
from tests.doctor.rule_traces import call, found, grown, judge, line, made, stack

SAMPLE = "store-and-sample"


def test_going_through_all_priorities_is_found_by_what_it_costs() -> None:
    lines = [
        line(9, 4.0, SAMPLE, "self.priorities[row] = max(self.priorities)"),
        line(12, 2.0, SAMPLE, "rows = rng.choice(n, size, p=weight / weight.sum())"),
    ]
    finding = found("STORE006", made({SAMPLE: 7.0}, lines=lines, calls=[call("builtins.max", 9, SAMPLE, 100)]))
    assert finding.where == "train.py:9"
    assert "2 lines that go through all priorities take 60 % of the loop, 20,000 microseconds" in finding.evidence
    assert finding.expected_gain == pytest.approx(expected_gain(0.6, 40))
    cheap = [line(9, 4.0, SAMPLE, "top = max(top, priorities.max())")]
    many = Counts(env_steps=1_000_000, env_calls=1_000_000, updates=1_000_000)
    assert judge("STORE006", made({SAMPLE: 7.0}, lines=cheap, counts=many)) is None, "4 microseconds: of a batch"
    assert judge("STORE006", made({"env": 7.0}, lines=[line(9, 4.0, "env", "max(self.priorities)")])) is None


def test_a_tree_that_is_walked_leaf_by_leaf() -> None:
    """100 updates, 3,200 walks, 3 of 10 seconds: 30 milliseconds each time."""
    lines = [line(9, 2.0, SAMPLE, "node //= 2", "SumTree.find"), line(20, 1.0, "other", "change", "SumTree.put")]
    calls = [call("user:SumTree.find", 7, SAMPLE, 320), call("user:Memory.sample", 40, SAMPLE, 10)]
    finding = found("STORE011", made({SAMPLE: 7.0}, lines=lines, calls=calls))
    assert (finding.where, finding.share) == ("train.py:9", pytest.approx(0.2))
    assert "32 calls of a tree's methods per update (most often `SumTree.find`)" in finding.evidence
    at_once = [call("user:SumTree.find", 7, SAMPLE, 10), call("user:SumTree.put", 18, SAMPLE, 20)]
    assert judge("STORE011", made({SAMPLE: 7.0}, lines=lines, calls=at_once)) is None, "all rows of a batch"
    playing = [call("user:SearchTree.walk", 7, "act", 320)]
    assert judge("STORE011", made({"act": 7.0}, lines=lines, calls=playing)) is None, "a tree search that acts"


def test_a_few_rows_drawn_by_shuffling_all() -> None:
    lines = [line(9, 3.0, SAMPLE, "rows = np.random.choice(len(self), size, replace=False)")]
    finding = found("STORE007", made({SAMPLE: 4.0}, lines=lines))
    assert "30,000 microseconds per update to draw a few rows by shuffling all: 30 %" in finding.evidence
    assert finding.expected_gain == pytest.approx(expected_gain(0.3, 500))
    assert found("STORE007", made({SAMPLE: 4.0}, lines=[line(9, 3.0, SAMPLE, "rows = rng.permutation(n)[:64]")]))
    often = Counts(env_steps=100_000, env_calls=100_000, updates=100_000)
    assert judge("STORE007", made({SAMPLE: 4.0}, lines=lines, counts=often)) is None, "30 microseconds each"
    kept = [line(9, 3.0, SAMPLE, "rows = rng.choice(n, size)")]
    assert judge("STORE007", made({SAMPLE: 4.0}, lines=kept)) is None


@pytest.mark.parametrize(
    "source",
    [
        "states = np.array(self.states)[index]",
        "batch = random.sample(list(self.memory), size)",
        "obs = torch.stack(list(self.obs))",
        "rows = self.buffer.copy()",
    ],
)
def test_a_buffer_copied_whole_for_a_batch(source: str) -> None:
    finding = found("STORE008", made({SAMPLE: 4.0}, lines=[line(9, 3.0, SAMPLE, source)]))
    assert finding.evidence == "30,000 microseconds per update to copy whole containers: 30 % of the loop."
    assert finding.expected_gain == pytest.approx(expected_gain(0.3, 60, relief=1.0))


@pytest.mark.parametrize("source", ["obs = np.array(obs)", "self.obs[i] = obs.copy()", "x = np.array(self.obs[rows])"])
def test_a_batch_made_into_an_array_is_no_copy_of_the_buffer(source: str) -> None:
    assert judge("STORE008", made({SAMPLE: 4.0}, lines=[line(9, 3.0, SAMPLE, source)])) is None


def test_a_rollout_copied_once_and_learned_from_is_no_waste() -> None:
    lines = [line(9, 3.0, SAMPLE, "obs = np.array(self.obs)")]
    assert judge("STORE008", made({SAMPLE: 4.0}, lines=lines, calls=[call("numpy.array", 9, SAMPLE, 1)])) is None


def test_growth_that_a_copy_explains_is_left_to_it() -> None:
    costs = [100.0 + 20 * place for place in range(10)]
    growth = (grown("env step", *costs), grown(SAMPLE, *[cost - 80 for cost in costs]))
    lines = [line(9, 6.0, SAMPLE, "obs = np.array(self.obs)[rows]")]
    assert found("GROW001", made({SAMPLE: 7.0}, growth=growth))
    assert judge("GROW001", made({SAMPLE: 7.0}, growth=growth, lines=lines)) is None


def test_a_loader_is_found_by_the_time_inside_it() -> None:
    frames = ("train (train.py:9)", "_BaseDataLoaderIter.__next__ (torch/utils/data/dataloader.py:700)")
    lines = [line(9, 5.0, "update", "for batch in loader:")]
    trace = made({"update": 8.0}, lines=lines, stacks=[stack(5.0, "update", *frames)])
    finding = found("STORE010", trace)
    assert finding.where == "train.py:9"
    assert finding.expected_gain == pytest.approx(expected_gain(0.5, 12))
    assert judge("STORE010", made({"update": 8.0}, lines=lines)) is None


def test_rows_that_a_library_collates_without_a_loader_are_not_blamed_on_one() -> None:
    frames = ("train (train.py:9)", "default_collate (torch/utils/data/_utils/collate.py:398)")
    lines = [line(9, 5.0, "update", "train_agent(agent, env)")]
    assert judge("STORE010", made({"update": 8.0}, lines=lines, stacks=[stack(5.0, "update", *frames)])) is None


def test_a_data_frame_in_the_env_is_found() -> None:
    lines = [line(9, 4.0, "env", "today = prices.iloc[day]", "Market.step")]
    calls = [call("pandas._LocationIndexer.__getitem__", 9, "env", 100)]
    finding = found("ENV008", made({"env": 5.0}, lines=lines, calls=calls))
    assert "1 calls of pandas per call of `step`" in finding.evidence
    assert finding.expected_gain == pytest.approx(expected_gain(0.4, 50))
    seldom = [call("pandas._LocationIndexer.__getitem__", 9, "env", 5)]
    assert judge("ENV008", made({"env": 5.0}, lines=lines, calls=seldom)) is None


def reset_stack(seconds: float) -> list:
    frames = ("train (train.py:50)", "Arm.step (train.py:40)", "Arm.reset (train.py:9)", "load (train.py:3)")
    return [stack(seconds, "env", *frames)]


def test_resets_that_take_long_are_found_on_the_line_of_reset() -> None:
    counts = Counts(env_steps=1000, env_calls=1000, episodes=100, updates=100)
    finding = found("ENV009", made({"env": 5.0}, counts=counts, stacks=reset_stack(4.0)))
    assert finding.where == "train.py:9"
    assert finding.evidence.startswith(
        "100 resets of 40,000 microseconds each take 40 % of the loop; an env step takes"
    )
    assert finding.expected_gain == pytest.approx(expected_gain(0.4, 15))


def test_many_short_episodes_with_cheap_resets_are_no_finding() -> None:
    counts = Counts(env_steps=1000, env_calls=1000, episodes=900, updates=100)
    assert judge("ENV009", made({"env": 5.0}, counts=counts, stacks=reset_stack(2.0))) is None


def test_heavy_envs_in_one_process_are_found_where_a_core_is_left() -> None:
    counts = Counts(env_steps=8000, env_calls=1000, envs=1, updates=100)
    calls = [call("user:Physics.step", 9, "env", 800)]
    lines = [line(10, 8.0, "env", "self.simulate()", "Physics.step")]
    machine = {"cores": 4, "load_average": [0.5]}
    finding = found("ENV010", made({"env": 8.0}, counts=counts, calls=calls, lines=lines, machine=machine))
    assert "8 envs take turns, 1,000 microseconds each: 80 % of the loop on one of 4 cores" in finding.evidence
    assert finding.expected_gain == pytest.approx(expected_gain(0.8, 8000 / (8000 / 3.4 + 150), relief=0.0))
    assert judge("ENV005", made({"env": 8.0}, counts=counts, calls=calls, lines=lines, machine=machine)) is None
    alone = {"cores": 1, "load_average": [0.5]}
    assert judge("ENV010", made({"env": 8.0}, counts=counts, calls=calls, lines=lines, machine=alone)) is None
    light = Counts(env_steps=80_000, env_calls=10_000, envs=1, updates=100)
    assert judge("ENV010", made({"env": 7.0}, counts=light, calls=calls, lines=lines, machine=machine)) is None
    workers = Counts(env_steps=8000, env_calls=1000, envs=1, updates=100, worker_seconds=7.0)
    assert judge("ENV010", made({"env": 8.0}, counts=workers, calls=calls, lines=lines, machine=machine)) is None


def test_texts_that_a_logger_drops_are_found_and_are_no_reports() -> None:
    lines = [line(9, 4.0, "act", 'logger.debug(f"values {q}")', "act", "f-string")]
    calls = [call("logging.Logger.debug", 9, "act", 100)]
    formatted = [stack(3.0, "act", "act (train.py:9)", "_str (torch/_tensor_str.py:100)")]
    trace = made({"act": 5.0}, lines=lines, calls=calls, stacks=formatted)
    finding = found("LOG005", trace)
    assert "1 texts per call of `step` (`logging.Logger.debug`)" in finding.evidence
    assert "40 % of the loop, 30 % for tensors and arrays as text" in finding.evidence
    assert finding.expected_gain == pytest.approx(expected_gain(0.4, 25))
    assert judge("LOG001", trace) is None


def test_texts_that_are_written_are_reports() -> None:
    lines = [line(9, 4.0, "act", 'logger.info(f"values {q}")', "act", "f-string")]
    calls = [call("logging.Logger.info", 9, "act", 100)]
    written = [stack(3.0, "log", "act (train.py:9)", "Logger._log (logging/__init__.py:1600)")]
    trace = made({"act": 5.0}, lines=lines, calls=calls, stacks=written)
    assert judge("LOG005", trace) is None
    assert found("LOG001", trace).where == "train.py:9"
    lazy = [line(9, 4.0, "act", 'logger.debug("values %s", q)')]
    assert judge("LOG005", made({"act": 5.0}, lines=lazy, calls=calls)) is None


def test_checks_of_distributions_are_found_by_the_time_inside_them() -> None:
    frames = ("act (train.py:9)", "Normal.__init__ (torch/distributions/normal.py:60)")
    checks = (*frames, "Distribution.__init__ (torch/distributions/distribution.py:70)")
    lines = [line(9, 5.0, "act", "policy = Normal(mean, std)")]
    stacks = [stack(3.0, "act", *checks), stack(2.0, "act", *frames)]
    finding = found("UPDATE011", made({"act": 6.0}, lines=lines, stacks=stacks))
    assert finding.where == "train.py:9"
    assert finding.share == pytest.approx(0.3)
    assert judge("UPDATE011", made({"act": 6.0}, lines=lines, stacks=stacks[1:])) is None
