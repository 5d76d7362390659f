"""From an echo to a water level: the filter that runs in the gateway simulator.

The firmware has the same steps in C. When the two disagree, the C code is right and a test
is missing here.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from statistics import median

SPEED_OF_LIGHT_MM_PER_NS = 299.792458
BLIND_ZONE_MM = 180  # nearer than this the horn hears only itself
MAX_STEP_MM = 350  # more than this between two readings is not water
WINDOW = 7  # readings that the median is taken over
STUCK_AFTER = 40  # an echo that has not moved for so long is a spider


class NoEchoError(Exception):
    """Nothing came back, or only from within the blind zone."""


@dataclass(frozen=True)
class Reading:
    """One accepted measurement, in millimetres over the local zero."""

    level_mm: int
    doubtful: bool


def distance_mm(flight_ns: float, air_temperature_c: float = 10.0) -> float:
    """Distance to the surface, from the time there and back.

    Radar hardly cares for temperature, but the horn does: it grows by 0.4 mm over the range
    in which we are certified, and that is a fifth of the promised accuracy.
    """
    raw = flight_ns * SPEED_OF_LIGHT_MM_PER_NS / 2
    return raw - 0.005 * (air_temperature_c - 10.0)


class LevelFilter:
    """Turns distances into levels; one for each sensor.

    A reading that jumps by more than MAX_STEP_MM is held back until a second one agrees with
    it to within a tenth of the step. A bridge that a lorry crosses sends one such reading. A
    lock that is being emptied sends many, and they agree.
    """

    def __init__(self, zero_to_horn_mm: int) -> None:
        self.zero_to_horn_mm = zero_to_horn_mm
        self._recent: deque[int] = deque(maxlen=WINDOW)
        self._held: int | None = None
        self._same = 0

    def feed(self, flight_ns: float, air_temperature_c: float = 10.0) -> Reading | None:
        """Takes one echo. Returns a Reading, or None while a jump is being held back."""
        distance = distance_mm(flight_ns, air_temperature_c)
        if distance < BLIND_ZONE_MM:
            raise NoEchoError(f"echo at {distance:.0f} mm lies in the blind zone")
        level = round(self.zero_to_horn_mm - distance)
        if self._is_jump(level):
            if self._held is None or abs(level - self._held) > MAX_STEP_MM / 10:
                self._held = level
                return None
            self._recent.clear()
        self._held = None
        self._same = self._same + 1 if self._recent and level == self._recent[-1] else 0
        self._recent.append(level)
        return Reading(round(median(self._recent)), doubtful=self._same >= STUCK_AFTER)

    def _is_jump(self, level: int) -> bool:
        return bool(self._recent) and abs(level - median(self._recent)) > MAX_STEP_MM


def rate_mm_per_hour(levels: list[tuple[float, int]]) -> float:
    """Theil-Sen slope of (seconds, level) pairs: half of them may be nonsense."""
    slopes = [
        (later[1] - earlier[1]) / (later[0] - earlier[0])
        for index, earlier in enumerate(levels)
        for later in levels[index + 1 :]
        if later[0] > earlier[0]
    ]
    if not slopes:
        raise ValueError("a slope needs two readings at different times")
    return median(slopes) * 3600
