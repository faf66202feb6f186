"""How often and with what machinery the network learns."""

from __future__ import annotations

from hotloop.doctor.finding import CHANGES_LEARNING, Finding, rule
from hotloop.doctor.rules.evidence import (
    Remedy,
    dearest,
    microseconds_words,
    number,
    own_microseconds,
    percent,
    places_of,
    suggest,
)
from hotloop.doctor.rules.forwards import MANY_TENSORS
from hotloop.doctor.rules.storing import batch_calls
from hotloop.doctor.trace import SAMPLE, UPDATE, UPDATE_PARTS, Trace

UPDATES_PER_CALL = 1.5
"""One update after each step of one env is how DQN is usually run: slow, but nobody's mistake."""
ROWS_PER_ENV_STEP = 10.0
"""Rows learned per env step: 8 in the DQN of 2015 (32 rows every fourth step); epochs of PPO are 3 to 10."""
LEAST_UPDATE_SHARE = 0.5
FEWER = 4

FLOPS_PER_MICROSECOND = 1.3e5
"""Of one core in float32, matrices of 256; two forwards and a backward are four passes of two operations."""
NATIVE_CALL_MICROSECONDS = 10.0
MOST_NATIVE_GAINS = 30.0
LEAST_UPDATES_PER_CALL = 0.04
"""Fewer come from rollouts, not from replay."""
MOST_NATIVE_PARAMETERS = 300_000

RATIO = Remedy(
    "Update a quarter as often and look at the learning curve: `hotloop compare` draws both.",
    "for _ in range(updates_per_step):\n    agent.learn(buffer)",
    "import hotloop\n\n"
    'settings = hotloop.preset("snake-dqn", updates_per_env_step=1 / 16)  # the ratio is a setting, owed exactly',
)
NATIVE = Remedy(
    "Let machine code do the whole update in one call: hotloop's native lane computes both forwards, backward, "
    "clipping, Adam and target of a multilayer Q-network, equal to PyTorch's. It counts its updates and moves the "
    "target by itself; state every setting as your program has it.",
    "with torch.no_grad():\n"
    "    y = reward + discount * target_network(next_obs).max(dim=1)[0]\n"
    "q = network(obs).gather(1, action[:, None])[:, 0]\n"
    "optimizer.zero_grad()\n"
    "torch.nn.functional.smooth_l1_loss(q, y).backward()\n"
    "optimizer.step()\n"
    "updates += 1\n"
    "if updates % 20 == 0:\n"
    "    target_network.load_state_dict(network.state_dict())",
    "from hotloop import DQNSettings\n"
    "from hotloop.algos.dqn import DQNLearner\n"
    "from hotloop.core.settings import build\n"
    "from hotloop.core.types import ArraySpec\n\n"
    'tree = {"batch_size": 32, "loss": "huber", "network": {"hidden": [64, 64]}}\n'
    'tree |= {"optimiser": {"lr": 1e-3, "max_gradient_norm": 0}, "target": {"every": 20, "tau": 1}}\n'
    "learner = DQNLearner(build(DQNSettings, tree), ArraySpec((4,)), num_actions=2)\n"
    "learner.start_from(network)  # your weights, for target too; learner.network is an nn.Module\n"
    "# in the loop\n"
    "stats = learner.update(batch)  # of hotloop's Replay: batch.obs [1, 32, 4], batch.discount [1, 32], ...",
)


def learning_share(trace: Trace) -> float:
    """Updates with the batches they draw."""
    inside = trace.share(UPDATE, SAMPLE)
    lines = places_of(batch_calls(trace))
    outside = [line for line in trace.lines if line.where in lines and line.phase not in (UPDATE, SAMPLE)]
    return min(1.0, inside + trace.share_of(outside))


def saved_by_fewer_updates(trace: Trace) -> float:
    """The part of loop time that a quarter of the updates would save; 0 where there are not too many."""
    counts = trace.counts
    too_many = counts.updates >= UPDATES_PER_CALL * max(1, counts.env_calls)
    rows = counts.updates * counts.batch_size / max(1, counts.env_steps)
    share = learning_share(trace)
    if not too_many or rows <= ROWS_PER_ENV_STEP or share < LEAST_UPDATE_SHARE:
        return 0.0
    return share * (1 - 1 / FEWER)


@rule("UPDATE005")
def too_many_updates(trace: Trace) -> Finding | None:
    """There are many updates for every env step.

    Replay lets each transition be learned from many times, and most of the loop's time goes there. Fewer updates are
    not the same learning: often as good per env step, always faster per env step; only the curve tells. Found where
    every call of `step` is followed by several updates, more than ten rows are learned per env step, and updates
    take half of the loop or more.
    """
    if not saved_by_fewer_updates(trace):
        return None
    counts, share = trace.counts, learning_share(trace)
    evidence = (
        f"{number(counts.updates / max(1, counts.env_calls))} updates of {number(counts.batch_size)} rows per call of "
        f"`step` ({number(counts.updates / max(1, counts.env_steps))} per env step) take {percent(share)} of the loop."
    )
    places = dearest(trace, (UPDATE,), "backward(")
    return suggest(trace, share, FEWER, evidence=evidence, remedy=RATIO, places=places, kind=CHANGES_LEARNING)


def arithmetic_microseconds(trace: Trace) -> float:
    """What the multiplications of one update need on one core."""
    return 8 * trace.counts.batch_size * trace.counts.parameters / FLOPS_PER_MICROSECOND


def native_problem(trace: Trace) -> bool:
    """Whether this cannot be a small multilayer Q-network on a CPU: a target, Adam, few tensors."""
    counts = trace.counts
    forwards = counts.update_forwards / max(1, counts.updates)
    return (
        not counts.updates
        or not counts.batch_size
        or not counts.optimiser.startswith("Adam")
        or not 0 < counts.parameters <= MOST_NATIVE_PARAMETERS
        or counts.parameter_tensors >= MANY_TENSORS
        or not 1.9 <= forwards <= 3.1
        or abs(counts.backwards - counts.updates) > 0.1 * counts.updates
        or counts.updates < LEAST_UPDATES_PER_CALL * counts.env_calls
        or trace.machine.get("device", "cpu") != "cpu"
    )


@rule("UPDATE006")
def bound_by_calls(trace: Trace) -> Finding | None:
    """The update of a small network is all calls and no arithmetic.

    A hundred calls into PyTorch of some microseconds each, for multiplications that take a few in all. Found for
    multilayer Q-networks on a CPU whose update takes several times what its arithmetic needs. Where there are too
    many updates (UPDATE005), only those that would remain count here.
    """
    if native_problem(trace):
        return None
    counts = trace.counts
    learning = sum(trace.part_share(part) for part in UPDATE_PARTS if part != "rest")
    learning += min(trace.part_share("rest"), learning / 2)  # the loss; more than that is something else
    took = own_microseconds(trace, learning, counts.updates)
    arithmetic = arithmetic_microseconds(trace)
    share = learning * (1 / FEWER if saved_by_fewer_updates(trace) else 1)
    evidence = (
        f"an update of {number(counts.parameters)} parameters on {number(counts.batch_size)} rows takes "
        f"{microseconds_words(trace, learning, counts.updates)}, its arithmetic about {number(arithmetic)}; they take "
        f"{percent(learning)} of the loop."
    )
    speedup = max(1.0, min(MOST_NATIVE_GAINS, took / (1.2 * arithmetic + NATIVE_CALL_MICROSECONDS)))
    places = dearest(trace, (UPDATE,), "backward(")
    return suggest(trace, share, speedup, evidence=evidence, remedy=NATIVE, places=places, least=1.2)
