"""Where a test may kill the process: LINKER_FAULT=NAME is SIGKILL at that point, NAME:3 at the third passing."""

from __future__ import annotations

import itertools
import os
import signal

_NAME, _, _PASSING = os.environ.get("LINKER_FAULT", "").partition(":")
_passings = itertools.count(1)


def point(name: str) -> None:
    """Die here, without any clean-up, when the environment asks for it; else do nothing."""
    if name == _NAME and next(_passings) == int(_PASSING or 1):
        os.kill(os.getpid(), signal.SIGKILL)
