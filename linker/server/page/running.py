"""The jobs of the page: one of each kind per review, started at once and without a time limit."""

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from fastapi import Request

from linker.review.project import Project
from linker.server.config import Limits
from linker.server.errors import ProblemError
from linker.server.guard.tokens import Principal
from linker.server.jobs.keeper import Jobs, Standing

PAGE = Principal("page")


def unhurried(limits: Limits) -> Limits:
    """Return limits without a timeout, for the page's jobs: a person requested each, sees it, and can cancel it."""
    return dataclasses.replace(limits, jobs=1 << 30, job_seconds=math.inf, job_kept=math.inf)


def start(
    request: Request,
    project: Project,
    task: str,
    spec: Mapping[str, Any],
    unfinished: Sequence[Path] = (),
    ended: Callable[[], object] = lambda: None,
) -> Standing:
    """Start a task of a review; `ended` is called when it is done. Raises InputError if it is running already."""
    id_ = f"{task}-{project.key}"
    return _jobs(request).submit(task, spec, PAGE, id_=id_, unfinished=unfinished, ended=ended)


def last(request: Request, project: Project, task: str) -> Standing | None:
    """Return the state of the last job of this task that this server started, or None."""
    try:
        return _jobs(request).get(f"{task}-{project.key}", PAGE)
    except ProblemError:
        return None


def cancel(request: Request, project: Project, task: str) -> None:
    """End a job if there is one, keeping only the record that it was cancelled."""
    if job := last(request, project, task):
        _jobs(request).cancel(job.id, PAGE)


def forget(request: Request, project: Project) -> None:
    """Cancel all jobs of a review, and delete their records."""
    for job in _jobs(request).list(PAGE):
        if job.id == f"{job.kind}-{project.key}":
            _jobs(request).forget(job.id, PAGE)


def _jobs(request: Request) -> Jobs:
    jobs: Jobs = request.app.state.jobs
    return jobs
