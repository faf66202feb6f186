"""How actions are chosen.

What the network's forward does in Python, and how many forwards an update takes.
"""

from __future__ import annotations

from hotloop.doctor.finding import IDENTICAL, TO_ROUNDING, Finding, Remedy, rule
from hotloop.doctor.port import envs_of
from hotloop.doctor.rules.evidence import (
    by_cost,
    calls_like,
    file_of,
    function_at,
    function_share,
    most_expensive,
    number,
    places_of,
    sampled_share,
    source_at,
    suggest,
)
from hotloop.doctor.snippets import LEFT_OPEN, is_statement
from hotloop.doctor.trace import ACT, UPDATE, CallCount, LineCost, Trace
from hotloop.render.numbers import percent

SEVERAL_SINGLE_ENVS = 4
"""Two may be one to train in and one to evaluate in."""
NO_GRAD_SPEEDUP = 1.25
BATCHING_EFFICIENCY = 0.9
"""A forward of N rows costs little more than one of a single row while the network is small."""


def without_gradients(trace: Trace, where: str) -> str:
    """The program's own line; not one that learning runs through too, since nothing would be learned there."""
    own = source_at(trace, where).partition("#")[0].strip()
    learned = {line.where for line in trace.lines if line.phase == UPDATE}
    inside = own if own and where not in learned and is_statement(own) else f"{LEFT_OPEN}  # where you choose actions"
    return f"import torch\n\nwith torch.no_grad():\n    {inside}"


def for_all_envs(trace: Trace, where: str) -> str:
    """One forward; how an action is chosen from its answer stays the program's."""
    return (
        "import torch\n\n"
        "with torch.no_grad():\n"
        f"    answers = network(torch.from_numpy(obs))  # obs [{envs_of(trace)}, ...], of all envs\n"
        "# answers[i] is what env i's action is chosen from, as you choose it now"
    )


NO_GRAD = Remedy(
    "Choose actions without recording gradients.",
    "action = network(obs).argmax(dim=1)",
    "import torch\n\nwith torch.no_grad():\n    action = network(obs).argmax(dim=1)",
    fill=without_gradients,
)
ONE_FORWARD = Remedy(
    "Choose all actions with one forward over the observations of all envs.",
    "actions = [network(torch.tensor(o)[None]).argmax().item() for o in obs]",
    "import torch\n\n"
    "with torch.inference_mode():\n"
    "    actions = network(torch.from_numpy(obs)).argmax(dim=1).tolist()  # obs [N, F]",
    fill=for_all_envs,
)


@rule("ACT001", remedy=NO_GRAD, kind=IDENTICAL, condition="no loss is computed from what these forwards return")
def acting_with_gradients(trace: Trace) -> Finding | None:
    """Actions are chosen with gradients recorded.

    Every operation then allocates what a backward would need, which never comes. Found where most forwards that choose
    an action record gradients although the update makes forwards of its own. Lines that learning runs through too, as
    those of a network's `forward`, are not named: without gradients nothing would be learned there.
    """
    counts = trace.counts
    if not counts.updates or counts.update_forwards < counts.backwards:
        return None  # a policy gradient that goes back through the acting forwards needs them
    if counts.act_forwards_with_grad < max(1, counts.act_forwards / 2):
        return None
    learning = {line.where for line in trace.lines if line.phase == UPDATE}
    places = [where for where in most_expensive(trace, (ACT,)) if where not in learning]
    if trace.beneath and not places:
        return None  # the library chooses
    share = trace.share(ACT)
    evidence = (
        f"{number(counts.act_forwards_with_grad)} of {number(counts.act_forwards)} forwards that chose actions "
        f"recorded gradients; acting takes {percent(share)} of the loop."
    )
    return suggest(
        trace,
        share,
        NO_GRAD_SPEEDUP,
        evidence=evidence,
        places=places or most_expensive(trace, (ACT,)),
        least=1.02,
    )


@rule(
    "ACT002",
    remedy=ONE_FORWARD,
    kind=TO_ROUNDING,
    condition="an env's action does not depend on the forwards before it; drawn actions are other draws, each as "
    "likely",
)
def one_forward_per_env(trace: Trace) -> Finding | None:
    """Actions are chosen one env at a time.

    A forward of a small network on one row costs as much as on a hundred: it is the calls that cost. Found where one
    call of `step` moves several envs but several forwards choose for it, or where four or more single envs take turns.
    """
    counts = trace.counts
    forwards = counts.act_forwards / max(1, counts.env_calls)
    envs = trace.envs_at_once
    if envs < 2 and counts.envs >= SEVERAL_SINGLE_ENVS and forwards > 0.5:
        envs = forwards = counts.envs
    rows = counts.act_rows / counts.act_forwards if counts.act_rows else 1.0
    if envs < 2 or forwards < 2 or rows > envs / 2:
        return None  # an actor and a critic, each asked once for all envs, are two forwards and nobody's mistake
    share = trace.share(ACT)
    evidence = (
        f"{number(forwards)} forwards choose the actions of {number(envs)} envs, one after another; "
        f"acting takes {percent(share)} of the loop."
    )
    speedup = max(1.0, BATCHING_EFFICIENCY * forwards)
    return suggest(trace, share, speedup, evidence=evidence, places=most_expensive(trace, (ACT,)))


LOOKUPS_PER_FORWARD = 5.0
MANY_TENSORS = 50
NETWORK_SPEEDUP = 30.0
"""`topology-update` gains 39 times at 70 nodes, the forward alone 144."""
NAMES_SPEEDUP = 1.3
"""The tensor operation on the same line remains."""
LEARNING = (ACT, UPDATE)
ROWS_TAKEN_SINGLY = 8.0
SMALL_BATCH = 4
FORWARD_BATCHING_EFFICIENCY = 0.25
TARGET_GRAD_SPEEDUP = 1.35
"""1.1 where the result is detached, 1.7 where the backward goes through the target too."""


NETWORK = Remedy(
    "Keep all weights in one tensor and compute the graph as one operation: hotloop's `TopologyNetwork` takes the same "
    "graph, and the numbers of the old network by name.",
    "values = {node: obs[:, i] for i, node in enumerate(inputs)}\n"
    "for node in order:\n"
    "    total = biases[str(node)].expand(len(obs))\n"
    "    for n in graph.predecessors(node):\n"
    '        total = total + values[n] * weights[f"{n}_to_{node}"]\n'
    "    values[node] = torch.nn.functional.leaky_relu(total, 0.1)\n"
    "q = torch.stack([values[node] for node in outputs], dim=1)",
    "from hotloop.nets import TopologyNetwork\n\n"
    "network = TopologyNetwork(graph, inputs=inputs, outputs=outputs)  # an ordinary nn.Module\n"
    "network.load_named({**weights, **biases})\n"
    "# in the loop\n"
    "q = network(obs)",
    port=True,
)
NAMES = Remedy(
    "Look parameters up once, in the constructor, and keep them in a list in the order the forward needs them.",
    'for i in range(4):\n    x = x * scales[f"layer_{i}"]',
    'in_order = [scales[f"layer_{i}"] for i in range(4)]  # the same parameters\n'
    "# in the loop\n"
    "for scale in in_order:\n"
    "    x = x * scale",
)
ROWS = Remedy(
    "Stack the rows of a batch and make one forward; graphs of any size go into one batch with an index per node.",
    "losses = [torch.nn.functional.mse_loss(network(row), y) for row, y in zip(rows, ys)]\n"
    "loss = sum(losses) / len(losses)",
    "import torch\n\nloss = torch.nn.functional.mse_loss(network(torch.stack(rows)), torch.stack(ys))",
)
TARGET = Remedy(
    "Compute targets under `torch.no_grad()`.",
    "target = reward + gamma * target_network(next_obs).max(dim=1)[0]",
    "import torch\n\nwith torch.no_grad():\n    target = reward + gamma * target_network(next_obs).max(dim=1)[0]",
    fill=lambda trace, where: f"import torch\n\nwith torch.no_grad():\n    {LEFT_OPEN}  # where you compute the target",
)


def named_lines(trace: Trace) -> list[LineCost]:
    """Lines that look up a parameter by a text put together on the spot, while acting or updating."""
    return [line for line in trace.lines if line.phase in LEARNING and "string-key" in line.features]


def walk_calls(trace: Trace) -> list[CallCount]:
    """Calls of a graph library while the network computes."""
    return calls_like(trace, ("networkx.*", "igraph.*"), LEARNING)


def forwards(trace: Trace) -> int:
    return max(1, trace.counted.update_forwards + trace.counted.act_forwards)


def is_walked(trace: Trace) -> bool:
    """Whether the forward goes through many small parameters, by name or along a graph."""
    per_forward = sum(call.count for call in walk_calls(trace)) / forwards(trace)
    many = trace.counts.parameter_tensors >= MANY_TENSORS
    return many and (bool(named_lines(trace)) or per_forward >= LOOKUPS_PER_FORWARD)


@rule(
    "UPDATE001",
    remedy=NETWORK,
    kind=TO_ROUNDING,
    condition="each node is a leaky ReLU of the weighted sum of its predecessors and a bias",
)
def walked_by_name(trace: Trace) -> Finding | None:
    """The forward walks a graph and looks parameters up by name.

    One node after another, each weight a tensor of one number found by a text put together for it, each predecessor
    asked of a graph library: thousands of calls for what is one sparse multiplication, and as many again backward
    and in the optimizer. Found where the network has fifty or more parameter tensors and its forward asks a graph
    library or a text-keyed dictionary.
    """
    names, walks = named_lines(trace), walk_calls(trace)
    per_forward = sum(call.count for call in walks) / forwards(trace)
    if not is_walked(trace):
        return None
    share = network_share(trace)
    places = by_cost(trace, [line.where for line in names] or places_of(walks))
    asked = f"{number(per_forward)} graph look-ups per forward, " if walks else ""
    by_name = f"{percent(sampled_share(trace, places))} of the loop on lines with text keys, " if names else ""
    evidence = (
        f"{asked}{by_name}{number(trace.counts.parameter_tensors)} parameter tensors; forward, backward and optimizer "
        f"take {percent(share)} of the loop."
    )
    return suggest(trace, share, NETWORK_SPEEDUP, evidence=evidence, places=places)


def network_share(trace: Trace) -> float:
    """The functions that look up by name (usually `forward`) wherever they run, backward and optimizer."""
    wheres = [line.where for line in named_lines(trace)] + places_of(walk_calls(trace))
    functions = {function_at(trace, where) for where in wheres}
    walking = function_share(trace, {function for function in functions if function[1]}, LEARNING)
    return min(trace.share(*LEARNING), walking + trace.part_share("backward") + trace.part_share("optimiser"))


@rule("UPDATE002", remedy=NAMES, kind=IDENTICAL)
def looked_up_by_name(trace: Trace) -> Finding | None:
    """Parameters are looked up by a text in the forward.

    Putting the text together and finding the parameter costs some microseconds for every use; a list costs nothing.
    Found where a tenth of the loop or more is on lines with such keys, in networks of few tensors (for many, see
    UPDATE001).
    """
    lines = named_lines(trace)
    if trace.counts.parameter_tensors >= MANY_TENSORS or not lines:
        return None
    places = by_cost(trace, dict.fromkeys(line.where for line in lines))
    share = sampled_share(trace, places, LEARNING)
    if share < 0.1:
        return None
    evidence = f"lines that put a key together from text take {percent(share)} of the loop, in {file_of(places[0])}."
    return suggest(trace, share, NAMES_SPEEDUP, evidence=evidence, places=places)


@rule(
    "UPDATE003",
    remedy=ROWS,
    kind=TO_ROUNDING,
    condition="the loss is the mean of the rows' losses, and no layer looks at several rows together",
)
def one_forward_per_row(trace: Trace) -> Finding | None:
    """An update makes a forward for every row.

    A forward on one row costs as much as on a hundred. Found where an update makes eight or more forwards, of four rows
    or fewer each.
    """
    counts = trace.counts
    per_update = counts.update_forwards / max(1, counts.updates)
    if not counts.updates or per_update < ROWS_TAKEN_SINGLY or not 0 < counts.batch_size <= SMALL_BATCH:
        return None
    share = trace.share(UPDATE) - trace.part_share("optimiser")
    places = most_expensive(trace, (UPDATE,), without=("backward(", ".step("))
    evidence = (
        f"{number(per_update)} forwards of {number(counts.batch_size)} row{'s' * (counts.batch_size > 1)} per update; "
        f"with their losses and backward they take {percent(share)} of the loop."
    )
    speedup = max(1.0, FORWARD_BATCHING_EFFICIENCY * per_update)
    return suggest(trace, share, speedup, evidence=evidence, places=places)


@rule(
    "UPDATE004",
    remedy=TARGET,
    kind=IDENTICAL,
    condition="nothing that is trained lies before that network in the same forward",
)
def target_with_gradients(trace: Trace) -> Finding | None:
    """The target network records gradients.

    What a backward would need is kept for a network that no optimizer changes. Found where updates make forwards with
    gradients on a module whose parameters are in no optimizer.
    """
    counts = trace.counts
    if not counts.updates or counts.unneeded_grad_forwards < 0.9 * counts.updates:
        return None
    share = trace.share(UPDATE) - trace.part_share("optimiser")
    evidence = (
        f"{number(counts.unneeded_grad_forwards / counts.updates)} forwards per update record gradients for a network "
        f"that no optimizer changes; forward and backward take {percent(share)} of the loop."
    )
    calls_it = any("target(" in line.source for line in trace.lines)
    return suggest(
        trace,
        share,
        TARGET_GRAD_SPEEDUP,
        evidence=evidence,
        places=most_expensive(trace, (UPDATE,), "target(" if calls_it else "target"),
        least=1.02,
    )
