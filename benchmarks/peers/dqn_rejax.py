"""DQN in rejax: the whole loop, its own CartPole included, compiled by XLA. No Gymnasium, and nothing to evaluate.

Its loss is the squared error; it clips each gradient element.
"""

from __future__ import annotations

import time

import jax
from clocked_cartpole import LEARNING_STARTS, MAX_GRADIENT_NORM, SETTINGS, print_line, read_arguments
from rejax import DQN


def main() -> None:
    arguments = read_arguments()
    if arguments.update_every != 1:
        raise SystemExit("rejax steps `update_every` envs at once instead: another measurement")
    algorithm = DQN.create(
        env="CartPole-v1",
        agent_kwargs={"activation": "relu"},
        total_timesteps=arguments.env_steps,
        eval_freq=arguments.env_steps,
        skip_initial_evaluation=True,
        num_envs=1,
        buffer_size=SETTINGS["capacity"],
        fill_buffer=LEARNING_STARTS,
        batch_size=SETTINGS["batch"],
        learning_rate=SETTINGS["lr"],
        gamma=SETTINGS["gamma"],
        target_update_freq=SETTINGS["target_every"],
        max_grad_norm=MAX_GRADIENT_NORM,
        eps_start=SETTINGS["epsilon"],
        eps_end=SETTINGS["epsilon"],
        ddqn=False,
    ).replace(eval_callback=lambda *_: ())
    state = algorithm.init_state(jax.random.PRNGKey(arguments.seed))
    train = jax.jit(lambda state: algorithm.train(train_state=state)[0])
    state = jax.block_until_ready(train(state))  # compiles, fills the replay, makes the first updates
    updates, processor, wall = int(state.q_ts.step), time.process_time(), time.perf_counter()
    state = jax.block_until_ready(train(state))
    processor, wall = time.process_time() - processor, time.perf_counter() - wall
    assert int(state.q_ts.step) - updates == arguments.env_steps
    print_line("rejax", arguments.env_steps, processor, wall, int(state.q_ts.step))


if __name__ == "__main__":
    main()
