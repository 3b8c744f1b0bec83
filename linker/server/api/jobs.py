"""Long work: a bounded queue of jobs, each in a process of its own, whose state any worker of the server can read.

The state lies in a folder that the workers share and that ends with the server: no job survives it.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import orjson

from linker.server.api import logs
from linker.server.config import Limits
from linker.server.errors import ProblemError
from linker.server.guard.tokens import Principal
from linker.server.jobs import Job, Step

Kind = Literal["find", "group", "link"]
TICK = 0.1  # seconds between two looks at a running job
PATIENCE = 15.0  # seconds that another worker has to end a cancelled job
ENDED = ("done", "failed", "cancelled")


@dataclass(eq=False)
class _Entry:
    """A job of this worker. `hidden`: what its errors must not tell, with what to say instead."""

    id: str
    kind: Kind
    spec: Mapping[str, Any]
    hidden: Mapping[str, str]
    state: dict[str, Any]
    cancelled: threading.Event = field(default_factory=threading.Event)
    future: Future[None] | None = None


class Jobs:
    """The jobs of one worker, and through their shared folder those of the others."""

    def __init__(self, limits: Limits, folder: Path | None = None) -> None:
        """Keep the state in `folder`, which other workers share; without it, in one of this process's own."""
        self._limits = limits
        self._shared = folder
        self._own: tempfile.TemporaryDirectory[str] | None = None  # made when the first job is asked for
        self._pool = ThreadPoolExecutor(limits.jobs, thread_name_prefix="job")
        self._entries: dict[str, _Entry] = {}  # those that have not ended
        self._lock, self._making = threading.Lock(), threading.Lock()

    @property
    def _folder(self) -> Path:
        if self._shared is None:
            with self._making:
                if self._own is None:
                    self._own = tempfile.TemporaryDirectory(prefix="linker-jobs-")
                return Path(self._own.name)
        return self._shared

    def submit(
        self, kind: Kind, spec: Mapping[str, Any], owner: Principal, hidden: Mapping[str, str]
    ) -> dict[str, Any]:
        """Start a job, or let it wait for its turn, and return its state.

        Raises ProblemError (503) where too many wait already.
        """
        state = {
            "id": secrets.token_urlsafe(16), "kind": kind, "owner": owner.name, "state": "waiting",
            "created": time.time(), "pid": os.getpid(), "step": None, "error": "",
        }  # fmt: skip
        entry = _Entry(str(state["id"]), kind, spec, hidden, state)
        with self._lock:
            self._forget_old()
            if len(self._entries) >= self._limits.jobs + self._limits.jobs_waiting:
                raise ProblemError(
                    503, "too many jobs wait for their turn: try again later", "overloaded", retry=10
                )
            self._entries[entry.id] = entry
            self._write(entry)
            entry.future = self._pool.submit(self._run, entry)
        return self._described(state)

    def get(self, id_: str, owner: Principal) -> dict[str, Any]:
        """Return the state of a job and, where it is done, its result. Raises ProblemError (404)."""
        state = self._read(id_, owner)
        described = self._described(state)
        if state["state"] == "done":
            with contextlib.suppress(FileNotFoundError):  # it was forgotten this moment
                described["result"] = orjson.Fragment(self._path(id_, "result").read_bytes())
        return described

    def list(self, owner: Principal) -> list[dict[str, Any]]:
        """Return the states of the owner's jobs, the latest first; of all jobs to who may do everything."""
        states = []
        for path in self._folder.glob("*.state"):
            with contextlib.suppress(ProblemError):
                states.append(self._read(path.stem, owner))
        return [self._described(state) for state in sorted(states, key=lambda state: -state["created"])]

    def cancel(self, id_: str, owner: Principal) -> dict[str, Any]:
        """End a job, wait until nothing of it runs, forget it, and return its last state.

        One that waits in another worker ends when its turn comes. Raises ProblemError (404).
        """
        self._read(id_, owner)
        self._path(id_, "cancel").touch()
        with self._lock:
            entry = self._entries.get(id_)
        if entry is not None:
            entry.cancelled.set()
            if entry.future and entry.future.cancel():  # it had not begun
                self._run(entry)
        state, end = self._read(id_, owner), time.monotonic() + PATIENCE
        while state["state"] == "running" and time.monotonic() < end:
            time.sleep(TICK / 2)
            state = self._read(id_, owner)
        if state["state"] in ENDED:
            self._forget(id_)
        return self._described(state)

    def close(self) -> None:
        """End all jobs of this worker, and wait for it."""
        with self._lock:
            for entry in self._entries.values():
                entry.cancelled.set()
        self._pool.shutdown()
        if self._own:
            self._own.cleanup()

    def _run(self, entry: _Entry) -> None:
        start = time.monotonic()
        try:
            if not self._is_cancelled(entry):
                self._watch(entry, start)
            else:
                entry.state["state"] = "cancelled"
        except OSError as e:
            entry.state |= {"state": "failed", "error": f"the job could not be started: {e.strerror}"}
        entry.state["ended"] = time.time()
        with self._lock:  # who reads that it has ended finds no trace of its running
            with contextlib.suppress(OSError):  # a full disk: who asks is told that the job is not known
                self._write(entry)
            self._entries.pop(entry.id, None)
        seconds = round(time.monotonic() - start, 3)
        logs.event("job", id=entry.id, kind=entry.kind, state=entry.state["state"], seconds=seconds)

    def _watch(self, entry: _Entry, start: float) -> None:
        """Run the job's process to its end, or end it."""
        job, late = Job(entry.kind, entry.spec), False
        try:
            entry.state["state"] = "running"
            self._write(entry)
            while job.wait(TICK) == "running":
                late = time.monotonic() - start > self._limits.job_seconds
                if late or self._is_cancelled(entry):
                    job.cancel()
                else:
                    self._tell(entry, job.step)
        finally:
            job.cancel()  # it has ended, unless the disk is full
        if job.state == "done":
            self._path(entry.id, "result").write_bytes(orjson.dumps(job.result))
        error = job.error
        for secret, name in entry.hidden.items():
            error = error.replace(secret, name)
        if late and job.state != "done":
            entry.state |= {
                "state": "failed",
                "error": f"it took more than {self._limits.job_seconds:g} seconds",
            }
        else:
            entry.state |= {"state": job.state, "error": error}

    def _tell(self, entry: _Entry, step: Step) -> None:
        told = {"what": step.what, "done": step.done, "total": step.total, "remaining": step.remaining}
        if told["what"] and (
            entry.state["step"] is None or any(told[k] != entry.state["step"][k] for k in ("what", "done"))
        ):
            entry.state["step"] = told
            self._write(entry)

    def _is_cancelled(self, entry: _Entry) -> bool:
        return entry.cancelled.is_set() or self._path(entry.id, "cancel").exists()

    def _path(self, id_: str, kind: str) -> Path:
        return self._folder / f"{id_}.{kind}"

    def _write(self, entry: _Entry) -> None:
        """Write the state so that a reader sees the old one or the new one."""
        temporary = self._path(entry.id, "new")
        temporary.write_bytes(orjson.dumps(entry.state))
        temporary.replace(self._path(entry.id, "state"))

    def _read(self, id_: str, owner: Principal) -> dict[str, Any]:
        unknown = ProblemError(404, "there is no such job, or it was forgotten", "unknown-job")
        if not id_.replace("-", "").replace("_", "").isalnum() or not id_.isascii():
            raise unknown
        try:
            state: dict[str, Any] = orjson.loads(self._path(id_, "state").read_bytes())
        except FileNotFoundError:
            raise unknown from None
        if state["owner"] != owner.name and not owner.may("admin"):
            raise unknown
        if state["state"] not in ENDED and not _is_alive(state["pid"]):
            state |= {"state": "failed", "error": "the server's worker that ran it has ended: send it again"}
        return state

    def _described(self, state: Mapping[str, Any]) -> dict[str, Any]:
        return {name: state[name] for name in ("id", "kind", "state", "created", "error")} | {
            "progress": state["step"]
        }

    def _forget_old(self) -> None:
        for path in self._old():
            self._forget(path.stem)

    def _old(self) -> Iterator[Path]:
        for path in self._folder.glob("*.state"):
            with contextlib.suppress(FileNotFoundError):
                if (
                    time.time() - path.stat().st_mtime > self._limits.job_kept
                    and path.stem not in self._entries
                ):
                    yield path

    def _forget(self, id_: str) -> None:
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
