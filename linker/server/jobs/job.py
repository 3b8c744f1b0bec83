"""A job: one task in a child process, which reports its progress line by line and ends when its parent does."""

import contextlib
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import orjson

from indexes.dropping import discard
from indexes.errors import IndexesError, Reason

State = Literal["running", "done", "failed", "cancelled"]
PATIENCE = 10.0  # how many seconds a cancelled child has to exit on its own


@dataclass(frozen=True, slots=True)
class Step:
    """The current step of a job: its name, the amount done, the total (None: unknown), and the seconds it has run."""

    what: str
    done: int = 0
    total: int | None = None
    seconds: float = 0.0

    @property
    def share(self) -> float | None:
        """The share that is done, 0 to 1, or None if the total is unknown."""
        return min(self.done / self.total, 1.0) if self.total else None

    @property
    def remaining(self) -> float | None:
        """Seconds remaining at the pace so far, or None if not yet known."""
        return self.seconds * (1 / self.share - 1) if self.share else None


class Job:
    """A task in a child process, running or ended. The child ends on `cancel`, and when this process ends."""

    def __init__(self, task: str, spec: Mapping[str, Any], unfinished: Sequence[Path] = ()) -> None:
        """Start `task` of linker.server.jobs.worker; unless it succeeds, the indexes `unfinished` are deleted."""
        self.task, self._unfinished = task, tuple(unfinished)
        self._step, self._begun = Step(""), time.monotonic()
        self._state: State = "running"
        self.error = Reason()
        self.result: dict[str, Any] = {}
        self._cancelled = threading.Event()
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - it is open for as long as the child runs
        self._child = subprocess.Popen(
            [sys.executable, "-P", "-m", "linker.server.jobs.worker", task],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
        )
        assert self._child.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # the child ended at once; its log says why
            self._child.stdin.write(orjson.dumps(spec) + b"\n")
            self._child.stdin.flush()
        self._reader = threading.Thread(target=self._read, name=f"job {task}", daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        """The child's process id."""
        return self._child.pid

    @property
    def state(self) -> State:
        """The job's state."""
        return self._state

    @property
    def step(self) -> Step:
        """The current step; `seconds` counts from when the step's name last changed."""
        step = self._step
        return Step(step.what, step.done, step.total, time.monotonic() - self._begun)

    def cancel(self) -> None:
        """End the job, and wait for its process and its clean-up to finish; no effect on a job that has ended."""
        self._cancelled.set()
        self._child.terminate()
        try:
            self._child.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._child.kill()
        self.wait()

    def wait(self, seconds: float | None = None) -> State:
        """Wait for the job to end, with a timeout of `seconds`, and return its state."""
        self._reader.join(seconds)
        return self._state

    def _read(self) -> None:
        finished = False
        with self._log, self._child as child:  # closes the pipes
            assert child.stdout is not None
            for line in child.stdout:
                with contextlib.suppress(orjson.JSONDecodeError):
                    finished = self._take(orjson.loads(line)) or finished
            self._end(finished, child.wait())

    def _take(self, report: Mapping[str, Any]) -> bool:
        """Process a line from the child; return whether it ends a successful run."""
        if "what" in report:
            if report["what"] != self._step.what:
                self._begun = time.monotonic()
            self._step = Step(report["what"], report["done"], report["total"])
        self.error = Reason.of(report["error"]) if "error" in report else self.error
        self.result = report.get("result", self.result)
        return "result" in report

    def _end(self, finished: bool, status: int) -> None:
        if finished:  # true even if a cancellation came too late: the result is kept
            self._state = "done"
            return
        for path in self._unfinished:
            with contextlib.suppress(IndexesError):  # the index is not ours, or its server does not answer
                discard(path)
        if not self.error and not self._cancelled.is_set():
            self._log.seek(0)
            last = self._log.read().decode(errors="replace").strip().rpartition("\n")[2]
            text = f"the job ended with status {status}" + (f": {last}" if last else "")
            self.error = Reason(text, "killed" if status == -signal.SIGKILL else "ended")
        self._state = "cancelled" if self._cancelled.is_set() else "failed"
