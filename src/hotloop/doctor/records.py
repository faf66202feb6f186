"""What a trace is made of: the subject, what was counted and set up, and rows of lines, stacks, slices, experiments."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Subject:
    """What was diagnosed, and how it ended."""

    kind: str
    """`script` or `preset`."""
    name: str
    arguments: tuple[str, ...] = ()
    ending: str = "finished"
    """`finished`, `limit` (the doctor's own bound), `interrupted`, `crashed` or `exited`."""
    exit_code: int | None = None
    """The script's own; None where the doctor stopped it."""
    error: str = ""


@dataclass(frozen=True, kw_only=True)
class Counts:
    """What happened in the loop, counted rather than assumed; start-up is left out."""

    env_steps: int = 0
    env_calls: int = 0
    """Calls of the outermost `step`: `env_steps / env_calls` environments are stepped at once."""
    envs: int = 0
    """Distinct objects whose outermost `step` was called."""
    env_switches: int = 0
    """Env calls that stepped another object than the one before: nearly all, where single envs take turns."""
    main_env_calls: int = 0
    main_env_steps: int = 0
    """Of the object that was called most: the envs of training, where others evaluate. 0 where it was not told."""
    episodes: int = 0
    updates: int = 0
    """Rounds of optimizer steps in which no optimizer steps twice: those of a critic, an actor and a temperature are
    one update; with one optimizer, its steps."""
    unseen_updates: int = 0
    """Optimizer steps in a program whose envs are stepped by another thread, or by other processes alone."""
    optimiser_steps: int = 0
    optimisers: int = 0
    """Distinct ones that stepped in the loop."""
    act_forwards: int = 0
    """Of networks: a module without parameters (a loss, an activation) makes none, and a network whose `forward` is
    called directly makes one, not one for each layer."""
    act_rows: int = 0
    """Rows of all forwards that chose actions."""
    act_forwards_with_grad: int = 0
    update_forwards: int = 0
    unneeded_grad_forwards: int = 0
    """Forwards in the update that recorded gradients for a module no optimizer ever changes (a target network)."""
    backwards: int = 0
    parameter_tensors: int = 0
    parameters: int = 0
    double_parameters: int = 0
    """Parameters held in float64."""
    mode_layers: int = 0
    """Layers of the networks that behave differently in training (dropout, batch norm)."""
    denormal_values: int = 0
    """Optimizer state too small for ordinary floats, counted when the loop ended."""
    optimiser: str = ""
    """Class name, with `fused` or `foreach` where it says so."""
    batch_size: int = 0
    """Rows of the last forward of a network before a backward."""
    update_bursts: int = 0
    """Times that one update or more came between two env calls: `updates / update_bursts` are done at once."""
    waiting_seconds: float = 0.0
    """Loop time in which the loop only waited for another process or thread, by samples."""
    worker_seconds: float = 0.0
    """Processor time of the script's child processes while the loop ran."""
    queued_seconds: float = 0.0
    """Loop time in which the loop's thread was ready to run and other threads or programs had the cores."""
    crowding: float = 0.0
    """Wall-clock seconds that a second of computing took the loop's thread before the loop began, alone with other
    programs; 0 where that was not told."""
    own_threads_seconds: float = 0.0
    """Processor time of all threads of the script while the loop ran."""
    gc_seconds: float = 0.0
    """Loop time spent in Python's garbage collector."""
    gc_collections: int = 0
    late_seconds: float = 0.0
    """How long the script was watched after the window, by samples of its stack alone."""
    diagonal_covariances: int = 0
    """Multivariate normals with a diagonal covariance, of the first that were made in the counting pass."""
    major_faults: int = 0
    """Pages that had to be read from disk while the loop ran."""
    minor_faults: int = 0
    resident_growth: int = 0
    """Bytes of memory at the end of the loop less those at its beginning."""
    live_graphs: int = 0
    """Tensors at the end that hold the graph they were computed by."""
    asleep_seconds: float = 0.0
    """Loop time in which the loop's thread neither computed nor was ready to: it waited for something."""
    computed_seconds: float = 0.0
    """Processor time of the script's own process while the loop ran."""
    page_seconds: float = 0.0
    """Processor time of a page of memory that the process has not had before."""
    graph_holder: str = ""
    """Name of a list or deque that holds them."""
    device: str = ""
    """Where most of the parameters lie: `cpu`, `cuda`, `mps`."""
    workers: int = 0
    """Child processes that computed while the loop ran."""
    compilations: int = 0
    """Graphs that `torch.compile` compiled while the loop ran."""
    update_operations: float = 0.0
    """Floating-point operations of the matrix products of one update, forwards and backwards; of the counting pass."""
    matrix_speed: float = 0.0
    """Such operations per second of processor time that one core makes; of the counting pass."""
    skipped_env_steps: int = 0
    """Env steps made before the recording began: the warm-up, the first updates, and what `--after` skips."""


@dataclass(frozen=True, kw_only=True)
class Setup:
    """What the program works with, as far as it could be seen: snippets of remedies are filled with it. A field that
    was not seen is empty or zero."""

    env_id: str = ""
    """Of a Gymnasium env."""
    env_class: str = ""
    """Qualified name of the outermost env's class."""
    obs_shape: tuple[int, ...] = ()
    num_actions: int = 0
    """Of a discrete action space."""
    layers: tuple[int, ...] = ()
    """Of a multilayer network, sizes from input to output; empty where the network is anything else."""
    activation: str = ""
    network_kinds: tuple[str, ...] = ()
    """Classes of the layers and activations of all networks that learn, as far as they are modules; a class with
    parameters of its own is among them."""
    lr: float = 0.0
    gamma: float = 0.0
    target_every: int = 0
    """Updates between two copies into a target network."""
    replay_capacity: int = 0
    library: str = ""
    """Whose loop runs, where the user's own code only calls it: `stable_baselines3`; or what made the optimizer."""
    algorithm: str = ""
    """The class that it calls: `SAC`."""
    accelerates: bool = False
    """Whether it is a model of Stable-Baselines3's that our adapter makes fast in place."""
    eval_freq: int = 0
    n_eval_episodes: int = 0
    save_freq: int = 0
    """Of the library's callbacks that evaluate and save, in calls of the envs."""


@dataclass(frozen=True, kw_only=True)
class CallCount:
    """How often one function was called from one line, seen by the counting pass."""

    name: str
    """Qualified: `Tensor.item`, `list.insert`, `deque.append`, `torch.tensor`, `networkx.all_simple_paths`, `print`."""
    where: str
    """`file.py:line` of the user's own line that led to it."""
    phase: str
    count: int
    largest: int = 0
    """Greatest size of the container it worked on, where it has one."""


@dataclass(frozen=True, kw_only=True)
class Mention:
    """A line of the user's own that sets something up: `set_detect_anomaly`, `torch.compile`, `SyncVectorEnv`."""

    name: str
    where: str


@dataclass(frozen=True, kw_only=True)
class StoredArray:
    """A large array that an object of the script held when the loop ended."""

    name: str
    """`Class.attribute`."""
    dtype: str
    shape: tuple[int, ...]
    bytes: int
    fits: str = ""
    """A smaller type that holds the same numbers, as far as they were looked at."""
    where: str = ""
    """Where it is made."""
    twin: str = ""
    """An attribute that holds the same rows, one later."""


@dataclass(frozen=True, kw_only=True)
class LineCost:
    """Time charged to one line of the user's own source by stack sampling: itself and all it called."""

    where: str
    function: str
    source: str
    phase: str
    seconds: float
    features: tuple[str, ...] = ()
    """What the line's syntax shows: `f-string`, `string-key`, `for-loop`, `comprehension`, `item`, `insert-front`."""
    part: str = ""
    """Of the update: one of UPDATE_PARTS; `forward` where one chooses an action."""


@dataclass(frozen=True, kw_only=True)
class StackCost:
    phase: str
    frames: tuple[str, ...]
    """`function (file.py:line)`, outermost first."""
    seconds: float
    part: str = ""
    """Of the update, as a line has it."""


@dataclass(frozen=True, kw_only=True)
class Slice:
    """One stretch of the loop; all slices together are the timeline and show what grows."""

    start_seconds: float
    """Since the loop began: start-up lies before it."""
    seconds: float
    env_steps: int
    episodes: int
    updates: int
    phases: dict[str, float] = field(default_factory=dict)
    processor: dict[str, float] = field(default_factory=dict)
    """Processor seconds by phase, where they were measured."""


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """The same loop with one thing changed, run interleaved with the unchanged one."""

    name: str
    what: str
    kind: str
    """`identical`, `to rounding` or `changes learning`."""
    ratio: float
    """Time per env step as it is, over time per env step with the change: above 1, the change is faster."""
    low: float
    high: float
    processor: tuple[float, ...] = ()
    """The same by processor time: ratio, low and high; empty where it was not measured."""
    pairs: int = 0
    """Pairs of stretches that it was measured by; 0 where that was not noted."""


@dataclass(frozen=True, kw_only=True)
class Untried:
    """An experiment that does not apply to the program, or could not be made."""

    name: str
    what: str
    kind: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class OperatorCost:
    """One PyTorch operator, seen by its own profiler in a separate pass."""

    name: str
    calls: int
    seconds: float
    """In the operator itself, without the operators it calls."""
    share: float
    """Of all operators' time."""


@dataclass(frozen=True, kw_only=True)
class Growth:
    """Does it get slower? `ratio` is the cost at the end of the range over the cost at its beginning."""

    over: str
    """`run`, `replay fill` or `num_envs`."""
    what: str
    """`env step`, `env step without the update`, a phase, `sample, per update` or `env steps per episode`."""
    points: tuple[tuple[float, float], ...]
    """Place on the axis, cost in microseconds (or in the unit `what` says)."""
    ratio: float
