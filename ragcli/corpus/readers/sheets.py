"""What readers of spreadsheets share: rows as lines of `column: value`, numbers as people see them.

Owns the limits of how much of a workbook is read, and says so where one is met.
"""

from __future__ import annotations

import re
from datetime import date, datetime, time, timedelta

from ragcli.corpus.readers.assembly import Assembly
from ragcli.corpus.source import Source

CELLS = 1_000_000
"""How many filled cells of a workbook are read."""

COLUMNS = 1000

EQUAL_ROWS = 100
"""How often a row that stands for many equal ones is read at most."""

_LITERAL = re.compile(r'"[^"]*"|\\.|_.|\[(?!h+\]|m+\]|s+\])[^\]]*\]', re.IGNORECASE)
_DAY = re.compile("[yd]", re.IGNORECASE)
_HOUR = re.compile("[hs]", re.IGNORECASE)


class SheetLimits:
    """How much of a workbook may still be read."""

    def __init__(self, source: Source) -> None:
        self.cells = CELLS
        self.wide = False
        self.repeated = False
        self._source = source

    def record(self) -> None:
        """Record what was left out as problems."""
        if self.cells < 0:
            message = f"only {CELLS} filled cells were read"
            self._source.problems.append(("truncated", message, None))
        if self.wide:
            message = f"only {COLUMNS} columns of each row were read"
            self._source.problems.append(("truncated", message, None))
        if self.repeated:
            message = f"a row that is there more than {EQUAL_ROWS} times was read so often only"
            self._source.problems.append(("truncated", message, None))


class Sheet:
    """One sheet, as a page below its name; the first row with several cells names the columns."""

    def __init__(self, assembly: Assembly, limits: SheetLimits, name: str) -> None:
        self._assembly = assembly
        self._limits = limits
        self._names: list[str] | None = None
        assembly.page(name)
        assembly.heading(1, name)

    def add(self, row: list[str]) -> bool:
        """Append a row; returns False where no more may be read."""
        if len(row) > COLUMNS:
            self._limits.wide |= any(row[COLUMNS:])
            row = row[:COLUMNS]
        filled = sum(map(bool, row))
        self._limits.cells -= filled
        if self._limits.cells < 0:
            return False
        if self._names is None and filled > 1:
            self._names = [" ".join(value.split()) for value in row]
            self._assembly.add(" | ".join(filter(None, self._names)), "table")
        else:
            self._assembly.add(_line(self._names or [], row), "table")
        return True


def _line(names: list[str], values: list[str]) -> str:
    """Return a row as one line of `column: value`."""
    parts = []
    for column, value in enumerate(values):
        if value:
            name = names[column] if column < len(names) else ""
            parts.append(f"{name}: {value}" if name else value)
    return " | ".join(parts)


def shown_number(stored: str, pattern: str, *, since_1904: bool) -> str:
    """Return a stored number as a person would write it: a date, a percentage, a number.

    `pattern` is the number format of the cell, "" for none.
    """
    try:
        number = float(stored)
    except ValueError:
        return stored
    plain = _LITERAL.sub("", pattern.partition(";")[0])
    if plain.lower().startswith(("[h", "[m", "[s")):
        return _moment(number, timedelta, since_1904=False) or stored
    if _DAY.search(plain) or _HOUR.search(plain):
        whole = time if number < 1 and not _DAY.search(plain) else datetime
        return _moment(number, whole, since_1904=since_1904) or stored
    if plain.rstrip().endswith("%"):
        return f"{number * 100:.15g}%"
    if number.is_integer() and abs(number) < 1e15:
        return str(int(number))
    return f"{number:.15g}"


def _moment(number: float, kind: type, *, since_1904: bool) -> str:
    """Return a count of days as a time span, a time of day, or a date; "" if it is none."""
    try:
        span = timedelta(seconds=round(number * 86400))
        if kind is timedelta:
            return str(span)
        if kind is time:
            return str((datetime.min + span).time())
        if not since_1904 and 0 < number < 60:
            span += timedelta(days=1)  # Excel's calendar has a 29th of February 1900
        moment = (datetime(1904, 1, 1) if since_1904 else datetime(1899, 12, 30)) + span
    except (OverflowError, ValueError):
        return ""
    return str(date(*moment.timetuple()[:3]) if moment.time() == time() else moment)
