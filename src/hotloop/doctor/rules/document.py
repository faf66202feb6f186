"""`docs/findings.md`, made from the rules: `python -m hotloop.doctor.rules.document docs/findings.md`."""

from __future__ import annotations

import sys
from pathlib import Path

from hotloop.doctor.finding import CHANGES_LEARNING, KNOBS, Rule
from hotloop.doctor.rules import load_rules

GROUPS = {
    "ENV": "The env step",
    "ACT": "Acting",
    "STORE": "Replay, rollouts and lists",
    "UPDATE": "The update",
    "SYNC": "Tensors and the host",
    "LOG": "Reports, checkpoints, evaluation",
    "MACHINE": "The machine",
    "GROW": "Growth",
}
OPENING = """# Findings

[All pages](README.md)

What `hotloop doctor` can say about a training loop. This page is made from the rules themselves
(`python -m hotloop.doctor.rules.document docs/findings.md`).

A rule reads the recorded trace and nothing else. It stays silent without evidence: calls counted, time sampled on the
lines named, gradients or parameters counted. *Expected gain* is Amdahl's law on the measured share with the speed-up
that the remedy really has, for the whole loop, and some relief for what stands beside it: work that has pushed the
rest out of the processor's caches slows that down too. *Exact* remedies compute the same, up to the rounding of sums in
another order; those that *change learning* need their learning curve looked at. Findings are ranked by expected gain,
but what hands a part of the program over to hotloop stands below what can be mended in place for half of its gain;
where one takes its time inside another's, the more general counts only what the more particular leaves.

Every piece of code below that is called exact is executed as it is printed, beside what it replaces, for fifty
updates or env steps from the same start, and compared (`tests/doctor/test_remedies.py`). Lines above `# in the loop`
stand outside it.
"""


def findings_document(rules: list[Rule]) -> str:
    sections = [OPENING, _contents(rules)]
    for prefix, heading in GROUPS.items():
        sections.append(f"## {heading}\n")
        sections += [_section(rule) for rule in rules if rule.code.rstrip("0123456789") == prefix]
    return "\n".join(sections)


def _contents(rules: list[Rule]) -> str:
    rows = [f"| [{r.code}](#{r.code.lower()}) | {r.title} | {_kind(r)} |" for r in rules]
    return "\n".join(["| code | finding | remedy |", "|---|---|---|", *rows, ""])


def _kind(rule: Rule) -> str:
    return "changes learning" if rule.kind == CHANGES_LEARNING else "exact"


def _section(rule: Rule) -> str:
    remedy = rule.remedy
    code = f"```python\n# before\n{remedy.before}\n"
    if remedy.after:
        code += f"\n# after\n{remedy.after.strip()}\n"
    code += "```\n"
    parts = [f"### {rule.code}", f"**{rule.title}.** {rule.explanation}", f"Remedy ({_kind(rule)}): {remedy.text}"]
    return "\n\n".join([*parts, code, *_knobs(rule)])


def _knobs(rule: Rule) -> list[str]:
    """The same for programs that call a library's loop."""
    found = [knob for knob in KNOBS if knob.rule == rule.code]
    return [
        f"Where `{knob.library}` runs the loop: {knob.remedy.text}\n\n"
        f"```python\n# before\n{knob.remedy.before}\n\n# after\n{knob.remedy.after}\n```\n"
        for knob in found
    ]


def main() -> None:
    Path(sys.argv[1]).write_text(findings_document(load_rules()))


if __name__ == "__main__":
    main()
