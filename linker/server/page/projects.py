"""One review's own page with its next step; more files for it; its deletion."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, File, Form, Request, UploadFile
from fastapi.concurrency import run_in_threadpool
from starlette.responses import FileResponse, RedirectResponse, Response

from indexes.errors import reason_of
from indexes.interface import IndexesError
from indexes.sharded import manifests_of
from linker.base.errors import InputError
from linker.review.project import Project
from linker.review.uploads import store, stored
from linker.server.jobs.indexing import SEEDS_QUARANTINE
from linker.server.page import running
from linker.server.page.files import ROLES
from linker.server.page.listing import row_of
from linker.server.page.rendering import address, message, page, translate
from linker.server.page.reviews import InProject, shelf_of

router = APIRouter()
Name = Annotated[str, Form(max_length=1000)]
Files = Annotated[Sequence[UploadFile], File()]


def store_all(project: Project, role: str, files: list[UploadFile]) -> list[Path]:
    """Store files with their roles; return their paths."""
    return [store(project, upload.filename or "", upload.file, role) for upload in files]


@router.get("/p/{project}", name="project")
def overview(request: Request, project: InProject) -> Response:
    """Show where a review stands and what to do next."""
    job = running.last(request, project, "index")
    if job is not None and not job.has_ended:
        return RedirectResponse(address(request, "job", project=project.key), 303)
    if not project.ready and stored(project):
        return RedirectResponse(address(request, "setup", project=project.key), 303)
    if project.ready:
        shelf_of(request).prepare(project)
    return _overview(request, project)


def _overview(request: Request, project: Project, error: str = "") -> Response:
    row = row_of(project)
    values: dict[str, Any] = {"row": row, "uploads": stored(project), "seeds": row.seeds, "quarantined": 0}
    values |= {"roles": project.about.get("roles", {}), "role_names": ROLES}
    values["bad_seeds"] = project.folder is not None and (project.folder / SEEDS_QUARANTINE).is_file()
    if project.ready:
        values["quarantined"] = sum(m.quarantined for m in manifests_of(project.index))
    return page(request, "project.html", values, project=project, error=error)


@router.post("/p/{project}/upload", name="add_files")
async def add(request: Request, project: InProject, posts: Files = (), articles: Files = ()) -> Response:
    """Add more files to a review."""
    try:
        for role, uploads in (("posts", posts), ("articles", articles)):
            await run_in_threadpool(store_all, project, role, [u for u in uploads if u.filename])
    except InputError as e:
        return await run_in_threadpool(_overview, request, project, reason_of(e))
    return RedirectResponse(address(request, "setup", project=project.key), 303)


@router.post("/p/{project}/delete", name="delete")
def delete(request: Request, project: InProject, name: Name = "") -> Response:
    """Delete a review with all its judgements if its name was typed; a folder with other files stays as it is."""
    if name.strip() != project.name:
        error = translate(request).text(message("To delete the review, type its name exactly as it is."))
        return _overview(request, project, error)
    running.forget(request, project)
    shelf_of(request).forget(project)
    try:
        project.delete()
    except (InputError, IndexesError) as e:
        return _overview(request, project, reason_of(e))
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
