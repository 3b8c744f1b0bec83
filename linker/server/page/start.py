"""The start page: the three jobs to choose from, the folder's reviews, and new reviews from files or the sample."""

from pathlib import Path
from typing import Annotated, Literal

from fastapi import APIRouter, Form, Request, UploadFile
from fastapi.concurrency import run_in_threadpool
from starlette.responses import Response

from indexes.errors import reason_of
from linker.base.errors import InputError, LinkerError
from linker.review.interface import Seed
from linker.review.ledger import Ledger
from linker.review.project import Project, Workspace
from linker.review.settings import Unit
from linker.server.jobs.indexing import UploadedFile, specification
from linker.server.page.files import look
from linker.server.page.projects import Files, Name, row_of, store_all
from linker.server.page.rendering import go, message, page, translate
from linker.server.page.reviews import workspace_of
from linker.server.page.setup import begin

router = APIRouter()
Text = Annotated[str, Form(max_length=500_000)]
Job = Literal["story", "rows", "groups"]
UNITS: dict[str, Unit] = {"story": "topic", "rows": "pairs"}
SAMPLE = Path(__file__).parent / "sample"
SAMPLE_NAME = message("Sample: the flood of Arnebruck")


@router.get("/", name="home")
def show(request: Request) -> Response:
    """Show the three jobs and all reviews; if the server serves a single review, redirect to it."""
    workspace = workspace_of(request)
    if workspace.single:
        return go(request, "project", workspace.single)
    return _home(request, workspace)


def _home(request: Request, workspace: Workspace, error: str = "") -> Response:
    rows = sorted(map(row_of, workspace.projects), key=lambda row: row.last, reverse=True)
    return page(request, "projects.html", {"rows": rows}, error=error)


@router.get("/new/{job}", name="new")
def ask(request: Request, job: Job) -> Response:
    """Ask for the files of a job."""
    return _ask(request, job)


def _ask(
    request: Request, job: str, error: str = "", field: str = "", name: str = "", about: str = ""
) -> Response:
    values = {"job": job, "field": field, "name": name, "about": about}
    return page(request, "new.html", values, error=error)


@router.post("/upload", name="create")
async def create(
    request: Request,
    name: Name = "",
    posts: Files = (),
    articles: Files = (),
    about: Text = "",
    job: Annotated[Job | Literal[""], Form()] = "",
) -> Response:
    """Create a review from uploaded files; if one cannot be read, create none and show the error next to its field."""
    workspace = workspace_of(request)
    files = [upload for upload in posts if upload.filename]
    back = job or "story"
    if not files:
        error = message("Choose the file with the texts to search first.")
        return _ask(request, back, error, "posts", name, about)
    try:
        project = workspace.create(name or files[0].filename.rpartition(".")[0])  # type: ignore[union-attr]  # it has one
    except InputError as e:
        return _ask(request, back, reason_of(e), "name", name, about)
    field = "posts"
    try:
        await run_in_threadpool(_take, project, "posts", files)
        field = "articles"
        await run_in_threadpool(_take, project, "articles", [a for a in articles if a.filename])
        await run_in_threadpool(_describe, project, job, about)
    except LinkerError as e:
        project.delete()
        return _ask(request, back, reason_of(e), field, name, about)
    return go(request, "setup", project)


def _take(project: Project, role: str, files: list[UploadFile]) -> None:
    """Store files of a role, and preview each. Raises LinkerError if one cannot be read."""
    for path in store_all(project, role, files):
        try:
            look(path)
        except LinkerError as e:
            raise InputError(reason_of(e).replace(str(path), path.name)) from None


def _describe(project: Project, job: str, about: str) -> None:
    """Store the job that was chosen, and the description of the story as a seed."""
    about = about.replace("\r\n", "\n").strip()
    if job == "groups":
        project.describe(job=job)
    with Ledger(project.ledger) as ledger:
        if job in UNITS:
            ledger.set("unit", UNITS[job])
        if about:
            ledger.put_seeds([Seed("description", about)])


@router.post("/sample", name="sample")
def sample(request: Request) -> Response:
    """Create a review from the sample in the package, or redirect to the existing one."""
    workspace, text = workspace_of(request), translate(request).text(SAMPLE_NAME)
    known = next((p for p in workspace.projects if p.about.get("sample")), None)
    if known is not None:
        return go(request, "project", known)
    try:
        project = workspace.create(text)
    except InputError as e:
        return _home(request, workspace, reason_of(e))
    _describe(project, "story", "")
    project.describe(sample=True)
    sources = {
        role: UploadedFile(SAMPLE / f"{role}.csv", look(SAMPLE / f"{role}.csv")[0].guess())
        for role in ("posts", "articles")
    }
    begin(request, project, specification(project, [sources["posts"]], [sources["articles"]]), [])
    return go(request, "job", project)
