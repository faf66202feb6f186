"""Service-chain provisioning for anybody's agent: importing this module registers `hotloop/SFC-v0` with Gymnasium.

    gymnasium.make("hotloop.workloads.sfc.gymnasium_env:hotloop/SFC-v0", max_data_centres=8)
    gymnasium.make_vec("hotloop.workloads.sfc.gymnasium_env:hotloop/SFC-v0", num_envs=32)

Keyword arguments are the fields of `SfcSettings`. Observations are a Dict of three parts; `info["action_mask"]` tells
which actions can be carried out.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from hotloop.envs.as_gymnasium import SAME_STEP, AsEnv, AsVectorEnv, EnvFace, register
from hotloop.workloads.sfc import draw
from hotloop.workloads.sfc.env import PARTS, Sfc
from hotloop.workloads.sfc.tables_kernels import NUM_ACTIONS

ENV_ID = "hotloop/SFC-v0"
HIGHEST = 2.0  # log1p(count) / 5 of as many requests as there can be, and a little more


def _spaces(sfc: Sfc) -> tuple[Any, spaces.Discrete]:
    boxes = {name: spaces.Box(0.0, HIGHEST, spec.shape, np.float32) for name, spec in PARTS.items()}
    return spaces.Dict(boxes), spaces.Discrete(NUM_ACTIONS)  # type: ignore[arg-type]


FACE = EnvFace("sfc", Sfc, _spaces, draw)


class SfcEnv(AsEnv):
    """One network."""

    face, metadata = FACE, FACE.metadata()


class SfcVectorEnv(AsVectorEnv):
    """`num_envs` networks in one call each step."""

    face, metadata = FACE, FACE.metadata() | SAME_STEP


register(ENV_ID, SfcEnv, SfcVectorEnv)
