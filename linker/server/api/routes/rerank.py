"""`POST /v1/rerank` in the formats of Cohere and Text Embeddings Inference (TEI): texts ranked for a query."""

import secrets
from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
from fastapi import Body
from pydantic import Field
from starlette.responses import Response

from indexes.dtypes import Float32Array
from linker.server.api.routes.common import InService, about, examples, json, routes, success
from linker.server.api.routes.embeddings import LONGEST, ModelName, with_encoder
from linker.server.fields import Model

router = routes("models")
MOST_TEXTS = 1000

Text = Annotated[str, Field(max_length=LONGEST)]
Query = Annotated[
    str,
    Field(min_length=1, max_length=LONGEST, description="The text to rank for."),
]
TEXTS = ["Heavy rain flooded the streets of Valencia", "Voters elected a parliament"]


class TextDocument(Model):
    """A document sent as an object."""

    text: Text


class CohereRequest(Model):
    """A request in Cohere's format, which has `documents`."""

    query: Query
    documents: list[Text | TextDocument] = Field(min_length=1, max_length=MOST_TEXTS)
    model: ModelName | None = None
    top_n: int | None = Field(None, ge=1, description="How many results; default: all.")
    return_documents: bool = Field(False, description="Whether each result includes its document's text.")
    max_tokens_per_doc: int | None = Field(None, ge=1, description="Ignored: the encoder cuts long texts.")
    max_chunks_per_doc: int | None = Field(None, ge=1, description="Ignored.")


class TeiRequest(Model):
    """A request in TEI's format, which has `texts`."""

    query: Query
    texts: list[Text] = Field(min_length=1, max_length=MOST_TEXTS)
    model: ModelName | None = None
    raw_scores: bool = Field(False, description="Return negative cosines, too; otherwise they become 0.")
    return_text: bool = Field(False, description="Whether each result includes its text.")
    truncate: bool | None = Field(None, description="Ignored: the encoder cuts long texts.")
    truncation_direction: str | None = Field(None, max_length=20, description="Ignored.")


class CohereResult(Model):
    """The position in the request and the score of one document."""

    index: int = Field(description="Position of the document in the request, from 0.")
    relevance_score: float = Field(ge=0, le=1, description="Cosine of query and document, at least 0.")
    document: TextDocument | None = None


class CohereAnswer(Model):
    """The results, best first."""

    id: str
    results: list[CohereResult]
    meta: dict[str, Any]


class TeiRank(Model):
    """The position in the request and the score of one text."""

    index: int = Field(description="Position of the text in the request, from 0.")
    score: float
    text: str | None = None


EXAMPLES = examples(
    Cohere={"model": "news", "query": "floods", "documents": TEXTS, "top_n": 1, "return_documents": True},
    TEI={"query": "floods", "texts": TEXTS, "raw_scores": True},
)
ANSWER = {
    "id": "1f0c",
    "results": [{"index": 0, "relevance_score": 0.71}],
    "meta": {"api_version": {"version": "1"}},
}


@router.post(
    "/v1/rerank",
    **about(
        CohereAnswer | list[TeiRank],
        "Order texts for a query (Cohere's and TEI's shapes)",
        501,
        success={200: success(ANSWER, "The order; as a list of ranks if `texts` were sent.")},
    ),
)
async def rerank(
    request: Annotated[CohereRequest | TeiRequest, Body(openapi_examples=EXAMPLES)], service: InService
) -> Response:
    """Rank texts by their cosine with the query, best first; a request with `texts` gets TEI's response format."""
    served = with_encoder(service, request.model)

    texts = [text if isinstance(text, str) else text.text for text in _texts(request)]
    parts = await served.each(served.engine.embed, [request.query, *texts])

    def ordered() -> Response:
        vectors = np.concatenate(parts)
        cosines = np.clip(vectors[1:] @ vectors[0], -1, 1)
        return json(
            _tei(request, cosines) if isinstance(request, TeiRequest) else _cohere(request, texts, cosines)
        )

    return await served.heavy.run(ordered)


def _texts(request: CohereRequest | TeiRequest) -> Sequence[str | TextDocument]:
    return request.texts if isinstance(request, TeiRequest) else request.documents


def _order(scores: Float32Array) -> list[int]:
    order: list[int] = np.argsort(-scores, kind="stable").tolist()
    return order


def _cohere(request: CohereRequest, texts: list[str], cosines: Float32Array) -> dict[str, Any]:
    results: list[dict[str, Any]] = []
    for index in _order(cosines)[: request.top_n]:
        result: dict[str, Any] = {"index": index, "relevance_score": max(0.0, float(cosines[index]))}
        results.append(result | ({"document": {"text": texts[index]}} if request.return_documents else {}))
    return {"id": secrets.token_hex(16), "results": results, "meta": {"api_version": {"version": "1"}}}


def _tei(request: TeiRequest, cosines: Float32Array) -> list[dict[str, Any]]:
    scores = cosines if request.raw_scores else np.maximum(cosines, 0)
    ranks: list[dict[str, Any]] = []
    for index in _order(cosines):
        rank: dict[str, Any] = {"index": index, "score": float(scores[index])}
        ranks.append(rank | ({"text": request.texts[index]} if request.return_text else {}))
    return ranks
