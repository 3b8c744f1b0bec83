"""Reviews in the list of reviews, and one review's own page: its next step, more files, its deletion."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, File, Form, Request, UploadFile
from fastapi.concurrency import run_in_threadpool
from starlette.responses import RedirectResponse, Response

from indexes.errors import Reason, reason_of
from indexes.interface import IndexesError
from indexes.sharded import manifests_of
from linker.base.errors import InputError
from linker.review.ledger import Ledger
from linker.review.ownership import UPLOADS
from linker.review.project import Project
from linker.review.rows.states import counts, states
from linker.review.uploads import store, stored
from linker.server.jobs.indexing import SEEDS_QUARANTINE
from linker.server.page import running
from linker.server.page.files import ROLES
from linker.server.page.rendering import go, message, page
from linker.server.page.reviews import InProject, shelf_of

router = APIRouter()
Name = Annotated[str, Form(max_length=1000)]
Files = Annotated[Sequence[UploadFile], File()]


@dataclass(frozen=True, slots=True)
class ReviewRow:
    """A review and its counts. `unit`: the kind of job, empty until somebody chooses one.

    `matched`, `none`: rows with a match, and rows judged to have none. `last`: the time of the last verdict, or of
    the review's creation.
    """

    project: Project
    unit: str = ""
    documents: int = 0
    seeds: int = 0
    judged: int = 0
    relevant: int = 0
    matched: int = 0
    none: int = 0
    last: str = ""
    problem: str = ""

    @property
    def share(self) -> float:
        """The share done, 0 to 1, of the rows or of the documents."""
        done, whole = (
            (self.matched + self.none, self.seeds) if self.unit == "pairs" else (self.judged, self.documents)
        )
        return min(done / whole, 1.0) if whole else 0.0


def row_of(project: Project) -> ReviewRow:
    """Return a review's row; if it cannot be read, the row's problem says why."""
    if project.problem:
        return _unreadable(project, Reason(project.problem))
    try:
        documents = sum(m.documents for m in manifests_of(project.index)) if project.ready else 0
        made = str(project.about.get("created", ""))
        if not project.ledger.exists():
            return ReviewRow(project, documents=documents, last=made)
        with Ledger(project.ledger) as ledger:
            judgements, seeds = ledger.judgements(), ledger.seeds
            of_rows = counts(states(seeds, {}, ledger.judgements(rows=True)))
            unit = str(ledger.settings.get("unit", ""))
    except (InputError, IndexesError, OSError) as e:
        return _unreadable(project, reason_of(e))
    # each document is counted once per seed, whoever judged it
    read = {(j.seed, j.id) for j in judgements if j.verdict != "skip"}
    relevant = {(j.seed, j.id) for j in judgements if j.relevant}
    last = max((j.time for j in judgements), default=made)
    matched, none = of_rows["matched"], of_rows["none"]
    return ReviewRow(project, unit, documents, len(seeds), len(read), len(relevant), matched, none, last)


def _unreadable(project: Project, reason: Reason) -> ReviewRow:
    """Return the row of a review that cannot be read; its problem names files without their folder."""
    return ReviewRow(project, problem=reason.replace(f"{project.index.parent}/", ""))


def store_all(project: Project, role: str, files: list[UploadFile]) -> list[Path]:
    """Store files with their roles; return their paths."""
    return [store(project, upload.filename or "", upload.file, role) for upload in files]


@router.get("/p/{project}", name="project")
def overview(request: Request, project: InProject) -> Response:
    """Show where a review stands and what to do next."""
    job = running.last(request, project, "index")
    if job is not None and not job.has_ended:
        return go(request, "job", project)
    if not project.ready and stored(project):
        return go(request, "setup", project)
    if project.ready:
        shelf_of(request).prepare(project)
    return _overview(request, project)


def _overview(request: Request, project: Project, error: str = "") -> Response:
    row = row_of(project)
    values: dict[str, Any] = {"row": row, "uploads": stored(project), "seeds": row.seeds, "quarantined": 0}
    roles = {file: role for file, role in project.about.get("roles", {}).items() if role in list(ROLES)}
    values |= {"roles": roles, "role_names": ROLES}
    values["bad_seeds"] = project.folder is not None and (project.folder / SEEDS_QUARANTINE).is_file()
    if project.ready:
        values["quarantined"] = sum(m.quarantined for m in manifests_of(project.index))
    return page(
        request, "project.html", values, project=project, error=error or row.problem, within="project"
    )


@router.post("/p/{project}/upload", name="add_files")
async def add(request: Request, project: InProject, posts: Files = (), articles: Files = ()) -> Response:
    """Add more files to a review."""
    try:
        for role, uploads in (("posts", posts), ("articles", articles)):
            await run_in_threadpool(store_all, project, role, [u for u in uploads if u.filename])
    except InputError as e:
        return await run_in_threadpool(_overview, request, project, reason_of(e))
    return go(request, "setup", project)


@router.post("/p/{project}/delete", name="delete")
def delete(request: Request, project: InProject, name: Name = "") -> Response:
    """Delete a review with all its judgements if its name was typed; a folder with other files stays as it is."""
    if name.strip() != project.name:
        return _overview(request, project, message("To delete the review, type its name exactly as it is."))
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
    return _quarantined(project, sorted(folder.glob("*.jsonl")), "quarantine")


@router.get("/p/{project}/quarantine/seeds", name="seeds_quarantine")
def seeds_quarantine(request: Request, project: InProject) -> Response:
    """Download the records of the seeds that could not be used."""
    path = project.own_folder / SEEDS_QUARANTINE
    if not path.is_file():
        raise InputError("there are no unusable seeds: every record became a seed")
    return _quarantined(project, [path], "seeds-quarantine")


def _quarantined(project: Project, paths: Sequence[Path], name: str) -> Response:
    """Return the records in these files as a download; it names the uploads without their folder."""
    lines = b"".join(path.read_bytes() for path in paths)
    content = lines.replace(f"{project.index.parent / UPLOADS}/".encode(), b"")
    headers = {"content-disposition": f'attachment; filename="{project.key}-{name}.jsonl"'}
    return Response(content, media_type="application/jsonl", headers=headers)
