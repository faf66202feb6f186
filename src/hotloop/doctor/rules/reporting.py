"""What is printed, logged, saved and evaluated on the way, and what a reported rate contains."""

from __future__ import annotations

import re
from itertools import accumulate

from hotloop.doctor.finding import IDENTICAL, Finding, Remedy, rule
from hotloop.doctor.rules.beneath import lines_above, mentioned, share_of, stacks_in
from hotloop.doctor.rules.evidence import (
    by_cost,
    callers_of,
    calls_like,
    edit_first,
    features_at,
    file_of,
    function_of,
    function_share,
    led_from,
    lines_with,
    most_expensive,
    number,
    per_env_call,
    place_of,
    places_of,
    sampled_share,
    share_with_late,
    source_at,
    suggest,
)
from hotloop.doctor.trace import CHECKPOINT, ENV, EVALUATE, LOG, UPDATE, CallCount, Slice, StackCost, Trace
from hotloop.render.numbers import percent

REPORTING = (
    "builtins.print",
    "logging.*",
    "*.add_scalar",
    "*.add_scalars",
    "*.add_histogram",
    "wandb.log",
    "wandb.*.log",
    "*.writerow",
    "json.dumps",
    "tqdm.*.set_description",
    "tqdm.*.set_postfix",
    "TextIOWrapper.write",
    "TextIOWrapper.flush",
)
PLOTTING = (("matplotlib/*", "*"),)
WRITERS = tuple((f"{name}/*", "*") for name in ("torch/utils/tensorboard", "tensorboardX", "tensorboard", "wandb"))
"""What a library reports by, where it runs the loop: its calls are not counted, and its writer may wait."""
LEAST_DRAWN = 0.1
REPORTS_PER_CALL = 0.1
REPORT_SPEEDUP = 50.0
SAVING = (
    "torch.save",
    "pickle.dump",
    "json.dump",
    "numpy.save",
    "numpy.savez",
    "numpy.savez_compressed",
    "joblib.dump",
    "safetensors.torch.save_file",
)
SAVING_LINES = ("torch.save(", "pickle.dump(", "np.save", "joblib.dump(")
SAVES = re.compile(r"^(\w+\.)*save \(torch/serialization\.py|^(_?savez?\w*|save_file) \((numpy|safetensors)")
"""Frames of what saves."""
SAVE_SPEEDUP = 20.0
SELDOM = 5
LEAST_EVALUATION_SHARE = 0.1
NAMED_EVALUATION = re.compile(
    r"(^|[._])(eval|evaluat\w*|validat\w*|test)(_\w+)?$|(^|\.)\w*(Evaluator|EvalCallback)\.\w+$"
)
LEAST_PLAYED, MOST_LEARNED = 0.03, 0.05
"""Of the time in a function so named: less of it steps envs in one that judges numbers (`evaluate_actions` of a policy)
or switches a network's mode; more of it learns where training itself is called a test."""
STEPS_AN_ENV = re.compile(r"(^|\.)step$")
LEARNS = ("torch/autograd/", "torch/optim/")
CLOCKS = tuple(f"time.{name}{unit}" for name in ("perf_counter", "time", "monotonic") for unit in ("", "_ns"))
WARM_UP_RATIO = 3.0
LEAST_SLICES = 8
LEAST_WARM_UP, MOST_WARM_UP = 0.1, 0.2
"""Of the time; and of the env steps: what goes on for longer is no warm-up."""
MOST_OF_IT = 0.8

REPORT = Remedy(
    "Report every few hundred env steps, and draw figures every fifty episodes or at the end: hotloop's journal writes "
    "one row per log interval.",
    'print(f"step {step}: reward {reward}")',
    'if step % 1000 == 0:\n    print(f"step {step}: reward {reward}")',
)
SAVE = Remedy(
    "Save by env steps, tens of thousands apart. hotloop's runs checkpoint so, durably, and resume exactly.",
    'torch.save(agent.state_dict(), "latest.pt")',
    'if step % 10_000 == 0:\n    torch.save(agent.state_dict(), "latest.pt")',
)
EVALUATION = Remedy(
    "Evaluate a fifth as often, or on batched envs: hotloop plays all evaluation episodes side by side. On envs and "
    "random numbers of its own, evaluation changes nothing in training.",
    "if step % 1000 == 0:\n    evaluate(agent, episodes=20)",
    "if step % 5000 == 0:\n    evaluate(agent, episodes=20)",
)
RATE = Remedy(
    "Start the clock after the first updates, or report the rate of a late stretch; hotloop's `env_steps_per_second` "
    "leaves compilation, evaluation and checkpoints out.",
    "start = time.perf_counter()\n"
    "for step in range(steps):\n"
    "    train(step)\n"
    "rate = steps / (time.perf_counter() - start)",
    "for step in range(steps):\n"
    "    if step == warm_up:\n"
    "        start = time.perf_counter()\n"
    "    train(step)\n"
    "rate = (steps - warm_up) / (time.perf_counter() - start)",
)


@rule("LOG001", remedy=REPORT, kind=IDENTICAL)
def reported_every_step(trace: Trace) -> Finding | None:
    """Something is printed, logged or plotted every few env steps.

    Formatting a line costs microseconds, writing it to a terminal or an event file tens of them, and nobody reads
    thousands of lines a second; a figure takes as long as tens of updates. Found where reports come for every tenth
    call of `step` or more, or where figures, or the reports of a library that runs the loop, take a tenth of it.
    """
    dropped = {call.where for call in dropped_calls(trace)}
    calls = [call for call in calls_like(trace, REPORTING) if call.phase != EVALUATE and call.where not in dropped]
    often = per_env_call(trace, calls)
    places = by_cost(trace, places_of(calls))
    share = max(sampled_share(trace, places), trace.share(LOG)) if often >= REPORTS_PER_CALL else 0.0
    evidence = (
        f"{number(often)} reports per call of `step` (most often `{calls[0].name}`) take {percent(share)} of the loop."
        if share
        else ""
    )
    written = [stack for stack in stacks_in(trace, WRITERS) if trace.beneath and stack.phase != EVALUATE]
    if share_of(trace, written) >= max(LEAST_DRAWN, share):
        share, places = share_of(trace, written), by_cost(trace, lines_above(trace, written, WRITERS))
        evidence = f"the library that runs the loop reports all the time: {percent(share)} of it is spent on that."
    figures = [stack for stack in stacks_in(trace, PLOTTING) if stack.phase not in (ENV, EVALUATE)]
    drawn = share_of(trace, figures)
    if drawn >= max(LEAST_DRAWN, share):
        share, places = drawn, edit_first(led_from(trace, figures, ENV), lines_above(trace, figures, PLOTTING))
        evidence = f"figures are drawn while the loop runs: {percent(share)} of it is spent in matplotlib."
    return suggest(trace, share, REPORT_SPEEDUP, evidence=evidence, places=places) if share else None


@rule("LOG002", remedy=SAVE, kind=IDENTICAL)
def saved_too_often(trace: Trace) -> Finding | None:
    """Files are saved all the time.

    A checkpoint of a small network takes a millisecond, the time of tens of env steps. Found where writing files takes
    a part of the loop.
    """
    calls = calls_like(trace, SAVING)
    places = by_cost(trace, [*places_of(calls), *lines_with(trace, SAVING_LINES)])
    share = max(sampled_share(trace, places), trace.share(CHECKPOINT))
    share = share_with_late(trace, share, lambda stack: any(SAVES.search(frame) for frame in stack.frames))
    often = f" runs every {number(1 / trace.per_env_step(calls))} env steps and" if calls else ""
    name = calls[0].name if calls else "saving"
    evidence = f"`{name}`{often} takes {percent(share)} of the loop."
    places = places or most_expensive(trace, (CHECKPOINT,))  # where a library saves: the line that runs it
    return suggest(trace, share, SAVE_SPEEDUP, evidence=evidence, places=places) if places else None


@rule("LOG003", remedy=EVALUATION, kind=IDENTICAL, condition="evaluation has envs and random numbers of its own")
def evaluated_too_often(trace: Trace) -> Finding | None:
    """Evaluation takes a large part of the run.

    Its env steps teach nothing. Found where evaluation takes a tenth of the loop or more: by a library's own function
    for it, or by functions that are named so, step envs and do not learn.
    """
    functions = _evaluations(trace)
    share = max(trace.share(EVALUATE), function_share(trace, functions))
    share = share_with_late(trace, share, lambda stack: any(function_of(frame) in functions for frame in stack.frames))
    if share < LEAST_EVALUATION_SHARE:
        return None
    name = f"`{min(functions)[1]}`" if functions else "evaluation"
    evidence = f"{name} takes {percent(share)} of the loop ({share * trace.loop_seconds:.1f} s)."
    lines = [line.where for line in trace.lines if (file_of(line.where), line.function) in functions]
    places = [*callers_of(trace, functions), *(by_cost(trace, lines) or most_expensive(trace, (EVALUATE,)))]
    places = places or mentioned(trace, "evaluation")  # where a library evaluates: what it was told
    return suggest(trace, share, SELDOM, evidence=evidence, places=places)


def _evaluations(trace: Trace) -> set[tuple[str, str]]:
    """Functions that evaluate, by their names and by what is done in them."""
    spent: dict[tuple[str, str], list[float]] = {}
    for stack in (*trace.stacks, *trace.late):
        named = {function_of(frame) for frame in stack.frames if NAMED_EVALUATION.search(function_of(frame)[1])}
        for one in named:
            whole, played, learned = spent.get(one, (0.0, 0.0, 0.0))
            whole, played = whole + stack.seconds, played + stack.seconds * _plays(stack)
            spent[one] = [whole, played, learned + stack.seconds * _learns(stack)]
    return {
        one
        for one, (whole, played, learned) in spent.items()
        if played > LEAST_PLAYED * whole and learned <= MOST_LEARNED * whole
    }


def _plays(stack: StackCost) -> bool:
    functions = map(function_of, stack.frames)
    steps = (STEPS_AN_ENV.search(name) and not file.startswith("torch/") for file, name in functions)
    return stack.phase in (ENV, EVALUATE) or any(steps)


def _learns(stack: StackCost) -> bool:
    return stack.phase == UPDATE or any(function_of(frame)[0].startswith(LEARNS) for frame in stack.frames)


@rule("LOG004", remedy=RATE, kind=IDENTICAL)
def warm_up_in_the_rate(trace: Trace) -> Finding | None:
    """A rate over the whole run contains its warm-up.

    Compilation and first calls make the beginning of a run slow; a rate over the whole run then says little about the
    loop. Found where the program reads a clock, and the first env steps, at most a fifth of them, cost three times the
    later ones or more and a tenth of the run. Nothing gets faster by the remedy; what is said of the loop becomes true.
    """
    clocks = [*mentioned(trace, *CLOCKS), *places_of(calls_like(trace, CLOCKS))]
    whole = (*trace.warm_up, *trace.timeline)
    later = whole[len(whole) // 2 :]
    if len(whole) < LEAST_SLICES or not clocks:
        return None
    steady = sum(part.seconds for part in later) / max(1, sum(part.env_steps for part in later))
    slow = _leading(whole, WARM_UP_RATIO * steady)
    length, env_steps = sum(part.seconds for part in slow), sum(part.env_steps for part in slow)
    seconds = sum(part.seconds for part in whole)
    share = (length - steady * env_steps) / seconds if seconds > 0 else 0.0
    if share < LEAST_WARM_UP or length <= WARM_UP_RATIO * steady * env_steps:
        return None
    evidence = (
        f"the first {length:.1f} s ({number(env_steps)} env steps) are {number(length / env_steps / steady)} times as "
        f"slow per env step as the rest: a rate over the whole run is {percent(share)} too low."
    )
    return Finding(
        share=share,
        evidence=evidence,
        where=clocks[0],
        expected_gain=1.0,
    )


def _leading(timeline: tuple[Slice, ...], limit: float) -> tuple[Slice, ...]:
    """Up to where most of the time is over that slices of more than `limit` seconds per env step take, of those that a
    warm-up may have: what is slow at first need not come with the very first env step, and a hiccup may follow it."""
    most = MOST_WARM_UP * sum(part.env_steps for part in timeline)
    ends = accumulate(part.env_steps for part in timeline)
    first = [part for part, end in zip(timeline, ends, strict=True) if end <= most]
    slow = list(accumulate(part.seconds if part.seconds > limit * part.env_steps else 0.0 for part in first))
    return timeline[: 1 + next((place for place, seconds in enumerate(slow) if seconds >= MOST_OF_IT * slow[-1]), -1)]


LOGGING = tuple(
    f"{package}.*{level}" for package in ("logging", "loguru") for level in ("debug", "info", "trace", "log")
)
EMITTING = (
    ("logging/__init__.py", "Logger._log"),
    ("logging/__init__.py", "Logger.handle"),
    ("loguru/_handler.py", "*"),
)
PUT_TOGETHER = re.compile(r"\.format\(|[\"']\s*%\s*[\w(]|\+\s*str\(|\bstr\(.*\)\s*\+")
MOST_EMITTED = 0.02
"""Of the time on a line whose texts are dropped."""
TENSOR_TEXT = (("torch/_tensor_str.py", "*"), ("numpy/_core/arrayprint.py", "*"), ("numpy/core/arrayprint.py", "*"))
DROPPED_SPEEDUP = 25.0
"""A call that finds its level switched off costs half a microsecond."""

LAZY = Remedy(
    "Hand the logger a text with gaps and what goes into them: it puts them together where the level asks for it. "
    'loguru: `logger.debug("values {}", q)`, and `logger.opt(lazy=True)` with functions for what costs.',
    'logger.debug(f"values {q}")',
    'logger.debug("values %s", q)',
)


def dropped_calls(trace: Trace) -> list[CallCount]:
    """Calls of a logger whose text is put together first, on lines where no text was ever seen to be written."""
    calls = [call for call in calls_like(trace, LOGGING) if _is_put_together(trace, call.where)]
    return [call for call in calls if _emitted(trace, call.where) <= MOST_EMITTED * sampled_share(trace, [call.where])]


def _is_put_together(trace: Trace, where: str) -> bool:
    return "f-string" in features_at(trace, where) or bool(PUT_TOGETHER.search(source_at(trace, where)))


def _emitted(trace: Trace, where: str) -> float:
    stacks = [stack for stack in stacks_in(trace, EMITTING) if where in map(place_of, stack.frames)]
    return share_of(trace, stacks)


@rule("LOG005", remedy=LAZY, kind=IDENTICAL)
def texts_for_nobody(trace: Trace) -> Finding | None:
    """Texts are put together for a logger that drops them.

    `logger.debug(f"...")` formats its text before the logger can say that nobody wants it; a tensor in it takes
    hundreds of microseconds. Found where such calls come for every tenth call of `step` or more and the logger was
    never seen to write.
    """
    calls = dropped_calls(trace)
    often = per_env_call(trace, calls)
    if often < REPORTS_PER_CALL:
        return None
    places = by_cost(trace, places_of(calls))
    share = sampled_share(trace, places)
    tensors = [stack for stack in stacks_in(trace, TENSOR_TEXT) if {*map(place_of, stack.frames)} & {*places}]
    words = f", {percent(share_of(trace, tensors))} for tensors and arrays as text" if tensors else ""
    evidence = (
        f"{number(often)} texts per call of `step` (`{calls[0].name}`) are put together and dropped: "
        f"{percent(share)} of the loop{words}."
    )
    return suggest(trace, share, DROPPED_SPEEDUP, evidence=evidence, places=places)
