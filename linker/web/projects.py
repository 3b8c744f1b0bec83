"""The reviews of a folder: all of them, making one from files, and one review's own page with its next step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, File, Form, Request, UploadFile
from fastapi.concurrency import run_in_threadpool
from starlette.responses import FileResponse, RedirectResponse, Response

from indexes.interface import IndexesError
from indexes.sharded import manifests_of
from linker.errors import InputError
from linker.review.jobs.indexing import SEEDS_QUARANTINE
from linker.review.ledger import Ledger
from linker.review.project import Project, Workspace
from linker.review.uploads import store, stored
from linker.web.rendering import address, message, page, translate
from linker.web.reviews import InProject, of_request
from linker.web.running import jobs_of

router = APIRouter()
Name = Annotated[str, Form(max_length=1000)]
Files = Annotated[Sequence[UploadFile], File()]


@dataclass(frozen=True, slots=True)
class Row:
    """A review in the list: what is in it, and what went wrong where it cannot be read."""

    project: Project
    documents: int = 0
    judged: int = 0
    relevant: int = 0
    last: str = ""
    problem: str = ""


@router.get("/", name="home")
def show(request: Request) -> Response:
    """Show all reviews, and the form that makes one; where there is only one review, go there."""
    workspace = of_request(request).workspace
    if workspace.single:
        return RedirectResponse(address(request, "project", project=workspace.single.key), 303)
    return _home(request, workspace)


def _home(
    request: Request, workspace: Workspace, error: str = "", field: str = "", name: str = ""
) -> Response:
    rows = [_row(project) for project in workspace.projects]
    values = {"rows": rows, "field": field, "name": name, "directory": workspace.directory.resolve()}
    return page(request, "projects.html", values, error=error)


def _row(project: Project) -> Row:
    try:
        documents = sum(m.documents for m in manifests_of(project.index)) if project.ready else 0
        if not project.ledger.exists():
            return Row(project, documents)
        with Ledger(project.ledger) as ledger:
            judgements = ledger.judgements()
    except (InputError, IndexesError) as e:
        return Row(project, problem=str(e))
    read = {(j.seed, j.id) for j in judgements if j.verdict != "skip"}  # by however many reviewers
    relevant = {(j.seed, j.id) for j in judgements if j.relevant}
    last = max((j.time for j in judgements), default="")
    return Row(project, documents, len(read), len(relevant), last)


@router.post("/upload", name="create")
async def create(request: Request, name: Name = "", posts: Files = (), articles: Files = ()) -> Response:
    """Make a review of uploaded files; where that fails, none is made and the form says why beside the field."""
    workspace = of_request(request).workspace
    files = [upload for upload in posts if upload.filename]
    if not files:
        error = translate(request).text(message("Choose the files with the posts that you want to read."))
        return await run_in_threadpool(_home, request, workspace, error, "posts", name)
    try:
        project = workspace.create(name or files[0].filename.rpartition(".")[0])  # type: ignore[union-attr]  # it has one
    except InputError as e:
        return await run_in_threadpool(_home, request, workspace, str(e), "name", name)
    field = "posts"
    try:
        await run_in_threadpool(_store, project, "posts", files)
        field = "articles"
        await run_in_threadpool(_store, project, "articles", [a for a in articles if a.filename])
    except InputError as e:
        project.delete()
        return await run_in_threadpool(_home, request, workspace, str(e), field, name)
    return RedirectResponse(address(request, "setup", project=project.key), 303)


def _store(project: Project, role: str, files: list[UploadFile]) -> None:
    """Store files and remember what they are for."""
    for upload in files:
        path = store(project, upload.filename or "", upload.file)
        roles = project.about.get("roles", {})
        project.describe(roles={**roles, path.name: role})


@router.get("/p/{project}", name="project")
def overview(request: Request, project: InProject) -> Response:
    """Show where a review stands and what to do next."""
    job = jobs_of(request).get(project, "index")
    if job is not None and job.state == "running":
        return RedirectResponse(address(request, "job", project=project.key), 303)
    if not project.ready and stored(project):
        return RedirectResponse(address(request, "setup", project=project.key), 303)
    return _overview(request, project)


def _overview(request: Request, project: Project, error: str = "") -> Response:
    values = {"row": _row(project), "uploads": stored(project), "seeds": 0, "quarantined": 0, "result": {}}
    values["bad_seeds"] = project.folder is not None and (project.folder / SEEDS_QUARANTINE).is_file()
    if project.ready:
        values["quarantined"] = sum(m.quarantined for m in manifests_of(project.index))
        with Ledger(project.ledger) as ledger:
            values["seeds"] = len(ledger.seeds)
    return page(request, "project.html", values, project=project, error=error)


@router.post("/p/{project}/upload", name="add_files")
async def add(request: Request, project: InProject, posts: Files = (), articles: Files = ()) -> Response:
    """Take more files into a review."""
    try:
        for role, uploads in (("posts", posts), ("articles", articles)):
            await run_in_threadpool(_store, project, role, [u for u in uploads if u.filename])
    except InputError as e:
        return await run_in_threadpool(_overview, request, project, str(e))
    return RedirectResponse(address(request, "setup", project=project.key), 303)


@router.post("/p/{project}/delete", name="delete")
def delete(request: Request, project: InProject, name: Name = "") -> Response:
    """Delete a review with all its judgements, where its name was typed."""
    if name.strip() != project.name:
        error = translate(request).text(message("To delete the review, type its name exactly as it is."))
        return _overview(request, project, error)
    jobs_of(request).forget(project)
    of_request(request).forget(project.key)
    project.delete()
    return RedirectResponse("/", 303)


@router.get("/p/{project}/quarantine", name="quarantine")
def quarantine(request: Request, project: InProject) -> Response:
    """Download the records of the documents that could not be used, with the reasons, as JSON Lines."""
    folder = project.index / "quarantine"
    parts = [p.read_bytes() for p in sorted(folder.glob("*.jsonl"))] if folder.is_dir() else []
    headers = {"content-disposition": f'attachment; filename="{project.key}-quarantine.jsonl"'}
    return Response(b"".join(parts), media_type="application/jsonl", headers=headers)


@router.get("/p/{project}/quarantine/seeds", name="seeds_quarantine")
def seeds_quarantine(request: Request, project: InProject) -> Response:
    """Download the records of the seeds that could not be used."""
    path = project.own_folder / SEEDS_QUARANTINE
    if not path.is_file():
        raise InputError("every seed could be used")
    return FileResponse(
        path, media_type="application/jsonl", filename=f"{project.key}-seeds-quarantine.jsonl"
    )
