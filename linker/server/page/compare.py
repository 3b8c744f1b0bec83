"""The Compare page: the agreement of two reviewers, the effect of a score threshold, and the measures of runs."""

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, File, Form, Request, UploadFile
from starlette.responses import Response

from indexes.errors import reason_of
from linker.base.errors import InputError
from linker.evaluation.comparison import compare
from linker.review.agreement import CONSENSUS, Agreement, agreement, decided, resolve
from linker.review.curve import Point, points, scores
from linker.review.interface import Verdict
from linker.server.page.files import copies_of
from linker.server.page.rendering import NAMES, go, message, page
from linker.server.page.reviews import InReview, Reader, Short
from linker.server.shelf import Opened

router = APIRouter()
MEASURES = "map recip_rank success.1,5"  # the same as linker.evaluation.comparison.DEFAULT
SHOWN = 60  # maximum number of conflicts on a page
Upload = Annotated[Sequence[UploadFile], File()]


@router.get("/p/{project}/compare", name="compare")
def show(request: Request, opened: InReview, first: str = "", second: str = "") -> Response:
    """Show how well two reviewers agree, and which documents a score threshold would keep."""
    return _page(request, opened, first, second)


def _page(request: Request, opened: Opened, first: str = "", second: str = "", **values: Any) -> Response:
    people = [name for name in opened.ledger.reviewers if name != CONSENSUS]
    names = (first, second) if {first, second} <= set(people) and first != second else tuple(people[:2])
    content: dict[str, Any] = {
        "people": people, "chosen": names, "agreed": None, "documents": {}, "table": None, "remarks": [],
        "pairs": opened.review.settings.unit == "pairs", "names": NAMES, "curve": _curve(opened), "error_at": "",
        "measures": MEASURES,
    }  # fmt: skip
    if len(names) == 2:
        content["agreed"] = agreed = _agreement(opened, *names)
        ids = [c.first.id for c in agreed.conflicts[:SHOWN] if c.first.id in opened.engine]
        content["documents"] = {id_: opened.engine.document(id_) for id_ in ids}
    error = values.pop("error", "")
    return page(
        request, "compare.html", content | values, project=opened.project, error=error, within="compare"
    )


def _agreement(opened: Opened, first: str, second: str) -> Agreement:
    topic = opened.review.settings.unit == "topic"
    return agreement(opened.ledger.judgements(), first, second, by_document=topic)


def _curve(opened: Opened) -> dict[str, Any]:
    """Return the points of the precision-recall curve of the decisions, and whether scores are probabilities."""
    topic = opened.review.settings.unit == "topic"
    final = decided(opened.ledger.judgements(), by_document=topic)
    known = {(j.seed, j.id): j.relevant for j in final if j.verdict != "maybe"}
    if not any(known.values()):
        return {"points": [], "judged": len(known), "calibrated": False}
    seeds, generation = opened.review.seeds, opened.engine.collection.manifest.generation
    values, calibrated = opened.once(
        "scores",
        (generation, seeds, known, topic),
        lambda: scores(opened.engine, seeds, known, by_document=topic),
    )
    return {
        "points": [_rounded(p) for p in points(values.tolist(), list(known.values()))],
        "judged": len(known),
        "calibrated": calibrated,
    }


def _rounded(point: Point) -> list[float]:
    precision, recall = round(point.precision, 4), round(point.recall, 4)
    return [round(point.threshold, 6), point.judged, point.relevant, precision, recall]


@router.post("/p/{project}/compare/resolve", name="resolve")
def decide(
    request: Request,
    opened: InReview,
    reader: Reader,
    id: Short,
    verdict: Annotated[Verdict, Form()],
    seed: Short = "",  # an empty field counts as missing
    first: Short = "",
    second: Short = "",
) -> Response:
    """Record the decision on a conflict; both judgements stay as they are."""
    agreed = _agreement(opened, first, second)
    conflict = next((c for c in agreed.conflicts if (c.first.id, c.first.seed) == (id, seed)), None)
    if conflict is None:
        raise InputError(message("The reviewers agree on this document by now: there is nothing to decide."))
    resolve(opened.ledger, conflict, verdict, reader.reviewer)
    opened.review.refresh()
    return go(request, "compare", opened.project, first=first, second=second)


@router.post("/p/{project}/compare/upload", name="compare_runs")
def compare_runs(
    request: Request,
    opened: InReview,
    runs: Upload = (),
    qrels: Upload = (),
    measures: Short = MEASURES,
) -> Response:
    """Compare two or more runs by judgements in a file, or by the decisions in this review."""
    names = measures.replace(";", " ").split() or MEASURES.split()
    try:
        with copies_of(runs) as paths, copies_of(itertools.islice(qrels, 1)) as judgements:
            if len(paths) < 2:
                raise InputError(message("Choose two rankings or more."))
            comparison = compare(judgements[0] if judgements else _qrels(opened), paths, names)
    except InputError as e:
        return _page(request, opened, error=reason_of(e), error_at="runs", measures=measures)
    rows, remarks = comparison.rows, comparison.remarks()
    for path in paths:  # the label of a run is its path if several have the same name in the sixth column
        rows = tuple(dataclasses.replace(row, run=row.run.replace(str(path), path.name)) for row in rows)
        remarks = [remark.replace(str(path), path.name) for remark in remarks]
    return _page(request, opened, table=rows, remarks=remarks, measures=measures)


def _qrels(opened: Opened) -> dict[str, dict[str, int]]:
    """Return the decisions as qrels. Raises InputError if there are none."""
    qrels: dict[str, dict[str, int]] = {}
    for judgement in decided(opened.ledger.judgements()):
        qrels.setdefault(judgement.seed, {})[judgement.id] = int(judgement.relevant)
    if not qrels:
        raise InputError(message("Nothing was judged in this review yet: choose a file of judgements."))
    return qrels
