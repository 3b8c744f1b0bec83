"""The child process of a job: reads its specification from stdin and reports its progress on stdout as JSON lines.

Not a command for users: `python -m linker.server.jobs.worker TASK`.
"""

import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import orjson

from indexes.errors import Reason, reason_of
from indexes.interface import IndexesError
from linker.base.errors import LinkerError

EVERY = 0.1  # minimum number of seconds between two progress lines of the same step
NICE = 10  # lower priority: pages and searches, for which people wait, go first

Task = Callable[[Mapping[str, Any], Callable[[str, int, int | None], None]], dict[str, Any]]


def task(name: str) -> Task:
    """Return the function of a task by its name, importing no other task."""
    if name == "index":
        from linker.server.jobs.indexing import run
    elif name == "find":
        from linker.server.jobs.finding import run
    elif name == "link":
        from linker.server.jobs.linking import run
    elif name == "group":
        from linker.server.jobs.grouping import run
    elif name == "match":
        from linker.server.jobs.matching import run
    else:
        from linker.server.jobs.landscape import run
    return run


def main(name: str) -> int:
    """Run the task and return the exit status: 1 for errors that the user can correct."""
    output = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # keep libraries' output out of the JSON lines
    os.nice(NICE)
    spec = orjson.loads(sys.stdin.buffer.readline())
    spec |= spec.pop("given", {})  # the part that a client of the API sent
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        result = task(name)(spec, _Teller(output.write))
    except (LinkerError, IndexesError, OSError) as e:
        reason = reason_of(e)
        if isinstance(e, OSError):
            reason = Reason(f"{e.filename or 'a file'}: {e.strerror}", reason.cause)
        output.write(orjson.dumps({"error": reason.to_json()}) + b"\n")
        return 1
    output.write(orjson.dumps({"result": result}) + b"\n")
    return 0


class _Teller:
    """Writes a step as a JSON line, unless a line of the same step was written less than EVERY seconds ago."""

    def __init__(self, write: Callable[[bytes], object]) -> None:
        self._write, self._what, self._next = write, "", 0.0

    def __call__(self, what: str, done: int, total: int | None) -> None:
        now = time.monotonic()
        if what != self._what or now >= self._next or done == total:
            self._what, self._next = what, now + EVERY
            self._write(orjson.dumps({"what": what, "done": done, "total": total}) + b"\n")


def _end_with_parent() -> None:
    """End this process when its parent ends: only then is stdin closed, and nothing more is written to it."""
    sys.stdin.buffer.read()
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
