"""A bounded queue of long-running jobs, each in its own process; any worker of the server can read their state.

The state is in a folder that the workers share and that is deleted when the server ends: no job survives a restart.
"""

import contextlib
import itertools
import os
import secrets
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, Self

import orjson

from indexes.errors import IndexesError, Reason, reason_of
from linker.base.errors import InputError, LinkerError
from linker.server.api import logs
from linker.server.config import Limits
from linker.server.errors import ProblemError
from linker.server.guard.tokens import Principal
from linker.server.jobs.job import Job, Step

TICK = 0.1  # seconds between two checks of a job
PATIENCE = 15.0  # seconds to wait for another worker to end a cancelled job


@dataclass
class Standing:
    """The state of a job, as stored in its state file; `error`: why it failed, as the command line would say it."""

    id: str
    kind: str
    owner: str
    state: Literal["waiting", "running", "done", "failed", "cancelled"] = "waiting"
    created: float = field(default_factory=time.time)
    pid: int = field(default_factory=os.getpid)
    step: Step = field(default_factory=lambda: Step(""))
    error: Reason = field(default_factory=Reason)

    @classmethod
    def of(cls, content: bytes) -> Self:
        """Return the state from the content of a state file."""
        values = orjson.loads(content)
        return cls(**values | {"step": Step(**values["step"]), "error": Reason.of(values["error"])})

    def to_json(self) -> dict[str, Any]:
        """Return the state as JSON values, which `of` reads."""
        return asdict(self) | {"error": self.error.to_json()}

    @property
    def has_ended(self) -> bool:
        """Whether the job has ended."""
        return self.state not in ("waiting", "running")


@dataclass(eq=False)
class _Entry:
    """A job of this worker; see `Jobs.submit`."""

    standing: Standing
    start: Callable[[], Job]
    ended: Callable[[], object]
    hidden: Mapping[str, str]
    cancelled: threading.Event = field(default_factory=threading.Event)
    thread: threading.Thread | None = None


class Jobs:
    """The jobs of one worker and, through their shared folder, those of the other workers."""

    def __init__(self, limits: Limits, folder: Path | None = None) -> None:
        """Keep the state in `folder`, which other workers share; by default, in a folder of this process."""
        self._limits = limits
        self._shared = folder
        self._own: tempfile.TemporaryDirectory[str] | None = None  # created with the first job
        self._entries: dict[str, _Entry] = {}  # unfinished jobs, in queue order
        self._unwritten: dict[str, Standing] = {}
        self._lock, self._making = threading.Lock(), threading.Lock()

    @property
    def _folder(self) -> Path:
        if self._shared is None:
            with self._making:
                if self._own is None:
                    self._own = tempfile.TemporaryDirectory(prefix="linker-jobs-")
                    weakref.finalize(self, self._own.cleanup)  # in case the application is never closed
                return Path(self._own.name)
        return self._shared

    def submit(
        self, kind: str, spec: Mapping[str, Any], owner: Principal, *, id_: str = "",
        unfinished: Sequence[Path] = (), ended: Callable[[], object] = lambda: None,
        hidden: Mapping[str, str] | None = None,
    ) -> Standing:  # fmt: skip
        """Start a job, or queue it; return its state.

        The job replaces an earlier one with the same `id_`. The indexes `unfinished` are deleted unless the job
        succeeds; if it does, `ended` is called before its state becomes "done". `hidden`: strings that its errors must
        not reveal, with their replacements. Raises ProblemError (503) if too many jobs wait already, InputError if a
        job `id_` has not ended.
        """
        limits, standing = self._limits, Standing(id_ or secrets.token_urlsafe(16), kind, owner.name)
        entry = _Entry(standing, lambda: Job(kind, spec, unfinished), ended, hidden or {})
        with self._lock:
            self._forget_old()
            if standing.id in self._entries:
                raise InputError(
                    Reason("this job is already running: wait for it to end, or cancel it", "being-done")
                )
            if len(self._entries) >= limits.jobs + limits.jobs_waiting:
                raise ProblemError(503, "too many jobs are waiting: try again later", "overloaded", retry=10)
            self._forget(standing.id)
            if len(self._entries) < limits.jobs:
                standing.state = "running"
            self._write(standing)
            self._entries[standing.id] = entry
            entry.thread = threading.Thread(target=self._run, args=(entry,), name=f"job {kind}", daemon=True)
            entry.thread.start()
        return standing

    def get(self, id_: str, owner: Principal) -> Standing:
        """Return the state of a job. Raises ProblemError (404)."""
        unknown = ProblemError(404, "there is no such job, or it was forgotten", "unknown-job")
        if not id_.replace("-", "").replace("_", "").isalnum() or not id_.isascii():
            raise unknown
        try:
            found = self._unwritten.get(id_) or Standing.of(self._path(id_, "state").read_bytes())
        except FileNotFoundError:
            raise unknown from None
        if found.owner != owner.name and not owner.may("admin"):
            raise unknown
        if not found.has_ended and not _is_alive(found.pid):
            found.state = "failed"
            found.error = Reason("the server's worker that ran this job has ended: send the job again")
        return found

    def result(self, id_: str) -> bytes | None:
        """Return the result of a job as JSON, or None if there is none."""
        try:
            return self._path(id_, "result").read_bytes()
        except FileNotFoundError:
            return None

    def list(self, owner: Principal) -> list[Standing]:
        """Return the owner's jobs, or all jobs if the owner has the scope admin, latest first."""
        found = []
        for path in self._folder.glob("*.state"):
            with contextlib.suppress(ProblemError):
                found.append(self.get(path.stem, owner))
        return sorted(found, key=lambda job: -job.created)

    def cancel(self, id_: str, owner: Principal) -> Standing:
        """End a job, wait until it has stopped, and return its last state. Raises ProblemError (404)."""
        found, end = self.get(id_, owner), time.monotonic() + PATIENCE
        if not found.has_ended:
            self._path(id_, "cancel").touch()
            if entry := self._entries.get(id_):
                entry.cancelled.set()
        while not found.has_ended and time.monotonic() < end:
            time.sleep(TICK / 2)
            found = self.get(id_, owner)
        return found

    def forget(self, id_: str, owner: Principal) -> Standing:
        """Cancel a job and delete its records; return its last state. Raises ProblemError (404)."""
        found = self.cancel(id_, owner)
        if found.has_ended:
            self._forget(id_)
        return found

    def close(self) -> None:
        """End all jobs of this worker, and wait until they have ended."""
        with self._lock:
            entries = [*self._entries.values()]
        for entry in entries:
            entry.cancelled.set()
        for entry in entries:
            if entry.thread:
                entry.thread.join()
        if self._own:
            self._own.cleanup()

    def _run(self, entry: _Entry) -> None:
        start, standing = time.monotonic(), entry.standing
        try:
            if self._has_turn(entry):
                self._watch(entry)
            else:
                standing.state = "cancelled"
        except OSError as e:
            standing.state = "failed"
            standing.error = Reason(f"the job could not be started: {e.strerror}", "ended")
        except (LinkerError, IndexesError) as e:
            standing.state, standing.error = "failed", reason_of(e)
        with self._lock:  # a client that sees the job ended must not find it among the running ones
            try:
                self._write(standing)
            except OSError:  # the disk is full, so the file will say "running" forever
                self._unwritten[standing.id] = standing
            self._entries.pop(standing.id, None)
        seconds = round(time.monotonic() - start, 3)
        logs.event("job", id=standing.id, kind=standing.kind, state=standing.state, seconds=seconds)

    def _has_turn(self, entry: _Entry) -> bool:
        """Wait until it is the job's turn to run; return False if it was cancelled meanwhile."""
        while not self._is_cancelled(entry):
            with self._lock:
                if entry in itertools.islice(self._entries.values(), self._limits.jobs):
                    return True
            entry.cancelled.wait(TICK)
        return False

    def _watch(self, entry: _Entry) -> None:
        start, standing, late = time.monotonic(), entry.standing, False
        job = entry.start()
        try:
            standing.state = "running"
            self._write(standing)
            while job.wait(TICK) == "running":
                late = time.monotonic() - start > self._limits.job_seconds
                if late or self._is_cancelled(entry):
                    job.cancel()
                elif (job.step.what, job.step.done) != (standing.step.what, standing.step.done):
                    standing.step = job.step
                    self._write(standing)
        finally:
            job.cancel()  # no effect unless writing failed (disk full)
        if job.state == "done":
            self._path(standing.id, "result").write_bytes(orjson.dumps(job.result))
            entry.ended()
        error = (
            Reason(f"it exceeded its limit of {self._limits.job_seconds:g} seconds") if late else job.error
        )
        for secret, name in entry.hidden.items():
            error = error.replace(secret, name)
        standing.state = "failed" if late and job.state == "cancelled" else job.state
        standing.error = Reason() if job.state == "done" else error

    def _is_cancelled(self, entry: _Entry) -> bool:
        return entry.cancelled.is_set() or self._path(entry.standing.id, "cancel").exists()

    def _path(self, id_: str, kind: str) -> Path:
        return self._folder / f"{id_}.{kind}"

    def _write(self, standing: Standing) -> None:
        """Write the state atomically: a reader sees either the old or the new one."""
        temporary = self._path(standing.id, "new")
        temporary.write_bytes(orjson.dumps(standing.to_json()))
        temporary.replace(self._path(standing.id, "state"))

    def _forget_old(self) -> None:
        for path in [*self._folder.glob("*.state")]:
            with contextlib.suppress(FileNotFoundError):  # another worker was faster
                age = time.time() - path.stat().st_mtime
                if age > self._limits.job_kept and path.stem not in self._entries:
                    self._forget(path.stem)

    def _forget(self, id_: str) -> None:
        self._unwritten.pop(id_, None)
        for kind in ("state", "result", "cancel"):
            self._path(id_, kind).unlink(missing_ok=True)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
