"""Progress bars on stderr, shown only on a terminal; whoever listens in this process is told as well."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Never

from tqdm import tqdm

from linker.printable import on_one_line, unguarded

if TYPE_CHECKING:
    _Tqdm = tqdm[Never]
else:
    _Tqdm = tqdm  # takes no parameter at run time

Listener = Callable[
    [str, int, int | None], object
]  # what is done, how much of it, of how much (None: unknown)
_listeners: list[Listener] = []


class _Bar(_Tqdm):
    """A bar that also tells the listeners; tqdm itself counts nothing where it shows nothing."""

    what: str
    units = 0
    whole: int | None

    def update(self, n: float | None = 1) -> bool | None:
        self.units += int(n or 0)
        for tell in _listeners:
            tell(self.what, self.units, self.whole)
        return super().update(n)


def bar(total: int | None, what: str, unit: str = "") -> tqdm[Never]:
    """Return a bar to `update(n)`; it shows nothing unless stderr is a terminal."""
    shown = _Bar(
        total=total,
        desc=on_one_line(what),
        unit=f" {unit}" if unit else "it",
        disable=None,
        leave=False,
        file=unguarded(sys.stderr),
    )
    shown.what, shown.whole = what, total
    return shown


@contextlib.contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Tell `listener` of every step of every bar of this process, for as long as the context lasts."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)
