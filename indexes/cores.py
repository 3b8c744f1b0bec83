"""The number of cores that this process may use."""

import math
import os
from pathlib import Path

QUOTA = Path("/sys/fs/cgroup/cpu.max")  # the quota in control groups v2, as set by `docker run --cpus`


def cores() -> int:
    """Return the number of cores that this process may use: at most its affinity and its container's quota."""
    allowed = len(os.sched_getaffinity(0))
    try:
        time, period = QUOTA.read_text(encoding="ascii").split()
        return min(allowed, max(1, math.ceil(int(time) / int(period))))
    except (OSError, ValueError):  # no control group, or "max": no quota
        return allowed
