"""How often and with what machinery the network learns.

What the optimizer, its parameters and the reading of results cost.
"""

from __future__ import annotations

import re

from hotloop.doctor.finding import CHANGES_LEARNING, IDENTICAL, TO_ROUNDING, Finding, Remedy, rule
from hotloop.doctor.rules.acting import MANY_TENSORS, is_walked
from hotloop.doctor.rules.beneath import mentioned
from hotloop.doctor.rules.evidence import (
    calls_like,
    edit_first,
    loop_of,
    microseconds_text,
    most_expensive,
    number,
    own_microseconds,
    places_of,
    sampled_share,
    source_at,
    suggest,
)
from hotloop.doctor.rules.storing import BUILDING, HOST_READS, batch_calls
from hotloop.doctor.snippets import LEFT_OPEN, number_or_open, shape_text, with_argument, with_fewer_rounds
from hotloop.doctor.trace import (
    ACT,
    ENV,
    EVALUATE,
    SAMPLE,
    STORE,
    STORE_AND_SAMPLE,
    UPDATE,
    UPDATE_PARTS,
    Trace,
)
from hotloop.render.numbers import percent

STORING = (STORE, SAMPLE, STORE_AND_SAMPLE)
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
ROLLOUT_SPEEDUP = 6.0
"""Of acting, storing and cutting minibatches: a PPO of CleanRL's kind gained 6.3 times in all with `PolicyLearner`."""
LEAST_UPDATES_PER_CALL = 0.04
"""Fewer come from rollouts, not from replay."""
MOST_NATIVE_PARAMETERS = 300_000


def fewer_snippet(trace: Trace, where: str) -> str:
    """The program's own loop around its updates, with a quarter of the rounds."""
    own = source_at(trace, where)
    return with_fewer_rounds(own, FEWER) or f"{own or LEFT_OPEN}  # a quarter as often"


RATIO = Remedy(
    "Update a quarter as often and look at the learning curve: `hotloop compare` draws those of two scripts.",
    "for _ in range(updates_per_step):\n    agent.learn(buffer)",
    "for _ in range(max(1, updates_per_step // 4)):\n    agent.learn(buffer)",
    fill=fewer_snippet,
)


LOSSES = {"mse_loss": "mse", "MSELoss": "mse", "smooth_l1_loss": "huber", "SmoothL1Loss": "huber"}
"""PyTorch's names; with other arguments than the usual ones they are other losses."""
A_LOSS = re.compile(r"\b(mse_loss|MSELoss|smooth_l1_loss|SmoothL1Loss|huber_loss|HuberLoss|cross_entropy)\b")
LOSS_ARGUMENTS = ("reduction", "beta", "weight", "delta")


def loss_of(trace: Trace) -> str:
    """What `QLearner` calls the loss that the sampled lines of the update compute; empty where they do not tell."""
    lines = {line.source for line in trace.lines if line.phase == UPDATE and A_LOSS.search(line.source)}
    names = {name for source in lines for name in A_LOSS.findall(source)}
    whole = all(source.count("(") == source.count(")") for source in lines)
    if len(names) != 1 or not whole or any(word in source for source in lines for word in LOSS_ARGUMENTS):
        return ""
    return LOSSES.get(names.pop(), "")


def learner_snippet(trace: Trace, where: str = "") -> str:
    """With what was recorded: the learning rate, the loss, the target's interval, the batch and the sizes."""
    setup, counts = trace.setup, trace.counts
    if trace.learns_from_rollouts:
        return policy_snippet(trace)
    loss = loss_of(trace)
    shape = ", ".join(map(str, setup.obs_shape or setup.layers[:1])) or LEFT_OPEN
    return (
        "import hotloop\n\n"
        "learner = hotloop.QLearner(\n"
        "    network,  # your own\n"
        f"    learning_rate={number_or_open(setup.lr)},\n"
        + (f'    loss="{loss}",\n' if loss else '    loss=...,  # yours: "huber" or "mse"\n')
        + f"    target_every={number_or_open(setup.target_every)},  # updates between two copies into your target\n"
        ")\n"
        "# in the loop\n"
        f"stats = learner.update(batch)  # of hotloop.Replay, or a dict: obs [{number_or_open(counts.batch_size)}, "
        f"{shape}], action, reward, discount, next_obs"
    )


def policy_snippet(trace: Trace) -> str:
    """For a policy that learns from rollouts, with their length, envs and minibatches."""
    setup, counts = trace.setup, trace.counts
    num_steps, num_envs = round(counts.env_calls / max(1, counts.update_bursts)), max(1, round(trace.envs_at_once))
    kind = f"num_actions={setup.num_actions}" if setup.num_actions else "action=..."
    how = "" if setup.num_actions else "    action=...,  # your env's action space; of the rollout, its shape\n"
    return (
        "import hotloop\n\n"
        "policy = hotloop.PolicyLearner(\n"
        "    network,  # obs -> (logits, values)\n"
        f"    learning_rate={number_or_open(setup.lr)},\n"
        f"    batch_size={number_or_open(counts.batch_size)},\n"
        f"{how})  # with your clip_range, n_epochs, gamma and coefficients\n"
        f"rollout = hotloop.Rollout(num_steps={num_steps}, num_envs={num_envs}, obs={shape_text(setup.obs_shape)}, "
        f"{kind})\n"
        "# in the loop\n"
        "action, note = policy.act(obs)\n"
        "next_obs, reward, terminated, truncated, info = envs.step(action)\n"
        "rollout.add(obs, action, note, reward, terminated, truncated, hotloop.final_obs(next_obs, info))\n"
        "obs = next_obs\n"
        "if rollout.full:\n"
        "    stats = policy.update(rollout, obs)  # all epochs"
    )


EXAMPLE_LEARNER = (
    "import hotloop\n\n"
    'learner = hotloop.QLearner(network, learning_rate=0.001, loss="huber", target_every=20)  # your own network\n'
    "# in the loop\n"
    "stats = learner.update(batch)  # of hotloop.Replay, or a dict: obs [32, 4], action, reward, discount, next_obs"
)
NATIVE = Remedy(
    "Let machine code do the whole update of your own multilayer network in one call, as PyTorch computes it: "
    "`hotloop.QLearner` for Q-networks (both forwards, backward, Adam and the target, which it moves itself; give it "
    "your loss, `huber` or `mse`, and your double DQN or clipping where you have them), `hotloop.PolicyLearner` for a "
    "policy that learns from rollouts (all epochs). The gain is that of its native lane: `learner.lane` says `native` "
    "where it could read your network, and `learner.lane_reason` why not.",
    "with torch.no_grad():\n"
    "    y = reward + discount * target_network(next_obs).max(dim=1)[0]\n"
    "q = network(obs).gather(1, action[:, None])[:, 0]\n"
    "optimizer.zero_grad()\n"
    "torch.nn.functional.smooth_l1_loss(q, y).backward()\n"
    "optimizer.step()\n"
    "updates += 1\n"
    "if updates % 20 == 0:\n"
    "    target_network.load_state_dict(network.state_dict())",
    EXAMPLE_LEARNER,
    port=True,
    fill=learner_snippet,
)


def learning_share(trace: Trace) -> float:
    """Updates with the batches they draw."""
    inside = trace.share(UPDATE, SAMPLE)
    lines = places_of(batch_calls(trace))
    outside = [line for line in trace.lines if line.where in lines and line.phase not in (UPDATE, SAMPLE)]
    return min(1.0, inside + trace.share_of(outside))


@rule("UPDATE005", remedy=RATIO, kind=CHANGES_LEARNING)
def too_many_updates(trace: Trace) -> Finding | None:
    """There are many updates for every env step.

    Replay lets each transition be learned from many times, and most of the loop's time goes there. Fewer updates are
    not the same learning: often as good per env step, always faster per env step; only the curve tells. Found where
    every call of `step` is followed by several updates, more than ten rows are learned per env step, and updates
    take half of the loop or more.
    """
    counts, share = trace.counts, learning_share(trace)
    too_many = counts.updates >= UPDATES_PER_CALL * max(1, counts.env_calls)
    rows = counts.updates * counts.batch_size / max(1, counts.env_steps)
    if not counts.env_calls or not too_many or rows <= ROWS_PER_ENV_STEP or share < LEAST_UPDATE_SHARE:
        return None
    evidence = (
        f"{number(counts.updates / max(1, counts.env_calls))} updates of {number(counts.batch_size)} rows per call of "
        f"`step` ({number(counts.updates / max(1, counts.env_steps))} per env step) take {percent(share)} of the loop."
    )
    costly = most_expensive(trace, (UPDATE,), "backward(")
    places = edit_first(loop_of(trace, UPDATE, ENV), costly)
    return suggest(trace, share, FEWER, evidence=evidence, places=places)


def arithmetic_microseconds(trace: Trace) -> float:
    """What the multiplications of one update need on one core."""
    return 8 * trace.counts.batch_size * trace.counts.parameters / FLOPS_PER_MICROSECOND


NATIVE_LAYERS, NATIVE_ACTIVATIONS = ("Linear",), ("ReLU", "Tanh", "SELU", "LeakyReLU")
"""Modules that the native lane reads: linear layers with one kind of activation between them."""


def is_plain_network(trace: Trace) -> bool:
    """Whether the networks that learn were seen to be made of these alone, and a chain of them to have an output for
    each action; a distribution over values for each has more."""
    setup = trace.setup
    kinds = set(setup.network_kinds)
    one_activation = len(kinds & set(NATIVE_ACTIVATIONS)) <= 1
    replayed = not trace.learns_from_rollouts
    answers = not (replayed and setup.layers and setup.num_actions) or setup.layers[-1] == setup.num_actions
    return bool(kinds) and kinds <= {*NATIVE_LAYERS, *NATIVE_ACTIVATIONS} and one_activation and answers


def native_problem(trace: Trace) -> bool:
    """Whether this cannot be a small multilayer network on a CPU that learns by Adam from replay or from rollouts."""
    counts = trace.counts
    forwards = counts.update_forwards / max(1, counts.updates)
    return (
        not counts.updates
        or not counts.batch_size
        or not counts.env_calls
        or not is_plain_network(trace)
        or not counts.optimiser.startswith("Adam")
        or not 0 < counts.parameters <= MOST_NATIVE_PARAMETERS
        or counts.parameter_tensors >= MANY_TENSORS
        or not 1.9 <= forwards <= 3.1
        or abs(counts.backwards - counts.updates) > 0.1 * counts.updates
        or counts.updates < LEAST_UPDATES_PER_CALL * counts.env_calls
        or trace.machine.get("device", "cpu") != "cpu"
    )


@rule(
    "UPDATE006",
    remedy=NATIVE,
    kind=TO_ROUNDING,
    condition="you give it your own loss, target, clipping and double DQN, and Adam's settings",
)
def bound_by_calls(trace: Trace) -> Finding | None:
    """The update of a small network is all calls and no arithmetic.

    A hundred calls into PyTorch of some microseconds each, for multiplications that take a few in all. Found for
    Q-networks and policies of linear layers on a CPU whose update takes several times what its arithmetic needs. All
    updates that the program makes count. Where a policy learns from rollouts, acting and storing count too: they are
    done by the same machine code.
    """
    if native_problem(trace) or trace.beneath or trace.setup.algorithm:  # where a library learns no line can take it
        return None
    counts = trace.counts
    learning = sum(trace.part_share(part) for part in UPDATE_PARTS if part != "rest")
    learning += min(trace.part_share("rest"), learning / 2)  # the loss; more than that is something else
    took = own_microseconds(trace, learning, counts.updates)
    arithmetic = arithmetic_microseconds(trace)
    share = learning
    evidence = (
        f"an update of {number(counts.parameters)} parameters on {number(counts.batch_size)} rows takes "
        f"{microseconds_text(trace, learning, counts.updates)}, its arithmetic about {number(arithmetic)}; they take "
        f"{percent(learning)} of the loop."
    )
    speedup = max(1.0, min(MOST_NATIVE_GAINS, took / (1.2 * arithmetic + NATIVE_CALL_MICROSECONDS)))
    if trace.learns_from_rollouts:
        beside = trace.share(ACT, UPDATE, *STORING) - learning
        share, speedup = learning + beside, (learning + beside) / (learning / speedup + beside / ROLLOUT_SPEEDUP)
        evidence += f" The learner of a policy acts and keeps the rollout too: {percent(share)} with that."
    places = most_expensive(trace, (UPDATE,), "backward(")
    return suggest(trace, share, speedup, evidence=evidence, places=places, least=1.2)


FUSED_SPEEDUP = 2.5
"""By itself a step gains 2.7 to 3.1 (Adam, two layers of 64 to 400), amid the loop's cold caches less, and nothing
around it gets faster: of what 3 and relief promise, two thirds were measured over eleven programs."""
TINY_TENSOR = 64
DOUBLE_COSTS = 4.0
"""Half the numbers per instruction, twice the memory: four times the ideal arithmetic of float32, measured."""
MOST_FLAT_GAINS, TENSORS_IN_ONE_CALL = 10.0, 20
READS_PER_UPDATE = 4.0
READ_SPEEDUP = 20.0
TENSORS_PER_ENV_STEP = 3.0
TENSOR_SPEEDUP = 4.0


def fused_snippet(trace: Trace, where: str = "") -> str:
    """The program's own line with one argument more; where it is not one whole call, the optimizer and the learning
    rate that were recorded."""
    kind, rate = trace.counts.optimiser.split(" ")[0] or "Adam", number_or_open(trace.setup.lr)
    own = source_at(trace, trace.made.get("optimiser", ""))
    example = f"import torch\n\noptimizer = torch.optim.{kind}(network.parameters(), lr={rate}, fused=True)"
    return with_argument(own, kind, "fused=True") or f"{example}  # and your other arguments"


FUSED = Remedy(
    "Ask for the fused optimizer: one call for all parameters.",
    "optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)",
    "import torch\n\noptimizer = torch.optim.Adam(network.parameters(), lr=1e-3, fused=True)",
    fill=fused_snippet,
)
FLAT = Remedy(
    "Keep parameters in a few large tensors, and index into them: the optimizer pays per tensor, not per number.",
    "weights = torch.nn.ParameterList(numbers)  # 300 tensors of one number",
    "import torch\n\nweights = torch.nn.Parameter(torch.stack(list(numbers)))  # weights[17] as before",
)
READS = Remedy(
    "Read once per update: keep losses and errors in tensors and copy them to the host together.",
    "for i in range(batch_size):\n    priorities[i] = error[i].item()",
    "priorities[:] = error.detach().cpu().numpy()  # one read",
)
FLOAT32 = Remedy(
    "Compute in float32: half the memory traffic and twice the numbers per instruction.",
    "network = network.double()\nq = network(obs.double())",
    "network = network.float()\nq = network(obs.float())",
)
SMALL = Remedy(
    "Keep what the envs return in arrays and make one tensor of it per step, or per update: `torch.from_numpy` of an "
    "array shares its memory (add `.clone()` where the envs will write into it again).",
    "states = torch.stack([torch.tensor(row) for row in obs])",
    "import torch\n\nstates = torch.from_numpy(obs)  # no copy",
)


@rule("UPDATE007", remedy=FUSED, kind=TO_ROUNDING)
def optimiser_not_fused(trace: Trace) -> Finding | None:
    """The optimizer steps through its parameters one by one.

    PyTorch's default on a CPU makes about ten calls for every parameter tensor; `fused=True` makes one for all. Found
    where Adam, AdamW or SGD is not fused and the optimizer takes a fourteenth of the loop or more.
    """
    name = trace.counts.optimiser
    share = trace.part_share("optimiser")
    if name.split(" ")[0] not in ("Adam", "AdamW", "SGD") or "fused" in name:
        return None
    tensors, several = number(trace.counts.parameter_tensors), trace.counts.optimisers > 1
    whose = f", {trace.counts.optimisers} optimizers together," if several else ""
    each = " The gain is that of all of them: each needs the argument." if several else ""
    evidence = f"`{name}` over {tensors} tensors{whose} is not fused and takes {percent(share)} of the loop.{each}"
    places = edit_first(trace.made.get("optimiser", ""), most_expensive(trace, (UPDATE,), ".step("))
    return suggest(trace, share, FUSED_SPEEDUP, evidence=evidence, places=places, relief=0.0)


@rule("UPDATE008", remedy=FLAT, kind=TO_ROUNDING)
def many_parameter_tensors(trace: Trace) -> Finding | None:
    """The network is hundreds of tiny parameters.

    Forward, gradient, moments and step are computed per tensor, at several microseconds each, whatever their size.
    Found where an optimizer holds a hundred tensors or more of 64 numbers or fewer on average. Where they are walked by
    name (UPDATE001), only the optimizer counts here.
    """
    counts = trace.counts
    if counts.parameter_tensors < 2 * MANY_TENSORS or counts.parameters > TINY_TENSOR * counts.parameter_tensors:
        return None
    share = trace.part_share("optimiser") if is_walked(trace) else trace.share(ACT, UPDATE)
    evidence = (
        f"{number(counts.parameters)} parameters lie in {number(counts.parameter_tensors)} tensors; "
        f"what goes through them takes {percent(share)} of the loop."
    )
    speedup = max(1.0, min(MOST_FLAT_GAINS, counts.parameter_tensors / TENSORS_IN_ONE_CALL))
    places = mentioned(trace, "ParameterList", "ParameterDict", "Parameter")
    places += most_expensive(trace, (UPDATE,), ".step(")
    return suggest(trace, share, speedup, evidence=evidence, places=places)


@rule("SYNC001", remedy=READS, kind=IDENTICAL)
def host_reads_in_the_update(trace: Trace) -> Finding | None:
    """Numbers are read from tensors one by one in the update.

    Every `.item()` costs a microsecond on a CPU and waits for all that was queued on a GPU. Found where an update makes
    four or more host reads.
    """
    calls = calls_like(trace, HOST_READS, (UPDATE,))
    per_update = trace.per_update(calls)
    if not trace.counted.updates or per_update < READS_PER_UPDATE:
        return None
    share = sampled_share(trace, places_of(calls), (UPDATE,))
    evidence = f"{number(per_update)} host reads per update take {percent(share)} of the loop."
    return suggest(trace, share, READ_SPEEDUP, evidence=evidence, places=places_of(calls))


@rule("UPDATE009", remedy=FLOAT32, kind=CHANGES_LEARNING)
def double_precision(trace: Trace) -> Finding | None:
    """The network computes in float64.

    Usually because numpy's default slipped through; it doubles what the arithmetic costs. Found where half of the
    parameters or more are float64, weighed by the part of an update that is arithmetic.
    """
    counts = trace.counts
    if not counts.updates or 2 * counts.double_parameters < max(1, counts.parameters):
        return None
    share = trace.share(UPDATE)
    took = own_microseconds(trace, share, counts.updates)
    arithmetic = min(0.9, DOUBLE_COSTS * arithmetic_microseconds(trace) / max(took, 1e-9))
    evidence = (
        f"{number(counts.double_parameters)} of {number(counts.parameters)} parameters are float64; "
        f"arithmetic is about {percent(arithmetic)} of an update, and updates {percent(share)} of the loop."
    )
    gain_of_update = 1 / (1 - arithmetic / 2)
    places = mentioned(trace, "set_default_dtype", "double", "float64") + most_expensive(trace, (UPDATE,))
    return suggest(trace, share, gain_of_update, evidence=evidence, places=places)


@rule("SYNC002", remedy=SMALL, kind=IDENTICAL, condition="nothing writes into the array while the tensor is used")
def small_tensors(trace: Trace) -> Finding | None:
    """Small tensors are made for every env step.

    A tensor of one number costs more than a microsecond to make, and one of a list copies it element by element. Found
    where three or more tensors are made per env step outside the update. A line that also calls the network does not
    count: its time is the network's.
    """
    batches = set(places_of(batch_calls(trace)))
    forwards = {line.where for line in trace.lines if line.phase == ACT and line.part == "forward"}
    calls = [
        call
        for call in calls_like(trace, [name for name in BUILDING if name.startswith("torch.")])
        if call.phase not in (ENV, UPDATE, SAMPLE, EVALUATE) and call.where not in batches | forwards
    ]
    per_env_step = trace.per_env_step(calls)
    if per_env_step < TENSORS_PER_ENV_STEP:
        return None
    share = sampled_share(trace, places_of(calls))
    evidence = (
        f"{number(per_env_step)} tensors are made per env step (most often with `{calls[0].name}`): "
        f"{percent(share)} of the loop."
    )
    return suggest(trace, share, TENSOR_SPEEDUP, evidence=evidence, places=places_of(calls))
