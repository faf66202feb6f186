"""How actions are chosen."""

from __future__ import annotations

from hotloop.doctor.finding import Finding, rule
from hotloop.doctor.rules.evidence import Remedy, dearest, number, percent, suggest
from hotloop.doctor.trace import ACT, Trace

SEVERAL_SINGLE_ENVS = 4
"""Two may be one to train in and one to evaluate in."""
NO_GRAD_SPEEDUP = 1.25
BATCHING_EFFICIENCY = 0.9
"""A forward of N rows costs little more than one of a single row while the network is small."""

NO_GRAD = Remedy(
    "Choose actions without recording gradients.",
    "action = network(obs).argmax(dim=1)",
    "import torch\n\nwith torch.inference_mode():\n    action = network(obs).argmax(dim=1)",
)
ONE_FORWARD = Remedy(
    "Choose all actions with one forward over the observations of all envs.",
    "actions = [network(torch.tensor(o)[None]).argmax().item() for o in obs]",
    "import torch\n\n"
    "with torch.inference_mode():\n"
    "    actions = network(torch.from_numpy(obs)).argmax(dim=1).tolist()  # obs [N, F]",
)


@rule("ACT001")
def acting_with_gradients(trace: Trace) -> Finding | None:
    """Actions are chosen with gradients recorded.

    Every operation then allocates what a backward would need, which never comes. Found where most forwards that choose
    an action record gradients although the update makes forwards of its own.
    """
    counts = trace.counts
    if not counts.updates or counts.update_forwards < counts.backwards:
        return None  # a policy gradient that goes back through the acting forwards needs them
    if counts.act_forwards_with_grad < max(1, counts.act_forwards / 2):
        return None
    share = trace.share(ACT)
    evidence = (
        f"{number(counts.act_forwards_with_grad)} of {number(counts.act_forwards)} forwards that chose actions "
        f"recorded gradients; acting takes {percent(share)} of the loop."
    )
    return suggest(
        trace, share, NO_GRAD_SPEEDUP, evidence=evidence, remedy=NO_GRAD, places=dearest(trace, (ACT,)), least=1.02
    )


@rule("ACT002")
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
    if envs < 2 or forwards < 2:
        return None
    share = trace.share(ACT)
    evidence = (
        f"{number(forwards)} forwards choose the actions of {number(envs)} envs, one after another; "
        f"acting takes {percent(share)} of the loop."
    )
    speedup = max(1.0, BATCHING_EFFICIENCY * forwards)
    return suggest(trace, share, speedup, evidence=evidence, remedy=ONE_FORWARD, places=dearest(trace, (ACT,)))
