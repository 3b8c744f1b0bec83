"""`/v1/jobs` reports the progress of jobs, returns results and ends jobs."""

import asyncio
from typing import Annotated, Any, Literal

import orjson
from fastapi import Path
from pydantic import Field
from starlette.responses import Response

from linker.server.api.guard import require
from linker.server.api.routes.common import InService, about, json, routes, success
from linker.server.api.served import Served, Service
from linker.server.fields import Model
from linker.server.guard.tokens import Principal
from linker.server.jobs.keeper import Standing

router = routes("jobs")
Kind = Literal["find", "group", "link"]
Reader = Annotated[Principal, require("read")]
JobId = Annotated[str, Path(max_length=100, description="Id of the job.")]


class JobProgress(Model):
    """The current step of a job."""

    what: str
    done: int
    total: int | None
    remaining: float | None = Field(description="Estimated seconds left, at the pace so far.")


class JobDescription(Model):
    """The state of a job."""

    id: str
    kind: Kind
    state: Literal["waiting", "running", "done", "failed", "cancelled"]
    created: float = Field(description="Seconds since 1970.")
    progress: JobProgress | None = None
    error: str = Field(description="Why it failed, as the command line would say it.")
    result: dict[str, Any] | None = Field(None, description="The result, once the job is done.")


class JobList(Model):
    """Jobs, latest first."""

    jobs: list[JobDescription]


JOB = {"id": "b2xk", "kind": "find", "state": "running", "created": 1795310000.5, "error": ""}
RUNNING = JOB | {"progress": {"what": "documents", "done": 50, "total": 100, "remaining": 1.5}}
STARTED = success(
    JOB | {"state": "waiting", "progress": None}, "The job was started; `location` is its address."
)


async def submit(service: Service, kind: Kind, spec: Any, principal: Principal, *used: Served) -> Response:
    """Start a job that reads the indexes `used`; return a response with its state and its address."""
    hidden = {directory: name for served in used for directory, name in served.names.items()}
    job = await asyncio.to_thread(service.jobs.submit, kind, spec, principal, hidden=hidden)
    answer = json(_describe(job), 202)
    answer.headers["location"] = f"/v1/jobs/{job.id}"
    return answer


def _describe(job: Standing) -> dict[str, Any]:
    """Return a job as `JobDescription` without its result."""
    step = {name: getattr(job.step, name) for name in ("what", "done", "total", "remaining")}
    fields = {name: getattr(job, name) for name in ("id", "kind", "state", "created", "error")}
    return fields | {"progress": step if job.step.what else None}


@router.get(
    "/v1/jobs",
    **about(JobList, "List the jobs", scope="", success={200: success({"jobs": [RUNNING]}, "The jobs.")}),
)
async def jobs(service: InService, principal: Reader) -> Response:
    """Return this token's jobs, latest first, without results; with the scope `admin`, all jobs."""
    return json({"jobs": [*map(_describe, await asyncio.to_thread(service.jobs.list, principal))]})


@router.get("/v1/jobs/{id}", **about(JobDescription, "How far a job is, and its result", scope=""))
async def job(id: JobId, service: InService, principal: Reader) -> Response:
    """Return a job's state and, if it is done, its result; ended jobs are forgotten after an hour."""
    job = await asyncio.to_thread(service.jobs.get, id, principal)
    result = await asyncio.to_thread(service.jobs.result, id) if job.state == "done" else None
    return json(_describe(job) | ({"result": orjson.Fragment(result)} if result else {}))


@router.delete(
    "/v1/jobs/{id}",
    **about(
        JobDescription,
        "Cancel or forget a job",
        scope="",
        success={200: success(JOB | {"state": "cancelled"}, "Its last state.")},
    ),
)
async def cancel(id: JobId, service: InService, principal: Reader) -> Response:
    """End a job and discard its results; return its last state."""
    return json(_describe(await asyncio.to_thread(service.jobs.forget, id, principal)))
