"""Judge: one document in full beside its seed, a key for each verdict, a search beside the queue."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Form, Query, Request
from starlette.responses import RedirectResponse, Response

from linker.review.interface import Candidate, Judgement, Phase, Verdict
from linker.web.judging import Shown, group, judge_group, shown, undo_group
from linker.web.rendering import address, is_swap, message, page, translate
from linker.web.reviews import InReview, Opened

router = APIRouter(prefix="/p/{project}")
HITS = 10  # of a search beside the queue
RECENT = 50  # judgements of a page of those made

Text = Annotated[str, Form(max_length=20_000)]
Id = Annotated[str, Form(max_length=2000)]


@router.get("/judge", name="judge")
def show(
    request: Request,
    opened: InReview,
    q: Annotated[str, Query(max_length=2000)] = "",
    id: Annotated[str, Query(max_length=2000)] = "",
    seed: Annotated[str, Query(max_length=2000)] = "",
    whole: bool = False,
) -> Response:
    """Show the next document, or the one that is named: one that was judged can be judged again."""
    return _show(request, opened, q=q, id=id, seed=seed, whole=whole)


@router.post("/judge")
def judge(
    request: Request,
    opened: InReview,
    id: Id,
    verdict: Annotated[Verdict, Form()],
    seed: Id = "",
    phase: Annotated[Phase, Form()] = "queue",
    score: Annotated[float, Form(allow_inf_nan=False)] = 0.0,
    rank: Annotated[int, Form()] = 0,
    probability: Annotated[float | None, Form(ge=0, le=1)] = None,
    note: Text = "",
    tags: Text = "",
    copies: Annotated[bool, Form()] = False,
    q: Text = "",
) -> Response:
    """Store the verdict, also on the document's copies where it says so, and go on to the next document."""
    if phase == "audit" and opened.review.phase != "audit":
        phase = "queue"  # another reviewer has ended the audit meanwhile: this was not drawn by the next one
    candidate = Candidate(seed, id, score, rank, probability, phase)
    others = group(opened, id) if copies else ()
    named = tuple(dict.fromkeys(tag for part in tags.split(",") if (tag := " ".join(part.split()))))
    judge_group(opened, candidate, verdict, request.state.session.reviewer, note.strip(), named, others)
    return _follow(request, opened, q)


@router.post("/undo", name="undo")
def undo(request: Request, opened: InReview) -> Response:
    """Take back the reviewer's last judgement, and show its document again."""
    undone = undo_group(opened, request.state.session.reviewer)
    return _follow(request, opened, undone=undone, nothing=undone is None)


@router.post("/criteria", name="criteria")
def write_criteria(request: Request, opened: InReview, criteria: Text = "") -> Response:
    """Store what makes a document relevant, in words, for all reviewers."""
    opened.ledger.set("criteria", criteria.strip().replace("\r\n", "\n"))
    return _follow(request, opened)


@router.get("/judged", name="judged")
def list_judged(
    request: Request, opened: InReview, before: Annotated[int | None, Query(ge=0)] = None
) -> Response:
    """List what the reviewer has judged, the latest first; each can be opened and judged again."""
    standing = opened.ledger.judgements(request.state.session.reviewer)
    end = len(standing) if before is None else min(before, len(standing))
    start = max(0, end - RECENT)
    entries = [(j, _line(opened, j.id)) for j in reversed(standing[start:end])]
    return page(
        request,
        "judged.html",
        {"entries": entries, "count": len(standing), "before": start, "first": end},
        project=opened.project,
    )


def _follow(
    request: Request,
    opened: Opened,
    q: str = "",
    *,
    undone: Judgement | None = None,
    nothing: bool = False,
) -> Response:
    """Return the next page to our script, and send a browser without it there."""
    if is_swap(request):
        notice = translate(request).text(message("There is nothing to undo.")) if nothing else ""
        return _show(request, opened, q=q, undone=undone, notice=notice)
    return RedirectResponse(_path(request, opened, q), 303)


def _show(
    request: Request,
    opened: Opened,
    *,
    q: str = "",
    id: str = "",
    seed: str = "",
    whole: bool = False,
    undone: Judgement | None = None,
    notice: str = "",
) -> Response:
    review, reviewer = opened.review, request.state.session.reviewer
    progress = review.progress()
    # Without a seed and without a find, the next document would be any: one begins with a seed or a search.
    begins = not review.seeds and not progress.found
    candidate = None if id or begins else review.next(reviewer)
    earlier = undone
    if id:
        earlier = next((j for j in opened.ledger.judgements(reviewer) if (j.seed, j.id) == (seed, id)), None)
        phase = earlier.phase if earlier else "search"
        candidate = Candidate(seed, id, (earlier.score if earlier else None) or 0.0, phase=phase)
    values = {
        "shown": shown(opened, candidate, whole=whole) if candidate else None,
        "earlier": earlier,
        "named": bool(id),
        "progress": progress,
        "enough": review.enough(),
        "settings": review.settings,
        "seeds": len(review.seeds),
        "criteria": str(opened.ledger.settings.get("criteria", "")),
        "q": q,
        "hits": _hits(opened, q, candidate) if q.strip() else None,
        "notice": notice,
        "path": f"{request.url.path}?{request.url.query}" if id else _path(request, opened, q),
    }
    return page(request, "judge.html", values, project=opened.project)


def _hits(opened: Opened, q: str, beside: Candidate | None) -> list[tuple[Shown, str]]:
    """Return what a search finds, each with the verdict that it has, if any."""
    (hits,) = opened.engine.search(q, HITS, phrases=_has_phrases(opened), probabilities=False).hits
    seed = beside.seed if beside else (opened.review.seeds[0].id if opened.review.seeds else "")
    verdicts = {j.id: str(j.verdict) for j in opened.ledger.judgements() if _is_of(opened, j, seed)}
    scored = zip(hits.ids, hits.scores.tolist(), strict=True)
    return [
        (shown(opened, Candidate(seed, id_, score, phase="search")), verdicts.get(id_, ""))
        for id_, score in scored
    ]


def _has_phrases(opened: Opened) -> bool:
    return opened.engine.collection.manifest.elastic is None


def _is_of(opened: Opened, judgement: Judgement, seed: str) -> bool:
    """Whether a judgement counts for this seed: in a topic, all seeds are of one."""
    return opened.review.settings.unit == "topic" or judgement.seed == seed


def _line(opened: Opened, id_: str) -> str:
    """Return a document's title or the beginning of its text; nothing where it has left the index."""
    if id_ not in opened.engine:
        return ""
    document = opened.engine.document(id_)
    return " ".join((document.title or document.text[:400]).split())[:200]


def _path(request: Request, opened: Opened, q: str) -> str:
    path = address(request, "judge", project=opened.project.key)
    return f"{path}?{urlencode({'q': q})}" if q else path
