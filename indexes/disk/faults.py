"""Points where tests kill the process: LINKER_FAULT=NAME does so at the point NAME, NAME:3 on the third visit to it."""

import itertools
import os
import signal

_NAME, _, _PASSING = os.environ.get("LINKER_FAULT", "").partition(":")
_passings = itertools.count(1)


def point(name: str) -> None:
    """Kill the process, without any clean-up, if the environment asks for it; otherwise do nothing."""
    if name == _NAME and next(_passings) == int(_PASSING or 1):
        os.kill(os.getpid(), signal.SIGKILL)
