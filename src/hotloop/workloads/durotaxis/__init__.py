"""Durotaxis: colonies of cells that grow toward stiffer ground.

Files:
    baselines.py            A rule that does not learn, to compare with
    colony_kernels.py       A colony on its substrate: how it begins, is pruned, grows and is measured
    deploy.py               `deploy`: a trained agent on substrates of choice, and a file of what every node was and did
    draw.py                 A colony on its field as text for a terminal or as a picture, from a saved state or with
                            the past of its episode
    env.py                  Durotaxis, batched: one kernel call steps every colony, a second one writes what is seen
                            of them
    gymnasium_env.py        Durotaxis for anybody's agent: importing this module registers `hotloop/Durotaxis-v0`
                            with Gymnasium
    layout_kernels.py       What the kernels are handed: a record of what a colony has one of, its nodes in arrays,
                            its edges as bits
    link_kernels.py         Edges as bits: bit j of row i is the edge from node i to node j
    node_log.py             What every node of a deployed colony was and did, step by step: a row each, as they play
    observation_kernels.py  What a policy sees of every colony, laid end to end
    picture.py              A migrating colony as four panels: where it is, how stiff its ground is, how it got
                            there and what it did
    reward_kernels.py       What a step is worth: a row of numbers for each colony, of which the reward mode makes
                            the total
    selection_kernels.py    Which nodes lie left-most, without sorting all of them
    settings.py             The rules of durotaxis that can be chosen, as `env.options`
    state.py                A saved state: what there is of every colony and nothing else, so that equal colonies
                            have equal states
    state_kernels.py        Nodes and edges of all colonies laid end to end for a saved state, and back
    step_kernels.py         N colonies in one call
    verbs.py                `hotloop durotaxis deploy RUN`
"""

from pathlib import Path

from hotloop.core.workloads import Workload

workload = Workload(
    name="durotaxis",
    about="Let a colony of cells grow toward stiffer ground.",
    envs={"durotaxis": "hotloop.workloads.durotaxis.env:Durotaxis"},
    drawings={"durotaxis": "hotloop.workloads.durotaxis.draw"},
    presets=Path(__file__).parent / "presets",
    verbs={"deploy": "hotloop.workloads.durotaxis.verbs:deploy"},
)
