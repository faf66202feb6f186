"""The rules. Each is a pure function over a trace; its docstring is what `docs/findings.md` says about it.

Files:
    accelerating.py  Stable-Baselines3 in place: what `hotloop.adapters.sb3.accelerate` would gain
    acting.py        How actions are chosen
    beneath.py       What runs beneath the user's lines: time in the functions of a library, and the lines that led
                     there
    document.py      `docs/findings.md`, made from the rules: `python -m hotloop.doctor.rules.document
                     docs/findings.md`
    drawing.py       How the rows of a batch are drawn: by priority, without replacement, from a copy, through a
                     loader
    environments.py  How the envs are stepped: one by one, through wrappers, drawn on the way
    evidence.py      What rules ask of a trace: which calls, on which lines, how much of the loop's time; and the
                     finding made of it
    frameworks.py    Keras, TensorFlow and JAX used call by call: `predict` and `fit` for a few rows, operations that
                     nothing compiled
    libraries.py     Where a library runs the loop: which of its settings decides what a rule found, and on which line
                     it is given
    machine.py       What the machine does beside the loop: threads, tiny numbers, collecting; what gets
                     slower as the run goes on
    memory.py        What the loop keeps in memory: frames larger than need be, graphs that nobody drops, pages on disk
    placement.py     Where the work is done: a device for a tiny network, copies to it by the row, more workers than
                     cores
    recomputing.py   What is computed or compiled again although nothing has changed
    reporting.py     What is printed, logged, saved and evaluated on the way, and what a reported rate contains
    searching.py     Searches inside the env step: flood fills, enumerated paths, graph libraries, sorting for a few
    storing.py       How transitions enter replay and leave it as batches
    torch_options.py Options of PyTorch that cost time: anomaly detection, checked distributions, full covariances
    updating.py      How often and with what machinery the network learns
    waiting.py       Time in which the loop's thread computes nothing: it waits for worker processes, or sleeps
"""

from __future__ import annotations

from hotloop.doctor.finding import RULES, Rule


def load_rules() -> list[Rule]:
    """Every rule, by code."""
    from hotloop.doctor.rules import (  # noqa: F401  (importing them registers them)
        accelerating,
        acting,
        drawing,
        environments,
        frameworks,
        libraries,
        machine,
        memory,
        placement,
        recomputing,
        reporting,
        searching,
        storing,
        torch_options,
        updating,
        waiting,
    )

    return [RULES[code] for code in sorted(RULES)]
