"""Haystack: a document store and a retriever over an index (extra `haystack`).

Filters are Haystack's nested dictionaries, evaluated by Haystack's own code, or linker's conditions as a string or
list. The index's encoder computes the vectors; a document's own embedding is stored but not searched. Methods whose
names end in `_async` run the others in a thread.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, get_args

import numpy as np

from indexes.address import Address
from indexes.errors import importing
from indexes.filters import RowFilter
from indexes.hybrid import Mode
from indexes.interface import Document, Filter
from indexes.writer import writer_of
from linker.engine.building import create
from linker.engine.changing import WAIT
from linker.engine.engine import Engine

with importing("Haystack", "haystack"):
    from haystack import Document as HaystackDocument
    from haystack import component, default_from_dict, default_to_dict
    from haystack.document_stores.errors import DuplicateDocumentError
    from haystack.document_stores.types import DuplicatePolicy
    from haystack.errors import FilterError
    from haystack.utils.filters import document_matches_filter

Filters = dict[str, Any] | str | Sequence[str]
Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
# Metadata field for values that linker's documents have no field for; filters do not see it, since it is an object.
KEPT = "haystack"
TYPES, KEYWORD = {bool: "boolean", int: "int", float: "float"}, "keyword"  # Haystack's names


def from_haystack(document: HaystackDocument) -> Document:
    """Return a Haystack document as a linker document."""
    content, values = document.content, document.to_dict(flatten=False)
    more = {
        name: values[name] for name in ("blob", "embedding", "sparse_embedding") if values[name] is not None
    }
    if content is None:
        more["content"] = None
    return Document(document.id, content or "", metadata=document.meta | ({KEPT: more} if more else {}))


def to_haystack(document: Document, score: float | None = None) -> HaystackDocument:
    """Return an indexed document as a Haystack document, whose content is the title and the text."""
    meta = dict(document.metadata)
    more = meta.pop(KEPT, None) or {}
    values = {"id": document.id, "content": document.full_text, "meta": meta, "score": score} | more
    return HaystackDocument.from_dict(values)


def threaded(method: Callable[Parameters, Result]) -> Callable[Parameters, Coroutine[Any, Any, Result]]:
    """Return a coroutine function that runs `method` in a thread, so that the event loop can go on."""

    @functools.wraps(method)
    async def call(*args: Parameters.args, **options: Parameters.kwargs) -> Result:
        return await asyncio.to_thread(method, *args, **options)

    return call


class LinkerDocumentStore:
    """An index as a Haystack document store; a missing index is created with this `encoder`."""

    def __init__(self, directory: str | Path, encoder: str = "none") -> None:
        self.directory, self.encoder = Path(directory), encoder
        if not (self.directory.exists() or Address.of(self.directory)):
            create(self.directory, encoder=encoder)
        self.engine = Engine.open(self.directory)

    def to_dict(self) -> dict[str, Any]:
        """Return the description of this store for a pipeline file."""
        values: dict[str, Any] = default_to_dict(self, directory=str(self.directory), encoder=self.encoder)
        return values

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> LinkerDocumentStore:
        """Return the store that a pipeline file describes."""
        store: LinkerDocumentStore = default_from_dict(cls, data)
        return store

    def count_documents(self) -> int:
        """Return the number of documents."""
        self.engine.refresh()
        return len(self.engine)

    def filter_documents(self, filters: Filters | None = None) -> list[HaystackDocument]:
        """Return the documents that match `filters`, in the order in which they were written. Raises FilterError."""
        self.engine.refresh()
        if isinstance(filters, dict):
            documents = map(to_haystack, self.engine.documents())
            return [document for document in documents if _fits(document, filters)]
        return [to_haystack(document) for document in self.engine.documents(filters or None)]

    def count_documents_by_filter(self, filters: Filters) -> int:
        """Return the number of documents that match `filters`. Raises FilterError."""
        return len(self.filter_documents(filters))

    def count_unique_metadata_by_filter(self, filters: Filters, metadata_fields: list[str]) -> dict[str, int]:
        """Return how many different values each field has in the documents that match. Raises FilterError."""
        matching = self.filter_documents(filters)
        return {name: len(_values(matching, name)) for name in metadata_fields}

    def get_metadata_fields_info(self) -> dict[str, dict[str, str]]:
        """Return the type of each metadata field: boolean, int, float or keyword."""
        documents = self.filter_documents()
        names = dict.fromkeys(name for document in documents for name in document.meta)
        types = {name: {type(value) for value in _values(documents, name)} for name in names}
        # A field with values of several types is a keyword.
        return {
            name: {"type": TYPES.get(of.pop(), KEYWORD) if len(of) == 1 else KEYWORD}
            for name, of in types.items()
            if of
        }

    def get_metadata_field_min_max(self, metadata_field: str) -> dict[str, Any]:
        """Return a field's `min` and `max`; None if it has no values, or values that cannot be compared."""
        values = _values(self.filter_documents(), metadata_field)
        try:
            return {"min": min(values, default=None), "max": max(values, default=None)}
        except TypeError:
            return {"min": None, "max": None}

    def get_metadata_field_unique_values(
        self,
        metadata_field: str,
        search_term: str | None = None,
        from_: int = 0,
        size: int = 10,
        filters: Filters | None = None,
    ) -> tuple[list[Any], int]:
        """Return a field's different values, sorted as text, from `from_` on, and how many there are altogether.

        `search_term` selects values that contain it, in any case. Raises FilterError.
        """
        term, values = (search_term or "").lower(), _values(self.filter_documents(filters), metadata_field)
        values = sorted((value for value in values if term in str(value).lower()), key=str)
        return values[from_ : from_ + size], len(values)

    def write_documents(
        self, documents: list[HaystackDocument], policy: DuplicatePolicy = DuplicatePolicy.NONE
    ) -> int:
        """Write documents in one commit and return how many were written; the policy NONE means FAIL.

        Raises ValueError for anything that is not a list of documents, DuplicateDocumentError if an id is in the
        index and the policy is FAIL, BadIdError for an id with white space.
        """
        if not isinstance(documents, list) or not all(isinstance(d, HaystackDocument) for d in documents):
            raise ValueError("write_documents takes a list of haystack.Document")
        self.engine.refresh()
        written, chosen = 0, dict[str, Document]()
        for document in documents:
            if policy != DuplicatePolicy.OVERWRITE and (document.id in chosen or document.id in self.engine):
                if policy == DuplicatePolicy.SKIP:
                    continue
                raise DuplicateDocumentError(f"the id {document.id!r} is already in the index")
            chosen[document.id] = from_haystack(document)
            written += 1
        if chosen:
            self.engine.add(chosen.values(), replace=policy == DuplicatePolicy.OVERWRITE)
        return written

    def delete_documents(self, document_ids: list[str]) -> None:
        """Delete documents in one commit; unknown ids are ignored."""
        self.engine.apply(document_ids)

    def delete_by_filter(self, filters: Filters) -> int:
        """Delete the documents that match `filters` in one commit; return how many. Raises FilterError."""
        return sum(self.engine.apply([document.id for document in self.filter_documents(filters)]))

    def update_by_filter(self, filters: Filters, meta: dict[str, Any]) -> int:
        """Set these metadata fields of the documents that match `filters`; return how many. Raises FilterError.

        It takes one commit, after which these documents come last. Their vectors are computed again.
        """
        matching = self.filter_documents(filters)
        for document in matching:
            document.meta.update(meta)
        return self.write_documents(matching, DuplicatePolicy.OVERWRITE)

    def delete_all_documents(self, recreate_index: bool = False) -> None:
        """Delete all documents in one commit; with `recreate_index`, also reclaim their space."""
        self.delete_by_filter({})
        if recreate_index:
            with writer_of(self.directory, wait=WAIT) as writer:
                writer.compact()

    def search(
        self, query: str, top_k: int = 10, filters: Filters | None = None, mode: Mode | None = None
    ) -> list[HaystackDocument]:
        """Return the top documents with their scores. Raises FilterError or BadFilterError for an invalid filter."""
        self.engine.refresh()
        where: Any = self._rows(filters) if isinstance(filters, dict) else filters
        (hits,) = self.engine.search(query, top_k, mode=mode, where=where or None).hits
        return [to_haystack(document, score) for _, score, document in hits if document]

    count_documents_async = threaded(count_documents)
    filter_documents_async = threaded(filter_documents)
    count_documents_by_filter_async = threaded(count_documents_by_filter)
    count_unique_metadata_by_filter_async = threaded(count_unique_metadata_by_filter)
    get_metadata_fields_info_async = threaded(get_metadata_fields_info)
    get_metadata_field_min_max_async = threaded(get_metadata_field_min_max)
    get_metadata_field_unique_values_async = threaded(get_metadata_field_unique_values)
    write_documents_async = threaded(write_documents)
    delete_documents_async = threaded(delete_documents)
    delete_by_filter_async = threaded(delete_by_filter)
    update_by_filter_async = threaded(update_by_filter)
    delete_all_documents_async = threaded(delete_all_documents)
    search_async = threaded(search)

    def _rows(self, filters: dict[str, Any]) -> Filter | None:
        """Return a filter that selects the documents that match Haystack's filters; this reads all documents."""
        if not filters:
            return None
        rows = self.engine.collection.rows
        mask = np.zeros(len(rows.ids), dtype=bool)
        fitting = [d.id for d in self.engine.documents() if _fits(to_haystack(d), filters)]
        mask[rows.locate(fitting)] = True
        return RowFilter((), mask)


def _values(documents: Sequence[HaystackDocument], name: str) -> list[Any]:
    """Return the different values of a metadata field; 1, 1.0, True and "1" differ."""
    values = (document.meta.get(name.removeprefix("meta.")) for document in documents)
    return list({repr(value): value for value in values if value is not None}.values())


def _fits(document: HaystackDocument, filters: dict[str, Any]) -> bool:
    if filters and "operator" not in filters:
        raise FilterError(f"'operator' key missing in {filters}")
    return not filters or bool(document_matches_filter(filters, document))


@component
class LinkerRetriever:
    """A pipeline component that searches an index; `mode` is hybrid, dense or bm25 (default: the index's)."""

    def __init__(
        self,
        document_store: LinkerDocumentStore,
        filters: Filters | None = None,
        top_k: int = 10,
        mode: Mode | None = None,
    ) -> None:
        if mode is not None and mode not in get_args(Mode):
            raise ValueError(f"unknown mode {mode!r}: choose one of {', '.join(get_args(Mode))}")
        if top_k < 1:
            raise ValueError(f"top_k must be at least 1, not {top_k}")
        self.document_store, self.filters, self.top_k, self.mode = document_store, filters, top_k, mode

    def to_dict(self) -> dict[str, Any]:
        """Return the description of this component for a pipeline file."""
        values: dict[str, Any] = default_to_dict(
            self,
            document_store=self.document_store.to_dict(),
            filters=self.filters,
            top_k=self.top_k,
            mode=self.mode,
        )
        return values

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Any:
        """Return the component that a pipeline file describes."""
        given = dict(data["init_parameters"])
        if isinstance(given["document_store"], dict):
            given["document_store"] = LinkerDocumentStore.from_dict(given["document_store"])
        return default_from_dict(cls, {**data, "init_parameters": given})

    @component.output_types(documents=list[HaystackDocument])  # type: ignore[untyped-decorator]  # it is optional
    def run(
        self, query: str, filters: Filters | None = None, top_k: int | None = None
    ) -> dict[str, list[HaystackDocument]]:
        """Return {"documents": the top documents for `query`, best first, with their scores}."""
        found = self.document_store.search(query, top_k or self.top_k, filters or self.filters, self.mode)
        return {"documents": found}

    run_async = threaded(run)
