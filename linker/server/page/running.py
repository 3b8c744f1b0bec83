"""The jobs that run for this server: at most one of a kind for each review."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from fastapi import Request

from linker.base.errors import InputError
from linker.review.project import Project
from linker.server.jobs import Job


class Jobs:
    """Running and ended jobs by review and task."""

    def __init__(self) -> None:
        self._jobs: dict[tuple[str, str], Job] = {}
        self._lock = threading.Lock()

    def start(
        self,
        project: Project,
        task: str,
        spec: Mapping[str, Any],
        unfinished: Sequence[Path] = (),
        ended: Callable[[], object] = lambda: None,
    ) -> Job:
        """Start a task of a review; `ended` is called once it is done. Raises InputError where one is running."""
        with self._lock:
            running = self._jobs.get((project.key, task))
            if running is not None and running.state == "running":
                raise InputError("this is being done already: wait for its end, or cancel it")
            job = self._jobs[project.key, task] = Job(task, spec, unfinished)
        threading.Thread(target=_wait, args=(job, ended), daemon=True).start()
        return job

    def get(self, project: Project, task: str) -> Job | None:
        """Return the last job of this task that this server started, or None."""
        return self._jobs.get((project.key, task))

    def forget(self, project: Project) -> None:
        """Cancel all jobs of a review, and forget them."""
        for key in [key for key in self._jobs if key[0] == project.key]:
            self._jobs.pop(key).cancel()


def _wait(job: Job, ended: Callable[[], object]) -> None:
    if job.wait() == "done":
        ended()


def jobs_of(request: Request) -> Jobs:
    """Return the jobs of the application; they end with the process of the server, whose pipes they hold."""
    state = request.app.state
    if not hasattr(state, "jobs"):
        state.jobs = Jobs()
    jobs: Jobs = state.jobs
    return jobs
