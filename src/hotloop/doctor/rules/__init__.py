"""The rules. Each is a pure function over a trace; its docstring is what `docs/findings.md` says about it."""

from __future__ import annotations

from hotloop.doctor.finding import RULES, Rule


def load_rules() -> list[Rule]:
    """Every rule, by code."""
    from hotloop.doctor.rules import (  # noqa: F401  (importing them registers them)
        acting,
        environments,
        machine,
        reporting,
        searching,
        storing,
        updating,
    )

    return [RULES[code] for code in sorted(RULES)]
