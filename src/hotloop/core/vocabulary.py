"""Names of settings: what they were called before, and what other libraries call them.

A name of Stable-Baselines3's or CleanRL's is ours where meaning and unit are the same; docs/vocabulary.md has the
table.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

from hotloop.core.errors import SettingsError

SETTINGS_SCHEMA = 2
"""Of settings in a file: the version of the names in it. Files without one have names of version 1 or 2."""
RENAMED = {
    "clip": "clip_range",
    "entropy_weight": "ent_coef",
    "epochs": "n_epochs",
    "normalise": "normalize",
    "normalise_advantage": "normalize_advantage",
    "optimiser": "optimizer",
    "optimizer.epsilon": "optimizer.eps",
    "optimizer.lr": "optimizer.learning_rate",
    "optimizer.max_gradient_norm": "optimizer.max_grad_norm",
    "replay.capacity": "replay.buffer_size",
    "replay.prioritised": "replay.prioritized",
    "replay.prioritised_batches": "replay.prioritized_batches",
    "threads": "torch_threads",
    "value_weight": "vf_coef",
    "warmup_env_steps": "learning_starts",
}
"""Schema 1 -> schema 2. Tables come before what is in them."""


def upgraded(tree: Mapping[str, Any], source: str = "settings") -> dict[str, Any]:
    """Settings from a file with today's names, and without the file's `schema`.

    Files of schema 1 say no `schema`, and presets that people write need not: old names are read in both.
    """
    tree = dict(tree)
    schema = tree.pop("schema", 1)
    if schema not in range(1, SETTINGS_SCHEMA + 1) or isinstance(schema, bool):
        raise SettingsError(
            f"{source} has settings of schema {schema!r}; this hotloop reads up to {SETTINGS_SCHEMA}",
            "use the version of hotloop that wrote it",
        )
    if schema == SETTINGS_SCHEMA:
        return tree
    for old, new in RENAMED.items():
        above, _, last = old.rpartition(".")
        table = tree.get(above) if above else tree
        if not isinstance(table, Mapping) or last not in table:
            continue
        if (name := new.rpartition(".")[2]) in table:
            both = f"{source} has both `{old}` and `{new}`, two names of one setting"
            raise SettingsError(both, f"leave `{old}` out")
        renamed = {name if key == last else key: value for key, value in table.items()}
        tree = tree | {above: renamed} if above else renamed
    return tree


def todays_name(path: str) -> str:
    """How a setting that had the name `path` is called now; empty where it never had that name."""
    table, dot, last = path.partition(".")
    now = f"{RENAMED.get(table, table)}{dot}{last}"
    now = RENAMED.get(now, now)
    return now if now != path else ""


def name_here(foreign: str, known: Iterable[str]) -> str:
    """How a setting that other libraries call `foreign` is called here, with what differs; empty where unknown."""
    known = set(known)
    for path, note in ELSEWHERE.get(foreign.rsplit(".", 1)[-1].lower(), ()):
        if path in known:
            return f"did you mean `{path}`{f' ({note})' if note else ''}? "
    return ""


def misspelt(wrong: str, near: str | None) -> str:
    """The name of another library that was meant more likely than our own `near`: `lerning_rate` is `learning_rate`."""
    last = wrong.rsplit(".", 1)[-1].lower()
    close = difflib.get_close_matches(last, ELSEWHERE, n=1, cutoff=0.85)
    ours = near.rsplit(".", 1)[-1] if near else ""
    return close[0] if close and _likeness(last, close[0]) > _likeness(last, ours) else ""


def _likeness(one: str, other: str) -> float:
    return difflib.SequenceMatcher(None, one, other).ratio()


def _same(path: str, *names: str, note: str = "") -> dict[str, tuple[str, str]]:
    return dict.fromkeys(names, (path, note))


def _joined(*tables: dict[str, tuple[str, str]]) -> dict[str, list[tuple[str, str]]]:
    joined: dict[str, list[tuple[str, str]]] = {}
    for table in tables:
        for name, there in table.items():
            joined.setdefault(name, []).append(there)
    return joined


ELSEWHERE = _joined(
    _same("total_env_steps", "total_timesteps", "total_steps", "num_timesteps", "max_timesteps", "timesteps"),
    _same("learning_starts", "warmup_env_steps", "start_steps", "warmup_steps", "warmup"),
    _same("train_every", "train_freq", "train_frequency", "update_every", "update_freq"),
    _same("updates_per_env_step", "gradient_steps", "utd_ratio", "utd", note="updates for each env step, like 1/4"),
    _same("n_step", "n_steps", "num_steps", "multi_step", "nstep"),
    _same("rollout_steps", "n_steps", "num_steps", "horizon", "steps_per_epoch", "unroll_length", note="of each env"),
    _same("n_epochs", "epochs", "update_epochs", "num_epochs", "ppo_epochs"),
    _same("batch_size", "minibatch_size", "mini_batch_size", "num_minibatches", "nminibatches", note="transitions"),
    _same("gamma", "discount", "discount_factor"),
    _same("gae_lambda", "lam", "lambda", "lambda_"),
    _same("clip_range", "clip", "clip_coef", "clip_eps", "clip_epsilon", "clip_ratio"),
    _same("value_clip", "clip_range_vf", "clip_vloss"),
    _same("vf_coef", "value_weight", "value_coef", "value_loss_coef", "critic_coef"),
    _same("ent_coef", "entropy_weight", "entropy_coef", "entropy_cost", "ent_weight"),
    _same("kl_stop", "target_kl"),
    _same("normalize_advantage", "normalise_advantage", "norm_adv"),
    _same("double", "double_q", "double_dqn", "use_double"),
    _same("env.id", "env", "env_id", "env_name", "environment", "gym_id"),
    _same("env.num_envs", "num_envs", "n_envs", "nenvs", "num_env"),
    _same("env.workers", "num_workers", "n_workers", "num_cpu", "n_cpu"),
    _same("env.wrappers", "wrapper_class", "wrappers", "env_wrapper", note="`--env.wrappers 'ClipReward(-1, 1)'`"),
    _same("env.wrappers", "frame_stack", "n_stack", note="`--env.wrappers 'FrameStackObservation(4)'`"),
    _same("env.options", "env_kwargs", note="one by one: `--env.options.NAME VALUE`"),
    _same(
        "network.hidden",
        "policy_kwargs",
        "net_arch",
        "hidden_sizes",
        "hidden_dim",
        "hidden_size",
        "layers",
        note="`--network.hidden 64 64`",
    ),
    _same("network.activation", "activation_fn", "activation"),
    _same("network.dueling", "dueling", "dueling_dqn"),
    _same("network.noisy", "noisy", "noisy_nets", "noisy_net"),
    _same("network.atoms", "n_atoms", "num_atoms", "atoms", "atom_size"),
    _same("network.log_std", "log_std_init"),
    _same("normalize.obs", "norm_obs", "normalize_obs", "normalise_obs"),
    _same("normalize.reward", "norm_reward", "normalize_reward", "normalise_reward"),
    _same(
        "replay.buffer_size",
        "buffer_size",
        "memory_size",
        "replay_size",
        "buffer_capacity",
        "replay_capacity",
        "capacity",
        "replay_buffer_size",
    ),
    _same("replay.prioritized", "prioritized_replay", "prioritized", "prioritised", "per"),
    _same("replay.alpha", "prioritized_replay_alpha", "per_alpha"),
    _same("replay.beta_start", "prioritized_replay_beta0", "prioritized_replay_beta", "per_beta"),
    _same(
        "exploration.over", "exploration_fraction", "epsilon_decay_steps", "eps_decay", note="env steps, or like 10%"
    ),
    _same("exploration.start", "exploration_initial_eps", "start_e", "eps_start", "epsilon_start", "epsilon"),
    _same("exploration.end", "exploration_final_eps", "end_e", "eps_end", "epsilon_end", "epsilon_min"),
    _same("exploration.factor", "epsilon_decay"),
    _same("optimizer.learning_rate", "lr", "learning_rate", "adam_lr", "step_size"),
    _same("optimizer.lr_schedule.kind", "anneal_lr", "lr_schedule", "lr_decay"),
    _same("optimizer.eps", "adam_eps", "adam_epsilon", "eps"),
    _same(
        "optimizer.max_grad_norm", "max_grad_norm", "max_gradient_norm", "grad_clip", "gradient_clip", "clip_grad_norm"
    ),
    _same(
        "target.every",
        "target_update_interval",
        "target_network_frequency",
        "target_update_freq",
        "target_update",
        "target_network_update_freq",
        note="`target.unit` says of what",
    ),
    _same("target.tau", "tau", "polyak", "soft_update_tau"),
    _same("learner.lane", "torch_compile", "compile", "lane"),
    _same("evaluation.every", "eval_freq", "eval_every", "eval_interval", "evaluation_interval"),
    _same("evaluation.episodes", "n_eval_episodes", "eval_episodes", "num_eval_episodes"),
    _same("checkpoint.every", "save_freq", "checkpoint_freq", "checkpoint_interval", "save_interval"),
    _same("log_every", "log_interval", "log_freq"),
    _same("torch_threads", "threads", "num_threads", "n_threads"),
    _same("device", "cuda", "gpu"),
    _same("run_dir", "tensorboard_log", "log_dir", "logdir", "output_dir", "save_path"),
)
"""What Stable-Baselines3, CleanRL and others call a setting -> ours, the first that the algorithm has."""
