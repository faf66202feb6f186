"""The nouns that everything else is written in. Imports nothing of ours.

Files:
    arithmetic.py     What decides how a machine rounds: two machines that agree here give a run the same digest
    arithmetic_kernels.py  A kernel whose last bits tell how this machine's compiler and vector unit round
    children.py       Starts processes of our own interpreter: what lies in the current folder is not on their path
    describe.py       What every setting means, from the string under each field: as text, and as a TOML file to start
                      from
    errors.py         What a user can get wrong, as one small tree
    extras.py         Packages that hotloop's instruments work without: what of them is there, and the sentence where
                      one is missing
    given.py          Envs and networks that are Python objects: a run's settings name them, and whoever continues it
                      gives them again
    graph_kernels.py  Taking some graphs out of many: first how large they are, then their values
    graphs.py         Observations that are graphs of different and changing size: values laid end to end, with
                      offsets
    interrupts.py     Ctrl-C and polite requests to end: told from what an env raises by itself, and how long they
                      may wait
    intervals.py      How far a number can be trusted: a median's interval, with no assumption about the noise, and
                      Student's quantile
    keeper.py         Ends the children of a process that was killed: `kill -9` leaves it no moment to do so itself
    kernel_cache.py   Where compiled kernels are kept between processes, by content
    kernels.py        Machine code: how our numba kernels are compiled, cached and drawn random numbers for
    overrides.py      Command-line overrides: `--env.num-envs 8 --network.hidden 64 64 --double` as a settings tree
    own_folders.py    Folders for code that we will run later: only we, or the machine's administrator, may be able
                      to change them
    places.py         Where work runs: a place takes whole runs as tasks and says which of them have ended
    program.py        The program around a verb: what an env prints, warns of or tries to end there does not reach
                      the answer
    rng.py            One seed, many independent streams, each named after its use
    schedules.py      A value over a unit: env steps, updates or episodes, always stated
    settings.py       One strict loader for TOML presets, command-line overrides and resume
    temporary.py      Folders for the time of a verb, and the removal of those whose owner was killed
    terminal.py       Text on its way to a reader: what a name or a message brings along is shown, not obeyed
    timer.py          Where the time goes: named phases of a loop, each nanosecond charged exactly once
    two_sample.py     Two samples and one question: do they come from one distribution? By dealing their members anew
    types.py          The nouns that every part shares
    user_files.py     Code in a file of the user's own, named `path/to/file.py:Name`: an env, or the torso of a network
    values.py         Single values of settings: the kinds there are, how each is read, and how it is called towards
                      users
    verdicts.py       What our verdicts and exit codes mean: the same words in doctor, prove and compare, in text and
                      in JSON
    vocabulary.py     Names of settings: what they were called before, and what other libraries call them
    workloads.py      Workloads: what one problem brings along, of ours or of anybody's package
"""
