"""The recorder for foreign scripts: what runs inside the user's interpreter. Needs the standard library of Python 3.8
only, imports nothing else of hotloop, and leaves plain JSON behind; `doctor/script/` starts it and reads that.

Files:
    arrivals.py     Tells when a module of interest has just been imported, before the importer gets it
    attribution.py  Which phase each stretch of loop time belongs to, worked out from the order of what was seen
    child.py        The process in which the script runs: `python child.py ORDER.json`
    compilations.py How often `torch.compile` compiled while the loop ran
    counting.py     Counts calls with Python's profile hook: every call that the user's own code makes, by line and
                    phase
    diagonals.py    Multivariate normals whose covariance is diagonal, seen where they are made
    faults.py       The doctor's own errors inside somebody's program: swallowed, noted, and what made them switched
                    off
    hooks.py        Hooks on classes as they are made: envs by their `step`, replay by what it stores and samples,
                    loggers by name
    libraries.py    Hooks on modules, set the moment the script has imported them
    lines.py        From sampled stacks to costs of the user's own lines, with what the syntax of each line shows
    machine.py      What machine this is, as far as this process can tell
    memory.py       What the loop keeps in memory: pages read from disk, graphs that nobody drops, frames held larger
                    than need be
    meters.py       Passes that measure beside time: learning, operators, pauses and workers
    order.py        What one child has to do: the note that the parent hands to it, as JSON
    passes.py       What a pass is: what it hooks, what it notes, what it adds to the trace
    phases.py       The names of phases
    places.py       Whose code a file is, and how a report names its files, functions and lines
    program.py      Runs a script as Python itself would: as `__main__`, with its own arguments and its folder first
                    on the path
    recording.py    One run of the script in this process, and the trace that is left of it however it ends
    repeats.py      The same thing computed again with the same weights: forwards on the inputs of before, backwards
                    of the same loss
    results.py      What an env's `step` returned: how many env steps that was, and how many episodes it ended
    sampling.py     Where the loop stands, looked at every few milliseconds; each look is charged the time since the
                    one before
    sources.py      Where the user's own source says something that decides how fast the loop is, though no loop runs
                    there
    timeline.py     The loop cut into equal numbers of env steps
    toggling.py     Compares thread counts within one run of the script: by turns as it is and with a change, a
                    stretch each
    torch_hooks.py  Hooks on PyTorch: forwards, backwards, optimiser steps
    watch.py        What the hooks report to: it knows whether something is being timed already, counts, asks the
                    passes, and ends the recording
"""
