"""Snake, batched.

Files:
    board.py                Boards between arrays and bits, and flood fill for whoever has many boards
    draw.py                 A game as a picture or as colored text, from a saved state
    env.py                  Snake, batched: one kernel call steps every game, flood fills included
    fill_kernels.py         Flood fill, bit-parallel and exact: which cells can be reached from one, and how many
    gymnasium_env.py        Snake for anybody's agent: importing this module registers `hotloop/Snake-v0` with
                            Gymnasium
    layout_kernels.py       What the kernels are handed: the games as arrays, the rules as numbers
    observation_kernels.py  What the policy sees of one game, written into its row of the observations
    rule_kernels.py         One game's rules: start, turn, move, eat, die
    settings.py             The rules of a game of snake, as `env.options`
    step_kernels.py         N games in one call
"""

from pathlib import Path

from hotloop.core.workloads import Workload

workload = Workload(
    name="snake",
    about="Eat, grow, and do not run into walls or yourself.",
    envs={"snake": "hotloop.workloads.snake.env:Snake"},
    drawings={"snake": "hotloop.workloads.snake.draw"},
    presets=Path(__file__).parent / "presets",
)
