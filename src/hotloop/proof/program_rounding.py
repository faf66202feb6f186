"""How far apart two programs may be and still compute the same but for rounding.

Sums that are added up in another order differ in their last digits, and training carries that on. Parameters are
measured by the way that they have come since the start: a wrong update leaves it at once by far more than rounding
does, however short the way and however large the parameters. Rounding grows little by little; a mistake jumps.
"""

from __future__ import annotations

from hotloop.doctor.recorder.fingerprints import LARGE
from hotloop.proof.programs import EnvCall, Event, Fingerprint, Noted, Update, names_in_order, whole

EPS = 2.0**-23
"""Of 32 bits, in which networks compute."""
ROUNDINGS = 8
"""Of a parameter, that are no way it has come."""
OF_WAY = 1e-5
"""Share of the way since the start by which parameters may be apart. Measured for Adam's fused form over 4,250 updates
of a DQN: 4e-7 at every update; a learning rate wrong by a ten-thousandth is 1e-4 from the first update on."""
OF_ENV = ROUNDINGS * EPS
"""Share of the norm by which an observation, reward or action may be apart."""
GROWTH = 30.0
"""Times the largest error so far: further no rounding jumps from one event to the next."""
LARGEST = 1e-3
"""What has grown to more is called neither rounding nor a mistake."""
RULE = f"rounding: {OF_WAY:g} of the way that parameters have come, {OF_ENV:.2g} of what env calls give, and no jump"
"""In the place of a tolerance, where none was given."""


class WithinShare:
    """A tolerance that the user gave: a share of each value's norm."""

    def __init__(self, tolerance: float) -> None:
        self.tolerance = tolerance

    def worst(self, event: Event, other: Event) -> tuple[float, str | None]:
        """The largest error that is allowed, as a share of a norm; the name of the first value whose error is not."""
        if isinstance(event.values, Noted) and event.values.same_text(other.values):
            return 0.0, None
        plain, fast = whole(event.values), whole(other.values)
        largest = 0.0
        for name in names_in_order(plain, fast):
            mine, theirs = plain.get(name), fast.get(name)
            error = float("inf") if mine is None or theirs is None else mine.error(theirs)
            if error > self.tolerance:
                return largest, name
            largest = max(largest, error)
        return largest, None

    def may_have_grown(self) -> bool:
        return False


class WithinRounding:
    """What rounding explains, where the user gave no tolerance. Told of every event, in their order."""

    def __init__(self) -> None:
        self.largest = 0.0
        """Error so far: of parameters as a share of their way, of env calls of the norm."""
        self._last_error = 0.0
        self._ways: dict[tuple[int, str], float] = {}
        self._last: dict[tuple[int, str], Fingerprint] = {}
        self._unread: list[Event] = []
        """Those whose values are needed once something differs; where nothing does, they never are."""
        self._sizes: dict[str, tuple[float, int]] = {}
        """Of what env calls gave so far, by field: a reward of nearly nothing is no more exact than others."""

    def worst(self, event: Event, other: Event) -> tuple[float, str | None]:
        self._unread.append(event)
        if isinstance(event.values, Noted) and event.values.same_text(other.values):
            return 0.0, None
        self._read()
        plain, fast = whole(event.values), whole(other.values)
        of_norm = largest = 0.0
        for name in names_in_order(plain, fast):
            mine, theirs = plain.get(name), fast.get(name)
            self._last_error = self._error(event, name, mine, theirs)
            if mine is None or theirs is None or self._last_error > self._allowed(event):
                return of_norm, name
            of_norm, largest = max(of_norm, mine.error(theirs)), max(largest, self._last_error)
        self.largest = max(self.largest, largest)
        return of_norm, None

    def may_have_grown(self) -> bool:
        """Whether the last error, which was not allowed, may have come of those that were."""
        return LARGEST < self._last_error <= GROWTH * self.largest

    def _allowed(self, event: Event) -> float:
        start = OF_ENV if isinstance(event, EnvCall) else OF_WAY
        return min(max(start, GROWTH * self.largest), LARGEST)

    def _error(self, event: Event, name: str, mine: Fingerprint | None, theirs: Fingerprint | None) -> float:
        if mine is None or theirs is None:
            return float("inf")
        if isinstance(event, EnvCall):
            total, count = self._sizes.get(name, (0.0, 1))
            return mine.distance(theirs) / (max(abs(mine.norm), total / count) or 1.0)
        apart = max(0.0, mine.distance(theirs) - ROUNDINGS * EPS * abs(mine.norm))
        way = self._ways[event.optimizer, name]
        return apart / (way or abs(mine.norm) or 1.0)

    def _read(self) -> None:
        for event in self._unread:
            if isinstance(event, Update):
                self._go_on(event)
            else:
                self._take_sizes(event)
        self._unread.clear()

    def _take_sizes(self, call: EnvCall) -> None:
        for name, value in whole(call.values).items():
            if value.projections and abs(value.norm) < LARGE:
                total, count = self._sizes.get(name, (0.0, 0))
                self._sizes[name] = total + abs(value.norm), count + 1

    def _go_on(self, update: Update) -> None:
        """Add what each parameter moved by: projections on directions of random signs have its length on average."""
        for name, now in whole(update.values).items():
            at = update.optimizer, name
            before = self._last.get(at, now)
            moves = [one - two for one, two in zip(now.projections, before.projections, strict=False)]
            length = (sum(move * move for move in moves) / len(moves)) ** 0.5 if moves else 0.0
            self._ways[at] = self._ways.get(at, 0.0) + length
            self._last[at] = now


def room_for(tolerance: float | None) -> WithinShare | WithinRounding:
    return WithinRounding() if tolerance is None else WithinShare(tolerance)
