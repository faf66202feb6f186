"""How far a run is and what it came to: in words, in a few large numbers, and as data."""

from __future__ import annotations

from typing import Any

from hotloop.render.html import Html, element
from hotloop.render.numbers import count, duration, measured, number_in, number_of, percent, shortened, shown
from hotloop.reporting.facts import RunFacts, best_row, phases_of, training_seconds
from hotloop.runs.listing import summarize


def header(facts: RunFacts) -> Html:
    figures = (element("div", element("dd", value), element("dt", label)) for label, value in _figures(facts))
    progress = element("div", element("i", style=f"width:{100 * done(facts):.4g}%"), class_="share", aria_hidden="true")
    return element(
        "header",
        element("p", "hotloop report", class_="kicker"),
        element("h1", shortened(facts.label)),
        element(
            "p", element("span", facts.status, class_=f"badge {facts.status}"), " ", sentence(facts), class_="subject"
        ),
        progress if facts.status != "finished" else None,
        element("dl", *figures, class_="figures"),
    )


def sentence(facts: RunFacts) -> str:
    """`DQN on cartpole, seed 0: 12,000 of 12,000 env steps`."""
    settings = facts.settings
    env = settings.get("env")
    env_id = env.get("id", "?") if isinstance(env, dict) else "?"
    algorithm, seed, where = (
        shown(value) for value in (settings.get("algorithm", "?"), settings.get("seed", "?"), env_id)
    )
    return f"{algorithm.upper()} on {where}, seed {seed}: {_how_far(facts)}"


def _how_far(facts: RunFacts) -> str:
    goal = number_of(facts.settings.get("total_env_steps"))
    if facts.status == "finished" or not goal:
        return f"{facts.env_steps:,} env steps"
    ending = "" if facts.status == "running" else ", and can be resumed" if facts.checkpoints else ""
    return f"{facts.env_steps:,} of {count(goal)} env steps ({percent(done(facts))}){ending}"


def done(facts: RunFacts) -> float:
    goal = number_of(facts.settings.get("total_env_steps"))
    return min(1.0, facts.env_steps / goal) if goal and goal > 0 else 0.0


def _figures(facts: RunFacts) -> list[tuple[str, str]]:
    judged = facts.result.get("evaluation")
    best = best_row(facts.rows_of("evaluation"))
    figures: list[tuple[str, str]] = []
    if isinstance(judged, dict) and number_in(judged, "mean_return") is not None:
        figures.append(("mean return, best weights", measured(judged["mean_return"])))
        figures += [(name.replace("_", " "), measured(judged[name])) for name in _own_measures(judged)[:1]]
    elif best is not None:
        figures.append((f"best evaluation, at {count(best['env_steps'])}", measured(best["mean_return"])))
    seconds = facts.latest("seconds")
    figures += [
        ("env steps", count(facts.env_steps)),
        ("updates", count(facts.latest("updates"))),
        ("training episodes", count(facts.latest("episodes"))),
        ("env steps / s of training", count(_rate(facts))),
        ("in all", "-" if seconds is None else duration(seconds)),
    ]
    return figures


def _own_measures(judged: dict[str, Any]) -> list[str]:
    usual = ("episodes", "mean_return", "std_return", "mean_length")
    names = [name for name in judged if name not in usual and number_in(judged, name) is not None]
    return sorted(names, key=lambda name: (not name.startswith("mean_"), not name.endswith("_rate")))


def _rate(facts: RunFacts) -> float | None:
    row = next((row for row in [facts.result, *reversed(facts.rows)] if phases_of(row)), None)
    if row is None or training_seconds(row) <= 0:
        return None
    return number_of((number_in(row, "env_steps") or 0.0) / training_seconds(row))


def as_data(facts: RunFacts) -> dict[str, Any]:
    """What `hotloop report --json` says about the run itself."""
    summary = summarize(facts.run.path)
    best = best_row(facts.rows_of("evaluation"))
    return {
        "run": str(facts.run.path),
        "label": facts.label,
        "status": facts.status,
        "algorithm": summary.algorithm,
        "env": summary.env,
        "env_steps": facts.env_steps,
        "total_env_steps": facts.settings.get("total_env_steps"),
        "updates": _whole(facts.latest("updates")),
        "episodes": _whole(facts.latest("episodes")),
        "seconds": facts.latest("seconds"),
        "best": None if best is None else {name: best[name] for name in ("env_steps", "mean_return")},
        "evaluation": facts.result.get("evaluation"),
        "final_evaluation": facts.result.get("final_evaluation"),
    }


def _whole(number: float | None) -> int | None:
    return None if number is None else int(number)
