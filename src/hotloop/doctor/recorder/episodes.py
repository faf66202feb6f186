"""The episodes of a training as they end: what each returned, after how many env steps and seconds of training.

Which of a program's envs are for training is told by updates. An env whose episodes an update comes into is one; where
no env is like that (a program that learns from whole episodes), those are whose call is the last before an update. All
others evaluate: their episodes are marked by their env, and neither their env steps nor their time count.
"""

from __future__ import annotations

from typing import Any

from .follow import Follower, FollowPass
from .originals import as_json, open_file

FLUSH_SECONDS = 0.5


class Env:
    """One object whose outermost `step` is called; it may step many at once."""

    def __init__(self, number: int, name: str) -> None:
        self.number, self.name = number, name
        self.env_steps = 0
        self.running = [0.0]
        """Return so far, of each that it steps."""
        self.lengths = [0]
        self.under_way = False
        """Stepped since its last reset, with an episode not at its end."""
        self.interrupted = self.before_update = 0
        """Updates that came into its episodes; that its call was the last before."""

    def facts(self) -> dict[str, Any]:
        names = ("number", "name", "env_steps", "interrupted", "before_update")
        return {name: getattr(self, name) for name in names}


class Episodes(FollowPass):
    """Appends a line to `path` for every episode that ends, and tells of envs and updates when all is over."""

    watch: Follower

    def __init__(self, path: str) -> None:
        self.path = path
        self.envs: dict[int, Env] = {}
        self.held: list[Any] = []
        """The envs themselves, so that no other object gets the number of one that is gone."""
        self.optimisers: dict[int, int] = {}
        """Steps of each."""
        self.last: Env | None = None
        self._first_calls: list[Env] = []
        """Envs in the order in which they were first called."""
        self.apart_seconds = 0.0
        """In which envs were stepped that are not for training, as far as that was known then."""
        self.began = self.event = 0.0
        """The first env call; the last one whose time is known."""
        self._learns = False
        """Whether an update has come into an episode yet."""
        self._lines: list[str] = []
        self._flushed = 0.0

    def on_step(self, args: tuple[Any, ...], result: Any, start: float) -> None:
        env = self.envs.get(id(args[0])) if args else None
        if env is None:
            env = self._first_call(args[0] if args else None, start)
        if env is not self.last or self._learning_from_others(env):
            self._count_time(env, start)
        self.last = env
        if type(result) is tuple and len(result) == 5 and isinstance(result[1], float):  # one env, by far the commonest
            env.env_steps += 1
            env.running[0] += result[1]
            env.lengths[0] += 1
            env.under_way = not (result[2] or result[3])
            if not env.under_way:
                self._ended(env, 0, told_returns(result[4], [True]))
            return
        reward, done, told = read_result(result)
        self._count_all(env, reward, done, told)

    def _count_all(self, env: Env, reward: list[float], done: list[bool], told: dict[int, float]) -> None:
        while len(env.running) < len(reward):
            env.running.append(0.0)
            env.lengths.append(0)
        env.env_steps += len(reward)
        env.under_way = not all(done)
        for i, value in enumerate(reward):
            env.running[i] += value
            env.lengths[i] += 1
            if done[i]:
                self._ended(env, i, told)

    def _count_time(self, env: Env, start: float) -> None:
        """What passes while an env is stepped that the program does not learn from is evaluation."""
        now = self.watch.clock()
        if self._learning_from_others(env):
            self.apart_seconds += now - (start if env is not self.last else self.event)
        self.event = now

    def on_wrapped(self, args: tuple[Any, ...], calls: int, result: Any) -> None:
        """What was taken for one env or several is this one."""
        inner = list(dict.fromkeys(self._first_calls[-calls:]))
        if not inner or not args:
            return
        outer = inner[0]
        for env in inner[1:]:
            outer.env_steps += env.env_steps
            outer.running += env.running
            outer.lengths += env.lengths
            outer.under_way |= env.under_way
        self.envs = {key: env for key, env in self.envs.items() if env not in inner}
        self.envs[id(args[0])], outer.name, self.last = outer, name_of(args[0]), outer
        self.held.append(args[0])

    def on_reset(self, args: tuple[Any, ...], result: Any) -> None:
        env = self.envs.get(id(args[0])) if args else None
        if env is not None:
            env.running, env.lengths, env.under_way = [0.0], [0], False

    def on_optimiser(self, optimiser: Any) -> None:
        self.optimisers[id(optimiser)] = self.optimisers.get(id(optimiser), 0) + 1
        if self.last is not None:
            self.last.before_update += 1
            for env in self.envs.values():
                env.interrupted += env.under_way
                self._learns |= env.under_way
            self.last = None

    def _learning_from_others(self, env: Env) -> bool:
        """As far as is known by now: before the first update every env is taken for one of training."""
        return self._learns and not env.interrupted

    def _first_call(self, env: Any, start: float) -> Env:
        self.began = self.began or start
        self.held.append(env)
        found = self.envs[id(env)] = Env(len(self.held) - 1, name_of(env))
        self._first_calls.append(found)
        return found

    def _ended(self, env: Env, place: int, told: dict[int, float]) -> None:
        now = self.event = self.watch.clock()
        row = {
            "event": "episode",
            "env": env.number,
            "env_steps": sum(one.env_steps for one in self.envs.values() if not self._learning_from_others(one)),
            "seconds": round(now - self.began - self.apart_seconds, 6),
            "return": told.get(place, env.running[place]),
            "length": env.lengths[place],
            "updates": max(self.optimisers.values(), default=0),
        }
        env.running[place], env.lengths[place] = 0.0, 0
        self._lines.append(as_json(row))
        if now - self._flushed > FLUSH_SECONDS:
            self._flush(now)

    def _flush(self, now: float) -> None:
        lines, self._lines, self._flushed = self._lines, [], now
        if lines and self.watch.in_recorder:
            with open_file(self.path, "a") as file:
                file.write("\n".join(lines) + "\n")

    def stop(self) -> None:
        self.event = max(self.event, self.watch.last_start)
        self._flush(self.watch.clock())

    def add_to(self, trace: dict[str, Any]) -> None:
        trace["envs"] = [env.facts() for env in self.envs.values()]
        trace["updates"] = max(self.optimisers.values(), default=0)
        trace["training_seconds"] = max(0.0, self.event - self.began - self.apart_seconds)


def name_of(env: Any) -> str:
    return f"{type(env).__module__}.{type(env).__qualname__}"


def read_result(result: Any) -> tuple[list[float], list[bool], dict[int, float]]:
    """Rewards and ends of each that was stepped, and returns that the program's own wrapper tells (Monitor,
    RecordEpisodeStatistics): those are of the env's own rewards, where others may have scaled them since."""
    size = len(result) if isinstance(result, tuple) else 0
    ends: tuple[Any, ...]
    if size in (4, 5):
        reward, ends, info = result[1], result[2 : size - 1], result[-1]
    elif size == 3:  # (obs, reward, done), or the (reward, done, score) of many a tutorial
        first = 0 if isinstance(result[1], bool) else 1
        reward, ends, info = result[first], (result[first + 1],), None
    else:
        reward, info = getattr(result, "reward", 0.0), None
        ends = tuple(getattr(result, name) for name in ("terminated", "truncated", "done") if hasattr(result, name))
    rewards = as_list(reward)
    flags = [as_list(end) for end in ends]
    done = [any(bool(flag[i]) for flag in flags if i < len(flag)) for i in range(len(rewards))]
    return [float(value) for value in rewards], done, told_returns(info, done) if any(done) else {}


def as_list(value: Any) -> list[Any]:
    if isinstance(value, (int, float)):
        return [value]
    if hasattr(value, "reshape") and hasattr(value, "tolist"):
        return list(value.reshape(-1).tolist())
    return list(value) if isinstance(value, (list, tuple)) else [value]


def told_returns(info: Any, done: list[bool]) -> dict[int, float]:
    """Of those whose episode has just ended."""
    if isinstance(info, (list, tuple)):
        episodes = [one.get("episode") if isinstance(one, dict) else None for one in info]
        return {i: float(one["r"]) for i, one in enumerate(episodes) if isinstance(one, dict) and "r" in one}
    for source in (info, info.get("final_info") if isinstance(info, dict) else None):
        episode = source.get("episode") if isinstance(source, dict) else None
        if isinstance(episode, dict) and "r" in episode:
            values = as_list(episode["r"])
            if len(values) == len(done):
                return {i: float(values[i]) for i in range(len(done)) if done[i]}
    return {}
