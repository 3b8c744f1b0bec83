"""Progress bars on stderr; silent when it is not a terminal."""

from __future__ import annotations

from typing import Never

from tqdm import tqdm


def bar(total: int | None, what: str, unit: str = "") -> tqdm[Never]:
    """Return a bar to `update(n)`; it shows nothing unless stderr is a terminal."""
    return tqdm(total=total, desc=what, unit=f" {unit}" if unit else "it", disable=None, leave=False)
