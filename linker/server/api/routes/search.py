"""`POST /v1/search`: the documents that match one text or many."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal, Self

import numpy as np
from fastapi import Body
from pydantic import Field, model_validator
from starlette.responses import Response

from indexes.anywhere import AnyCollection
from indexes.hybrid import Answer, Mode
from indexes.interface import Filter, Hits, RowFilter, RowSearch
from indexes.text.search import TextSearch
from linker.engine.engine import Engine
from linker.engine.options import SearchOptions
from linker.scoring.ranking import pooled
from linker.scoring.ranking.ranker import Ranker
from linker.server.api.routes.common import (
    MOST_VALUES,
    IndexName,
    InService,
    Mapping,
    about,
    describe,
    examples,
    json,
    routes,
    success,
)
from linker.server.api.served import Served
from linker.server.fields import Model, option

EXPLAINED_TEXTS, EXPLAINED_K = 10, 100  # limits of a request with `explain`, which costs a second search
FEATURES = 8  # features of a ranker shown per document
router = routes("search")
MOST_TEXTS, MOST_K, LONGEST = 1000, 1000, 100_000
MOST_HITS = 100_000  # maximum number of hits of all texts of a request together
FEW = 100  # maximum number of hits that are serialised without a thread
Text = Annotated[str, Field(max_length=LONGEST)]
Where = (
    Annotated[str, Field(max_length=10_000)]
    | Annotated[list[Annotated[str, Field(max_length=10_000)]], Field(max_length=MOST_VALUES)]
    | Mapping
)
EXAMPLES = examples(
    one_text={"text": "heavy rain in Valencia", "k": 3},
    only_English={"text": "parliament", "where": "lang=en", "documents": False},
    several_texts={
        "texts": ["floods", "elections"],
        "k": 1,
        "where": {"lang": ["en", "de"]},
        "explain": True,
    },
)
ANSWER = {
    "index": "news", "mode": "bm25", "degraded": "", "reranked": False, "ranker": "", "calibration": "", "notes": [],
    "results": [
        {
            "hits": [
                {"id": "a1", "score": 1.84, "title": "Floods", "text": "Heavy rain in Valencia",
                 "metadata": {"lang": "en"}}
            ]
        }
    ],
}  # fmt: skip


def explain(
    engine: Engine, texts: Sequence[str], answer: Answer, ranker: Ranker | None
) -> list[list[dict[str, Any]]]:
    """Return for each hit of each text its scores from `bm25` and `dense`, and the parts of the `ranker`'s score.

    A score is missing if its retriever is missing, or if the document shares no term with the text. Documents that a
    later commit has deleted have no scores.
    """
    collection = engine.collection
    vectors = collection.hybrid.vectors
    queries = engine.embed(texts) if vectors is not None and collection.manifest.encoder else None
    explained = []
    for number, (text, hits) in enumerate(zip(texts, answer.hits, strict=True)):
        scores: dict[str, dict[str, float]] = {}
        if collection.hybrid.text is not None:
            scores["bm25"] = _scores(collection, collection.hybrid.text, [text], hits.ids)
        if vectors is not None and queries is not None:
            scores["dense"] = _scores(collection, vectors, queries[number : number + 1], hits.ids)
        moved = _moved(engine, text, ranker) if answer.ranker and ranker else {}
        explained.append(
            [
                {name: found[id_] for name, found in scores.items() if id_ in found}
                | ({"ranker": moved[id_]} if id_ in moved else {})
                for id_ in hits.ids
            ]
        )
    return explained


def _scores(
    collection: AnyCollection, retriever: RowSearch | TextSearch, query: Any, ids: Sequence[str]
) -> dict[str, float]:
    if collection.manifest.elastic:  # Elasticsearch cannot be queried by row
        return {}
    known = [id_ for id_ in ids if id_ in collection.rows]
    if not known:
        return {}
    allowed = np.zeros(len(collection.rows.ids), dtype=bool)
    allowed[collection.rows.locate(known)] = True
    (hits,) = collection.rows.hits(*retriever.search_rows(query, len(known), RowFilter((), allowed)))
    return dict(zip(hits.ids, hits.scores.tolist(), strict=True))


def _moved(engine: Engine, text: str, ranker: Ranker) -> dict[str, dict[str, Any]]:
    _, _, moved = engine.ranked_search(ranker).explain(text, FEATURES)
    return {id_: {"start": m.start, "features": dict(m.features), "rest": m.rest} for id_, m in moved}


class SearchRequest(Model):
    """A text, or several searched for together."""

    index: IndexName = None
    text: Text | None = Field(None, description="One text.", examples=["floods in Valencia"])
    texts: list[Text] | None = Field(
        None, max_length=MOST_TEXTS, description="Several texts, in place of `text`; each gets a result."
    )
    k: int = option(SearchOptions, "k", le=MOST_K)
    mode: Mode | None = option(SearchOptions, "mode")
    where: Where | None = Field(
        None,
        description="Only documents whose metadata match: conditions as lines of a string, a list, or a mapping.",
        examples=["lang=en|de", ["lang=en", "date>=2021-01-31"], {"lang": ["en", "de"], "likes": {">": 100}}],
    )
    rerank: bool | Literal["pooled"] = Field(
        True,
        description="Whether the ranker stored in the index orders the documents; `pooled`: linker's own ranker does.",
    )
    phrases: bool = option(SearchOptions, "phrases")
    explain: bool = Field(
        False,
        description="Whether each hit includes the scores of each retriever; for up to "
        f"{EXPLAINED_TEXTS} texts and k up to {EXPLAINED_K}.",
    )
    documents: bool = Field(True, description="Whether each hit includes title, text and metadata.")

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.text is None) == (self.texts is None):
            raise ValueError("give either text or texts")
        if len(self.all) * self.k > MOST_HITS:
            raise ValueError(f"at most {MOST_HITS:,} documents in total: send fewer texts or a smaller k")
        if self.explain and (len(self.all) > EXPLAINED_TEXTS or self.k > EXPLAINED_K):
            most = f"{EXPLAINED_TEXTS} texts, with a k of at most {EXPLAINED_K}"
            raise ValueError(f"explain accepts at most {most}")
        return self

    @property
    def all(self) -> list[str]:
        """The texts, as a list."""
        return [self.text] if self.text is not None else self.texts or []

    @property
    def options(self) -> SearchOptions:
        """The options of the search. Raises BadFilterError if `where` is invalid."""
        return SearchOptions(
            self.k,
            mode=self.mode,
            where=Filter.parse(self.where),
            reranker=pooled.load() if self.rerank == "pooled" else None,
            stored_ranker=self.rerank is True,
            phrases=self.phrases,
        )


class Contributions(Model):
    """The parts of a ranker's score, which is start + the sum of `features` + rest."""

    start: float = Field(description="The same for all documents of a text.")
    features: dict[str, float] = Field(description=f"The {FEATURES} largest contributions, by feature.")
    rest: float = Field(description="The sum of all other contributions.")


class Explanation(Model):
    """Why a document was found, if `explain` is set."""

    bm25: float | None = Field(
        None, description="Its score by BM25; missing if it shares no term with the text."
    )
    dense: float | None = Field(None, description="The cosine of its vector and the text's.")
    ranker: Contributions | None = Field(
        None, description="What makes up the ranker's score, if it ordered the document."
    )


class FoundDocument(Model):
    """One hit."""

    id: str
    score: float
    probability: float | None = Field(
        None, description="P(link), if the index has a calibration or a ranker."
    )
    title: str | None = None
    text: str | None = None
    metadata: dict[str, Any] | None = None
    explanation: Explanation | None = None


class Result(Model):
    """The hits of one text, best first."""

    hits: list[FoundDocument]
    no_match: float | None = Field(None, description="A ranker's probability that no document is relevant.")


class SearchAnswer(Model):
    """One result per text, in the order of the texts."""

    index: str
    mode: Mode = Field(description="The mode that was used.")
    degraded: str = Field(description="Which retriever or directory was unavailable; empty if none was.")
    reranked: bool
    ranker: str = Field(description="Fingerprint of the ranker that ordered the documents, if one did.")
    calibration: str = Field(description="Name of the calibration that probabilities come from.")
    notes: list[str]
    results: list[Result]


@router.post(
    "/v1/search",
    **about(
        SearchAnswer,
        "Search an index",
        501,
        success={200: success(ANSWER, "One result per text, best documents first.")},
    ),
)
async def search(
    request: Annotated[SearchRequest, Body(openapi_examples=EXAMPLES)], service: InService
) -> Response:
    """Return the documents that match each text best."""
    served = service.served(request.index)
    answer = await served.search(request.all, request.options)
    service.metrics.count_search(served.name, len(request.all), bool(answer.degraded))
    if sum(map(len, answer.hits)) <= FEW and not request.explain:  # a thread would cost more than it saves
        return json(_describe(served, answer, request))
    return await served.heavy.run(lambda: json(_describe(served, answer, request)))


def _describe(served: Served, answer: Answer, request: SearchRequest) -> dict[str, Any]:
    explained = []
    if request.explain:
        ranker = pooled.load() if request.rerank == "pooled" else served.engine.ranker
        explained = explain(served.engine, request.all, answer, ranker)
    results = []
    for number, hits in enumerate(answer.hits):
        result: dict[str, Any] = {"hits": _listed(hits, request.documents)}
        if explained:
            for hit, explanation in zip(result["hits"], explained[number], strict=True):
                hit["explanation"] = explanation
        if hits.no_match is not None:
            result["no_match"] = hits.no_match
        results.append(result)
    return {
        "index": served.name,
        "mode": answer.mode,
        "degraded": served.without_paths(answer.degraded),
        "reranked": answer.reranked,
        "ranker": answer.ranker,
        "calibration": answer.calibration,
        "notes": [served.without_paths(note) for note in answer.notes],
        "results": results,
    }


def _listed(hits: Hits, with_documents: bool) -> list[dict[str, Any]]:
    listed = []
    said = None if hits.probabilities is None else hits.probabilities.tolist()
    for number, (id_, score) in enumerate(zip(hits.ids, hits.scores.tolist(), strict=True)):
        hit: dict[str, Any] = {"id": id_, "score": score}
        if said is not None:
            hit["probability"] = said[number]
        if with_documents and hits.read:
            hit |= describe(hits.read(id_))
        listed.append(hit)
    return listed
