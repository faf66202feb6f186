"""`hotloop prove --script`: whole programs in processes of their own, held against each other."""

from __future__ import annotations

import json
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import hotloop
from hotloop.cli import prove as verb
from hotloop.core.errors import HotloopError
from hotloop.doctor.recorder.env_rows import EnvRows, number_of_envs, rows_of_step
from hotloop.doctor.recorder.fingerprints import fingerprint
from hotloop.proof.program_runs import RecordedProgram, pace
from hotloop.proof.program_words import Before
from hotloop.proof.programs import Fingerprint
from hotloop.proof.verdict import Proof
from tests.proof.planted_programs import EQUAL, MUTANTS, PLAIN, version

QUICK_MUTANTS = ("target one update late", "sum for mean")


def proved(tmp_path: Path, fast: str, plain: str | None = None, *words: str, **options: Any) -> Proof:
    """Of two texts; by default against the small DQN. Nothing is timed."""
    (tmp_path / "old.py").write_text(PLAIN.read_text() if plain is None else textwrap.dedent(plain))
    (tmp_path / "new.py").write_text(textwrap.dedent(fast))
    return hotloop.prove(tmp_path / "new.py", against=tmp_path / "old.py", arguments=words, **{"rounds": 0, **options})


def check_mutant(tmp_path: Path, name: str) -> None:
    changes, said = MUTANTS[name]
    proof = proved(tmp_path, version(changes))
    assert not proof.passed
    assert [words for words in said if words not in proof.headline()] == [], proof.headline()


@pytest.mark.parametrize("name", QUICK_MUTANTS)
def test_a_planted_difference_is_told_with_its_place(tmp_path: Path, name: str) -> None:
    check_mutant(tmp_path, name)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in MUTANTS if name not in QUICK_MUTANTS])
def test_every_planted_difference_is_told_with_its_place(tmp_path: Path, name: str) -> None:
    check_mutant(tmp_path, name)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(EQUAL)[1:])
def test_every_equal_rewrite_is_called_equal(tmp_path: Path, name: str) -> None:
    proof = proved(tmp_path, version(EQUAL[name]))
    assert proof.headline() == "identical for all 220 env steps and 180 updates"


def test_renamed_modules_are_matched_by_order_and_shape(tmp_path: Path) -> None:
    proof = proved(tmp_path, version(EQUAL["renamed modules"]))
    assert proof.headline() == "identical for all 220 env steps and 180 updates"
    assert "matched by order and shape" in proof.notes[0]


WALK = """
import random
import sys
import numpy as np

class Walk:
    def __init__(self, seed):
        self.draws = random.Random(seed)
    def reset(self):
        self.place = self.draws.randrange(3)
        return self.seen()
    def step(self, action):
        self.place += int(action)
        return self.seen(), self.place / 3, self.place >= 5, {}
    def seen(self):
        return np.array([self.place, 1.0])
"""
SINGLE = """
random.seed(0)
envs = [Walk(seed) for seed in range(3)]
for env in envs:
    env.reset()
for _ in range(12):
    actions = [random.randrange(2) for _ in envs]
    for env, action in zip(envs, actions):
        if env.step(action)[2]:
            env.reset()
"""
SAME_STEP = """
class Walks:
    num_envs = 3
    def __init__(self):
        self.envs = [Walk(seed) for seed in range(3)]
    def reset(self):
        return np.stack([env.reset() for env in self.envs]), {}
    def step(self, actions):
        rows, final = [], np.empty(3, object)
        for i, env in enumerate(self.envs):
            obs, reward, done, _ = env.step(actions[i])
            if done:
                final[i], obs = obs, env.reset()
            rows.append((obs, reward, done))
        obs, reward, done = (np.stack(column) for column in zip(*rows))
        return obs, reward, done, np.zeros(3, bool), {"final_obs": final}
random.seed(0)
envs = Walks()
envs.reset()
for _ in range(12):
    envs.step(np.array([random.randrange(2) for _ in range(3)]))
"""
NEXT_STEP = (
    SAME_STEP.replace(
        """            obs, reward, done, _ = env.step(actions[i])
            if done:
                final[i], obs = obs, env.reset()
""",
        """            obs, reward, done, _ = (env.reset(), 0.0, False, {}) if self.over[i] else env.step(actions[i])
            self.over[i] = done
""",
    )
    .replace("self.envs = [", "self.over = [False] * 3; self.envs = [")
    .replace(', {"final_obs": final}', ", {}")
)


def test_single_and_batched_envs_are_the_same_rows(tmp_path: Path) -> None:
    proof = proved(tmp_path, WALK + SAME_STEP, WALK + SINGLE)
    assert proof.headline() == "identical for all 36 env steps"
    assert "old.py: it uses no PyTorch; only its env calls were compared" in proof.notes


def test_a_batch_that_restarts_in_the_place_of_a_step_is_told_apart_by_its_actions(tmp_path: Path) -> None:
    """Restarts themselves are no env steps; but the program draws actions for them that the other does not draw."""
    proof = proved(tmp_path, WALK + NEXT_STEP, WALK + SINGLE)
    assert proof.difference is not None
    assert proof.difference.what == "action"
    steady = NEXT_STEP.replace("random.randrange(2)", "1")
    assert proved(tmp_path, WALK + steady, WALK + steady.replace("range(12)", "range(11)")).difference is not None
    single = SINGLE.replace("random.randrange(2)", "1").replace("range(12)", "range(8)")
    found = proved(tmp_path, WALK + steady, WALK + single, env_steps=20)
    assert found.passed, found.headline()


def test_one_wrong_number_is_told_with_env_step_field_and_lines(tmp_path: Path) -> None:
    wrong = WALK.replace("self.place / 3", "self.place / (3 if self.place < 4 else 2)")
    proof = proved(tmp_path, wrong + SAME_STEP, WALK + SINGLE)
    assert proof.difference is not None
    assert proof.difference.what == "reward"
    assert "1.3333333333333333 in old.py, 2.0 in new.py; made by old.py:25 and new.py:37" in proof.headline()


def test_a_tolerance_lets_rounding_pass_and_nothing_else(tmp_path: Path) -> None:
    rounded = WALK.replace("self.place / 3", "self.place / (3 + 1e-12)")
    assert not proved(tmp_path, rounded + SINGLE, WALK + SINGLE, tolerance=0).passed
    proof = proved(tmp_path, rounded + SINGLE, WALK + SINGLE, tolerance=1e-9)
    assert proof.headline() == "the same to rounding (within 1e-09) for all 36 env steps"
    assert proof.verdict == proved(tmp_path, rounded + SINGLE, WALK + SINGLE).verdict == "to rounding"
    assert not proved(tmp_path, rounded.replace("1e-12", "1e-6") + SINGLE, WALK + SINGLE, tolerance=1e-9).passed


def test_wrapped_envs_are_one_env(tmp_path: Path) -> None:
    wrapped = """
    class Outer:
        def __init__(self, env):
            self.env = env
        def reset(self):
            return self.env.reset()
        def step(self, action):
            return self.env.step(action=action)
    """
    text = WALK + textwrap.dedent(wrapped) + SINGLE.replace("Walk(seed)", "Outer(Outer(Walk(seed)))")
    assert proved(tmp_path, text, WALK + SINGLE).headline() == "identical for all 36 env steps"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("random.seed(0)", ""), "random draws without a seed at old.py:23: set `random.seed(SEED)`"),
        (
            ("self.place = self.draws.randrange(3)", "self.place = random.SystemRandom().random()"),
            "no unseeded generator was seen",
        ),
        (
            ("random.randrange(2)", "np.random.randint(2)"),
            "numpy.random draws without a seed at old.py:23: set `numpy.random.seed(SEED)`",
        ),
        (
            ("random.randrange(2)", "np.random.default_rng().integers(2)"),
            "numpy.random.default_rng() draws without a seed at old.py:23: set `numpy.random.default_rng(SEED)`",
        ),
    ],
)
def test_a_program_that_does_not_repeat_itself_is_told_the_seed_to_set(
    tmp_path: Path, change: tuple[str, str], said: str
) -> None:
    text = (WALK + SINGLE).replace(*change)
    proof = proved(tmp_path, text, text)
    assert (proof.verdict, proof.exit_code) == ("not comparable", 3)
    name = proof.not_compared[0][:6]
    assert proof.headline().startswith(f"not comparable: {name} does not repeat itself")
    assert said.replace("old.py", name) in proof.headline()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (WALK + SINGLE + "raise ValueError('oh')", "new.py ended with an error after 36 env steps: ValueError: oh"),
        (WALK + SINGLE + "sys.exit(3)", "new.py ended with an error after 36 env steps: exit code 3"),
        (WALK + SINGLE + "import os; os.abort()", "new.py ended with -6"),
    ],
)
def test_a_program_that_cannot_be_judged_is_one_sentence(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(HotloopError, match="new.py") as error:
        proved(tmp_path, text, WALK + SINGLE)
    assert error.value.message.startswith(said)


VECTOR = """
import gymnasium
import numpy as np
import torch

class Env(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-10, 10, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)
    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps, self.at = 0, self.np_random.normal(size=2).astype(np.float32)
        return self.at, {}
    def step(self, action):
        self.steps, self.at = self.steps + 1, (0.9 * self.at + (0.1 if action else -0.1)).astype(np.float32)
        return self.at, 1.0 * float(self.at.sum()), False, self.steps >= 7, {}

def main():
    torch.manual_seed(0)
    envs = gymnasium.vector.SyncVectorEnv([Env, Env])
    net = torch.nn.Linear(2, 2)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.001)
    obs, _ = envs.reset(seed=0)
    for _ in range(20):
        with torch.no_grad():
            action = net(torch.as_tensor(obs)).argmax(1).numpy()
        obs, reward, _, _, _ = envs.step(action)
        loss = (net(torch.as_tensor(obs)).max(1).values - torch.as_tensor(reward).float()).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    envs.close()

if __name__ == "__main__":
    main()
"""
IN_WORKERS = VECTOR.replace("SyncVectorEnv", "AsyncVectorEnv")
HIDDEN = (
    VECTOR.replace("envs = gymnasium.vector.SyncVectorEnv([Env, Env])", "envs = Fleet([Env(), Env()])")
    .replace("envs.step(", "envs.go(")
    .replace("envs.reset(seed=0)", "envs.start(0)")
    .replace("def step(self, action)", "def move(self, action)")
    .replace(
        "def main():",
        """
class Fleet:
    \"\"\"Steps its envs by a method that no recorder knows.\"\"\"
    def __init__(self, envs):
        self.envs, self.over = envs, [False] * len(envs)
    def start(self, seed):
        return np.stack([env.reset(seed=seed + i)[0] for i, env in enumerate(self.envs)]), {}
    def go(self, actions):
        rows = []
        for i, (env, action) in enumerate(zip(self.envs, actions)):
            rows.append((env.reset()[0], 0.0, False) if self.over[i] else (env.move(action)[:2] + (env.steps >= 7,)))
            self.over[i] = rows[-1][2]
        obs, reward, over = (np.array(column) for column in zip(*rows))
        return obs, reward, over, over, {}
    def close(self):
        pass

def main():""",
    )
)
"""The same with env steps that cannot be seen: only its updates are."""


def test_envs_in_workers_are_compared_by_what_they_send(tmp_path: Path) -> None:
    """An answer to `SyncVectorEnv` against `AsyncVectorEnv` was "the same for all , 1.48x faster"."""
    assert proved(tmp_path, IN_WORKERS, VECTOR).headline() == "identical for all 36 env steps and 20 updates"
    wrong = IN_WORKERS.replace("1.0 * float", "2.0 * float").replace("lr=0.001", "lr=0.01")
    proof = proved(tmp_path, wrong, VECTOR)
    assert (proof.verdict, proof.exit_code) == ("different", 1)
    assert "the same until env step 1: then `reward` differs" in proof.headline()


def test_what_only_one_of_two_shows_is_not_called_the_same(tmp_path: Path) -> None:
    proof = proved(tmp_path, HIDDEN, VECTOR, rounds=1)
    assert (proof.verdict, proof.exit_code, proof.passed, proof.cost) == ("not comparable", 3, False, None)
    said = "not everything was compared: identical for 20 updates; 36 env steps were seen in old.py only"
    assert proof.headline().startswith(said)
    assert "`hotloop prove --env`" in proof.headline()
    assert proved(tmp_path, VECTOR, HIDDEN).not_compared[0].endswith("were seen in new.py only")
    wrong = proved(tmp_path, HIDDEN.replace("lr=0.001", "lr=0.002"), VECTOR)
    assert (wrong.verdict, wrong.exit_code) == ("different", 1)  # what was seen differs
    assert "the same until update 1" in wrong.headline()


def test_two_of_which_nothing_is_seen_are_not_comparable(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "one.py").write_text("print(1)")
    one = str(tmp_path / "one.py")
    assert verb.run(["--script", one, "--against", one, "--quiet", "--json"]) == 3
    (found,) = json.loads(capsys.readouterr().out)["pairs"]
    assert (found["verdict"], found["cost"]) == ("not comparable", None)
    assert found["headline"].startswith("not comparable; no env step and no update was seen in either; ")
    assert proved(tmp_path, "print(1)", WALK + SINGLE).not_compared[0] == "36 env steps were seen in old.py only"


def test_rounding_of_a_whole_program_is_no_difference_and_hides_none(tmp_path: Path) -> None:
    scaled = ("** 2).mean()", "** 2).mul(41).mean() / 41")  # 1 / 41 * 41 is not 1; fused Adam alone rounds on some CPUs
    fused = [("lr=LR", "lr=LR, fused=True"), scaled]
    proof = proved(tmp_path, version(fused))
    assert (proof.verdict, proof.exit_code) == ("to rounding", 0)
    assert proof.headline() == "the same to rounding for all 220 env steps and 180 updates"
    assert 0 < float(proof.evidence["largest error"]) < 1e-5
    late = [*fused, ("if updates % 20 == 0:", "if updates > 1 and updates % 20 == 1:")]
    wrong = proved(tmp_path, version(late))
    assert wrong.verdict == "different"
    assert "`fused` is None in old.py, True in new.py" in wrong.headline()
    assert "by more than rounding does: `body.0.weight` after update 21" in wrong.headline()


def test_a_mark_in_an_observation_hides_nothing_beside_it(tmp_path: Path) -> None:
    marked = WALK.replace("np.array([self.place, 1.0])", "np.array([self.place + 0.25, -1e9, 0.3 + OFF])")
    plain = marked.replace("OFF", "0.0")
    assert proved(tmp_path, marked.replace("OFF", "1e-9") + SINGLE, plain + SINGLE).verdict == "to rounding"
    wrong = proved(tmp_path, marked.replace("OFF", "0.5") + SINGLE, plain + SINGLE)
    assert wrong.verdict == "different"
    assert (
        proved(tmp_path, marked.replace("OFF", "0.5") + SINGLE, plain + SINGLE, tolerance=1e-3).verdict == "different"
    )


def test_the_time_of_a_program_is_that_of_its_children_too(tmp_path: Path) -> None:
    """Of a child that it waited for, and of one that lives."""
    work = """
    import multiprocessing, time
    def burn(seconds, done):
        while time.process_time() < seconds:
            pass
        done.set()
        time.sleep(60)
    one, other = multiprocessing.Event(), multiprocessing.Event()
    ended = multiprocessing.Process(target=burn, args=(0.6, one), daemon=True)
    living = multiprocessing.Process(target=burn, args=(0.7, other), daemon=True)
    ended.start(), living.start()
    one.wait(), other.wait()
    ended.kill(), ended.join()
    """
    script = tmp_path / "busy.py"
    script.write_text(WALK + SINGLE + textwrap.dedent(work))
    found = pace(RecordedProgram(path=script, python=sys.executable))
    assert found.children_counted == Path("/proc/self").is_dir()
    assert found.processor >= 1.3 or not found.children_counted


def test_workers_are_said_not_to_be_seen(tmp_path: Path) -> None:
    text = (
        WALK
        + SINGLE
        + "import multiprocessing\nworker = multiprocessing.Process(target=print)\nworker.start()\nworker.join()\n"
    )
    assert any("new.py started 1 worker process" in note for note in proved(tmp_path, text, WALK + SINGLE).notes)


def test_the_verb_times_what_is_the_same_and_writes_its_page(
    tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "old.py").write_text(
        WALK + SINGLE + "open('left', 'w').close()\nassert sys.argv[1:] == ['--fast', '1']"
    )
    words = [
        "--script",
        "old.py",
        "--against",
        "old.py",
        "--args=--fast 1",
        "--rounds",
        "2",
        "--json",
        "--html",
        "p.html",
    ]
    assert verb.run([*words, "--quiet"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["pairs"]
    assert found["verdict"] == "identical"
    assert "(processor time, children included)" in found["headline"]
    assert found["headline"].startswith("identical for all 36 env steps, ")
    assert (found["cost"]["rounds"], found["evidence"]["made in all"]["fast"]["env_steps"]) == (2, 36)
    assert not (tmp_path / "left").exists()  # it ran in a copy
    assert "every env call" in (tmp_path / "p.html").read_text() or "env calls" in (tmp_path / "p.html").read_text()
    (tmp_path / "new.py").write_text(WALK.replace("/ 3", "/ 2") + SINGLE)
    assert verb.run(["--script", "old.py", "--against", "new.py", "--args=--fast 1", "--quiet"]) == 1
    assert "different: the same until env step" in capsys.readouterr().out


EXAMPLES = Path(__file__).parents[2] / "examples"
MACHINE_CODE = [
    ("from torch import nn\n", "from torch import nn\nimport hotloop\n"),
    (
        "self.optimizer = torch.optim.Adam(network.parameters(), lr=lr)",
        "self.fast = hotloop.QLearner(network, lr, obs=(4,))",
    ),
    (
        "obs, action, reward, next_obs, terminated = batch\n",
        "names = 'obs', 'action', 'reward', 'next_obs', 'terminated'\n"
        "        batch = dict(zip(names, batch))\n"
        "        self.fast.update({**batch, 'discount': self.gamma * (1 - batch['terminated'])})\n"
        "        return\n",
    ),
]
"""The plain example with the same draws and the same acting; only the update is hotloop's."""
NEAR_TIE = """
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.q = torch.nn.Linear(2, 2)
    def forward(self, obs):
        return self.q(obs)
torch.manual_seed(0)
net, env = Net(), Walk(0)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
obs = env.reset()
for step in range(40):
    q = net(torch.tensor(obs).float())
    action = int(q.argmax())
    loss = (q[0] - q[1]) ** 2
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    obs, _, done, _ = env.step(action)
    obs = env.reset() if done else obs
"""
"""Both actions are drawn towards the same value: soon rounding decides."""


@pytest.mark.slow
def test_a_near_tie_that_rounding_decides_is_no_difference(tmp_path: Path) -> None:
    plain = WALK + "import torch\n" + NEAR_TIE
    proof = proved(tmp_path, plain.replace("(q[0] - q[1]) ** 2", "(q[1] - q[0] + 1e-7) ** 2"), plain, tolerance=0.01)
    assert proof.difference is None, proof.headline()
    assert proof.verdict in ("not comparable", "to rounding")
    assert proof.evidence["largest error"] != "0"


@pytest.mark.slow
def test_updates_of_hotloops_parts_are_seen_and_are_the_same_within_rounding(tmp_path: Path) -> None:
    plain = (EXAMPLES / "plain_dqn.py").read_text()
    fast = plain
    for old, new in MACHINE_CODE:
        assert old in fast
        fast = fast.replace(old, new)
    proof = proved(tmp_path, fast, plain, "--seed", "1", "--env-steps", "2500", tolerance=1e-3)
    assert proof.headline() == "the same to rounding (within 0.001) for all 2,500 env steps and 1,501 updates"


@pytest.mark.slow
def test_another_generator_is_told_at_the_first_action(tmp_path: Path) -> None:
    words = "--seed", "1", "--env-steps", "1100"
    fast = (EXAMPLES / "faster_dqn.py").read_text()
    proof = proved(tmp_path, fast, (EXAMPLES / "plain_dqn.py").read_text(), *words, tolerance=1e-3)
    assert "the same until env step 1: then `action` differs" in proof.headline()
    assert "had drawn other numbers" in proof.headline()


def look(*q: float, drawn: str = "a") -> dict[str, Any]:
    """A close-up of an action: the network's answer, and the state of a generator."""
    answer = fingerprint(np.array(q), near=True)
    forward = {"module": "Net", "parameters": "#1", "given": "#2", "answer": answer, "numbers": list(q)}
    return {"forwards": [forward], "generators": {"random": drawn}}


@pytest.mark.parametrize(
    ("plain", "fast", "is_tie"),
    [
        (look(1.0, 1.0 - 1e-8), look(1.0 - 1e-8, 1.0), True),
        (look(1.0, 0.9), look(1.0 - 1e-8, 0.9), False),  # the answers are nearly the same, but far from a tie
        (look(1.0, 0.5), look(0.5, 1.0), False),  # other answers
        (look(1.0, 0.5, -1e9), look(0.5, 1.0, -1e9), False),  # the same beside an action that is not allowed
        (look(1.0, 1.0 - 1e-8, -1e9), look(1.0 - 1e-8, 1.0, -1e9), True),
        (look(1.0, 1.0 - 1e-8), look(1.0 - 1e-8, 1.0, drawn="b"), False),  # exploration
        (look(1.0, 1.0 - 1e-8), {"forwards": [], "generators": {"random": "a"}}, False),
    ],
)
def test_only_a_near_tie_is_rounding(plain: dict[str, Any], fast: dict[str, Any], is_tie: bool) -> None:
    assert Before(plain, fast, 1e-6, ("old.py", "new.py")).is_near_tie(0, 1) is is_tie


def test_fingerprints_are_of_values_not_of_types() -> None:
    whole = [3, np.int8(3), np.array(3), np.array([3]), torch.tensor(3)]
    assert {fingerprint(one) for one in whole} == {"3"}
    halves = [0.5, np.float32(0.5), np.array([0.5]), torch.tensor(0.5, dtype=torch.bfloat16)]
    assert {fingerprint(one) for one in halves} == {"0.5"}
    rows = [
        np.array([1.0, -0.0]),
        np.array([1, 0], np.float32),
        [1.0, 0.0],
        torch.tensor([1.0, 0.0], requires_grad=True),
    ]
    assert len({fingerprint(one) for one in rows}) == 1
    assert fingerprint(np.zeros((2, 3))) != fingerprint(np.zeros((3, 2)))
    assert fingerprint({"a": np.zeros(2), "b": 1}) == fingerprint({"b": 1, "a": np.zeros(2)})


def test_norm_and_projections_measure_the_distance() -> None:
    generator = np.random.default_rng(0)
    for size in (2, 50, 10_000):
        one = generator.normal(size=size)
        for share in (1e-7, 1e-3):
            other = one + share * np.linalg.norm(one) * (step := generator.normal(size=size)) / np.linalg.norm(step)
            error = Fingerprint.read(fingerprint(one, near=True)).error(Fingerprint.read(fingerprint(other, near=True)))
            assert share / 5 < error < 5 * share


def test_answers_of_gym_and_stable_baselines3_are_rows_like_gymnasiums() -> None:
    """A vector env of theirs against two single envs: at the end of an episode `info` has the last observation."""
    batch = EnvRows(None, 0, *number_of_envs(None, np.zeros(2)))
    infos = [{}, {"TimeLimit.truncated": True, "terminal_observation": np.array([7.0, 7.0])}]
    result = np.array([[1.0, 2.0], [0.0, 0.0]]), np.array([0.5, 1.0], np.float32), np.array([False, True]), infos
    found = dict(rows_of_step(batch, np.array([0, 1]), result, near=False))
    first, second = EnvRows(None, 0, 1, False), EnvRows(None, 1, 1, False)
    single = rows_of_step(first, 0, (np.array([1.0, 2.0]), 0.5, False, False, {}), near=False)
    single += rows_of_step(second, 1, (np.array([7.0, 7.0]), 1.0, False, True, {}), near=False)
    assert {key: found[key] for key, _ in single} == dict(single)
    assert found["R 1 1 0"] == [fingerprint(np.zeros(2))]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "said"), [("sb3_dqn", "600 env steps and 500 updates"), ("ppo", "990 env steps and 64 updates")]
)
def test_programs_of_others_are_the_same_as_themselves_and_with_two_threads(
    tmp_path: Path, name: str, said: str
) -> None:
    """Their networks are too small for PyTorch to divide the work."""
    text = PLAIN.with_name(f"{name}.py").read_text()
    assert proved(tmp_path, text, text).headline() == f"identical for all {said}"
    assert proved(tmp_path, text.replace("set_num_threads(1)", "set_num_threads(2)"), text).passed
