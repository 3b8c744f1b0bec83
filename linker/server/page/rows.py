"""The Judge page of a review of rows: the list of rows, and one open row with its candidates, best first."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Form, Query, Request
from starlette.responses import RedirectResponse, Response

from indexes.errors import Reason
from linker.base.errors import InputError
from linker.review.interface import Candidate, JudgedMeanwhileError, Verdict
from linker.review.rows.accepting import LEVELS, drawn
from linker.review.rows.states import Row, before, counts, next_open
from linker.server.jobs.keeper import Standing
from linker.server.jobs.matching import specification
from linker.server.page import matching, running
from linker.server.page.judging import BRIEF, as_lines, decode_seen, encode_seen, group
from linker.server.page.matching import RowsView, view_of
from linker.server.page.rendering import address, go, is_swap, message, page, translate
from linker.server.page.reviews import InReview, Reader, Short
from linker.server.page.sessions import Session
from linker.server.shelf import Opened

router = APIRouter(prefix="/p/{project}/judge/rows")
HITS = 10  # maximum number of hits of a search for a row's match
MEANWHILE = message(
    "This row was judged meanwhile, in another window or by somebody else: nothing was stored. Look at how it stands, "
    "and judge again if you disagree."
)
CHANGED = message("The rows to accept have changed meanwhile: nothing was stored. Look at the numbers again.")

Name = Annotated[str, Query(max_length=2000)]
Text = Annotated[str, Form(max_length=20_000)]
Viewed = Annotated[RowsView, Depends(view_of)]
RowVerdict = Literal["relevant", "not", "none", "later"]


@router.get("", name="rows")
def show(
    request: Request,
    opened: InReview,
    view: Viewed,
    row: Name = "",
    id: Name = "",
    q: Name = "",
    to: Name = "",
    start: Annotated[int | None, Query(ge=0)] = None,
) -> Response:
    """Show the rows with one of them open: the named row, the one that `to` describes, or the next undecided one."""
    if not matching.is_rows(opened):
        return go(request, "judge", opened.project)
    job = _bring_up_to_date(request, opened)
    if matching.matches_of(opened) is None and job is not None and not job.has_ended:
        return go(request, "job", opened.project, task="match")
    notice = ""
    if to.strip():
        row = matching.find_row(matching.rows_of(opened, request.state.session.reviewer), to)
        notice = "" if row else translate(request).text(message("No row has this number or these words."))
    return _page(request, opened, view, row, id=id, q=q, start=start, notice=notice, job=job)


@router.post("", name="judge_row")
def judge(
    request: Request,
    opened: InReview,
    reader: Reader,
    view: Viewed,
    row: Short,
    verdict: Annotated[RowVerdict, Form()],
    id: Short = "",
    seen: Annotated[list[str], Form()] = [],  # noqa: B006 - FastAPI copies it
    standing: Text = "",
    note: Text = "",
    copies: Annotated[bool, Form()] = False,
) -> Response:
    """Store the judgement of a row or of its candidate, and show its next candidate or the next open row."""
    before = _row(opened, reader.reviewer, row)
    is_again = _is_again(before, id, verdict)
    try:
        if before.fingerprint != standing and not is_again:
            raise JudgedMeanwhileError(None)
        if verdict in ("relevant", "not"):
            others = group(opened, id) if copies and id in opened.engine else ()
            _judge(opened, reader, before, id, verdict, note.strip(), others, decode_seen(opened, seen, row))
        elif not is_again:
            closing: Verdict = "not" if verdict == "none" else "skip"
            opened.review.say_of_row(row, closing, reader.reviewer, note.strip(), reader.id)
    except JudgedMeanwhileError:
        return _page(request, opened, view, row, error=MEANWHILE)
    return _follow(request, opened, view, _after(opened, reader.reviewer, reader.id, view, row, verdict))


@router.post("/undo", name="undo_row")
def undo(request: Request, opened: InReview, reader: Reader, view: Viewed) -> Response:
    """Take back the reviewer's last judgement or bulk acceptance, and show its row again."""
    undone = opened.review.undo(reader.reviewer, reader.id)
    text = "" if undone else translate(request).text(message("There is nothing to undo."))
    return _follow(request, opened, view, undone.seed if undone else "", notice=text)


@router.post("/accept", name="accept_rows")
def accept(
    request: Request, opened: InReview, reader: Reader, view: Viewed, count: Annotated[int, Form()]
) -> Response:
    """Accept the best candidates of all undecided rows at the level shown.

    Nothing is accepted if there are no longer `count` of them.
    """
    tell = translate(request)
    offered = matching.offer_of(opened, matching.rows_of(opened, reader.reviewer), view.level)
    if offered is None or len(offered.links) != count or offered.under_way:
        return _page(request, opened, view, "", error=CHANGED)
    matches = matching.matches_of(opened)
    links = [Candidate(r.seed.id, m.id, m.probability, 1, m.probability) for r, m in offered.links]
    note = tell.text(message("Accepted unread at %(level)s"), level=tell.percent(offered.level))
    if offered.most is not None:
        note += "; " + tell.text(message("at most %(most)s wrong"), most=tell.number(offered.most))
    opened.review.accept(links, matches.stamp if matches else "", reader.reviewer, note)
    return _follow(request, opened, view, "")


@router.post("/accept/undo", name="take_back_rows")
def take_back(
    request: Request, opened: InReview, reader: Reader, view: Viewed, time: Short, by: Short = ""
) -> Response:
    """Take back the links of one bulk acceptance."""
    opened.ledger.take_back(lambda j: j.phase == "accepted" and (j.time, j.reviewer) == (time, by))
    return _follow(request, opened, view, "")


@router.post("/check", name="check_rows")
def check(request: Request, opened: InReview, reader: Reader, view: Viewed) -> Response:
    """Draw a random sample of the rows to accept, for people to read before the others are accepted."""
    rows = matching.rows_of(opened, reader.reviewer)
    offered = matching.offer_of(opened, rows, view.level)
    known = matching.check_of(opened)
    begun = drawn(offered.links, view.level, known) if offered else None
    if begun is None:
        return _page(request, opened, view, "", error=CHANGED)
    values = {"level": begun.level, "pairs": begun.pairs, "size": begun.size, "number": begun.number}
    opened.ledger.set("check", values)
    return _follow(request, opened, view, "")


@router.post("/several", name="several_matches")
def several(
    request: Request, opened: InReview, reader: Reader, view: Viewed, several: Annotated[bool, Form()] = False
) -> Response:
    """Set whether a row may have several matches."""
    opened.ledger.set("until", None)
    opened.ledger.set("per_seed", several)
    opened.review.refresh()
    return _follow(request, opened, view, "")


@router.post("/update", name="update_rows")
def update(request: Request, opened: InReview, reader: Reader) -> Response:
    """Find the candidates again, learning from the matches so far."""
    _start(request, opened)
    return go(request, "job", opened.project, task="match")


def _bring_up_to_date(request: Request, opened: Opened) -> Standing | None:
    """Start finding candidates if there are none, or if rows or documents have changed since.

    Returns the job in progress, or the failed or cancelled one, which only a person restarts.
    """
    job, matches = running.last(request, opened.project, "match"), matching.matches_of(opened)
    is_old = matches is None or not matching.is_current(opened, matches)
    if is_old and (job is None or job.state == "done"):
        job = _start(request, opened)
    return job if job is not None and job.state != "done" else None


def _start(request: Request, opened: Opened) -> Standing:
    return running.start(request, opened.project, "match", specification(opened.project, opened.ledger))


def _row(opened: Opened, reviewer: str, seed: str) -> Row:
    for row in matching.rows_of(opened, reviewer):
        if row.seed.id == seed:
            return row
    raise InputError(
        Reason(f"this review has no row {seed!r}: nothing was stored; load the page again", "gone")
    )


def _judge(
    opened: Opened,
    reader: Session,
    row: Row,
    id_: str,
    verdict: Literal["relevant", "not"],
    note: str,
    copies: Sequence[str],
    seen: str,
) -> None:
    """Store a verdict on a document as a candidate of its row, even if a search found it."""
    review, candidate = opened.review, matching.candidate(row, id_)
    if review.standing(candidate, reader.reviewer) is None and id_ in opened.engine:
        review.hold(candidate, reader.id)
    review.judge(candidate, verdict, reader.reviewer, note, copies=copies, holder=reader.id, seen=seen)


def _is_again(row: Row, id_: str, verdict: RowVerdict) -> bool:
    """Return whether the row has this judgement already, since a form may be sent twice."""
    return {
        "relevant": id_ in row.links, "not": id_ in row.rejected, "none": row.state == "none", "later": row.later
    }[verdict]  # fmt: skip


def _after(opened: Opened, reviewer: str, holder: str, view: RowsView, seed: str, verdict: RowVerdict) -> str:
    """Return the row to show: the same one while it needs more verdicts, else the next open one (see `_next`)."""
    row = _row(opened, reviewer, seed)
    enough = opened.review.settings.enough
    if verdict == "not" and row.state == "open":
        return seed
    if verdict == "relevant" and (enough is None or len(row.links) < enough):
        return seed
    return _next(opened, reviewer, holder, view, seed)


def _next(opened: Opened, reviewer: str, holder: str, view: RowsView, after: str = "") -> str:
    """Return the next open row in the view after the row `after`, else the next one overall, or an empty string."""
    rows = matching.rows_of(opened, reviewer)
    listed = RowsView(band=view.band, order=view.order).select(rows)
    busy = opened.review.seeds_elsewhere(holder)
    known, by_seed = matching.check_of(opened), {row.seed.id: row for row in rows}
    first = set(known.open(by_seed)) if known else set()
    if after in by_seed and view.order != "file":
        after = before((row for row in listed if row.seed.id != after), by_seed[after])
    found = next_open(listed, after, busy, first) or next_open(
        RowsView(order=view.order).select(rows), after, busy
    )
    return found.seed.id if found else ""


def _follow(request: Request, opened: Opened, view: RowsView, row: str, notice: str = "") -> Response:
    """Return the next row to the page's script, or redirect a browser without scripts to it."""
    if is_swap(request):
        return _page(request, opened, view, row, notice=notice)
    path = address(request, "rows", project=opened.project.key)
    return RedirectResponse(f"{path}?{view.query(row=row)}".rstrip("?"), 303)


def _page(
    request: Request,
    opened: Opened,
    view: RowsView,
    seed: str,
    *,
    id: str = "",
    q: str = "",
    start: int | None = None,
    notice: str = "",
    error: str = "",
    job: Standing | None = None,
) -> Response:
    session = request.state.session
    rows = matching.rows_of(opened, session.reviewer)
    if not any(row.seed.id == seed for row in rows):
        seed = _next(opened, session.reviewer, session.id, view) if session.reviewer else ""
    row = next((row for row in rows if row.seed.id == seed), None)
    listed = view.select(rows)
    first, shown = matching.window(listed, seed, start)
    path = address(request, "rows", project=opened.project.key)
    values: dict[str, Any] = {
        "view": view, "bands": matching.BANDS, "state_names": matching.STATE_NAMES, "levels": LEVELS,
        "counts": counts(rows), "count": len(rows), "listed": len(listed), "first": first, "step": matching.PAGE,
        "rows": [matching.as_values(one) for one in shown], "notice": notice, "job": job, "path_of_rows": path,
        "brief": BRIEF, "enough": opened.review.settings.enough, "offer": matching.offer_of(opened, rows, view.level),
        "batches": matching.batches(rows), "learnable": matching.learnable(opened, rows),
        "documents": len(opened.review.population.rows), "q": q, "path": f"{path}?{view.query(row=seed, id=id, q=q)}",
    }  # fmt: skip
    values |= _opened_row(opened, row, id, q, session) if row and session.reviewer else {"row": None}
    status = 409 if error else 0
    return page(
        request, "rows.html", values, project=opened.project, error=error, status=status, within="rows"
    )


def _opened_row(opened: Opened, row: Row, id_: str, q: str, session: Session) -> dict[str, Any]:
    """Return the view of the open row, and reserve the row for this reader."""
    review = opened.review
    hits: tuple[str, ...] = ()
    if q.strip():
        (found,) = opened.engine.search(q, HITS, probabilities=False).hits
        hits = tuple(i for i in found.ids if (row.seed.id, i) in review.population)
    document = matching.current(row, id_ or (hits[0] if hits else ""))
    is_free = row.state != "open" or review.hold(matching.candidate(row, document), session.id)
    standing = review.standing(matching.candidate(row, document), session.reviewer) if document else None
    return {
        "row": row, "shown": matching.open_document(opened, row, document), "document": document, "is_free": is_free,
        "options": matching.options(opened, row, hits), "hits": hits, "standing": standing,
        "note": next((j.note for j in (standing, row.closed) if j and j.reviewer == session.reviewer), ""),
        "chance": row.chance(document), "seen": encode_seen(standing.verdict, row.seed.id) if standing else "",
        "label": matching.label(row), "about": as_lines(row.seed.metadata),
    }  # fmt: skip
