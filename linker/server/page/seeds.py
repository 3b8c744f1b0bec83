"""The Seeds page: the texts to find links for, chosen from the documents, pasted or uploaded."""

from collections.abc import Iterable, Mapping
from typing import Annotated

from fastapi import APIRouter, Form, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.responses import Response

from indexes.errors import reason_of
from indexes.interface import Document
from linker.base.errors import InputError
from linker.corpora import preview
from linker.review.interface import Seed
from linker.server.page.files import copies_of
from linker.server.page.rendering import go, message, page, translate
from linker.server.page.reviews import InReview, Short
from linker.server.page.search import results
from linker.server.shelf import Opened

router = APIRouter(prefix="/p/{project}/seeds")
HITS = 10  # number of documents to choose from
PAGE = 50  # number of seeds on a page

Text = Annotated[str, Form(max_length=500_000)]


@router.get("", name="seeds")
def show(
    request: Request,
    opened: InReview,
    q: Annotated[str, Query(max_length=2000)] = "",
    start: Annotated[int, Query(ge=0)] = 0,
) -> Response:
    """List the seeds, and the hits of a search, which can be added as seeds."""
    return _page(request, opened, q=q, start=start)


@router.post("/choose", name="choose_seed")
def choose(request: Request, opened: InReview, id: Short, q: Short = "", back: Text = "") -> Response:
    """Make a document of the index a seed; `back`: the search that offered it, to which the reader returns."""
    if id not in opened.engine:
        text = translate(request).text(message("There is no document %(id)s."), id=id)
        return _page(request, opened, q=q, errors={"choose": text})
    take(opened, [opened.engine.document(id)])
    return results(request, opened, back) if back else _back(request, opened)


@router.post("/paste", name="paste_seed")
def paste(request: Request, opened: InReview, text: Text = "", title: Short = "") -> Response:
    """Make a typed or pasted text a seed."""
    text, title = text.replace("\r\n", "\n").strip(), " ".join(title.split())
    if not text and not title:
        return _page(request, opened, errors={"paste": message("Paste the text of the seed first.")})
    _put(opened, [Seed(_free_id(opened), text or title, title if text else "")])
    return _back(request, opened)


@router.post("/upload", name="upload_seeds")
async def upload(request: Request, opened: InReview) -> Response:
    """Make every record of a file a seed."""
    file = (await request.form()).get("file")
    if not isinstance(file, UploadFile) or not file.filename:
        return _page(request, opened, errors={"upload": message("Choose a file first.")})
    try:
        seeds, left_out = await run_in_threadpool(_read, file)
    except InputError as e:
        return _page(request, opened, errors={"upload": reason_of(e)})
    if not seeds:
        return _page(request, opened, errors={"upload": message("No record of this file can be a seed.")})
    await run_in_threadpool(_put, opened, seeds)
    if left_out:
        text = translate(request).plural(
            "%(num)s record was left out.", "%(num)s records were left out.", left_out
        )
        return await run_in_threadpool(_page, request, opened, notice=text)
    return _back(request, opened)


@router.post("/remove", name="remove_seed")
def remove(request: Request, opened: InReview, id: Short) -> Response:
    """Remove a seed; judgements made for it stay in the ledger."""
    opened.ledger.remove_seeds([id])
    opened.review.refresh()
    return _back(request, opened)


def _page(
    request: Request,
    opened: Opened,
    *,
    q: str = "",
    start: int = 0,
    errors: Mapping[str, str] | None = None,
    notice: str = "",
) -> Response:
    seeds = opened.review.seeds
    values = {
        "seeds": seeds[start : start + PAGE], "count": len(seeds), "start": start, "step": PAGE,
        "judged": opened.review.progress().read, "q": q, "hits": _hits(opened, q) if q.strip() else None,
        "chosen": {seed.document for seed in seeds}, "errors": errors or {}, "notice": notice,
    }  # fmt: skip
    return page(
        request, "seeds.html", values, project=opened.project, status=400 if errors else 200, within="seeds"
    )


def _hits(opened: Opened, q: str) -> list[Document]:
    (hits,) = opened.engine.search(q, HITS, probabilities=False).hits
    return [opened.engine.document(id_) for id_ in hits.ids]


def take(opened: Opened, documents: Iterable[Document]) -> None:
    """Make documents of the index seeds."""
    _put(opened, (Seed(d.id, d.text, d.title, d.metadata, d.id) for d in documents))


def _put(opened: Opened, seeds: Iterable[Seed]) -> None:
    opened.ledger.put_seeds(seeds)
    opened.review.refresh()


def _free_id(opened: Opened) -> str:
    known = {seed.id for seed in opened.ledger.seeds}
    number = len(known) + 1
    while f"seed-{number}" in known:
        number += 1
    return f"seed-{number}"


def _read(file: UploadFile) -> tuple[list[Seed], int]:
    """Return the seeds in an upload, and the number of unusable records. Raises InputError."""
    from linker.server.jobs.indexing import UploadedFile, read_seeds

    with copies_of([file]) as (path,):
        seeds, bad = read_seeds([UploadedFile(path, preview(path).guess())])
    return seeds, len(bad)


def _back(request: Request, opened: Opened) -> Response:
    return go(request, "seeds", opened.project)
