"""Workloads of ours: guests that come in through the door which every package has (`core/workloads.py`).

Nothing else of hotloop imports them. Each folder has an env with its kernels, a module that draws it, presets in
`presets/`, rules to compare with and verbs of its own; its `__init__.py` says which, and loads none of it.

Files:
    durotaxis/  Colonies of cells that grow toward stiffer ground
    sfc/        Service chains placed in networks of data centres
    snake/      Snake, batched
    topology/   Networks wired like any graph: presets on CartPole, and drawings
"""
