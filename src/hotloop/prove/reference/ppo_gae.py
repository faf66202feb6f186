"""Generalised advantages the way they are usually first written: one env at a time, a list that grows at its front."""


def compute_gae(rewards, values, last_value, final_values, terminated, truncated, gamma, lam):
    """Advantages and returns of one env's steps, as lists."""
    advantages: list = []
    gae = 0.0
    values = list(values) + [last_value]
    for step in reversed(range(len(rewards))):
        if terminated[step]:
            next_value, gae = 0.0, 0.0
        elif truncated[step]:
            next_value, gae = final_values[step], 0.0
        else:
            next_value = values[step + 1]
        delta = rewards[step] + gamma * next_value - values[step]
        gae = delta + gamma * lam * gae
        advantages.insert(0, gae)
    returns = [advantage + value for advantage, value in zip(advantages, values, strict=False)]
    return advantages, returns


def compute_gae_all(rewards, values, final_values, terminated, truncated, gamma, lam):
    """The same for every column of arrays [T, N] (`values` [T + 1, N])."""
    return [
        compute_gae(
            rewards[:, n],
            values[:-1, n],
            values[-1, n],
            final_values[:, n],
            terminated[:, n],
            truncated[:, n],
            gamma,
            lam,
        )
        for n in range(rewards.shape[1])
    ]
