"""Options of PyTorch that cost time: anomaly detection, checked distributions, full covariances, modes."""

from __future__ import annotations

from hotloop.doctor.finding import IDENTICAL, TO_ROUNDING, Finding, Remedy, rule
from hotloop.doctor.rules.beneath import is_in, lines_above, mentioned, share_of, stacks_in
from hotloop.doctor.rules.evidence import (
    SAVED_ENTIRELY,
    calls_like,
    number,
    per_env_call,
    suggest,
)
from hotloop.doctor.trace import ACT, UPDATE, StackCost, Trace
from hotloop.render.numbers import percent

CHECKS = (
    ("torch/distributions/distribution.py", "Distribution.__init__"),
    ("torch/distributions/distribution.py", "Distribution._validate_sample"),
    ("torch/distributions/constraints.py", "*"),
)
STACK_TEXTS = (("*traceback.py", "*format_stack"),)
NAN_CHECKS = 0.35
"""Of a backward under anomaly detection: every gradient is looked through for NaN."""
MOST_ANOMALY_COSTS = 5.0
"""Times that updates take: texts are made with calls of the system, in which a busy machine takes the core away."""
FULL = (("torch/distributions/multivariate_normal.py", "*"),)
DIAGONAL_SPEEDUP = 3.0
DISTRIBUTIONS = ("torch.*.log_prob", "torch.*.sample", "torch.*.rsample", "torch.*.entropy")

MODES = (("torch/nn/modules/module.py", "Module.train"), ("torch/nn/modules/module.py", "Module.eval"))

SAME_MODE = Remedy(
    "Leave both calls out: no layer of these networks asks for its mode. They walk through all layers, and each sets "
    "an attribute, which PyTorch's modules check. Where dropout or batch norm comes in later, they are needed again.",
    "network.eval()\nwith torch.no_grad():\n    action = network(obs).argmax(dim=1)\nnetwork.train()",
    "import torch\n\nwith torch.no_grad():\n    action = network(obs).argmax(dim=1)",
)
NO_ANOMALY = Remedy(
    "Take anomaly detection out, or switch it on for the run that looks for a NaN: it notes the place of every forward "
    "operation as text and checks every gradient.",
    "torch.autograd.set_detect_anomaly(True)",
    "import torch\n\ntorch.autograd.set_detect_anomaly(False)  # or no such line",
)
INDEPENDENT = Remedy(
    "Take independent normals: with a diagonal covariance the numbers are the same, without a Cholesky factor, a "
    "triangular solve and the check that the matrix is positive definite.",
    "policy = torch.distributions.MultivariateNormal(mean, torch.diag(variance))\nlog_prob = policy.log_prob(action)",
    "import torch\n"
    "from torch.distributions import Independent, Normal\n\n"
    "# in the loop\n"
    "policy = Independent(Normal(mean, variance.sqrt()), 1)\n"
    "log_prob = policy.log_prob(action)",
)
UNCHECKED = Remedy(
    "Switch the checks off once the program works: they look for NaN and impossible values in every argument and "
    "every sample. The numbers stay the same; wrong ones are no longer noticed.",
    "policy = torch.distributions.Categorical(logits=logits)\nlog_prob = policy.log_prob(action)",
    "import torch\n\n"
    "torch.distributions.Distribution.set_default_validate_args(False)\n"
    "# in the loop\n"
    "policy = torch.distributions.Categorical(logits=logits)\n"
    "log_prob = policy.log_prob(action)",
)


@rule("UPDATE010", remedy=NO_ANOMALY, kind=IDENTICAL)
def anomaly_detection(trace: Trace) -> Finding | None:
    """Anomaly detection is left on.

    It writes the stack of every operation of a forward down as text, in case its gradient turns out to be NaN, and
    looks through every gradient: updates take two to three times as long. Found where PyTorch writes such stacks in the
    loop.
    """
    stacks = stacks_in(trace, STACK_TEXTS)
    places = mentioned(trace, "set_detect_anomaly", "detect_anomaly") or lines_above(trace, stacks, STACK_TEXTS)
    texts = calls_like(trace, ("torch.format_stack", "traceback.format_stack"))
    if not stacks or not texts:
        return None
    share = share_of(trace, stacks) + NAN_CHECKS * trace.part_share("backward")
    share = min(share, trace.share(ACT, UPDATE) * (1 - 1 / MOST_ANOMALY_COSTS))
    evidence = (
        f"PyTorch writes the stack of every operation down, {number(trace.per_update(texts))} times per update "
        f"from your own lines: with the checks of gradients about {percent(share)} of the loop."
    )
    # No relief: without the doctor, whose frames are written down too, a loop that was seen at 60 % gained 2.6 times.
    return suggest(trace, share, SAVED_ENTIRELY, evidence=evidence, places=places, relief=0.0)


def checked_stacks(trace: Trace) -> list[StackCost]:
    """Those of a multivariate normal that need not be one are left to its own rule."""
    stacks = stacks_in(trace, CHECKS)
    if not trace.counted.diagonal_covariances:
        return stacks
    return [stack for stack in stacks if not any(is_in(frame, FULL) for frame in stack.frames)]


@rule("UPDATE012", remedy=INDEPENDENT, kind=TO_ROUNDING)
def diagonal_covariance(trace: Trace) -> Finding | None:
    """A multivariate normal has a diagonal covariance.

    It factorizes the matrix, solves a triangular system for every row and checks that the matrix is positive definite,
    for what is one normal per action. Found where the factors of those made in the loop are diagonal.
    """
    stacks = stacks_in(trace, FULL)
    if not trace.counted.diagonal_covariances or not stacks:
        return None
    share = share_of(trace, stacks)
    evidence = (
        f"{number(trace.counted.diagonal_covariances)} multivariate normals that were looked at have a diagonal "
        f"covariance; they take {percent(share)} of the loop."
    )
    places = list(dict.fromkeys([*mentioned(trace, "MultivariateNormal"), *lines_above(trace, stacks, FULL)]))
    return suggest(trace, share, DIAGONAL_SPEEDUP, evidence=evidence, places=places)


@rule("UPDATE011", remedy=UNCHECKED, kind=IDENTICAL)
def checked_distributions(trace: Trace) -> Finding | None:
    """Distributions check their arguments and samples.

    `torch.distributions` validates every argument when one is made and every value whose probability is asked:
    comparisons, `all()` and a host read for each, as dear as the distribution itself where batches are small. Found
    where that takes a part of the loop.
    """
    stacks = checked_stacks(trace)
    share = share_of(trace, stacks)
    calls = calls_like(trace, DISTRIBUTIONS)
    often = f"{number(per_env_call(trace, calls))} questions to distributions per call of `step`; " if calls else ""
    evidence = f"{often}checking arguments and samples takes {percent(share)} of the loop."
    return suggest(trace, share, SAVED_ENTIRELY, evidence=evidence, places=lines_above(trace, stacks, CHECKS))


@rule("ACT004", remedy=SAME_MODE, kind=IDENTICAL)
def modes_without_effect(trace: Trace) -> Finding | None:
    """Networks are switched between `train()` and `eval()` without effect.

    Both walk through every layer of a network and set an attribute of each: ten microseconds or more for a small one,
    twice for every action. Only layers such as dropout and batch norm behave differently. Found where no layer of the
    networks does, the program itself calls them, and they take a part of the loop.
    """
    stacks = stacks_in(trace, MODES)
    places = lines_above(trace, stacks, MODES)
    if trace.counts.mode_layers or trace.beneath or not places:
        return None
    share = share_of(trace, stacks)
    often = per_env_call(trace, calls_like(trace, ("torch.Module.train", "torch.Module.eval")))
    evidence = (
        f"`train()` and `eval()` are called {number(often)} times per call of `step` and take {percent(share)} of the "
        "loop; no layer of the networks asks for its mode."
    )
    return suggest(trace, share, SAVED_ENTIRELY, evidence=evidence, places=places)
