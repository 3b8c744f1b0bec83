"""From uploaded files to an index: the roles of the columns, then a job with its progress."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self, get_args

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from starlette.datastructures import FormData
from starlette.responses import JSONResponse, Response

from indexes.errors import Reason, reason_of
from indexes.text.parameters import LANGUAGES
from linker.base.errors import InputError
from linker.corpora.dialects import ENCODINGS
from linker.corpora.languages import CODES, guess_language
from linker.encoders.installed import advised, installed, is_there
from linker.review.language import ReaderLanguage
from linker.review.ledger import Ledger
from linker.review.project import Project
from linker.review.settings import Unit, guess_unit
from linker.review.uploads import remove
from linker.server.jobs.indexing import UploadedFile, specification, unfinished
from linker.server.jobs.keeper import Standing
from linker.server.page import running
from linker.server.page.files import ASKED, ROLES, Upload, as_date, uploads_of
from linker.server.page.projects import Name, row_of
from linker.server.page.rendering import go, message, page, translate
from linker.server.page.reviews import InProject, shelf_of

router = APIRouter()
Task = Literal["index", "map", "match", "group"]
# The page from which a job is started, and which the navigation shows as current during the job.
PAGE_OF_JOB: Mapping[Task, str] = {"index": "project", "map": "map", "match": "judge", "group": "groups"}
SHOWN = 20  # maximum number of unusable rows that the form lists
DELIMITERS = {",": message("commas"), ";": message("semicolons"), "\t": message("tabs"), "|": message("bars")}
STEPS = {
    "": message("starting"),
    "reading": message("reading the files"),
    "indexing": message("indexing documents"),
    "seeds": message("storing seeds"),
    "reading documents": message("reading documents"),
    "finding candidates": message("finding the candidates for each row"),
    "training the ranker": message("learning from the matches"),
    "placing documents": message("placing documents on the map"),
    "finding pairs": message("looking for documents about the same story"),
}


@dataclass(frozen=True, slots=True)
class SetupForm:
    """The form's questions about the whole review: the job, the language of the texts, the model.

    `guessed`: the job that the seeds suggest. Empty choices are filled in by guesses.
    """

    unit: str = ""
    language: str = ""
    encoder: str = ""
    guessed: str = ""
    found: str = ""  # the detected language of the texts

    @classmethod
    def of(cls, project: Project, uploads: Sequence[Upload], form: FormData | None = None) -> Self:
        """Return the choices: those made in the form, else those stored, else those guessed from the files."""
        texts = {role: _texts(uploads, role) for role in ("posts", "articles")}
        with Ledger(project.ledger) as ledger:
            stored, seeds = str(ledger.settings.get("unit", "")), [seed.full_text for seed in ledger.seeds]
        guessed = guess_unit([*texts["articles"], *seeds], texts["posts"])
        guess = guess_language(texts["posts"] or texts["articles"]) or "none"
        answers = (
            {name: str(form.get(name, "")).strip() for name in ("unit", "language", "encoder", "own")}
            if form
            else {}
        )
        unit = answers.get("unit") if answers.get("unit") in get_args(Unit) else stored or guessed
        language = answers.get("language") if answers.get("language") in LANGUAGES else guess
        return cls(str(unit), str(language), answers.get("own") or answers.get("encoder", ""), guessed, guess)


def _texts(uploads: Sequence[Upload], role: str) -> list[str]:
    tried = [u.trial() for u in uploads if u.role == role]
    return [document.full_text for t in tried if t for document in t.documents[:1000]]


@router.get("/p/{project}/setup", name="setup")
def show(request: Request, project: InProject) -> Response:
    """Show the first rows of each file, and ask for the job and the roles of the columns."""
    uploads = uploads_of(project)
    if not uploads:
        return go(request, "project", project)
    return _form(request, project, uploads, SetupForm.of(project, uploads))


def _form(
    request: Request,
    project: Project,
    uploads: list[Upload],
    choice: SetupForm,
    error: str = "",
    field: str = "",
) -> Response:
    language = translate(request)
    values: dict[str, Any] = {"uploads": uploads, "roles": ROLES, "asked": ASKED}
    values |= {"field": field, "choice": choice}
    values |= {"delimiters": DELIMITERS, "encodings": ENCODINGS, "as_date": as_date, "most": SHOWN}
    values |= {"models": installed(), "advised": advised(choice.language)}
    values["index_languages"] = {name: _language_name(language, name) for name in LANGUAGES}
    return page(request, "setup.html", values, project=project, error=error)


def _language_name(language: ReaderLanguage, name: str) -> str:
    if name not in CODES:
        return language.text(message("another language"))
    return str(language.locale.languages[CODES[name]])


@router.post("/p/{project}/setup", name="start")
async def start(request: Request, project: InProject) -> Response:
    """Start the job, or say next to a field what is missing; if a file is now read differently, show its rows first."""
    form = await request.form()
    uploads = await run_in_threadpool(uploads_of, project, form)
    choice = await run_in_threadpool(SetupForm.of, project, uploads, form)
    if any(upload.is_other for upload in uploads) or "again" in form:
        return await run_in_threadpool(_form, request, project, uploads, choice)
    problem, where = _problem(project, uploads, choice.encoder)
    if problem:
        return _form(request, project, uploads, choice, problem, where)
    posts, articles = _sources(uploads, "posts"), _sources(uploads, "articles")
    names = [u.path.name for u in uploads]
    spec = specification(project, posts, articles, encoder=choice.encoder or "none", language=choice.language)
    if not project.is_grouping:
        with Ledger(project.ledger) as ledger:
            ledger.set("unit", choice.unit)
    try:
        begin(request, project, spec, names)
    except InputError as e:
        return _form(request, project, uploads, choice, reason_of(e))
    return go(request, "job", project)


def begin(request: Request, project: Project, spec: Mapping[str, Any], names: Sequence[str]) -> None:
    """Start the job that indexes the files with these names. Raises InputError if one is running."""
    shelf = shelf_of(request)

    def ended() -> None:
        read_by = {
            Path(source["path"]).name: source["columns"] for source in (*spec["posts"], *spec["articles"])
        }
        project.describe(
            indexed=[*project.about.get("indexed", ()), *names],
            columns={**project.about.get("columns", {}), **read_by},
        )
        shelf.close_review(project)
        shelf.prepare(project)

    running.start(request, project, "index", spec, [] if project.ready else unfinished(project), ended)


@router.post("/p/{project}/setup/remove", name="remove_file")
def remove_file(request: Request, project: InProject, name: Name) -> Response:
    """Delete an uploaded file that is not indexed."""
    job = running.last(request, project, "index")
    if job is not None and not job.has_ended:
        raise InputError(Reason("the files are being indexed: wait for the end, or cancel it", "being-read"))
    if name in project.about.get("indexed", ()):
        text = f"{name} is indexed: only the whole review can be deleted"
        raise InputError(Reason(text, "was-read", name=name))
    remove(project, name)
    return go(request, "setup", project)


def _sources(uploads: list[Upload], role: str) -> list[UploadedFile]:
    return [UploadedFile(u.path, u.columns) for u in uploads if u.role == role and u.preview]


def _problem(project: Project, uploads: list[Upload], encoder: str) -> tuple[str, str]:
    """Return the problem in the form, and the field that lacks something; empty strings if there is none."""
    for upload in uploads:
        known = upload.preview.columns if upload.preview else ()
        if not upload.role:
            continue
        if upload.column("text") not in known:
            return message("Choose the column with the texts."), f"text.{upload.path.name}"
        try:
            _ = upload.columns
        except InputError as e:
            return reason_of(e), f"text.{upload.path.name}"
    if not project.ready and all(upload.role != "posts" for upload in uploads):
        return message("One of the files must hold the posts."), f"role.{uploads[0].path.name}"
    if encoder and not is_there(encoder):
        return message("There is no such model on the machine that runs linker."), "encoder"
    return "", ""


@router.get("/p/{project}/job", name="job")
def progress(request: Request, project: InProject, task: Task = "index") -> Response:
    """Show a job's progress; after its end, redirect to the next page."""
    job = running.last(request, project, task)
    if job is None or job.state in ("done", "cancelled"):
        return _after(request, project, task)
    values = {"job": job, "task": task, "told": status(job, translate(request)), "share": job.step.share}
    values["back"] = "setup" if task == "index" else PAGE_OF_JOB[task]
    return page(request, "job.html", values, project=project, error=job.error, within=PAGE_OF_JOB[task])


@router.get("/p/{project}/job.json", name="job_state")
def state(request: Request, project: InProject, task: Task = "index") -> Response:
    """Return a job's progress: the state, a sentence, and the share that is done (null: unknown)."""
    job = running.last(request, project, task)
    if job is None:
        return JSONResponse({"state": "none", "told": "", "share": None})
    sentence = status(job, translate(request))
    return JSONResponse({"state": job.state, "told": sentence, "share": job.step.share})


def status(job: Standing, language: ReaderLanguage) -> str:
    """Return a job's activity, progress and remaining time, as a sentence."""
    step, text = job.step, language.text
    parts = [text(STEPS.get(step.what, step.what))]
    if step.total:
        count, total = language.number(step.done), language.number(step.total)
        parts.append(text(message("%(done)s of %(total)s"), done=count, total=total))
    elif step.done:
        parts.append(language.number(step.done))
    if step.remaining is not None and step.seconds > 2:
        seconds = max(1, round(step.remaining))
        parts.append(language.plural("about %(num)s second left", "about %(num)s seconds left", seconds))
    return " · ".join(parts)


@router.post("/p/{project}/job/cancel", name="cancel")
def cancel(request: Request, project: InProject, task: Task = "index") -> Response:
    """End a job; nothing of it remains."""
    running.cancel(request, project, task)
    return _after(request, project, task)


def _after(request: Request, project: Project, task: Task) -> Response:
    """Go to the page that follows a job: the first document, if it was the first job of a review with seeds."""
    route = PAGE_OF_JOB[task]
    if task == "index" and project.ready and project.is_grouping:
        return go(request, "groups", project)
    if task == "index" and project.ready and (row := row_of(project)).seeds and not (row.judged or row.none):
        route = "judge"
    return go(request, route, project)
