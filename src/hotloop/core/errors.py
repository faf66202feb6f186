"""What a user can get wrong, as one small tree.

    HotloopError
    ├── SettingsError        an unknown key, a bad value, an impossible combination
    ├── EnvError             an unknown env, an unsupported space, an env that broke the contract
    ├── ArgumentError        a value of the wrong shape, dtype or range, given to a part; a ValueError too
    ├── LaneError            a lane that cannot run this network or these settings
    ├── NonFiniteError       NaN or Inf where a number was due
    ├── TopologyError        a graph that is no network (in `hotloop.nets.topology`)
    ├── MissingExtraError    an optional dependency that is not installed
    └── RunError             a run directory that cannot be made, locked, written or read
        └── CheckpointError  a damaged or foreign checkpoint

Each says what was wrong and what was expected; `hint` says what to do. The CLI prints both and exits with 2.
"""


class HotloopError(Exception):
    """A mistake the user can mend: shown without a traceback."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n\nhint: {self.hint}" if self.hint else self.message


class SettingsError(HotloopError):
    pass


class EnvError(HotloopError):
    pass


class ArgumentError(HotloopError, ValueError):
    pass


class LaneError(HotloopError):
    pass


class NonFiniteError(HotloopError):
    pass


class MissingExtraError(HotloopError):
    pass


class RunError(HotloopError):
    pass


class CheckpointError(RunError):
    pass
