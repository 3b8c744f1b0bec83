"""From uploaded files to an index: which column is which, then a job with its progress."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Form, Request
from starlette.datastructures import FormData
from starlette.responses import JSONResponse, RedirectResponse, Response

from indexes.text.parameters import LANGUAGES
from linker.corpora import Columns, Preview, columns_of, preview
from linker.corpora.roles import Role
from linker.corpora.workbooks import sheet_names
from linker.errors import InputError, LinkerError
from linker.review.jobs import Job
from linker.review.jobs.indexing import Source, specification, unfinished
from linker.review.project import Project
from linker.review.uploads import remove, stored
from linker.web.language import Language
from linker.web.rendering import address, message, page, translate
from linker.web.reviews import InProject, of_request
from linker.web.running import jobs_of

router = APIRouter()
Name = Annotated[str, Form(max_length=1000)]
ROLES = {
    "posts": message("posts: what is searched and judged"),
    "articles": message("articles: the seeds whose posts are sought"),
    "": message("leave this file out"),
}
ROLE_NAMES = {
    "date": message("date"),
    "language": message("language"),
    "author": message("author"),
    "url": message("link"),
}
DELIMITERS = {",": message("commas"), ";": message("semicolons"), "\t": message("tabs"), "|": message("bars")}
ASKED: tuple[Role, ...] = ("text", "id", "title")  # the columns that the form asks for
STEPS = {
    "": message("starting"),
    "reading": message("reading the files"),
    "indexing": message("indexing documents"),
    "seeds": message("storing seeds"),
    "reading documents": message("reading documents"),
    "placing documents": message("placing documents on the map"),
}


@dataclass(frozen=True, slots=True)
class Upload:
    """A file in the form: what it seems to hold or why it cannot be read, what it is for, and what was chosen."""

    path: Path
    role: str
    preview: Preview | None = None
    problem: str = ""
    chosen: Mapping[str, str] = field(default_factory=dict)
    is_other: bool = False  # another sheet than the one whose rows the form showed

    def column(self, role: Role) -> str:
        """Return the column that is chosen or guessed for a role, or an empty text."""
        guessed = self.preview.column(role) if self.preview else None
        return self.chosen.get(role, guessed or "")

    @property
    def date_format(self) -> str | None:
        """The format that is chosen or guessed for the dates."""
        known = self.preview.date_formats if self.preview else ()
        chosen = self.chosen.get("date_format", "")
        return chosen if chosen in known else next(iter(known), None)

    @property
    def columns(self) -> Columns:
        """How the file is read. Raises InputError where no column is chosen for the text, or one for two things."""
        assert self.preview is not None
        roles: dict[str, Role] = {n: r for n, r in self.preview.roles.items() if r not in ASKED}
        for role in ASKED:
            if name := self.column(role):
                if roles.get(name) in ASKED:
                    raise InputError(f"the column {name!r} is chosen twice: choose one for each thing")
                roles[name] = role
        known = self.preview
        return columns_of(roles, self.date_format, known.encoding, known.delimiter, known.sheet)


def _uploads(project: Project, form: FormData | None = None) -> list[Upload]:
    """Return the files that are not indexed yet, as the form has them, the posts first."""
    about = project.about
    done, roles = set(about.get("indexed", ())), about.get("roles", {})
    found = []
    for path in stored(project):
        if path.name in done:
            continue
        role, sheet, chosen, is_other = roles.get(path.name, "posts"), "", {}, False
        if form is not None:
            role, sheet = str(form.get(f"role.{path.name}", "")), str(form.get(f"sheet.{path.name}", ""))
            is_other = sheet != form.get(f"shown.{path.name}", "")
            asked = () if is_other else (*ASKED, "date_format")
            chosen = {what: str(form.get(f"{what}.{path.name}", "")) for what in asked}
        try:
            found.append(Upload(path, role, _look(path, sheet), chosen=chosen, is_other=is_other))
        except LinkerError as e:
            found.append(Upload(path, "", problem=str(e)))
    return sorted(found, key=lambda u: (list(ROLES).index(u.role), u.path.name))


def _look(path: Path, sheet: str) -> Preview:
    """Return what a file holds; of a workbook, the sheet that is named, or the first that has records."""
    if sheet or path.suffix != ".xlsx":
        return preview(path, sheet=sheet or None)
    problem: LinkerError | None = None
    for name in sheet_names(path):
        try:
            return preview(path, sheet=name)
        except LinkerError as e:
            problem = problem or e
    raise problem or InputError(f"{path.name} holds no sheet of cells")


@router.get("/p/{project}/setup", name="setup")
def show(request: Request, project: InProject) -> Response:
    """Show the first rows of each file, and ask which column is which."""
    uploads = _uploads(project)
    if not uploads:
        return RedirectResponse(address(request, "project", project=project.key), 303)
    return _form(request, project, uploads)


def _form(
    request: Request,
    project: Project,
    uploads: list[Upload],
    error: str = "",
    field: str = "",
    encoder: str = "",
) -> Response:
    values: dict[str, Any] = {"uploads": uploads, "roles": ROLES, "field": field, "encoder": encoder}
    values |= {"role_names": ROLE_NAMES, "delimiters": DELIMITERS, "as_date": _as_date}
    values |= {"index_languages": LANGUAGES, "chosen_language": _index_language(translate(request))}
    return page(request, "setup.html", values, project=project, error=error)


def _as_date(form: str) -> str:
    """Return a day in a format of strptime, on which day and month differ."""
    return datetime(2026, 3, 14, 15, 9).strftime(form)


def _index_language(language: Language) -> str:
    return {"de": "german", "fr": "french", "es": "spanish"}.get(language.code, "english")


@router.post("/p/{project}/setup", name="start")
async def start(request: Request, project: InProject) -> Response:
    """Start the job, or say beside the field what is missing."""
    form = await request.form()
    uploads = _uploads(project, form)
    encoder, language = str(form.get("encoder", "")).strip(), str(form.get("language", "english"))
    if any(upload.is_other for upload in uploads):
        return _form(request, project, uploads, encoder=encoder)
    problem, where = _problem(project, uploads, encoder)
    if problem:
        return _form(request, project, uploads, translate(request).text(problem), where, encoder)
    posts, articles = _sources(uploads, "posts"), _sources(uploads, "articles")
    names = [u.path.name for u in uploads]
    spec = specification(project, posts, articles, encoder=encoder or "none", language=language)
    reviews, key = of_request(request), project.key

    def ended() -> None:
        project.describe(indexed=[*project.about.get("indexed", ()), *names])
        reviews.forget(key)

    try:
        jobs_of(request).start(project, "index", spec, [] if project.ready else unfinished(project), ended)
    except InputError as e:
        return _form(request, project, uploads, str(e))
    return RedirectResponse(address(request, "job", project=key), 303)


@router.post("/p/{project}/setup/remove", name="remove_file")
def remove_file(request: Request, project: InProject, name: Name) -> Response:
    """Delete an uploaded file that is not indexed."""
    job = jobs_of(request).get(project, "index")
    if job is not None and job.state == "running":
        raise InputError("the files are being indexed: wait for the end, or cancel it")
    if name in project.about.get("indexed", ()):
        raise InputError(f"{name} is indexed: only the whole review can be deleted")
    remove(project, name)
    return RedirectResponse(address(request, "setup", project=project.key), 303)


def _sources(uploads: list[Upload], role: str) -> list[Source]:
    return [Source(u.path, u.columns) for u in uploads if u.role == role and u.preview]


def _problem(project: Project, uploads: list[Upload], encoder: str) -> tuple[str, str]:
    """Return what is missing in the form, and the field where it is missing; empty where nothing is."""
    for upload in uploads:
        known = upload.preview.columns if upload.preview else ()
        if not upload.role:
            continue
        if upload.column("text") not in known:
            return message("Choose the column with the texts."), f"text.{upload.path.name}"
        try:
            _ = upload.columns
        except InputError as e:
            return str(e), f"text.{upload.path.name}"
    if not project.ready and all(upload.role != "posts" for upload in uploads):
        return message("One of the files must hold the posts."), f"role.{uploads[0].path.name}"
    if encoder and not Path(encoder).is_dir():
        return message("There is no such folder on the machine that runs linker."), "encoder"
    return "", ""


@router.get("/p/{project}/job", name="job")
def progress(request: Request, project: InProject, task: str = "index") -> Response:
    """Show how far a job is; at its end, go on."""
    job = jobs_of(request).get(project, task)
    if job is None or job.state in ("done", "cancelled"):
        return RedirectResponse(_after(request, project, task), 303)
    values = {"job": job, "task": task, "told": told(job, translate(request)), "share": job.step.share}
    return page(request, "job.html", values, project=project, error=job.error)


@router.get("/p/{project}/job.json", name="job_state")
def state(request: Request, project: InProject, task: str = "index") -> Response:
    """Return how far a job is: the state, a sentence, and the share that is done (null: unknown)."""
    job = jobs_of(request).get(project, task)
    if job is None:
        return JSONResponse({"state": "none", "told": "", "share": None})
    return JSONResponse({"state": job.state, "told": told(job, translate(request)), "share": job.step.share})


def told(job: Job, language: Language) -> str:
    """Return what a job does, how far it is and how long it will take, as a sentence."""
    step, text = job.step, language.text
    parts = [text(STEPS.get(step.what, step.what))]
    if step.total:
        parts.append(
            text(
                message("%(done)s of %(total)s"),
                done=language.number(step.done),
                total=language.number(step.total),
            )
        )
    elif step.done:
        parts.append(language.number(step.done))
    if step.remaining is not None and step.seconds > 2:
        parts.append(
            language.plural(
                "about %(num)s second left",
                "about %(num)s seconds left",
                max(1, round(step.remaining)),
            )
        )
    return " · ".join(parts)


@router.post("/p/{project}/job/cancel", name="cancel")
def cancel(request: Request, project: InProject, task: str = "index") -> Response:
    """End a job; nothing of it is left."""
    job = jobs_of(request).get(project, task)
    if job is not None:
        job.cancel()
    return RedirectResponse(_after(request, project, task), 303)


def _after(request: Request, project: Project, task: str) -> str:
    return address(request, "map" if task == "map" else "project", project=project.key)
