"""What was learned: the curves, the evaluations, and what the updates measured."""

from __future__ import annotations

from typing import Any

from hotloop.render.html import Child, Html, element, join, section, table
from hotloop.render.numbers import count, measured, number_in, time_unit
from hotloop.render.plots import Axes, axes_for, band, dots, hover, line, plot, small_plots
from hotloop.reporting.facts import COUNTERS, RETURNS, RunFacts, Series, best_row, names_of, series, training_seconds
from hotloop.reporting.rows import Rows
from hotloop.viewing.scenes import meanings_of


def small_plot(one: Series, meaning: str) -> Html:
    """One quantity over env steps, with its last value in the heading."""
    if not len(one):
        return Html("")
    axes = axes_for(one.env_steps, one.values, "env steps")
    last = measured(one.values[-1])
    spoken = f"{one.name}: {measured(one.values[0])} at first, {last} at last"
    title = element("h3", one.name.replace("_", " "), " ", element("b", last, class_="flat"))
    about = element("p", meaning, class_="label") if meaning else None
    drawn = plot(axes, line(axes, one.env_steps, one.values, "line"), spoken)
    return element("div", title, about, drawn, class_="growth")


_MOST_DOTS = 80
MEANINGS = {
    "loss": "what the updates minimized, mean since the previous row",
    "q_mean": "mean Q value of the sampled actions",
    "gradient_norm": "before clipping",
    "epsilon": "share of actions taken at random",
    "lr": "learning rate",
    "policy_loss": "clipped policy objective",
    "value_loss": "error of the value estimate",
    "entropy": "how undecided the policy is, in nats",
    "kl": "how far an iteration moved the policy",
    "clip_fraction": "share of samples that the clip cut off",
    "mean_length": "of the last 100 training episodes, in env steps",
}
"""Of what progress rows hold; others are drawn without words."""
TERM = "reward_"
"""What the names of an env's reward terms begin with."""


def curves(facts: RunFacts) -> Html:
    """Return against env steps and against training time."""
    evaluations, progress = facts.rows_of("evaluation"), facts.rows_of("progress")
    judged = series(evaluations, "mean_return")
    trained = series(progress, "mean_return")
    if not len(judged) and not len(trained):
        words = "No episode has ended and nothing was evaluated yet, so there is no curve."
        return section("Learning curve", element("p", words, class_="missing"))
    plots = [_curve(judged, trained, evaluations, against) for against in ("env_steps", "seconds")]
    note = "Time is that of training alone: start-up, compiling, evaluation and checkpoints are left out."
    note = f"{note} {facts.thinned}".strip()
    return section("Learning curve", element("div", *plots, class_="pair"), _legend(judged, trained), note=note)


def _curve(judged: Series, trained: Series, evaluations: Rows, against: str) -> Html:
    unit, scale = time_unit(max([*judged.seconds, *trained.seconds]))
    by_steps = against == "env_steps"
    scale, label = (1.0, "env steps") if by_steps else (scale, f"{unit} of training")
    xs, others = ([x / scale for x in one.along(against)] for one in (judged, trained))
    spread = _spread(judged, evaluations)
    heights = [*judged.values, *trained.values, *(end for ends in spread for end in ends)]
    axes = axes_for([*xs, *others], heights, label, "return")
    shapes: list[Child] = []
    if len(spread) > 1:
        shapes.append(band(axes, xs, [low for low, _ in spread], [high for _, high in spread], "spread"))
    if others:
        shapes.append(line(axes, others, trained.values, "line trained"))
    if xs:
        shapes.append(line(axes, xs, judged.values, "line judged"))
    if 1 < len(xs) <= _MOST_DOTS:
        shapes.append(dots(axes, xs, judged.values, "dots judged"))
    best = best_row(evaluations)
    place = None if best is None else (best["env_steps"] if by_steps else training_seconds(best) / scale)
    words: Child = None
    if best is not None and place is not None:
        shapes.append(dots(axes, [place], [best["mean_return"]], "dots best"))
        words = _best_text(axes, place, best["mean_return"])
    shapes += _hovers(axes, xs, judged, label)
    return plot(axes, join(shapes), _spoken(judged, trained, label), words)


def _spread(judged: Series, evaluations: Rows) -> list[tuple[float, float]]:
    """One standard deviation around each evaluation, where every one has it and none was averaged."""
    deviations = [number_in(row, "std_return") for row in evaluations if number_in(row, "mean_return") is not None]
    known = [deviation for deviation in deviations if deviation is not None]
    if len(known) != len(judged):
        return []
    return [(mean - deviation, mean + deviation) for mean, deviation in zip(judged.values, known, strict=True)]


def _best_text(axes: Axes, x: float, y: float) -> Html:
    side = "left" if axes.x(x) < 70 else "right"
    style = f"left:{axes.x(x):.4g}%;top:{axes.y(y):.4g}%"
    return element("span", f"best {measured(y)}", class_=f"mark {side}", style=style)


def _hovers(axes: Axes, xs: list[float], judged: Series, label: str) -> list[Html]:
    if len(xs) > _MOST_DOTS:
        return []
    middles = [(one + other) / 2 for one, other in zip(xs, xs[1:], strict=False)]
    ends = zip([axes.x_low, *middles], [*middles, axes.x_high], strict=False)
    return [
        hover(axes, start, end, f"evaluation {measured(value)} at {measured(x)} {label}")
        for (start, end), x, value in zip(ends, xs, judged.values, strict=False)
    ]


def _spoken(judged: Series, trained: Series, label: str) -> str:
    told = [
        f"{words} from {measured(one.values[0])} to {measured(one.values[-1])}"
        for words, one in (("evaluations", judged), ("training return", trained))
        if len(one)
    ]
    return f"return against {label}: {'; '.join(told)}"


def _legend(judged: Series, trained: Series) -> Html:
    keys = [
        ("judged", "evaluation (greedy episodes; the band is one standard deviation)", len(judged)),
        ("trained", "training (mean of the last 100 episodes)", len(trained)),
        ("best", "best evaluation: these weights are kept", len(judged)),
    ]
    shown = (element("span", element("i", class_=f"swatch {style}"), words) for style, words, any_ in keys if any_)
    return element("div", *shown, class_="legend")


def evaluation(facts: RunFacts) -> Html:
    """Every field of every judgement beside each other, and the workload's own measures over training."""
    rows = facts.rows_of("evaluation")
    columns: list[tuple[str, dict[str, Any]]] = []
    for name, words in (("evaluation", "best weights"), ("final_evaluation", "last weights")):
        found = facts.result.get(name)
        if isinstance(found, dict):
            columns.append((f"{words}, fresh episodes", found))
    if (best := best_row(rows)) is not None:
        columns.append((f"best in training, at {count(best['env_steps'])} env steps", best))
    if rows:
        columns.append((f"latest in training, at {count(number_in(rows[-1], 'env_steps'))} env steps", rows[-1]))
    if not columns:
        return section("Evaluation", element("p", "Nothing was evaluated yet.", class_="missing"))
    own = [name for name in names_of(rows, (*COUNTERS, *RETURNS)) if len(series(rows, name)) > 1 and not _is_term(name)]
    plots = small_plots([small_plot(series(rows, name), "in evaluations") for name in own])
    note = "Greedily, on envs of its own. Fresh episodes are ones that had no part in choosing the weights."
    return section("Evaluation", _fields(columns), plots, note=note)


def _fields(columns: list[tuple[str, dict[str, Any]]]) -> Html:
    left_out = set(COUNTERS) - {"episodes"}
    names = list(dict.fromkeys(name for _, fields in columns for name in fields if name not in left_out))[:60]
    rows = [[name.replace("_", " "), *(measured(fields.get(name)) for _, fields in columns)] for name in names]
    return element("div", table(["", *(words for words, _ in columns)], rows, class_="fields"), class_="wide")


def reward_terms(facts: RunFacts) -> Html:
    """Each term of a reward that comes in parts, over training; nothing for other envs."""
    rows = facts.rows_of("progress")
    names = [name for name in names_of(rows, COUNTERS) if _is_term(name)]
    if not names:
        return Html("")
    meanings = meanings_of(_env_id(facts))
    words = [meanings.get(name, "") for name in names]
    plots = small_plots([small_plot(series(rows, name), text) for name, text in zip(names, words, strict=True)])
    note = "Of an episode, mean of the last 100 training episodes; evaluations have theirs in the table above."
    return section("Rewards, term by term", plots, note=note)


def _env_id(facts: RunFacts) -> str:
    env = facts.settings.get("env")
    return str(env.get("id", "")) if isinstance(env, dict) else ""


def _is_term(name: str) -> bool:
    return name.startswith(TERM)


def statistics(facts: RunFacts) -> Html:
    rows = facts.rows_of("progress")
    names = [name for name in names_of(rows, (*COUNTERS, "mean_return")) if not _is_term(name)]
    ordered = sorted(names, key=lambda name: list(MEANINGS).index(name) if name in MEANINGS else len(MEANINGS))
    plots = small_plots([small_plot(series(rows, name), MEANINGS.get(name, "")) for name in ordered])
    missing = element("p", "No row of the log has any yet.", class_="missing")
    note = "From the progress rows of events.jsonl; the bold number is the latest."
    return section("Losses and other statistics", plots or missing, note=note if plots else "")
