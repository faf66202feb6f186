"""The recorder for foreign scripts: runs somebody's unmodified program in a child process and returns its trace.

Files:
    attribution.py  Which phase each stretch of loop time belongs to, worked out from the order of what was seen
    child.py        The process in which the script runs: `python child.py ORDER.json`, started as a file so as to
                    need no path set
    counting.py     Counts calls with Python's profile hook: every call that the user's own code makes, by line and
                    phase
    hooks.py        Hooks on classes as they are made: envs by their `step`, replay by what it stores and samples,
                    loggers by name
    lines.py        From sampled stacks to costs of the user's own lines, with what the syntax of each line shows
    meters.py       What is measured beside time: learning, operators, pauses and workers
    program.py      Runs a script as Python itself would: as `__main__`, with its own arguments and its folder first
                    on the path
    record.py       Runs a script as often as the plan asks, each time in a child process of its own, and puts the
                    traces together
    recording.py    One pass over the script in this process, and the trace that is left of it however it ends
    results.py      What an env's `step` returned: how many env steps that was, and how many episodes it ended
    sampling.py     Where the loop stands, looked at every few milliseconds; each look is charged the time since the
                    one before
    toggling.py     Compares thread counts within one run of the script: by turns as it is and with a change, a
                    stretch each
    torch_hooks.py  Hooks on PyTorch, set the moment the script has imported it, and the installing of all hooks
    watch.py        What the hooks report to: it knows whether something is being timed already, counts, and ends
                    the recording
"""

from hotloop.doctor.recorder.record import ScriptPlan as ScriptPlan
from hotloop.doctor.recorder.record import record_script as record_script
