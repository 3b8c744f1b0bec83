"""The pairs that certify a precision of groups: drawn at random, judged one after the other, tested once at the end."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form, Request
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response

from linker.engine.evidence import evidence
from linker.review.interface import Judgement, Verdict
from linker.server.page import grouping
from linker.server.page.grouping import View, ledger_of
from linker.server.page.groups import CHANGED, Short, listing
from linker.server.page.rendering import address, message, page, translate
from linker.server.page.reviews import InReview, Reader
from linker.server.shelf import Opened

router = APIRouter(prefix="/p/{project}/groups/check")
LONGEST = 6000  # characters of a document of a pair


@router.get("", name="check_groups")
def check(request: Request, opened: InReview) -> Response:
    """Show the next pair of the sample."""
    return _pair(request, opened)


@router.post("/draw", name="draw_pairs")
def draw(
    request: Request, opened: InReview, reader: Reader, level: Annotated[float, Form()] = 0.9
) -> Response:
    """Draw the pairs to judge for a precision."""
    if level not in grouping.LEVELS:
        raise HTTPException(404)
    if not grouping.draw(opened, grouping.needed(opened), level):
        text = message("No test of at most 300 pairs would show so high a share. Choose a lower one.")
        return listing(request, opened, View(), translate(request).text(text))
    return RedirectResponse(address(request, "check_groups", project=opened.project.key), 303)


@router.post("", name="judge_pair")
def judge(
    request: Request,
    opened: InReview,
    reader: Reader,
    one: Short,
    other: Short,
    verdict: Annotated[Verdict, Form()],
) -> Response:
    """Store whether two documents belong together."""
    found = grouping.check_of(opened, grouping.needed(opened))
    if found is None or (one, other) not in found.sample.pairs:
        return _pair(request, opened, translate(request).text(CHANGED))
    if (one, other) not in found.answers:
        ledger_of(opened).add(Judgement(one, other, verdict, reader.reviewer))
    return RedirectResponse(address(request, "check_groups", project=opened.project.key), 303)


@router.post("/undo", name="undo_pair")
def undo_pair(request: Request, opened: InReview, reader: Reader) -> Response:
    """Take back this reviewer's last answer."""
    own = [j for j in ledger_of(opened).judgements(reader.reviewer) if not j.tags]
    if own:
        ledger_of(opened).take_back(lambda judgement: judgement == own[-1])
    return RedirectResponse(address(request, "check_groups", project=opened.project.key), 303)


def _pair(request: Request, opened: Opened, error: str = "") -> Response:
    stories = grouping.needed(opened)
    found = grouping.check_of(opened, stories)
    if found is None:
        return RedirectResponse(address(request, "groups", project=opened.project.key), 303)
    reviewer = request.state.session.reviewer
    skipped = [(j.seed, j.id) for j in ledger_of(opened).judgements(reviewer) if j.verdict == "skip"]
    pair = found.following(skipped) if reviewer else None
    documents = [opened.engine.document(id_) for id_ in pair or () if id_ in opened.engine]
    shown = [
        (one, evidence(opened.engine.collection, other.full_text, one.text[:LONGEST]))
        for one, other in zip(documents, reversed(documents), strict=True)
    ]
    values = {"check": found, "pair": pair, "documents": shown, "longest": LONGEST}
    values["kept"] = sum((s.probability or 0) >= found.sample.threshold for s in stories.made.stories)
    return page(request, "group_pairs.html", values, project=opened.project, error=error)
