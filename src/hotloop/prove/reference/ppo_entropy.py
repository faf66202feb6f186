"""Entropy and KL divergence by drawing: no formula needed, an error that shrinks with the root of the draws."""

import torch
from torch.distributions import Categorical, Independent, Normal, TransformedDistribution
from torch.distributions.transforms import TanhTransform


def make_policy(logits, counts, mean, log_std, squashed):
    """The independent parts of one state's policy."""
    parts: list = [Categorical(logits=part) for part in torch.split(logits, counts)] if counts else []
    if len(mean):
        numbers = Independent(Normal(mean, log_std.exp()), 1)
        parts.append(TransformedDistribution(numbers, [TanhTransform(cache_size=1)]) if squashed else numbers)
    return parts


def entropy_and_kl(old, new, draws):
    """Mean and standard error of -log p and of log p - log q, over draws from `old`."""
    log_p, log_q = torch.zeros(draws), torch.zeros(draws)
    for p, q in zip(old, new, strict=True):
        sample = p.sample((draws,))
        log_p += p.log_prob(sample)
        log_q += q.log_prob(sample)
    return [(terms.mean().item(), terms.std().item() / draws**0.5) for terms in (-log_p, log_p - log_q)]
