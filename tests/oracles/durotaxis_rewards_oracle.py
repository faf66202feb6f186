"""The fourteen entries of durotaxis' reward record, each as docs/durotaxis.md writes it, from a colony before and after
a step. Neither our kernels nor the plain program had a part in it."""

from __future__ import annotations

import numpy as np

MILESTONES = {0.25: 50.0, 0.5: 150.0, 0.75: 300.0, 0.9: 500.0}
ENDINGS = {"runs": 0, "success": 500, "outside": -100, "empty": -100, "drift": -50, "too many": -15}


def stiffness(colony):
    x = colony["positions"][:, 0]
    return colony["m"] * x + colony["b"] if colony["substrate"] == "linear" else colony["b"] * np.exp(colony["m"] * x)


def rewards_of(before, after, deleted, mode, *, hull, ending, recovered, passed):
    """`before` and `after` are snapshots (`after` without nodes where the colony `recovered`); `deleted` [N] bool of
    the nodes before, `hull` [N'] bool of those after; `passed`: milestones behind it already, which is added to."""
    width, height = before["field"]
    now, then = stiffness(after), stiffness(before)
    x, y = after["positions"].T
    n = len(x)
    parents = n - np.count_nonzero(after["ages"] == 0)
    gain = now[parents:] - now[:parents]
    marked = (before["ages"] >= 3) & (then < then.mean())
    age = before["ages"][deleted]
    dx = x[after["edges"][:, 1]] - x[after["edges"][:, 0]]
    share = np.minimum(y, height - y) / height
    zones = np.select([share < 0.03, share < 0.08, share < 0.15], [5.0, 2.0, 0.5], 0.0)

    terms = {
        "spawn": np.where(gain >= 2.5, 2.5, -1.0).sum(),
        "delete": 2.0 * (marked & deleted).sum() - 2.0 * (marked & ~deleted).sum() - 2.0 * (~marked & deleted).sum(),
        "deletion_efficiency": 0.05 * np.clip(age - 50, 0, None).sum() + 0.1 * np.clip(age - 1 - 20, 0, None).sum(),
        "edge": 0.5 * (dx > 0.01).sum() - 0.05 * (dx < -0.01).sum(),
        "centroid": 5.0 * (x.mean() - before["positions"][:, 0].mean()) if n else 0.0,
        "milestone": 0.0,
        "node_rewards": 0.3 * np.minimum(now, 100.0) + 0.1 * hull - 0.2 * (x < 0.1 * width) - zones,
        "survival": 0.01 if after["step"] < 100 else 0.03,
        "empty_graph_recovery_penalty": -50.0 * recovered,
        "termination": float(ENDINGS[ending]),
        "num_nodes": n,
    }
    for place, worth in MILESTONES.items():
        if place not in passed and n and x.max() >= place * width:
            passed.add(place)
            terms["milestone"] += worth
    population = -5.0 if n < 2 else -3.0 * (1 + (n - 50) / 50) if n > 50 else 0.1
    in_graph = ("centroid", "spawn", "delete", "deletion_efficiency", "edge")
    terms["graph"] = population + sum(terms[name] for name in in_graph)
    terms["total_node"] = terms["node_rewards"].sum()
    at_the_end = np.clip(0.02 * terms["termination"], -10, 10)
    if mode == "full":
        in_total = ("graph", "total_node", "survival", "milestone", "termination", "empty_graph_recovery_penalty")
        terms["total"] = sum(terms[name] for name in in_total)
    elif mode == "centroid_distance_only":
        terms["total"] = (terms["centroid"] / (width - 1) if after["step"] > 1 else 0.0) + at_the_end
    else:
        terms["total"] = min(population, 0.0) + terms["delete"] + at_the_end
    return terms
