"""Soft target updates, parameter by parameter."""


def soft_update(target, online, tau):
    for target_parameter, parameter in zip(target.parameters(), online.parameters(), strict=True):
        target_parameter.data.copy_(tau * parameter.data + (1.0 - tau) * target_parameter.data)
