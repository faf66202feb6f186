"""Proof: every fast path is held equal to a plain program first, then timed against it. Start at `case.py`.

Files:
    bench_lanes.py    The table behind `lane = auto`: what an update costs on each lane, and whether the rule
                      chooses well
    bench_peers.py    Hotloop against other libraries: training, replay, and the table of both
    bench_workers.py  Envs in worker processes against Gymnasium's AsyncVectorEnv: the same envs stepped by both,
                      taking turns
    case.py           The noun of this package: one optimisation under proof
    cases/            What is proved, one family of cases per file
    equivalence.py    Whether two programs compute the same: values, gradients, and what becomes of the state over a
                      whole sequence
    figures.py        Figures kept in a file, and the documents that quote them: tables are made from the file,
                      quotes are held against it
    memory.py         Peak bytes and allocations of one call, measured apart from its time
    peers/            The same work in other libraries
    reference/        Plain programs, the way a competent person writes them first
    registry.py       All cases by name: family/variant/lane/size, where parts may be left out (`dqn-update/native`:
                      all native ones)
    run.py            `hotloop.prove`: cases from start to end, equality first, and no speed for a case that fails it
    speed.py          How much faster: both programs interleaved in one process, since a machine's speed drifts
                      while it is measured
"""
