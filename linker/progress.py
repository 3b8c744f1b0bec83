"""Progress bars on stderr, shown only on a terminal."""

from __future__ import annotations

import sys
from typing import Never

from tqdm import tqdm

from linker.printable import on_one_line, unguarded


def bar(total: int | None, what: str, unit: str = "") -> tqdm[Never]:
    """Return a bar to `update(n)`; it shows nothing unless stderr is a terminal."""
    return tqdm(
        total=total,
        desc=on_one_line(what),
        unit=f" {unit}" if unit else "it",
        disable=None,
        leave=False,
        file=unguarded(sys.stderr),
    )
