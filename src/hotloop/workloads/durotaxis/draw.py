"""A colony on its field as text for a terminal or as a picture, from a saved state or with the past of its episode.

One colony as it is, for drawing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from hotloop.core.types import Array, EnvStep
from hotloop.workloads.durotaxis.layout_kernels import SUBSTRATES
from hotloop.workloads.durotaxis.picture import (
    GOAL_LINE,
    NAMES,
    SKY,
    Past,
    age_color,
    picture,
    shades,
    stiffness,
    stiffness_shares,
)
from hotloop.workloads.durotaxis.step_kernels import GOAL


def snapshot(state: Mapping[str, Array], index: int) -> dict[str, Any]:
    """From a saved state: `positions` [V, 2], `ages` [V] and `edges` [E, 2] as arrays, the `field` (width, height), the
    substrate's kind, m and b, `centroid` (x, y), `step` of the episode, and the last `action` as carried out (ratio,
    gamma, alpha, noise, theta).

    An empty colony's centroid is the last one it had.
    """
    nodes = _part(state["num_nodes"], index)
    return {
        "positions": state["positions"][nodes].copy(),
        "ages": state["ages"][nodes].copy(),
        "edges": state["edges"][_part(state["num_edges"], index)].copy(),
        "field": state["field"].tolist(),
        "substrate": SUBSTRATES[int(state["substrate"][index])],
        "m": float(state["m"][index]),
        "b": float(state["b"][index]),
        "centroid": state["centroid"][index].tolist(),
        "step": int(state["steps"][index]),
        "action": state["action"][index].tolist(),
    }


def _part(counts: Array, index: int) -> slice:
    start = int(counts[:index].sum())
    return slice(start, start + int(counts[index]))


State = Mapping[str, Array]
FPS = 15
"""Env steps per second that look natural."""
MEANINGS = {
    "reward_total": "what the policy is paid",
    "reward_graph": "colony size, centroid, spawn, delete, efficiency and edge together",
    "reward_spawn": "children on ground enough stiffer than their parents'",
    "reward_delete": "marked nodes that went, less those that stayed and others that went",
    "reward_deletion_efficiency": "old nodes deleted",
    "reward_edge": "edges that lead right",
    "reward_centroid": "5 x how far the centroid came",
    "reward_milestone": "quarters of the way",
    "reward_total_node": "what the nodes' places are worth, summed",
    "reward_survival": "steps lived through",
    "reward_empty_graph_recovery_penalty": "colonies that had to start again",
    "reward_termination": "how the episode ended",
    "reward_num_nodes": "nodes of the colony, mean over its steps",
    "reward_node_rewards": "what one node's place is worth, mean over steps and nodes",
}
"""Of the measures that a page draws; sums over an episode but for the last two."""
COLUMNS, ROWS = 74, 10  # of the field, in characters
TRACE = 40  # characters
RAMP = " .:-=+*#%@"
STEPS = "▁▂▃▄▅▆▇█"


def frame(state: State, index: int) -> Array:
    """A picture of colony `index` without a past, [height, width, 3] uint8."""
    return picture(*_alone(state, index))


def text(state: State, index: int, color: bool = True) -> str:
    """Colony `index` without a past, for a terminal."""
    return text_of(*_alone(state, index), color)


def text_of(now: dict[str, Any], past: Past, color: bool) -> str:
    """A snapshot for a terminal: the field, and a line for the centroid, for the stiffness there and
    for each number of the action."""
    return "\n".join([_header(now), *_field(now, color), *_traces(now, past, color)])


def _alone(state: State, index: int) -> tuple[dict[str, Any], Past]:
    now, past = snapshot(state, index), Past()
    past.add(now)
    return now, past


def _header(now: dict[str, Any]) -> str:
    counts = f"step {now['step']}   {len(now['positions'])} nodes   {len(now['edges'])} edges"
    return f"{counts}   {now['substrate']} m {now['m']:.3g} b {now['b']:.3g}"


def _field(now: dict[str, Any], color: bool) -> list[str]:
    cells = _cells(now)
    if color:
        return _colored(cells, shades(now, COLUMNS).round().astype(int).tolist())
    ground = "".join(RAMP[_place(share, len(RAMP))] for share in stiffness_shares(now, COLUMNS))
    rows = ["".join(mark for mark, _ in row) for row in cells]
    return [f"+{'-' * COLUMNS}+", *(f"|{row}|" for row in rows), f"+{ground}+"]


def _cells(now: dict[str, Any]) -> list[list[tuple[str, tuple[int, int, int]]]]:
    """A character and its color for each: how many nodes stand there, in the color of the youngest."""
    goal = _place(GOAL, COLUMNS)
    cells = [[(":" if column == goal else " ", GOAL_LINE) for column in range(COLUMNS)] for _ in range(ROWS)]
    standing: dict[tuple[int, int], list[int]] = {}
    for (x, y), age in zip(now["positions"] / now["field"], now["ages"].tolist(), strict=True):
        standing.setdefault((_place(1 - y, ROWS), _place(x, COLUMNS)), []).append(age)
    for (row, column), ages in standing.items():
        mark = "o" if len(ages) == 1 else str(len(ages)) if len(ages) < 10 else "#"
        cells[row][column] = mark, age_color(min(ages))
    return cells


def _place(share: float, count: int) -> int:
    return min(max(int(share * count), 0), count - 1)


def _colored(cells: list[list[tuple[str, tuple[int, int, int]]]], ground: list[list[int]]) -> list[str]:
    rows = []
    for row in cells:
        marks = (
            f"\x1b[48;2;{below[0]};{below[1]};{below[2]}m"
            + (mark if mark == " " else f"\x1b[38;2;{ink[0]};{ink[1]};{ink[2]}m{mark}")
            for (mark, ink), below in zip(row, ground, strict=True)
        )
        rows.append("".join(marks) + "\x1b[0m")
    margin = "\x1b[48;2;{};{};{}m".format(*SKY) + " " * COLUMNS + "\x1b[0m"
    return [margin, *rows, margin]


def _traces(now: dict[str, Any], past: Past, color: bool) -> list[str]:
    width, places, actions = now["field"][0], past.places[:, 0], past.actions
    rows = [_row("centroid x", places[-1], 0.0, width, places / width, color)]
    (low, high), felt = stiffness(now, np.array([0.0, width])), stiffness(now, places)
    rows.append(_row("stiffness", felt[-1], low, high, (felt - low) / max(high - low, 1e-9), color))
    for index, name in enumerate(NAMES):
        value = actions[-1, index] if len(past) else None
        rows.append(_row(name, value, past.low[index], past.high[index], past.shares[:, index], color))
    return rows


def _row(name: str, value: float | None, low: float, high: float, shares: Array, color: bool) -> str:
    """What it is now, its range, and over the whole episode where in that range it was."""
    said = "-" if value is None else f"{value:.2f}"
    return f"{name:12} {said:>7}  {f'{low:.3g} to {high:.3g}':15} {_trace(shares, color)}".rstrip()


def _trace(shares: Array, color: bool) -> str:
    """Tenths as digits, or eighths as blocks; a long one is thinned out."""
    if len(shares) > TRACE:
        shares = shares[np.linspace(0, len(shares) - 1, TRACE).round().astype(int)]
    marks = STEPS if color else "0123456789"
    return "".join(marks[_place(float(share), len(marks))] for share in shares)


class DurotaxisScene:
    """Remembers one row of numbers for each step of the episode; the colony itself is drawn as it is now."""

    fps = FPS

    def __init__(self, envs: Any) -> None:
        envs.hold_finished()
        self.envs = envs
        settings = envs.settings
        self._highest_ratio = settings.max_delete_ratio if settings.action == "ratio" else 1.0
        self._past = Past(self._highest_ratio)

    def note(self, step: EnvStep | None) -> None:
        if step is None:
            self._past = Past(self._highest_ratio)
        self._now = self.envs.snapshot(0)
        self._past.add(self._now)

    def measures(self) -> dict[str, float]:
        return {"centroid": self._now["centroid"][0], "colony_size": len(self._now["positions"])}

    def text(self, color: bool) -> str:
        return text_of(self._now, self._past, color)

    def frame(self) -> Array:
        return picture(self._now, self._past)


scene = DurotaxisScene
