"""The Search page: hits outside the queue, filtered by field, to be judged at once or added as seeds."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import urlencode

import numpy as np
from fastapi import APIRouter, Form, Request
from starlette.responses import RedirectResponse, Response

from indexes.errors import reason_of
from indexes.interface import Document, Filter, IndexesError
from linker.base.errors import InputError
from linker.engine.evidence import SharedWords, evidence, query_terms
from linker.engine.folding import fold
from linker.review.fields import MetadataField, fields
from linker.review.interface import Candidate, Verdict
from linker.server.page.judging import SeedOffer, decode_seen, offers
from linker.server.page.rendering import address, page
from linker.server.page.reviews import InReview, Reader
from linker.server.shelf import Opened

router = APIRouter()
SHOWN, MOST = 50, 1000  # number of hits on the first page, and maximum number
EXCERPT = 420  # number of characters shown of a hit's text
Text = Annotated[str, Form(max_length=100_000)]


@dataclass(frozen=True, slots=True)
class Line:
    """One hit: a document with matches marked, the copies folded into it, and its judgements."""

    rank: int
    document: Document
    evidence: SharedWords
    copies: tuple[Document, ...]
    offer: SeedOffer
    is_seed: bool
    probability: float | None = None


@router.get("/p/{project}/search", name="search")
def show(request: Request, opened: InReview) -> Response:
    """Show the hits of a query, or only the search box."""
    query = dict(request.query_params)
    text = query.get("q", "").strip()
    offered = _fields(opened.engine, opened.engine.collection.manifest.generation)
    filtered = any(value for name, value in query.items() if name.startswith(("is.", "from.", "to.")))
    values: dict[str, Any] = {"query": query, "text": text, "fields": offered, "filtered": filtered}
    values |= {"lines": [], "more": "", "found": 0, "degraded": ""}
    error = ""
    if text:
        try:
            values |= _answer(opened, text, query, offered, request.state.session.reviewer)
        except (InputError, IndexesError) as e:
            error = reason_of(e)
    return page(request, "search.html", values, project=opened.project, error=error)


@functools.lru_cache(maxsize=16)
def _fields(engine: Any, generation: int) -> list[MetadataField]:
    return fields(engine)


def _count(query: Mapping[str, str]) -> int:
    number = query.get("n", "")
    return min(int(number), MOST) if number.isdecimal() and len(number) < 9 and int(number) else SHOWN


def conditions(query: Mapping[str, str], offered: list[MetadataField]) -> Filter | None:
    """Return the filter given by the form's fields `is.NAME`, `from.NAME` and `to.NAME`. Raises BadFilterError."""
    asked: dict[str, Any] = {}
    for field in offered:
        low, high = query.get(f"from.{field.name}", "").strip(), query.get(f"to.{field.name}", "").strip()
        signs = {sign: value for sign, value in ((">=", low), ("<=", high)) if value}
        if signs:
            asked[field.name] = signs
        elif value := query.get(f"is.{field.name}", "").strip():
            asked[field.name] = value
    return Filter.parse(asked) if asked else None


def _answer(
    opened: Opened, text: str, query: Mapping[str, str], offered: list[MetadataField], reviewer: str
) -> dict[str, Any]:
    count = _count(query)
    where = conditions(query, offered)
    answer = opened.engine.search(text, count, where=where, phrases='"' in text)
    hits = answer.hits[0]
    documents = [opened.engine.document(id_) for id_ in hits.ids]
    chances = answer.probabilities[0] if answer.probabilities is not None else None
    folds = fold([document.full_text for document in documents])
    leaders = [documents[group.leader].id for group in folds]
    found = offers(opened, leaders, reviewer, query.get("seed", ""))
    seeds = {seed.document for seed in opened.ledger.seeds}
    lines, terms = [], query_terms(opened.engine.collection, text)
    for group in folds:
        document = documents[group.leader]
        lines.append(
            Line(
                group.leader + 1,
                document,
                evidence(opened.engine.collection, terms, document.text, document.title).excerpt(EXCERPT),
                tuple(documents[i] for i in group.copies),
                found[document.id],
                document.id in seeds,
                None if chances is None or np.isnan(chances[group.leader]) else float(chances[group.leader]),
            )
        )
    more = min(4 * count, MOST) if len(hits) == count and count < MOST else 0
    address_of_more = urlencode({**query, "n": more}) if more else ""
    return {"lines": lines, "found": len(hits), "more": address_of_more, "degraded": answer.degraded}


@router.post("/p/{project}/search/judge", name="search_judge")
def judge(
    request: Request,
    opened: InReview,
    reader: Reader,
    id: Annotated[list[str], Form()],
    verdict: Annotated[Verdict, Form()],
    seed: Text = "",
    seen: Annotated[list[str], Form()] = [],  # noqa: B006 - FastAPI copies it
    back: Text = "",
) -> Response:
    """Judge a hit, with the copies folded into it, as a document found by search."""
    opened.review.judge(
        Candidate(seed, id[0], 0.0, phase="search"), verdict, reader.reviewer,
        copies=id[1:], holder=reader.id, seen=decode_seen(opened, seen, seed),
    )  # fmt: skip
    return results(request, opened, back)


def results(request: Request, opened: Opened, back: str) -> Response:
    """Return to the results from which a form was sent; only addresses of this page are allowed."""
    path = address(request, "search", project=opened.project.key)
    return RedirectResponse(f"{path}{back}" if back.startswith("?") and back.isprintable() else path, 303)
