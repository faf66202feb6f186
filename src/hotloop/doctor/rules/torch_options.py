"""Options of PyTorch that cost time: anomaly detection, checked distributions, full covariances."""

from __future__ import annotations

from hotloop.doctor.finding import Finding, Remedy, rule
from hotloop.doctor.rules.beneath import lines_above, share_of, stacks_in
from hotloop.doctor.rules.evidence import (
    SAVED_ENTIRELY,
    calls_like,
    number,
    per_env_call,
    suggest,
)
from hotloop.doctor.trace import StackCost, Trace
from hotloop.render.numbers import percent

CHECKS = (
    ("torch/distributions/distribution.py", "Distribution.__init__"),
    ("torch/distributions/distribution.py", "Distribution._validate_sample"),
    ("torch/distributions/constraints.py", "*"),
)
DISTRIBUTIONS = ("torch.*.log_prob", "torch.*.sample", "torch.*.rsample", "torch.*.entropy")

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


def checked_stacks(trace: Trace) -> list[StackCost]:
    return stacks_in(trace, CHECKS)


@rule("UPDATE011", remedy=UNCHECKED)
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
