"""Small Gymnasium envs for the tests: good ones of every supported kind, and bad ones with one planted fault each."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv

LENGTH = 5


class Counter(gymnasium.Env):
    """Counts its steps and terminates at `LENGTH`; the observation is [steps, drawn at reset]."""

    observation_space: spaces.Space = spaces.Box(-10.0, 10.0, (2,), np.float64)
    action_space: spaces.Space = spaces.Discrete(2)

    def __init__(self, length: int = LENGTH) -> None:
        self.length = length

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[Any, dict]:
        super().reset(seed=seed)
        self.count = 0
        self.drawn = self.np_random.random()
        return self.look(), self.info()

    def step(self, action: Any) -> Any:
        self.count += 1
        return self.look(), float(action), self.count >= self.length, False, self.info()

    def look(self) -> Any:
        return np.array([self.count, self.drawn])

    def info(self) -> dict:
        return {}


class Parts(Counter):
    observation_space = spaces.Dict(
        {"image": spaces.Box(0, 255, (2, 2), np.uint8), "place": spaces.Discrete(3), "speed": spaces.Box(-1, 1, (1,))}
    )

    def look(self) -> Any:
        image = np.full((2, 2), self.count, np.uint8)
        return {"image": image, "place": self.count % 3, "speed": np.array([0.5], np.float32)}


class Bits(Counter):
    observation_space = spaces.MultiBinary(4)

    def look(self) -> Any:
        return np.array([self.count >> bit & 1 for bit in range(4)], np.int8)


class Dials(Counter):
    """Two choices, the second counted from 5."""

    observation_space = spaces.MultiDiscrete([3, 2], start=[0, 5])

    def look(self) -> Any:
        return np.array([self.count % 3, 5 + self.count % 2])


class Pair(Counter):
    observation_space = spaces.Tuple([spaces.Discrete(3), spaces.Box(-1, 1, (2,))])

    def look(self) -> Any:
        return self.count % 3, np.array([0.5, self.drawn], np.float32)


class Nested(Counter):
    """A Dict in a Dict, with a Tuple in it."""

    observation_space = spaces.Dict(
        {
            "arm": spaces.Dict(
                {"grips": spaces.MultiBinary(2), "joints": spaces.Tuple([Pair.observation_space[1]] * 2)}
            ),
            "mode": spaces.MultiDiscrete([2, 3]),
            "speed": spaces.Box(0, 20, ()),
        }
    )

    def look(self) -> Any:
        joint = np.array([0.5, self.drawn], np.float32)
        arm = {"grips": np.array([1, self.count % 2], np.int8), "joints": (joint, -joint)}
        return {"arm": arm, "mode": np.array([1, self.count % 3]), "speed": np.float32(self.count)}


class Film(Counter):
    """An image of 12 x 10 in one byte each, as bright as the count."""

    observation_space: spaces.Space = spaces.Box(0, 255, (12, 10, 1), np.uint8)

    def look(self) -> Any:
        return np.full((12, 10, 1), self.count, np.uint8)


class Cameras(Counter):
    """Two images, one of them in grey, among other parts."""

    observation_space = spaces.Dict(
        {
            "eyes": spaces.Tuple([Film.observation_space, spaces.Box(0, 255, (11, 9), np.uint8)]),
            "place": spaces.Discrete(3),
            "speed": spaces.Box(-1, 1, (2,)),
        }
    )

    def look(self) -> Any:
        image = np.full((12, 10, 1), self.count, np.uint8)
        speed = np.array([0.5, self.drawn], np.float32)
        return {"eyes": (image, np.full((11, 9), 7, np.uint8)), "place": self.count % 3, "speed": speed}


def make_counter(length: int = LENGTH, render_mode: str | None = None) -> Counter:
    return Counter(length)


_kept = Counter()


def give_the_same() -> Counter:
    return _kept


def give_nothing() -> None:
    return None


class FromOne(Counter):
    """Discrete spaces that start at 1: refuses any action but 1 and 2."""

    observation_space = spaces.Discrete(LENGTH + 1, start=1)
    action_space = spaces.Discrete(2, start=1)

    def step(self, action: Any) -> Any:
        assert self.action_space.contains(action)
        return super().step(action)

    def look(self) -> Any:
        return self.count + 1


class TwoChoices(Counter):
    """Two choices at once, the second counted from 3."""

    action_space = spaces.MultiDiscrete([2, 3], start=[0, 3])

    def step(self, action: Any) -> Any:
        assert self.action_space.contains(action)
        return super().step(action.sum())


class MaskInInfo(Counter):
    """Allows only the action equal to the parity of the count; nothing once the episode is over."""

    def info(self) -> dict:
        mask = np.arange(2) == self.count % 2
        return {"action_mask": (mask & (self.count < self.length)).astype(np.int8)}


class MaskInStepOnly(Counter):
    """Its first actions could not be masked."""

    def step(self, action: Any) -> Any:
        obs, reward, terminated, truncated, info = super().step(action)
        return obs, reward, terminated, truncated, {**info, "action_mask": np.ones(2, np.int8)}


class MaskMethod(Counter):
    def action_masks(self) -> list[bool]:
        return [self.count % 2 == 0, self.count % 2 == 1]


class SharedBuffer(Counter):
    """Returns the same array every time, as many envs do."""

    buffer = np.zeros(2)

    def look(self) -> Any:
        self.buffer[:] = self.count, self.drawn
        return self.buffer


class FaultAtThree(Counter):
    def look(self) -> Any:
        return self.fault() if self.count == 3 else super().look()

    def fault(self) -> Any:
        raise NotImplementedError


class NaNObs(FaultAtThree):
    def fault(self) -> Any:
        return np.array([np.nan, 0.0])


class OneValue(Counter):
    """Its second number can be 0.5 and nothing else."""

    action_space: spaces.Space = spaces.Box(np.float32([-1.0, 0.5]), np.float32([1.0, 0.5]))


class OutsideItsBox(FaultAtThree):
    def fault(self) -> Any:
        return np.array([11.0, 0.0])


class WrongShape(FaultAtThree):
    def fault(self) -> Any:
        return np.zeros(3)


class WrongKind(FaultAtThree):
    def fault(self) -> Any:
        return np.array(["left", "right"])


class Raising(FaultAtThree):
    def fault(self) -> Any:
        raise RuntimeError("the physics exploded")


class BadStep(Counter):
    """Changes its third answer by `spoil`."""

    def step(self, action: Any) -> Any:
        answer = super().step(action)
        return self.spoil(*answer) if self.count == 3 else answer

    def spoil(self, obs: Any, reward: Any, terminated: Any, truncated: Any, info: Any) -> Any:
        raise NotImplementedError


class RewardNone(BadStep):
    def spoil(self, obs: Any, reward: Any, terminated: Any, truncated: Any, info: Any) -> Any:
        return obs, None, terminated, truncated, info


class RewardInfinite(BadStep):
    def spoil(self, obs: Any, reward: Any, terminated: Any, truncated: Any, info: Any) -> Any:
        return obs, float("inf"), terminated, truncated, info


class FourValues(BadStep):
    def spoil(self, obs: Any, reward: Any, terminated: Any, truncated: Any, info: Any) -> Any:
        return obs, reward, terminated, info


class TerminatedNone(BadStep):
    def spoil(self, obs: Any, reward: Any, terminated: Any, truncated: Any, info: Any) -> Any:
        return obs, reward, None, truncated, info


class InfoList(BadStep):
    def spoil(self, obs: Any, reward: Any, terminated: Any, truncated: Any, info: Any) -> Any:
        return obs, reward, terminated, truncated, []


class EmptyMask(MaskInInfo):
    def info(self) -> dict:
        return {"action_mask": np.zeros(2, np.int8) if self.count == 3 else np.ones(2, np.int8)}


class Unseeded(Counter):
    """Ignores its seed."""

    def look(self) -> Any:
        return np.array([self.count, np.random.default_rng().random()])


class OldReset(Counter):
    def reset(self, *, seed: int | None = None, options: dict | None = None) -> Any:
        return super().reset(seed=seed)[0]


class CloseFails(Counter):
    def close(self) -> None:
        raise RuntimeError("already gone")


class PlainVector(SyncVectorEnv):
    """Counters behind Gymnasium's own vector env, in the mode of the subclass."""

    mode = AutoresetMode.NEXT_STEP
    kind: type[gymnasium.Env] = Counter

    def __init__(self, num_envs: int, max_episode_steps: int = 100) -> None:
        make = lambda: gymnasium.wrappers.TimeLimit(self.kind(), max_episode_steps)  # noqa: E731
        super().__init__([make] * num_envs, autoreset_mode=self.mode)


class NextStepVector(PlainVector):
    mode = AutoresetMode.NEXT_STEP


class SameStepVector(PlainVector):
    mode = AutoresetMode.SAME_STEP


class DisabledVector(PlainVector):
    mode = AutoresetMode.DISABLED


class NextStepMasks(NextStepVector):
    kind = MaskInInfo


class SameStepMasks(SameStepVector):
    kind = MaskInInfo


class LateMasks(SameStepVector):
    kind = MaskInStepOnly


class DisabledMasks(DisabledVector):
    kind = MaskInInfo


class SameStepParts(SameStepVector):
    kind = Parts


class SameStepNested(SameStepVector):
    kind = Nested


class NextStepCameras(NextStepVector):
    kind = Cameras


class VectorNaN(SameStepVector):
    kind = NaNObs


class NoFinalObs(SameStepVector):
    def step(self, actions: Any) -> Any:
        *answer, info = super().step(actions)
        info.pop("final_obs", None)
        return *answer, info


class NoMode(NextStepVector):
    def __init__(self, num_envs: int) -> None:
        super().__init__(num_envs)
        del self.metadata["autoreset_mode"]
