"""Where whole runs are trained: this machine, a list of jobs for any scheduler, a Ray cluster.

specs (a run as plain data) -> joblist (a file of them) -> work (one of them done here) -> local (a process)

Files:
    joblist.py  `jobs.jsonl`: the runs of a comparison as a file that any machine can work through; untrusted when read
    local.py    This machine as a place: each run a process of its own, several at once
    specs.py    A run as plain data: settings or a script, a seed, and the files of the user's own that it needs
    work.py     One run of a list on this machine: kept where it is finished, resumed where it is broken
"""
