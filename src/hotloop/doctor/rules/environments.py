"""How the envs are stepped: one by one, through wrappers, drawn on the way.

What they do beside: ask data frames, build everything anew at each reset.
"""

from __future__ import annotations

from hotloop.doctor.finding import BUT_FOR_DRAWS, IDENTICAL, Finding, Remedy, rule
from hotloop.doctor.port import envs_of
from hotloop.doctor.rules.beneath import lines_above, mentioned, share_of, stacks_in
from hotloop.doctor.rules.evidence import (
    SAVED_ENTIRELY,
    by_cost,
    calls_like,
    edit_first,
    function_at,
    function_of,
    function_share,
    loop_of,
    microseconds_text,
    most_expensive,
    number,
    own_microseconds,
    per_env_call,
    place_of,
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
OPERATIONS_ON_ARRAYS = 2.0
"""How much longer an operation takes on an array of all envs than on the numbers of one: with few envs that is what
bounds the gain."""
LEAST_WRAPPERS = 3
WRAPPER_SPEEDUP = 4.0
RENDERS_PER_CALL = 0.1

OURS = {"CartPole-v0": "cartpole", "CartPole-v1": "cartpole"}
"""Gymnasium ids of which we have a batched env."""


def vector_snippet(trace: Trace, where: str = "") -> str:
    """Our batched env where there is one of the same rules, as many as the program steps; else how one's own becomes
    one."""
    num_envs = envs_of(trace)
    if trace.setup.env_id in OURS:
        return batched(OURS[trace.setup.env_id], num_envs)
    return (
        "import numpy as np\n\n"
        f"state = np.stack([state_of(env) for env in envs])  # [{num_envs}, F]: one array, not {num_envs} objects\n"
        "# in the loop, what your `step` does to one state, written for all rows at once\n"
        f"state, reward, terminated = step_all(state, action)  # action [{num_envs}]"
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
    fill=lambda trace, where: (
        f"import gymnasium\n\nenv = gymnasium.make({trace.setup.env_id!r})\n# in the loop: no render()"
        if trace.setup.env_id
        else "# the env without its `render_mode`, and no `render()` in the loop"
    ),
)


@rule(
    "ENV005",
    remedy=BATCHED,
    kind=BUT_FOR_DRAWS,
    condition="the batched step has your env's rules",
)
def one_env_after_another(trace: Trace) -> Finding | None:
    """Many envs are stepped one after another in Python.

    The Python of one small env costs microseconds however little it computes; on arrays [N] the same operations cost
    that once for all envs. Found where several envs are stepped per call, or one after another by a loop of yours, and
    functions of yours run for every one of them; or where they are CartPoles, of which we have a batched env. Searches
    inside the env are findings of their own and not counted here; heavy envs are ENV010's.
    """
    calls = [call for call in calls_like(trace, ("user:*",), (ENV,)) if "<lambda>" not in call.name]
    calls = [call for call in calls if trace.per_env_step([call]) >= 0.9]
    per_env_step = trace.per_env_step(calls)
    envs = max(trace.envs_at_once, trace.envs_in_turn)
    ours = trace.envs_in_turn > 1 and trace.setup.env_id in OURS
    if envs < SEVERAL_ENVS or not (calls or ours) or is_heavy(trace):
        return None
    apart = search_share(trace) + enumeration_share(trace, places_of(graph_calls(trace)))
    apart += sampled_share(trace, places_of(calls_like(trace, ("pandas.*",), (ENV,))), (ENV,))
    share = max(0.0, trace.share(ENV) - apart)
    rounds = trace.counts.env_steps / envs
    per_call = own_microseconds(trace, share, rounds)
    how = "per call" if trace.envs_in_turn == 1 else "one after another"
    own = f", with {number(per_env_step)} calls of your own functions for each" if calls else ""
    evidence = (
        f"{number(envs)} envs are stepped {how}{own}: {microseconds_text(trace, share, rounds)} per "
        f"{'call' if trace.envs_in_turn == 1 else 'round'}, {percent(share)} of the loop."
    )
    most = min(MOST_BATCHING_GAINS, envs / OPERATIONS_ON_ARRAYS)
    speedup = max(1.0, min(most, per_call / BATCHED_MICROSECONDS))
    places = edit_first(_loop_over_envs(trace), places_of(calls))
    return suggest(trace, share, speedup, evidence=evidence, places=places)


def _loop_over_envs(trace: Trace) -> str:
    """The `for` around the envs, where the program's loops are known."""
    return loop_of(trace, ENV, UPDATE) if any(stack.phase == UPDATE for stack in trace.stacks) else ""


@rule("ENV006", remedy=WRAPPERS, kind=IDENTICAL, condition="the one wrapper does all that yours do, in their order")
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


@rule("ENV007", remedy=RENDER, kind=IDENTICAL, condition="nothing in the loop uses the frames")
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


HEAVY_MICROSECONDS = 100.0
"""An env step that costs more is worth a message to another process and back."""
WORKER_EFFICIENCY = 0.85
MESSAGE_MICROSECONDS = 150.0
"""Per call of `step`: a message to each worker and its answer, most of it while they compute."""

IN_WORKERS = Remedy(
    "Step heavy envs in worker processes, as many as there are cores, each with several envs: they compute side by "
    "side.",
    "envs = gymnasium.vector.SyncVectorEnv(makers)",
    "import gymnasium\n\nenvs = gymnasium.vector.AsyncVectorEnv(makers)  # where the script makes it: under __main__",
)


def is_heavy(trace: Trace) -> bool:
    """Whether several envs take turns in this process, each for so long that workers would pay; and a core is there.

    A search in Python is worth more than cores: it has rules of its own.
    """
    apart = search_share(trace) + enumeration_share(trace, places_of(graph_calls(trace)))
    share = trace.share(ENV) - apart
    per_env_step = own_microseconds(trace, share, trace.counts.env_steps)
    in_workers = trace.counts.worker_seconds > 0.2 * trace.share(ENV) * trace.loop_seconds
    several = max(trace.envs_at_once, trace.counts.envs) >= SEVERAL_ENVS
    cores = trace.machine.get("cores") or 1
    return several and cores >= 2 and per_env_step > HEAVY_MICROSECONDS and apart < share and not in_workers


@rule("ENV010", remedy=IN_WORKERS, kind=IDENTICAL, condition="the envs share nothing: no object, no random generator")
def heavy_envs_in_one_process(trace: Trace) -> Finding | None:
    """Heavy envs are stepped one after another in one process.

    A physics step of half a millisecond, eight times in turn, leaves all cores but one idle. Found where four or
    more envs take turns in this process, a step of one takes more than 100 microseconds, and there are two cores or
    more.
    """
    if not is_heavy(trace):
        return None
    share, counts = trace.share(ENV), trace.counts
    cores = int(trace.machine.get("cores") or 1)
    per_call = own_microseconds(trace, share, counts.env_calls)
    side_by_side = min(cores, max(trace.envs_at_once, counts.envs)) * WORKER_EFFICIENCY
    evidence = (
        f"{number(max(trace.envs_at_once, counts.envs))} envs take turns, "
        f"{microseconds_text(trace, share, counts.env_steps)} each: {percent(share)} of the loop on one "
        f"of {cores} cores."
    )
    speedup = per_call / (per_call / side_by_side + MESSAGE_MICROSECONDS)
    places = mentioned(trace, "SyncVectorEnv", "DummyVecEnv", "make_vec", "make_vec_env")
    places += [where for where in most_expensive(trace, (ENV,)) if ".step" in function_at(trace, where)[1]]
    return suggest(trace, share, max(1.0, speedup), evidence=evidence, places=places, relief=0.0)


PANDAS = (("pandas/*", "*"),)
PANDAS_SPEEDUP = 50.0
"""A row by `iloc` and two of its values take 30 to 60 microseconds, of an array less than one."""
RESET = (("*", "reset"), ("*", "*.reset"))
LEAST_RESET_SHARE = 0.15
RESET_SPEEDUP = 15.0
"""What puts the state back remains."""
STEPS_PER_RESET = 5.0

ARRAYS = Remedy(
    "Turn the columns that the env reads into an array once, outside the loop, and index that.",
    'today = prices.iloc[day]\ngain = today["close"] - today["open"]',
    'table = prices[["open", "close"]].to_numpy()\n# in the loop\ngain = table[day, 1] - table[day, 0]',
)
LOADED_ONCE = Remedy(
    "Load and build in the constructor, and have `reset` put the state back: simulators have a call for it "
    "(`resetBasePositionAndOrientation`, `mj_resetData`, `restoreState`).",
    "model = load(description)\nstate = model.start(seed)",
    "model = load(description)  # in the constructor\n# in the loop\nstate = model.start(seed)",
)


@rule("ENV008", remedy=ARRAYS, kind=IDENTICAL, condition="the data frame stays as it is while the env runs")
def data_frame_in_env(trace: Trace) -> Finding | None:
    """The env step reads a data frame.

    Every look-up in pandas goes through indexers, label checks and a new object: tens of microseconds for what an array
    answers in a tenth of one. Found where the env asks pandas once per call of `step` or more.
    """
    calls = calls_like(trace, ("pandas.*",), (ENV,))
    if per_env_call(trace, calls) < 1:
        return None
    stacks = stacks_in(trace, PANDAS, (ENV,))
    # The line that asks most itself, not one that calls a function of the env which does.
    places = list(dict.fromkeys([*lines_above(trace, stacks, PANDAS), *by_cost(trace, places_of(calls))]))
    share = max(sampled_share(trace, places, (ENV,)), share_of(trace, stacks))
    evidence = (
        f"{number(per_env_call(trace, calls))} calls of pandas per call of `step` (most often `{calls[0].name}`) "
        f"take {percent(share)} of the loop."
    )
    return suggest(trace, share, PANDAS_SPEEDUP, evidence=evidence, places=places)


@rule("ENV009", remedy=LOADED_ONCE, kind=IDENTICAL, condition="what is loaded is the same for every episode")
def costly_reset(trace: Trace) -> Finding | None:
    """Resets take much of the loop.

    A robot or a map that is read, parsed and built again for every episode costs milliseconds, and short episodes,
    those at the beginning of training, need one every few steps. Found where `reset` takes 15 % of the loop or more,
    and as long as five env steps or more.
    """
    stacks = stacks_in(trace, RESET, (ENV,))
    share = share_of(trace, stacks)
    counts = trace.counts
    if share < LEAST_RESET_SHARE or not counts.episodes:
        return None
    reset = own_microseconds(trace, share, counts.episodes)
    step = own_microseconds(trace, max(0.0, trace.share(ENV) - share), counts.env_steps)
    if reset < STEPS_PER_RESET * step:
        return None
    evidence = (
        f"{number(counts.episodes)} resets of {microseconds_text(trace, share, counts.episodes)} each take "
        f"{percent(share)} of the loop; an env step takes {number(step)}."
    )
    return suggest(trace, share, RESET_SPEEDUP, evidence=evidence, places=_lines_of_reset(stacks))


def _lines_of_reset(stacks: list[StackCost]) -> list[str]:
    """Where the innermost `reset` of each stack stands, the most expensive first."""
    costs: dict[str, float] = {}
    for stack in stacks:
        inner = [frame for frame in stack.frames if function_of(frame)[1].rpartition(".")[2] == "reset"]
        costs[place_of(inner[-1])] = costs.get(place_of(inner[-1]), 0.0) + stack.seconds
    return sorted(costs, key=lambda where: -costs[where])
