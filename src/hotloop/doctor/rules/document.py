"""`docs/findings.md`, made from the rules: `python -m hotloop.doctor.rules.document docs/findings.md`."""

from __future__ import annotations

import sys
from pathlib import Path

from hotloop.doctor.finding import KNOBS, Rule
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
rest out of the processor's caches slows that down too. It is predicted and *not tried* on your program, unless
`--experiments` made that very change (then its *speed* was *tried here*; what it computes was not compared).

What a remedy keeps of the computation has the words of [all our verdicts](verdicts.md): *identical*, the same bits;
*to rounding*, the same sums in another order; *changes learning*, another computation, for `hotloop compare` to judge.
Where that hangs on something that no recording shows, it is said: *keeps the computation if ...*. Findings that keep
it come first, ranked by expected gain, but what hands a part of the program over to hotloop stands below what can be
fixed in place for half of its gain; where one takes its time inside another's, the more general counts only what the
more particular leaves.

Snippets hold what was recorded of your program; what was not is written as `...`, and names that stand for your own are
listed above. Those of this page are examples.

Every piece of code below that keeps the computation is executed as it is printed, beside what it replaces, for fifty
updates or env steps from the same start, and compared, bit by bit where it is called identical
(`tests/doctor/test_remedies.py`). Lines above `# in the loop` stand outside it.
"""


def findings_document(rules: list[Rule]) -> str:
    sections = [OPENING, _contents(rules)]
    for prefix, heading in GROUPS.items():
        sections.append(f"## {heading}\n")
        sections += [_section(rule) for rule in rules if rule.code.rstrip("0123456789") == prefix]
    return "\n".join(sections)


def _contents(rules: list[Rule]) -> str:
    rows = [f"| [{r.code}](#{r.code.lower()}) | {r.title} | {r.kind} |" for r in rules]
    return "\n".join(["| code | finding | remedy |", "|---|---|---|", *rows, ""])


def _section(rule: Rule) -> str:
    remedy = rule.remedy
    code = f"```python\n# before\n{remedy.before}\n"
    if remedy.after:
        code += f"\n# after\n{remedy.after.strip()}\n"
    code += "```\n"
    condition = f" Keeps the computation if {rule.condition}." if rule.condition else ""
    remedy_text = f"Remedy ({rule.kind}): {remedy.text}{condition}"
    parts = [f"### {rule.code}", f"**{rule.title}.** {rule.explanation}", remedy_text]
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
