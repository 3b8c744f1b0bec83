"""LangChain: a vector store and a retriever over an index (extra `langchain`).

`filter` takes linker's conditions: "lang=en|de", ["date>=2021-01-31", "likes>100"] or {"lang": ["en", "de"]}.
"""

import hashlib
import uuid
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from indexes.arrays import normalised
from indexes.errors import importing
from indexes.hybrid import Answer, Mode
from indexes.interface import BackendUnavailableError, Document, Filter, Matrix, Where
from indexes.store.records import EncoderRecord, Manifest
from indexes.writer import Writer
from linker.base.errors import InputError
from linker.engine.engine import Engine

with importing("LangChain", "langchain"):
    from langchain_core.callbacks import CallbackManagerForRetrieverRun
    from langchain_core.documents import Document as LangChainDocument
    from langchain_core.embeddings import Embeddings
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.vectorstores import VectorStore
    from langchain_core.vectorstores.utils import maximal_marginal_relevance
    from pydantic import ConfigDict, Field

Conditions = Filter | Where | None
SCORE, PROBABILITY = "_score", "_probability"  # keys that a retriever adds to its documents' metadata


class EmbeddingsEncoder:
    """An encoder over LangChain's `Embeddings`; its vectors are L2-normalised, so that a score is a cosine."""

    def __init__(self, embeddings: Embeddings, name: str = "") -> None:
        """`name` identifies the model (default: a sample vector does), so that an index can refuse another one."""
        self.embeddings = embeddings
        probe = embeddings.embed_query("linker")
        self.dim = len(probe)
        identity = name.encode() or np.asarray(probe, dtype=np.float32).round(3).tobytes()
        self.fingerprint = hashlib.sha256(identity).hexdigest()

    def encode(self, texts: Sequence[str], *, batch_size: int = 64, progress: bool = False) -> Matrix:
        """Return the vectors of texts, float32 [n, dim]."""
        return self._normalised(self.embeddings.embed_documents(list(texts)))

    def encode_queries(self, texts: Sequence[str], *, batch_size: int = 64, progress: bool = False) -> Matrix:
        """Return the vectors of queries, float32 [n, dim]."""
        return self._normalised([self.embeddings.embed_query(text) for text in texts])

    def _normalised(self, vectors: Sequence[Sequence[float]]) -> Matrix:
        return normalised(np.asarray(vectors, dtype=np.float32).reshape(len(vectors), self.dim))


def to_langchain(document: Document, **more: Any) -> LangChainDocument:
    """Return an indexed document as a LangChain document, whose page content is the title and the text."""
    return LangChainDocument(
        page_content=document.full_text, metadata={**document.metadata, **more}, id=document.id
    )


class LinkerVectorStore(VectorStore):  # type: ignore[misc]  # LangChain is optional, so its classes are Any
    """An index as a LangChain vector store; searches are hybrid if the index is, and higher scores are better."""

    def __init__(
        self,
        index: str | Path | Engine,
        *,
        embedding: Embeddings | None = None,
        name: str = "",
        mode: Mode | None = None,
    ) -> None:
        """Open an index; `embedding` and `name` are as in `from_texts`, `mode` defaults to the index's."""
        encoder = EmbeddingsEncoder(embedding, name) if embedding else None
        self.engine = index if isinstance(index, Engine) else Engine(index, encoder=encoder)
        self.mode, self._embedding = mode, embedding

    @classmethod
    def from_texts(
        cls,
        texts: list[str],
        embedding: Embeddings,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        directory: str | Path,
        name: str = "",
        mode: Mode | None = None,
        **_: Any,
    ) -> Self:
        """Create an index in the new `directory` and add texts with the vectors that `embedding` makes.

        `name` identifies the model of `embedding`. Raises IndexesError if there is an index already.
        """
        encoder = EmbeddingsEncoder(embedding, name)
        record = EncoderRecord(name or type(embedding).__name__, encoder.fingerprint, encoder.dim)
        with Writer.create(Path(directory), Manifest(vectors="auto", encoder=record)):
            pass
        store = cls(directory, embedding=embedding, name=name, mode=mode)
        store.add_texts(texts, metadatas, ids=ids)
        return store

    @property
    def embeddings(self) -> Embeddings | None:
        """The embeddings given to `from_texts`; None if the index has a linker encoder."""
        return self._embedding

    def add_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        **_: Any,
    ) -> list[str]:
        """Add texts in one commit and return their ids; a text whose id is in the index replaces that document.

        Missing ids are generated. Raises InputError if there are not as many ids or metadatas as texts, BadIdError,
        LockedError.
        """
        contents = list(texts)
        if any(values is not None and len(values) != len(contents) for values in (metadatas, ids)):
            raise InputError(f"expected as many ids and metadatas as texts ({len(contents)})")
        new_ids = [id_ or str(uuid.uuid4()) for id_ in ids or [None] * len(contents)]
        documents = {
            id_: Document(id_, text, metadata=values or {})
            for id_, text, values in zip(new_ids, contents, metadatas or [{}] * len(contents), strict=True)
        }
        if documents:
            self.engine.add(documents.values(), replace=True)
        return new_ids

    def delete(self, ids: list[str] | None = None, **_: Any) -> bool:
        """Delete documents in one commit; unknown ids are ignored. Raises InputError without ids."""
        if ids is None:
            raise InputError("name the ids to delete; `linker index drop` deletes a whole index")
        self.engine.refresh()
        known = [id_ for id_ in dict.fromkeys(ids) if id_ in self.engine]
        if known:
            self.engine.delete(known)
        return True

    def get_by_ids(self, ids: Sequence[str], /) -> list[LangChainDocument]:
        """Return the documents with these ids; unknown ids are left out."""
        self.engine.refresh()
        return [to_langchain(self.engine.document(id_)) for id_ in ids if id_ in self.engine]

    def similarity_search_with_score(
        self, query: str, k: int = 4, *, filter: Conditions = None, mode: Mode | None = None, **_: Any
    ) -> list[tuple[LangChainDocument, float]]:
        """Return the top k documents with their scores."""
        (hits,) = self._answer(query, k, filter, mode or self.mode).hits
        return [(to_langchain(document), score) for _, score, document in hits if document]

    def similarity_search(self, query: str, k: int = 4, **options: Any) -> list[LangChainDocument]:
        """Return the top k documents; `filter` and `mode` are as in `similarity_search_with_score`."""
        return [document for document, _ in self.similarity_search_with_score(query, k, **options)]

    def _answer(self, query: str, k: int, where: Conditions, mode: Mode | None) -> Answer:
        # An index without documents has no fields and would reject a filter, which is not needed there.
        return self.engine.search(query, k, mode=mode, where=where if len(self.engine) else None)

    def _select_relevance_score_fn(self) -> Callable[[float], float]:
        """Return the function that maps a cosine to a relevance from 0 to 1; negative cosines become 0."""
        return lambda cosine: min(1.0, max(0.0, cosine))

    def _similarity_search_with_relevance_scores(
        self, query: str, k: int = 4, **options: Any
    ) -> list[tuple[LangChainDocument, float]]:
        """Return the top k documents with P(link) if the index is calibrated, else with the cosine; both from 0 to 1.

        Raises BackendUnavailableError if the index has neither a calibration nor vectors.
        """
        answer = self._answer(query, k, options.get("filter"), options.get("mode") or self.mode)
        (hits,) = answer.hits
        if hits.probabilities is not None:
            found = zip(hits, np.nan_to_num(hits.probabilities).tolist(), strict=True)
            return [(to_langchain(hit.document), p) for hit, p in found if hit.document]
        if self.engine.collection.hybrid.vectors is None:
            raise BackendUnavailableError(
                "relevance from 0 to 1 needs vectors or P(link): build with `encoder`, or run `linker calibrate`"
            )
        scored = self.similarity_search_with_score(query, k, **{**options, "mode": "dense"})
        relevance = self._select_relevance_score_fn()
        return [(document, relevance(score)) for document, score in scored]

    def max_marginal_relevance_search(
        self, query: str, k: int = 4, fetch_k: int = 20, lambda_mult: float = 0.5, **options: Any
    ) -> list[LangChainDocument]:
        """Return k of the top `fetch_k` documents, from the most diverse (`lambda_mult` 0) to the most similar (1)."""
        documents = self.similarity_search(query, fetch_k, **options)
        if not documents:
            return []
        vectors = self.engine.encoder.encode([document.page_content for document in documents])
        chosen = maximal_marginal_relevance(self.engine.embed([query])[0], list(vectors), lambda_mult, k)
        return [documents[number] for number in chosen]


class LinkerRetriever(BaseRetriever):  # type: ignore[misc]  # as above
    """An index as a LangChain retriever: `LinkerRetriever(index="news.index", k=5).invoke("flood")`.

    The metadata of its documents has `_score` and, if the index is calibrated, P(link) as `_probability`.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    index: str | Path | Engine
    k: int = Field(default=10, ge=1)
    mode: Mode | None = None
    filter: Any = None

    def model_post_init(self, context: Any, /) -> None:
        """Open the index, so that a wrong path is reported at once."""
        super().model_post_init(context)
        if not isinstance(self.index, Engine):
            self.index = Engine.open(self.index)

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,
        k: int | None = None,
        filter: Any = None,
    ) -> list[LangChainDocument]:
        assert isinstance(self.index, Engine)
        where = self.filter if filter is None else filter
        answer = self.index.search(query, k or self.k, mode=self.mode, where=where)
        (hits,) = answer.hits
        known = [None] * len(hits) if hits.probabilities is None else hits.probabilities.tolist()
        return [
            to_langchain(document, **{SCORE: score}, **({} if p is None else {PROBABILITY: p}))
            for (_, score, document), p in zip(hits, known, strict=True)
            if document
        ]
