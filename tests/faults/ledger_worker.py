"""Writes to a ledger in a fork per line of stdin, PATH TAB COUNT TAB SECONDS; kills it SECONDS after COUNT
entries."""

import contextlib
import itertools
import json
import os
import signal
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from linker.review.interface import Judgement, Seed
from linker.review.ledger import Ledger


def child(path: Path, report: int) -> None:
    """Write entries, and report each one as soon as its call has returned; never return."""
    ledger = Ledger(path)
    for number in itertools.count():
        given = ledger.add(Judgement("s", f"{os.getpid()}-{number}", "relevant", str(number % 2)))
        os.write(report, f"{given.id}\n".encode())
        if number % 5 == 4:
            undone = ledger.undo(str(number % 2))
            assert undone
            os.write(report, f"undo {undone.id}\n".encode())
        ledger.put_seeds([Seed("a", str(number)), Seed("b", str(number))])


def main() -> None:
    for line in sys.stdin:
        path, count, seconds = line.rstrip("\n").split("\t")
        read, write = os.pipe()
        pid = os.fork()
        if not pid:
            with contextlib.suppress(BaseException):
                child(Path(path), write)
            os._exit(1)
        os.close(write)
        with os.fdopen(read) as report:
            acknowledged = [report.readline() for _ in range(int(count))]
            time.sleep(float(seconds))
            os.kill(pid, signal.SIGKILL)
            acknowledged += report.read().splitlines()
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        print(
            json.dumps({"status": status, "acknowledged": [entry.strip() for entry in acknowledged]}),
            flush=True,
        )


if __name__ == "__main__":
    main()
