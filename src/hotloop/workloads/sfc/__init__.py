"""Service chains placed in networks of data centres.

Files:
    baseline_kernels.py  Rules that place VNFs without learning: what each request would choose, the most urgent
                         first
    baselines.py         The rules of `baseline_kernels` as policies
    choice_kernels.py    Whose turn it is: the order of a cycle, who would get each VNF at the visited centre, and
                         which actions can be
    draw.py              A network with its load and its requests as text for a terminal or as a picture, from a
                         saved state
    env.py               Service-chain provisioning, batched: one kernel call steps every network
    gymnasium_env.py     Service-chain provisioning for anybody's agent: importing this module registers
                         `hotloop/SFC-v0` with Gymnasium
    layout_kernels.py    What the kernels are handed: each network with its requests as one record, the rules as
                         numbers
    network_kernels.py   Data centres and the links between them: drawing a network, its shortest paths, and
                         bandwidth along them
    page.py              An episode as a page: `hotloop watch RUN --html FILE`
    request_kernels.py   The life of a request: it arrives with its bundle, gets VNF after VNF, and is satisfied or
                         dropped
    settings.py          The rules of service-chain provisioning that can be chosen, as `env.options`
    state.py             What a saved network can be
    step_kernels.py      N networks in one call
    tables_kernels.py    The services and network functions of the workload, as numbers
"""

from pathlib import Path

from hotloop.core.workloads import Workload

workload = Workload(
    name="sfc",
    about="Place the chains of network functions that requests ask for on data centres, in time.",
    envs={"sfc": "hotloop.workloads.sfc.env:Sfc"},
    drawings={"sfc": "hotloop.workloads.sfc.draw"},
    presets=Path(__file__).parent / "presets",
)
