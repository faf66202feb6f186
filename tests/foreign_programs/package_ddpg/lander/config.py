"""Settings from yaml, with `key=value` from the command line on top."""

from types import SimpleNamespace

import yaml


class Config(SimpleNamespace):
    def get(self, dotted, default=None):
        value = self
        for part in dotted.split("."):
            value = getattr(value, part, default)
        return value


def _wrap(value):
    return Config(**{key: _wrap(item) for key, item in value.items()}) if isinstance(value, dict) else value


def load_config(path, overrides=()):
    with open(path) as file:
        raw = yaml.safe_load(file)
    for override in overrides:
        dotted, _, text = override.partition("=")
        *parents, last = dotted.split(".")
        place = raw
        for parent in parents:
            place = place[parent]
        place[last] = yaml.safe_load(text)
    return _wrap(raw)
