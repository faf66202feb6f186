"""Proof: every fast path is held equal to a plain program first, then timed against it.

Two functions start at `function_pairs.py`, two programs with state at `case.py`, envs at `env_pairs.py`, networks at
`module_pairs.py`, two whole scripts at `program_pairs.py`. Hotloop's own fast paths are cases in `benchmarks/`, which
is not installed.

Files:
    case.py           Two programs with state under proof, built for each of several sizes: `@hotloop.cases`
    case_files.py     The pairs and cases of a file, or of the files of a folder; all of them, or those named
    case_rows.py      What came of each case: rows of plain data, their table, and the file that they are kept in
    difference.py     The first difference between two answers: what differs, where, both values, how much and how
                      often
    draws.py          Whether two envs draw their random numbers in another order, or one of them is wrong
    env_pairs.py      Two envs held equal: the same seeds and actions through whole episodes; then env steps per
                      second
    env_play.py       Two envs played alike: the same seeds and the same actions, every answer kept
    env_players.py    N envs of whatever kind as N sequences of the same events: single envs, vector envs, and ours
    equivalence.py    Whether two programs compute the same: values, gradients, and what becomes of the state over a
                      whole sequence
    function_pairs.py  Two functions held equal on the same inputs; `@hotloop.pair`, `hotloop.assert_same`
    made_inputs.py    Inputs made from given ones: rows permuted, repeated, removed, ties; and the smallest one
    memory.py         Peak bytes and allocations of one call, measured apart from its time
    module_inputs.py  What to feed a network: the shapes that were given, or one read from its first layer
    module_pairs.py   Two networks held equal with the same parameters: forward, gradients, optimizer steps
    module_training.py  A short training of two networks side by side: gradients, parameters and buffers
    pair_calls.py     Calling two functions alike: on copies of the input, from the same state of every generator
    pair_cost.py      What two functions that are equal cost: paired speed, memory, several sizes of input
    pairs_page.py     The evidence about somebody's own code as one HTML page
    program_gaps.py   What of two programs was not compared, and what would decide it
    program_judgement.py  Whether two recordings are of programs that compute the same, and where they first part
    program_pairs.py  Two programs held equal: every env call and every update; then their time interleaved
    program_rounding.py  How far apart two programs may be and still compute the same but for rounding
    program_runs.py   Runs somebody's program under the recorder, in a copy of its folder
    program_words.py  Where two programs part, in words
    programs.py       Two programs as sequences of fingerprints, to be aligned
    prove.py          `hotloop.prove`: two versions of one thing held equal, then timed; what they are says how
    randomness.py     Every generator that a program may draw from, in the same state before each call
    run.py            Pairs and cases of files from start to end, equality first, and no speed for what fails it
    scales.py         What an entry's errors are measured by, without marks (-1e9) among what it stands with
    speed.py          How much faster: both programs interleaved in one process, since a machine's speed drifts
                      while it is measured
    values.py         What functions, envs and networks take and give: nested values, copied whole, shown short
    verdict.py        What came of holding somebody's fast version against the plain one
"""
