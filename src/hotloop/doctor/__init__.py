"""Why a training loop is slow, ours or anybody's: trace, rules, findings, views.

Files:
    facts.py    What machine this is, as far as it decides how fast a training loop runs
    finding.py  A finding: one diagnosed cost, with evidence and remedy; and the registry of the rules that make
                them
    growth.py   Does it get slower? Costs over the run, from its timeline; longer episodes are told apart from
                slower steps
    loops.py    A training loop as the doctor sees it: something that can be run a stretch at a time and says what
                it did
    recorder/   The recorder for foreign scripts: runs somebody's unmodified program in a child process and returns
                its trace
    rules/      The rules
    trace.py    What was recorded of one training loop, as plain data: the recorders write it, rules and reports
                only read it
    views/      A trace and its findings made readable: on a terminal, as JSON, as a page, as a Chrome trace,
                against an old one
"""
