"""Why a training loop is slow, ours or anybody's: trace, rules, findings, views.

Files:
    clocks.py   Which clock a trace is told in: wall-clock, or processor time where other programs kept the loop from
                running
    experiments.py  Experiments on a foreign program: from paired stretches to ratios with intervals, and the findings
                that they confirm
    facts.py    What machine this is, as far as it decides how fast a training loop runs
    finding.py  A finding: one diagnosed cost, with evidence and remedy; and the registry of the rules that make
                them
    growth.py   Does it get slower? Costs over the run, over the fill of the replay and over numbers of envs
    hottest.py  The most expensive lines and functions of the user's own code, and those that no finding explains
    loops.py    The doctor's interface to a training loop, run an interval at a time; recording one, and comparing
                two interleaved
    port.py     The same training as a command of ours, with the sizes and settings that were recorded
    recorder/   The recorder for foreign scripts: what runs inside the user's interpreter, with the standard library
                only
    records.py  What a trace is made of: subject, counts, and rows of lines, stacks, slices, experiments
    roofline.py How near an update comes to what its core can multiply: its floating-point work, the core's speed,
                and their ratio
    rules/      The rules
    script/     Somebody's script recorded: starts the recorder in the script's own interpreter, bounds it and makes
                a trace of what it leaves
    snippets.py Snippets of remedies: the program's own lines with an argument more, and names that stand for the
                reader's
    trace.py    What was recorded of one training loop, as plain data: the recorders write it, rules and reports
                only read it
    views/      A trace and its findings made readable: on a terminal, as JSON, as a page, as a Chrome trace,
                against an old one
"""
