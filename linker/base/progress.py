"""Progress: bars on a terminal, log lines elsewhere, and calls to listeners (`progress=` of public functions)."""

from __future__ import annotations

import contextlib
import contextvars
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Never

from tqdm import tqdm

from linker.base.logs import logger
from linker.base.printable import on_one_line, unguarded

if TYPE_CHECKING:
    _Tqdm = tqdm[Never]
else:
    _Tqdm = tqdm  # at run time, tqdm is not generic

# Description of the work, amount done, and total (None: unknown).
Progress = Callable[[str, int, int | None], object]
EVERY = 10.0  # seconds between the log lines of one bar
# Per thread or task, so that the jobs in one process do not receive each other's progress.
_listeners: contextvars.ContextVar[tuple[Progress, ...]] = contextvars.ContextVar("listeners", default=())


class _Bar(_Tqdm):
    """A bar that also notifies the listeners, and counts even when it is hidden, which tqdm's bars do not."""

    what: str
    units = 0
    whole: int | None
    unit: str
    figures = ""

    def begin(self, what: str, whole: int | None) -> None:
        """Store the description, the total and the start time."""
        self.what, self.whole, self.logged_at = what, whole, time.monotonic()

    def update(self, n: float | None = 1) -> bool | None:
        self.units += int(n or 0)
        if self.whole != 0:
            for tell in _listeners.get():
                tell(self.what, self.units, self.whole)
            if self.disable and (now := time.monotonic()) - self.logged_at >= EVERY:
                self.logged_at = now
                self._log()
        return super().update(n)

    def set_postfix_str(self, s: str = "", refresh: bool = True) -> None:
        self.figures = f", {s}" if s else ""
        super().set_postfix_str(s, refresh)

    def _log(self) -> None:
        of = "" if self.whole is None else f" of {self.whole:,}"
        unit = "" if self.unit == "it" else self.unit  # a unit begins with a space
        logger.info("%s: %s%s%s%s", self.what, f"{self.units:,}", of, unit, self.figures)


def bar(total: int | None, what: str, unit: str = "") -> tqdm[Never]:
    """Return a progress bar for `update(n)`; if stderr is not a terminal, it logs a line every ten seconds instead.

    With a `total` of 0, the bar shows, logs and reports nothing.
    """
    name = f" {unit}" if unit else "it"
    shown = _Bar(
        total=total, desc=on_one_line(what), unit=name, disable=None, leave=False, file=unguarded(sys.stderr)
    )
    shown.unit = name  # tqdm does not set the unit of a hidden bar
    shown.begin(what, total)
    return shown


@contextlib.contextmanager
def listening(listener: Progress | None) -> Iterator[None]:
    """Notify `listener`, if there is one, of every step of every bar in this thread or task within the context."""
    before = _listeners.set((*_listeners.get(), *([listener] if listener else ())))
    try:
        yield
    finally:
        _listeners.reset(before)
