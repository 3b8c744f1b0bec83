"""The Judge page: one document in full next to its seed, a key for each verdict, and the last verdict."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Form, Query, Request
from starlette.responses import Response

from linker.review.interface import Candidate, JudgedMeanwhileError, Judgement, Verdict
from linker.review.learning.doubts import LEAST, looked
from linker.review.session.together import batch_size
from linker.server.errors import MEANWHILE
from linker.server.page.judging import beginning, decode_seen, document_view, encode_seen, group, seed_of
from linker.server.page.matching import is_rows
from linker.server.page.progress import doubts_of, is_due, stop_page
from linker.server.page.rendering import address, go, is_swap, message, page, translate
from linker.server.page.reviews import InReview, Reader, Short
from linker.server.page.sessions import Session
from linker.server.shelf import Opened

router = APIRouter(prefix="/p/{project}")
RECENT = 50  # past judgements per page

Text = Annotated[str, Form(max_length=20_000)]


@router.get("/judge", name="judge")
def show(
    request: Request,
    opened: InReview,
    id: Annotated[str, Query(max_length=2000)] = "",
    seed: Annotated[str, Query(max_length=2000)] = "",
    whole: bool = False,
) -> Response:
    """Show the next document or the named one; a judged document can be judged again.

    A review that looks for a match for each row shows the rows instead.
    """
    if not id and is_rows(opened):
        return go(request, "rows", opened.project)
    return _show(request, opened, id=id, seed=seed, whole=whole)


@router.post("/judge")
def judge(
    request: Request,
    opened: InReview,
    reader: Reader,
    id: Short,
    verdict: Annotated[Verdict, Form()],
    seed: Short = "",
    seen: Annotated[list[str], Form()] = [],  # noqa: B006 - FastAPI copies it
    note: Text = "",
    tags: Text = "",
    copies: Annotated[bool, Form()] = False,
) -> Response:
    """Store the verdict, also on the document's copies if requested, and go on to the next document.

    If the document was judged meanwhile, it is shown with that verdict, and nothing is stored.
    """
    review = opened.review
    _next(opened, reader)  # after a restart, this hands out the reader's open document again
    labels = tuple(dict.fromkeys(tag for part in tags.split(",") if (tag := " ".join(part.split()))))
    others = group(opened, id) if copies and id in opened.engine else ()
    try:
        review.judge(
            Candidate(seed, id, 0.0, phase="search"), verdict, reader.reviewer, note.strip(), labels,
            copies=others, holder=reader.id, seen=decode_seen(opened, seen, seed),
        )  # fmt: skip
    except JudgedMeanwhileError:
        return _show(request, opened, id=id, seed=seed, error=MEANWHILE)
    return _follow(request, opened)


@router.post("/undo", name="undo")
def undo(request: Request, opened: InReview, reader: Reader) -> Response:
    """Take back the reviewer's last judgement, and show its document again."""
    undone = opened.review.undo(reader.reviewer, reader.id)
    return _follow(request, opened, undone=undone, nothing=undone is None)


@router.post("/criteria", name="criteria")
def write_criteria(request: Request, opened: InReview, criteria: Text = "") -> Response:
    """Store the relevance criteria, in words, for all reviewers."""
    opened.ledger.set("criteria", criteria.strip().replace("\r\n", "\n"))
    return _follow(request, opened)


@router.get("/doubts", name="doubts")
def list_doubts(request: Request, opened: InReview) -> Response:
    """List the verdicts that are probably wrong; each can be kept or changed here."""
    found = doubts_of(request, opened)
    entries = [(d, _line(opened, d.judgement.id), seed_of(opened, d.judgement.seed)) for d in found or ()]
    values = {"entries": entries, "few": LEAST if found is None else 0}
    return page(request, "doubts.html", values, project=opened.project)


@router.post("/doubts")
def look_again(
    request: Request,
    opened: InReview,
    reader: Reader,
    id: Short,
    verdict: Annotated[Verdict, Form()],
    was: Annotated[Verdict, Form()],
    seed: Short = "",
) -> Response:
    """Store a second verdict, unchanged from `was` or different, and show the list again."""
    review = opened.review
    standing = review.standing(review.candidate(id, seed), reader.reviewer)
    note, tags = (standing.note, standing.tags) if standing else ("", ())
    review.judge(
        Candidate(seed, id, 0.0, phase="search"), verdict, reader.reviewer, note, looked(tags, changed=verdict != was),
        holder=reader.id, seen=was,
    )  # fmt: skip
    return go(request, "doubts", opened.project)


@router.get("/judged", name="judged")
def list_judged(
    request: Request, opened: InReview, before: Annotated[int | None, Query(ge=0)] = None
) -> Response:
    """List the reviewer's judgements, latest first; each can be opened and judged again."""
    standing = opened.ledger.judgements(request.state.session.reviewer)
    end = len(standing) if before is None else min(before, len(standing))
    start = max(0, end - RECENT)
    entries = [(j, _line(opened, j.id), seed_of(opened, j.seed)) for j in reversed(standing[start:end])]
    return page(
        request,
        "judged.html",
        {"entries": entries, "count": len(standing), "before": start, "first": end},
        project=opened.project,
    )


def _follow(
    request: Request,
    opened: Opened,
    *,
    undone: Judgement | None = None,
    nothing: bool = False,
) -> Response:
    """Return the next page to the page's script, or redirect a browser without scripts to it."""
    if is_swap(request):
        notice = translate(request).text(message("There is nothing to undo.")) if nothing else ""
        return _show(request, opened, undone=undone, notice=notice)
    return go(request, "judge", opened.project)


def _show(
    request: Request,
    opened: Opened,
    *,
    id: str = "",
    seed: str = "",
    whole: bool = False,
    undone: Judgement | None = None,
    notice: str = "",
    error: str = "",
) -> Response:
    review, session = opened.review, request.state.session
    path = address(request, "judge", project=opened.project.key)
    candidate, last = None, _last(opened, session.reviewer) if session.reviewer else None
    if session.reviewer and not (id or error) and undone is None and is_due(opened, review.progress()):
        return stop_page(request, opened, last)
    if session.reviewer:  # a reader without a name has no open document
        candidate = review.candidate(id, seed) if id else _next(opened, session)
    progress = review.progress()
    standing = review.standing(candidate, session.reviewer) if candidate else None
    earlier = standing if standing and standing.reviewer == session.reviewer else None
    if id and earlier is None and candidate:
        judgements = reversed(opened.ledger.judgements(session.reviewer))
        earlier = next((j for j in judgements if j.id == id and _is_of(opened, j, candidate.seed)), None)
    of = candidate.seed if candidate and review.settings.unit == "pairs" else ""
    values = {
        "shown": document_view(opened, candidate, whole=whole) if candidate else None, "earlier": undone or earlier,
        "standing": standing, "seen": encode_seen(standing.verdict, of) if standing else "", "named": bool(id),
        "elsewhere": 0 if candidate else review.elsewhere(session.id),
        "left": max(0, progress.population - progress.read - progress.skipped), "progress": progress,
        "enough": review.enough(), "settings": review.settings, "pairs": review.settings.unit == "pairs",
        "seeds": len(review.seeds), "criteria": str(opened.ledger.settings.get("criteria", "")), "last": last,
        "notice": notice, "path": f"{request.url.path}?{request.url.query}" if id else path,
    }  # fmt: skip
    status = 409 if error else 0
    return page(request, "judge.html", values, project=opened.project, error=error, status=status)


def _next(opened: Opened, session: Session) -> Candidate | None:
    """Return a reader's open document; None if there is neither a seed nor a relevant document to order by."""
    review = opened.review
    begins = not review.seeds and not review.progress().found
    return None if begins else review.next(session.reviewer, session.id)


@dataclass(frozen=True, slots=True)
class Last:
    """A reviewer's last judgement: the verdict, the document's first words, and how many copies it included."""

    verdict: Verdict
    line: str
    copies: int


def _last(opened: Opened, reviewer: str) -> Last | None:
    made = opened.ledger.judgements(reviewer)
    count = batch_size(made)
    return Last(made[-count].verdict, _line(opened, made[-count].id), count - 1) if made else None


def _is_of(opened: Opened, judgement: Judgement, seed: str) -> bool:
    """Whether a judgement counts for this seed: in a topic, it counts for all seeds."""
    return opened.review.settings.unit == "topic" or judgement.seed == seed


def _line(opened: Opened, id_: str) -> str:
    """Return a document's title or the beginning of its text; empty if it is no longer in the index."""
    if id_ not in opened.engine:
        return ""
    document = opened.engine.document(id_)
    return beginning(document.title or document.text, 200)
