"""The Links page: judge the pairs of a `linker link` run one after another."""

import functools
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, File, Form, Request, UploadFile
from starlette.responses import FileResponse, Response

from indexes.errors import reason_of
from indexes.interface import Document
from linker.base.errors import InputError
from linker.evaluation import write_run
from linker.review.interface import Verdict
from linker.review.links import ProposedLink, ProposedLinks, folder_of, make, make_of_pairs
from linker.review.ownership import PAIRS
from linker.review.project import Project
from linker.server.page.files import copies_of
from linker.server.page.rendering import go, message, page
from linker.server.page.reviews import InProject, Reader, Short

router = APIRouter()
LONGEST = 6000  # number of characters of a page that are shown
Upload = Annotated[UploadFile, File()]


@router.get("/p/{project}/links", name="links")
def show(request: Request, project: InProject) -> Response:
    """Show the next pair, or the form to upload a run."""
    if not (folder_of(project) / PAIRS).is_file():
        return _form(request, project)
    links = _links(project)
    session = request.state.session
    following = links.next(session.reviewer, session.id) if session.reviewer else None
    elsewhere = 0 if following else links.elsewhere(session.id)
    values: dict[str, object] = {"number": 0, "pair": None, "pages": (), "count": len(links.pairs)}
    values |= {"verdicts": links.counts(), "upload": False, "elsewhere": elsewhere}
    if following:
        number, pair = following
        pages = [(_language(d), d) for d in (links.sources[pair.source], links.targets[pair.target])]
        values |= {"number": number, "pair": pair, "pages": pages, "longest": LONGEST}
    return page(request, "links.html", values, project=project)


def _form(request: Request, project: Project, error: str = "") -> Response:
    return page(request, "links.html", {"upload": True}, project=project, error=error, within="links")


def _links(project: Project) -> ProposedLinks:
    folder = folder_of(project)
    return _open(folder, (folder / PAIRS).stat().st_mtime_ns)


@functools.lru_cache(maxsize=8)
def _open(folder: Path, changed: int) -> ProposedLinks:
    return ProposedLinks(folder)


def _language(document: Document) -> str:
    """Return a page's language from its metadata, if that is a code, so that browsers hyphenate correctly."""
    value = document.metadata.get("language") or document.metadata.get("lang") or ""
    return value if isinstance(value, str) and value.replace("-", "").isalpha() and len(value) <= 12 else ""


@router.post("/p/{project}/links/upload", name="upload_links")
def upload(
    request: Request,
    project: InProject,
    run: Upload,
    sources: Annotated[UploadFile | None, File()] = None,
    targets: Annotated[UploadFile | None, File()] = None,
) -> Response:
    """Accept a run and its pages, or uncertain links, which contain their pages."""
    try:
        with copies_of(file for file in (run, sources, targets) if file) as paths:
            if len(paths) == 1 and paths[0].suffix == ".jsonl":
                make_of_pairs(project, paths[0])
            elif len(paths) == 3:
                make(project, *paths)
            else:
                raise InputError(message("Choose the file of links and both collections."))
    except InputError as e:
        return _form(request, project, reason_of(e))
    return go(request, "links", project)


@router.post("/p/{project}/links", name="judge_link")
def judge(
    request: Request,
    project: InProject,
    reader: Reader,
    source: Short,
    target: Short,
    verdict: Annotated[Verdict, Form()],
) -> Response:
    """Store a verdict on a pair and show the next one."""
    links = _links(project)
    pair = next((p for p in links.pairs if (p.source, p.target) == (source, target)), None)
    links.judge(pair or ProposedLink(source, target, 0.0, 0), verdict, reader.reviewer)
    return go(request, "links", project)


@router.post("/p/{project}/links/undo", name="undo_link")
def undo(request: Request, project: InProject, reader: Reader) -> Response:
    """Take back this reviewer's last verdict."""
    _links(project).ledger.undo(reader.reviewer)
    return go(request, "links", project)


@router.get("/p/{project}/links/run", name="links_run")
def download(request: Request, project: InProject) -> Response:
    """Download the pairs judged correct, as a run in TREC's six columns."""
    links = _links(project)
    found: dict[str, dict[str, float]] = {}
    for judgement in links.ledger.judgements():
        if judgement.relevant:
            found.setdefault(judgement.seed, {})[judgement.id] = judgement.score or 0.0
    if not found:
        raise InputError(message("No pair was judged right yet: there is nothing to download."))
    path = folder_of(project) / "judged.run"
    write_run(path, ((source, list(ids), list(ids.values())) for source, ids in found.items()), "judged")
    return FileResponse(path, media_type="text/plain", filename=f"{project.key}-links.run")
