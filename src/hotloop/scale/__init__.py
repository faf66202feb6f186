"""Where whole runs are trained: this machine, a list of jobs for any scheduler, a Ray cluster.

specs (a run as plain data) -> joblist (a file of them) -> work (one of them done here) -> local (a process)
ray_place (which run where) -> machines (who may take part) -> node (trains there) -> shipping (the run comes home)

Files:
    cluster.py  A Ray cluster: one of our own on this machine, started and ended by us, or one that is there already
    janitor.py  Removes a folder and ends what works in it, once its owner is gone, however it went
    joblist.py  `jobs.jsonl`: the runs of a comparison as a file that any machine can work through; untrusted when read
    local.py    This machine as a place: each run a process of its own, several at once
    machines.py  The machines of a Ray cluster: how each rounds, and which of them may take part
    node.py     What a machine of a cluster does: says how it rounds, and trains one run
    places.py   Which place `--on` means: this machine, a Ray cluster of our own, or one that is there already
    ray_place.py  A Ray cluster as a place: a task for each run, a lost one begun again elsewhere
    shipping.py  A run directory on its way between two machines, while it is being trained: packets of plain data
    specs.py    A run as plain data: settings or a script, a seed, and the files of the user's own that it needs
    work.py     One run of a list on this machine: kept where it is finished, resumed where it is broken
"""
