"""How many cores this process may use."""

from __future__ import annotations

import os


def cores() -> int:
    """Return the number of cores that this process may use: fewer than there are where it is bound to some of them."""
    return len(os.sched_getaffinity(0))
