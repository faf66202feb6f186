"""A Double DQN update with Adam as text, and what may go wrong in a rewrite of it: old, new, what differs first."""

from __future__ import annotations

from typing import Any

import torch

PLAIN = """
GAMMA, LR, BETAS, EPS, CLIP, EVERY = 0.9, 0.05, (0.9, 0.99), 1e-8, 1.5, 2

def q_values(weights, obs):
    hidden = torch.relu(obs @ weights[0] + weights[1])
    return hidden @ weights[2] + weights[3]

def updates(weights, batches):
    online = [weight.clone().requires_grad_() for weight in weights]
    target = [weight.clone() for weight in weights]
    first, second = [torch.zeros_like(w) for w in weights], [torch.zeros_like(w) for w in weights]
    rows = []
    for number, batch in enumerate(batches, start=1):
        q = q_values(online, batch["obs"]).gather(1, batch["action"][:, None])[:, 0]
        with torch.no_grad():
            choice = q_values(online, batch["next_obs"]).masked_fill(~batch["mask"], -torch.inf).argmax(dim=1)
            next_q = q_values(target, batch["next_obs"]).gather(1, choice[:, None])[:, 0]
            y = batch["reward"] + GAMMA * (1 - batch["terminated"]) * next_q
        error = y - q
        row_loss = torch.where(error.abs() < 1, 0.5 * error ** 2, error.abs() - 0.5)
        loss = (batch["weight"] * row_loss).mean()
        gradient = list(torch.autograd.grad(loss, online))
        norm = torch.sqrt(sum(one.square().sum() for one in gradient))
        gradient = [one * torch.clamp(CLIP / (norm + 1e-6), max=1.0) for one in gradient]
        priority = error.detach().abs()
        with torch.no_grad():
            for place, one in enumerate(gradient):
                first[place] = BETAS[0] * first[place] + (1 - BETAS[0]) * one
                second[place] = BETAS[1] * second[place] + (1 - BETAS[1]) * one ** 2
                mean = first[place] / (1 - BETAS[0] ** number)
                variance = second[place] / (1 - BETAS[1] ** number)
                online[place] -= LR * mean / (variance.sqrt() + EPS)
            if number % EVERY == 0:
                target = [weight.detach().clone() for weight in online]
        rows.append({
            "q": q.detach(), "next_q": next_q, "y": y.detach(), "loss": loss.detach(), "priority": priority,
            "gradient": gradient, "first": [one.clone() for one in first], "second": [one.clone() for one in second],
            "weights": [one.detach().clone() for one in online], "target": [one.detach().clone() for one in target],
        })
    return rows
"""

MUTANTS: list[tuple[str, str, str]] = [
    # learning rate and its place
    ("LR, BETAS", "SPARE, BETAS", "result"),
    ("0.9, 0.05,", "0.9, 0.055,", "weights"),
    ("0.9, 0.05,", "0.9, 0.5,", "weights"),
    ("0.9, 0.05,", "0.9, 0.05005,", "weights"),
    ("LR * mean", "LR * 0.999 ** (number - 1) * mean", "weights"),
    ("LR * mean", "LR * one", "weights"),
    ("online[place] -=", "online[place] +=", "weights"),
    # bias correction
    ("first[place] / (1 - BETAS[0] ** number)", "first[place]", "weights"),
    ("second[place] / (1 - BETAS[1] ** number)", "second[place]", "weights"),
    ("(1 - BETAS[0] ** number)", "(1 - BETAS[0] ** (number + 1))", "weights"),
    ("(1 - BETAS[1] ** number)", "(1 - BETAS[0] ** number)", "weights"),
    ("(1 - BETAS[1] ** number)", "(1 - BETAS[1] ** max(1, number - 1))", "weights"),
    # Adam's moments
    ("(0.9, 0.99)", "(0.99, 0.9)", "first"),
    ("(0.9, 0.99)", "(0.9, 0.999)", "second"),
    ("(1 - BETAS[0]) * one", "one", "first"),
    ("(1 - BETAS[1]) * one ** 2", "(1 - BETAS[1]) * one.abs()", "second"),
    ("variance.sqrt() + EPS", "(variance + EPS).sqrt()", "weights"),
    ("EPS, CLIP, EVERY = 0.9, 0.05, (0.9, 0.99), 1e-8", "EPS, CLIP, EVERY = 0.9, 0.05, (0.9, 0.99), 1e-3", "weights"),
    ("(variance.sqrt() + EPS)", "(variance + EPS)", "weights"),
    # missing or superfluous detach
    ("error = y - q\n", "error = y - 0.9 * q - 0.1 * q.detach()\n", "gradient"),
    ("next_q = q_values(target,", "next_q = q_values(online,", "next_q"),
    ("error = y - q\n", "error = y - q.detach() + 0 * q\n", "gradient"),
    (
        '(batch["weight"] * row_loss)',
        '(batch["weight"] * row_loss.abs() / row_loss.abs().sum() * row_loss.sum().detach())',
        "gradient",
    ),
    ("error ** 2, error.abs()", "error * error.detach(), error.abs()", "gradient"),
    # the target network, late or early
    ("EVERY = 0.9, 0.05, (0.9, 0.99), 1e-8, 1.5, 2", "EVERY = 0.9, 0.05, (0.9, 0.99), 1e-8, 1.5, 3", "target"),
    ("number % EVERY == 0", "number % EVERY == 1", "target"),
    ("number % EVERY == 0", "number > EVERY and number % EVERY == 0", "target"),
    ("number % EVERY == 0", "False", "target"),
    ("number % EVERY == 0", "True", "target"),
    (
        "[weight.detach().clone() for weight in online]",
        "[0.9 * w.detach() + 0.1 * t for w, t in zip(online, target)]",
        "target",
    ),
    ("[weight.detach().clone() for weight in online]", "[weight.detach() for weight in online]", "target"),
    ("target = [weight.clone() for weight in weights]", "target = [weight * 1.0001 for weight in weights]", "next_q"),
    # masks
    ('.masked_fill(~batch["mask"], -torch.inf)', "", "next_q"),
    ('~batch["mask"], -torch.inf', 'batch["mask"], -torch.inf', "next_q"),
    ('~batch["mask"], -torch.inf', '~batch["mask"], 0.0', "next_q"),
    # the target's terms
    ('GAMMA * (1 - batch["terminated"])', "GAMMA", "y"),
    ('(1 - batch["terminated"])', 'batch["terminated"]', "y"),
    ("GAMMA, LR, BETAS, EPS, CLIP, EVERY = 0.9,", "GAMMA, LR, BETAS, EPS, CLIP, EVERY = 0.99,", "y"),
    ("GAMMA * (1", "GAMMA ** 2 * (1", "y"),
    ("choice = q_values(online,", "choice = q_values(target,", "next_q"),
    ('batch["reward"] + GAMMA', 'batch["reward"].clamp(-1, 1) + GAMMA', "y"),
    # the loss
    ("0.5 * error ** 2", "error ** 2", "loss"),
    ("error.abs() < 1", "error.abs() < 2", "loss"),
    ("error.abs() - 0.5)", "error.abs())", "loss"),
    ('(batch["weight"] * row_loss).mean()', "row_loss.mean()", "loss"),
    ("row_loss).mean()", "row_loss).sum()", "loss"),
    ("row_loss).mean()", 'row_loss).sum() / batch["weight"].sum()', "loss"),
    # clipping and priorities
    ("torch.clamp(CLIP / (norm + 1e-6), max=1.0)", "CLIP / (norm + 1e-6)", "gradient"),
    ("sum(one.square().sum() for one in gradient)", "sum(one.square().sum() for one in gradient[:1])", "gradient"),
    ("1e-8, 1.5, 2", "1e-8, 1.4, 2", "gradient"),
    ("priority = error.detach().abs()", "priority = error.detach()", "priority"),
    ("torch.relu(obs @", "torch.nn.functional.leaky_relu(obs @", "q"),
]
REWRITES: list[tuple[str, str]] = [
    ("BETAS[0] * first[place] + (1 - BETAS[0]) * one", "torch.lerp(first[place], one, 1 - BETAS[0])"),
    (
        "torch.where(error.abs() < 1, 0.5 * error ** 2, error.abs() - 0.5)",
        "torch.nn.functional.huber_loss(q, y, reduction='none')",
    ),
    ('masked_fill(~batch["mask"], -torch.inf)', 'where(batch["mask"], torch.tensor(-torch.inf))'),
    (
        "online[place] -= LR * mean / (variance.sqrt() + EPS)",
        "online[place].addcdiv_(mean, variance.sqrt() + EPS, value=-LR)",
    ),
    (
        "torch.sqrt(sum(one.square().sum() for one in gradient))",
        "torch.cat([one.reshape(-1) for one in gradient]).norm()",
    ),
    ("obs @ weights[0] + weights[1]", "torch.addmm(weights[1], obs, weights[0])"),
    ("gather(1, choice[:, None])[:, 0]", "take_along_dim(choice[:, None], dim=1).squeeze(1)"),
    ('(batch["weight"] * row_loss).mean()', 'torch.dot(batch["weight"], row_loss) / len(row_loss)'),
    ('GAMMA * (1 - batch["terminated"]) * next_q', 'GAMMA * next_q - GAMMA * batch["terminated"] * next_q'),
    ("torch.clamp(CLIP / (norm + 1e-6), max=1.0)", "min(1.0, CLIP / (float(norm) + 1e-6))"),
]


def made(old: str = "", new: str = "") -> Any:
    """The function, with the first `old` of its text replaced; without one, once more from the plain text."""
    assert old in PLAIN, old
    names: dict[str, Any] = {"torch": torch, "__name__": "planted"}
    exec(PLAIN.replace(old, new, 1) if old else PLAIN, names)
    return names["updates"]


def inputs() -> tuple[Any, ...]:
    """Four weights, and six batches of twelve transitions."""
    draw = torch.Generator().manual_seed(3)
    shapes = [(4, 6), (6,), (6, 3), (3,)]
    weights = [torch.randn(shape, generator=draw) for shape in shapes]

    def batch() -> dict[str, torch.Tensor]:
        mask = torch.rand(12, 3, generator=draw) < 0.6
        mask[:, 0] |= ~mask.any(dim=1)
        return {
            "obs": torch.randn(12, 4, generator=draw),
            "action": torch.randint(3, (12,), generator=draw),
            "reward": 2 * torch.randn(12, generator=draw),
            "next_obs": torch.randn(12, 4, generator=draw),
            "terminated": (torch.rand(12, generator=draw) < 0.3).float(),
            "weight": torch.rand(12, generator=draw) + 0.5,
            "mask": mask,
        }

    return weights, [batch() for _ in range(6)]
