"""How the envs are stepped: one by one, through wrappers, drawn on the way."""

from __future__ import annotations

from hotloop.doctor.finding import Finding, Remedy, rule
from hotloop.doctor.port import envs_of
from hotloop.doctor.rules.evidence import (
    SAVED_ENTIRELY,
    by_cost,
    calls_like,
    edit_first,
    function_at,
    function_of,
    function_share,
    loop_of,
    microseconds_words,
    number,
    own_microseconds,
    per_env_call,
    places_of,
    sampled_share,
    suggest,
)
from hotloop.doctor.rules.searching import enumeration_share, graph_calls, search_share
from hotloop.doctor.trace import ENV, EVALUATE, START_UP, UPDATE, StackCost, Trace
from hotloop.render.numbers import percent

SEVERAL_ENVS = 4
BATCHED_MICROSECONDS = 60.0
"""One step of all envs in some twenty numpy operations on arrays [N]; our kernels take less."""
MOST_BATCHING_GAINS = 40.0
LEAST_WRAPPERS = 3
WRAPPER_SPEEDUP = 4.0
RENDERS_PER_CALL = 0.1

OURS = {"CartPole-v0": "cartpole", "CartPole-v1": "cartpole"}
"""Gymnasium ids of which we have a batched env."""


def vector_snippet(trace: Trace) -> str:
    """Our batched env where there is one of the same rules, as many as the program steps; else how one's own becomes
    one."""
    num_envs = envs_of(trace)
    if trace.setup.env_id in OURS:
        return batched(OURS[trace.setup.env_id], num_envs)
    return (
        "import numpy as np\n\n"
        f"state = np.stack([env.state for env in envs])  # [{num_envs}, F]: one array, not {num_envs} objects\n"
        "# in the loop, what `step` does to one state, on all of them at once\n"
        "state = 0.98 * state\n"
        "state[:, 0] += 0.1 * (action - 0.5)  # action [N]\n"
        "reward, terminated = -np.abs(state[:, 0]), state[:, 1] > 3.0"
    )


def batched(name: str, num_envs: int) -> str:
    return (
        "import hotloop\n\n"
        f'envs = hotloop.vector("{name}", num_envs={num_envs})  # a gymnasium.vector.VectorEnv\n'
        "obs, _ = envs.reset()\n"
        "# in the loop\n"
        "obs, reward, terminated, truncated, info = envs.step(action)  # ended games begin anew"
    )


BATCHED = Remedy(
    "Step all envs at once on arrays [N]. hotloop has `cartpole` and `snake` so, with the rules of the originals and "
    "starts that it draws itself, and runs any Gymnasium id with its own batched implementation.",
    "for i, env in enumerate(envs):\n    obs[i], reward[i], terminated[i], truncated[i], _ = env.step(action[i])",
    batched("cartpole", 64),
    fill=vector_snippet,
)
WRAPPERS = Remedy(
    "Fold the wrappers into one, or into the env's own step: every layer costs a call, its arguments and its `info`.",
    "env = Scale(Clip(env))",
    "import gymnasium\n\n\n"
    "class Prepared(gymnasium.Wrapper):\n"
    "    def reset(self, **options):\n"
    "        obs, info = self.env.reset(**options)\n"
    "        return obs / 255, info\n\n"
    "    def step(self, action):\n"
    "        obs, reward, terminated, truncated, info = self.env.step(action)\n"
    "        return obs / 255, max(-1.0, min(1.0, reward)), terminated, truncated, info\n\n\n"
    "env = Prepared(env)",
)
RENDER = Remedy(
    "Draw a separate env now and then, not the ones that train: `hotloop watch` plays a run's agent while it trains.",
    'env = gymnasium.make("CartPole-v1", render_mode="rgb_array")\n# in the loop\nframe = env.render()',
    'import gymnasium\n\nenv = gymnasium.make("CartPole-v1")\n# in the loop: no render()',
)


@rule("ENV005", remedy=BATCHED)
def one_env_after_another(trace: Trace) -> Finding | None:
    """Many envs are stepped one after another in Python.

    The Python of one small env costs microseconds however little it computes; on arrays [N] the same operations cost
    that once for all envs. Found where several envs are stepped per call, or one after another by a loop of yours, and
    functions of yours run for every one of them; or where they are CartPoles, of which we have a batched env. Searches
    inside the env are findings of their own and not counted here.
    """
    calls = [call for call in calls_like(trace, ("user:*",), (ENV,)) if "<lambda>" not in call.name]
    calls = [call for call in calls if trace.per_env_step([call]) >= 0.9]
    per_env_step = trace.per_env_step(calls)
    envs = max(trace.envs_at_once, trace.envs_in_turn)
    if envs < SEVERAL_ENVS or not (calls or (trace.envs_in_turn > 1 and trace.setup.env_id in OURS)):
        return None
    apart = search_share(trace) + enumeration_share(trace, places_of(graph_calls(trace)))
    share = max(0.0, trace.share(ENV) - apart)
    rounds = trace.counts.env_steps / envs
    per_call = own_microseconds(trace, share, rounds)
    how = "per call" if trace.envs_in_turn == 1 else "one after another"
    own = f", with {number(per_env_step)} calls of your own functions for each" if calls else ""
    evidence = (
        f"{number(envs)} envs are stepped {how}{own}: {microseconds_words(trace, share, rounds)} per "
        f"{'call' if trace.envs_in_turn == 1 else 'round'}, {percent(share)} of the loop."
    )
    speedup = max(1.0, min(MOST_BATCHING_GAINS, per_call / BATCHED_MICROSECONDS))
    places = edit_first(_loop_over_envs(trace), places_of(calls))
    return suggest(trace, share, speedup, evidence=evidence, places=places)


def _loop_over_envs(trace: Trace) -> str:
    """The `for` around the envs, where the program's loops are known."""
    return loop_of(trace, ENV, UPDATE) if any(stack.phase == UPDATE for stack in trace.stacks) else ""


@rule("ENV006", remedy=WRAPPERS)
def deep_wrappers(trace: Trace) -> Finding | None:
    """The env's wrappers cost time of their own.

    Every wrapper adds a Python call, its argument passing and what it does to a few numbers. Found where three or more
    wrappers of yours lie around the env and time is sampled in them rather than in the env.
    """
    steps = calls_like(trace, ("user:*.step",), (ENV,))
    layers = trace.per_env_step(steps)
    if layers < LEAST_WRAPPERS + 1 or trace.envs_at_once > 1:
        return None
    share = _time_in_wrappers(trace)
    evidence = (
        f"`step` runs through {number(layers - 1)} wrappers around the env; "
        f"{percent(share)} of the loop is spent in them and not in the env."
    )
    return suggest(trace, share, WRAPPER_SPEEDUP, evidence=evidence, places=places_of(steps))


def _time_in_wrappers(trace: Trace) -> float:
    """Samples in which the innermost env's own `step` was not yet, or no longer, running."""
    paths = [(stack, _steps_in(stack)) for stack in trace.stacks if stack.phase == ENV]
    deepest = max((len(path) for _, path in paths), default=0)
    outside = sum(stack.seconds for stack, path in paths if len(path) < deepest)
    return outside / trace.loop_seconds if trace.loop_seconds > 0 else 0.0


def _steps_in(stack: StackCost) -> list[str]:
    functions = [function_of(frame)[1] for frame in stack.frames]
    return [name for name in functions if name == "step" or name.endswith(".step")]


@rule("ENV007", remedy=RENDER)
def rendering_in_the_loop(trace: Trace) -> Finding | None:
    """Frames are drawn in the training loop.

    A frame costs a hundred times an env step and nothing learns from it. Found where `render` is called for every
    tenth call of `step` or more, outside evaluation.
    """
    calls = [call for call in calls_like(trace, ("*.render",)) if call.phase not in (EVALUATE, START_UP)]
    often = per_env_call(trace, calls)
    if often < RENDERS_PER_CALL:
        return None
    places = by_cost(trace, places_of(calls))
    own = {function_at(trace, call.where) for call in calls if call.name.startswith("user:")}
    share = max(sampled_share(trace, places), function_share(trace, own))
    evidence = f"`render` is called {number(often)} times per call of `step` and takes {percent(share)} of the loop."
    return suggest(trace, share, SAVED_ENTIRELY, evidence=evidence, places=places)
