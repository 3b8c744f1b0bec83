"""The pairs that certify the precision of groups or estimate their recall: drawn at random, judged one by one."""

from typing import Annotated

from fastapi import APIRouter, Form, Request
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response

from linker.engine.evidence import evidence
from linker.review.interface import Judgement, Verdict
from linker.server.page import grouping
from linker.server.page.grouping import EditedStories, Missed, PairSample, View, What, ledger_of
from linker.server.page.groups import CHANGED, listing
from linker.server.page.rendering import address, go, message, page
from linker.server.page.reviews import InReview, Reader, Short
from linker.server.shelf import Opened

router = APIRouter(prefix="/p/{project}/groups/check")
LONGEST = 6000  # maximum number of characters of a document to show in a pair


@router.get("", name="check_groups")
def check(request: Request, opened: InReview, what: What = "") -> Response:
    """Show the next pair of the sample."""
    return _pair(request, opened, what)


@router.post("/draw", name="draw_pairs")
def draw(
    request: Request, opened: InReview, reader: Reader, what: What = "", level: Annotated[float, Form()] = 0.9
) -> Response:
    """Draw the pairs to judge: to certify the precision `level` or, with `what`, to estimate the recall."""
    if level not in grouping.LEVELS:
        raise HTTPException(404)
    stories = grouping.needed(opened)
    if what:
        grouping.draw_missed(opened, stories)
    elif not grouping.draw(opened, stories, level):
        text = message("No test of at most 300 pairs would show so high a share. Choose a lower one.")
        return listing(request, opened, View(), text)
    return RedirectResponse(_here(request, opened, what), 303)


@router.post("", name="judge_pair")
def judge(
    request: Request,
    opened: InReview,
    reader: Reader,
    one: Short,
    other: Short,
    verdict: Annotated[Verdict, Form()],
    what: What = "",
) -> Response:
    """Store whether two documents belong together."""
    sample = _sample(opened, grouping.needed(opened), what)
    if sample is None or (one, other) not in sample.pairs:
        return _pair(request, opened, what, CHANGED)
    if (one, other) not in sample.answers:
        ledger_of(opened).add(Judgement(one, other, verdict, reader.reviewer))
    return RedirectResponse(_here(request, opened, what), 303)


@router.post("/undo", name="undo_pair")
def undo_pair(request: Request, opened: InReview, reader: Reader, what: What = "") -> Response:
    """Take back this reviewer's last answer."""
    own = [j for j in ledger_of(opened).judgements(reader.reviewer) if not j.tags]
    if own:
        ledger_of(opened).take_back(lambda judgement: judgement == own[-1])
    return RedirectResponse(_here(request, opened, what), 303)


def _here(request: Request, opened: Opened, what: What) -> str:
    path = address(request, "check_groups", project=opened.project.key)
    return f"{path}?what={what}" if what else path


def _sample(opened: Opened, stories: EditedStories, what: What) -> PairSample | Missed | None:
    return grouping.missed_of(opened, stories) if what else grouping.check_of(opened, stories)


def _pair(request: Request, opened: Opened, what: What, error: str = "") -> Response:
    stories = grouping.needed(opened)
    sample = _sample(opened, stories, what)
    if sample is None:
        return go(request, "groups", opened.project)
    reviewer = request.state.session.reviewer
    skipped = [(j.seed, j.id) for j in ledger_of(opened).judgements(reviewer) if j.verdict == "skip"]
    pair = sample.following(skipped) if reviewer else None
    documents = [opened.engine.document(id_) for id_ in pair or () if id_ in opened.engine]
    pages = [
        (one, evidence(opened.engine.collection, other.full_text, one.text[:LONGEST]))
        for one, other in zip(documents, reversed(documents), strict=True)
    ]
    least = sample.threshold if isinstance(sample, PairSample) else 0.0
    values = {
        "asked": sample, "what": what, "here": _here(request, opened, what), "pair": pair, "documents": pages,
        "longest": LONGEST, "kept": sum((s.probability or 0) >= least for s in stories.made.stories),
    }  # fmt: skip
    return page(request, "group_pairs.html", values, project=opened.project, error=error)
