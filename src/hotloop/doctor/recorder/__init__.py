"""The recorder for foreign scripts: what runs inside the user's interpreter. Needs the standard library of Python 3.8
only, imports nothing else of hotloop, and leaves plain JSON behind; `doctor/script/` starts it and reads that.

Files:
    alarm.py        The one signal that the recorder uses, SIGALRM
    attribution.py  Which phase each stretch of loop time belongs to, worked out from the order of what was seen
    child.py        The process in which the script runs: `python child.py ORDER.json`
    closeup.py      What a program did just before one event
    costs.py        From sampled stacks to costs of the user's own lines, of a library's lines beneath them, and of
                    waiting
    counting.py     Counts calls with Python's profile hook: every call that the user's own code makes, by line and
                    phase
    env_rows.py     What one env call did, env by env
    episodes.py     The episodes of a training as they end: what each returned, after how many env steps and seconds
    events.py       What the hooks report to between two events of the script, as short as can be
    fingerprints.py Values in short: equal fingerprints mean equal numbers
    follow.py       Follows a whole training at next to no cost: no clock on every event, no phases, no limit
    gradients.py    Changes that compute the same: no gradients while acting, fused optimizers
    guard.py        Sees to it that the script ends when the doctor has seen enough, and that nothing is lost where it
                    leaves early
    hooks.py        Hooks on classes as they are made: envs by their `step`, replay by what it stores and samples,
                    loggers by name
    keras_hooks.py  Hooks on Keras and TensorFlow: forwards, gradients, optimizer steps
    learning.py     Passes that ask PyTorch: networks and optimizers, operators, compilations, covariances
    libraries.py    Hooks on modules, set the moment the script has imported them, before the importer gets them
    lines.py        What the syntax of a source file shows of its lines: formatting, loops around them, host reads,
                    shifting lists
    memory.py       What the loop keeps in memory: pages read from disk, graphs that nobody drops, frames held larger
                    than need be
    meters.py       Passes that measure beside time: pauses, workers, the queue for a core; what machine this is
    order.py        What parent and child agree on: what one child has to do, and the names of phases
    originals.py    Python's own functions as they were before the script began
    pace.py         How long a whole program takes, on the wall and on all processors that it uses
    parameters.py   What parameters are called: by their place in the module that owns them
    passes.py       What a pass is: what it hooks, what it notes, what it adds to the trace; our own errors, swallowed
                    and noted
    places.py       Whose code a file is, and how a report names its files, functions and lines
    program.py      Runs a script as Python itself would: as `__main__`, with its own arguments and its folder first on
                    the path
    recording.py    One run of the script in this process, and the trace that is left of it however it ends
    remarks.py      What the reader of a report should know of what was found, and of what could not be seen
    repeats.py      What is done needlessly, counted by line: the same forward or backward computed again, copies
                    between devices
    results.py      What an env's `step` returned: how many env steps that was, and how many episodes it ended
    sampling.py     Where the loop stands, looked at every few milliseconds; each look is charged the time since the
                    previous one
    sources.py      Where the user's own source says what decides: where the optimizer was made, what it mentions
    stacks.py       Where in the program something happens: the functions on the stack, and one of them replaced
    storing.py      Rows stored in one call, where the replay's method only appends its arguments
    switches.py     Changes that compute the same, and can be taken back: nothing printed, evaluated or drawn
    timeline.py     The loop over time: cut into equal numbers of env steps; where its steady state begins
    toggling.py     Compares thread counts within one run of the script: by turns as it is and with a change, a stretch
                    each
    torch_hooks.py  Hooks on PyTorch: forwards, backwards, optimizer steps
    tracing.py      Follows a whole program for what it computes: fingerprints of env calls and parameters
    trial.py        Tries changes on the running program: each by turns with the program as it is, a stretch of env
                    steps each
    unseeded.py     Random numbers that no seed decides: who drew them first, and the seed to set
    updates.py      Changes to how a program learns: updates left out
    watch.py        The course of a recording: when it begins, when the steady state does, what is counted, its end
    words.py        What a word of events means: the phase of each, told from their order alone
    workshop.py     What the program works with, read from its objects when the loop has ended: env, network,
                    optimizer, library
"""
