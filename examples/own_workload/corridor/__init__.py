"""A workload in a package of its own: `pip install -e examples/own_workload`, then `hotloop train corridor-dqn`."""

from pathlib import Path

from hotloop import Workload

workload = Workload(
    name="corridor",
    about="Walk right to the end of a corridor.",
    envs={"corridor": "corridor.env:Corridor"},
    drawings={"corridor": "corridor.draw"},
    presets=Path(__file__).parent / "presets",
    verbs={"best": "corridor.verbs:best"},
)
