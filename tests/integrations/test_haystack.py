"""The Haystack store passes Haystack's own tests; a pipeline with it is saved, loaded and run."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

# before the import, which would otherwise access the network
os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"
pytest.importorskip("haystack")

from haystack import Document, Pipeline
from haystack.components.writers import DocumentWriter
from haystack.dataclasses import ByteStream, SparseEmbedding
from haystack.document_stores.errors import DuplicateDocumentError
from haystack.document_stores.types import DuplicatePolicy
from haystack.errors import FilterError

from indexes.interface import BadFilterError
from linker.integrations.haystack import LinkerDocumentStore, LinkerRetriever

if TYPE_CHECKING:
    StandardTests = object
else:
    from haystack.testing import document_store as standard
    from haystack.testing import document_store_async as asynchronous

    # all tests of the installed version
    parts = [
        value
        for module in (standard, asynchronous)
        for name, value in vars(module).items()
        if name.endswith("Test") and value.__module__ == module.__name__
    ]
    StandardTests = type("StandardTests", tuple(parts), {})


class TestStandardStore(StandardTests):
    @pytest.fixture
    def document_store(self, tmp_path: Path) -> LinkerDocumentStore:
        return LinkerDocumentStore(tmp_path / "i")

    def test_write_documents(self, document_store: LinkerDocumentStore) -> None:
        one = Document(content="one")
        assert document_store.write_documents([one]) == 1
        with pytest.raises(DuplicateDocumentError, match="already in the index"):
            document_store.write_documents([Document(content="two"), one])
        assert document_store.count_documents() == 1

    async def test_write_documents_async(self, document_store: LinkerDocumentStore) -> None:
        assert await document_store.write_documents_async([Document(content="one")]) == 1


@pytest.fixture
def store(tmp_path: Path) -> Iterator[LinkerDocumentStore]:
    store = LinkerDocumentStore(tmp_path / "i")
    texts = ["flood in Valencia", "flood in Lorca", "no flood here", "an election"]
    store.write_documents(
        [Document(id=f"d{n}", content=text, meta={"year": 2019 + n}) for n, text in enumerate(texts)]
    )
    yield store
    store.engine.close()


def test_fields_have_types_and_those_of_mixed_values_no_range(store: LinkerDocumentStore) -> None:
    extra = {"year": 1.5, "even": True, "tags": ["a"], "none": None}
    store.write_documents([Document(content="x", meta=extra), Document(content="y", meta={"tags": ["a"]})])
    assert store.get_metadata_fields_info() == {
        "year": {"type": "keyword"}, "even": {"type": "boolean"}, "tags": {"type": "keyword"},
    }  # fmt: skip
    assert store.count_unique_metadata_by_filter({}, ["tags", "meta.year"]) == {"tags": 1, "meta.year": 5}
    assert store.count_documents_by_filter("year>=2021") == 2
    store.write_documents([Document(content="z", meta={"year": "2020"})])
    assert store.get_metadata_field_min_max("year") == {"min": None, "max": None}


def test_nothing_of_a_document_is_lost(store: LinkerDocumentStore) -> None:
    documents = [
        Document(content=None, blob=ByteStream(b"\0\xff", mime_type="image/png")),
        Document(content="", embedding=[0.1, 1 / 3]),
        Document(content="x", sparse_embedding=SparseEmbedding([1, 5], [0.5, 0.25]), meta={"a": {"b": [1]}}),
    ]
    assert store.write_documents(documents) == 3
    assert store.filter_documents()[-3:] == documents


def test_duplicates_within_one_call(store: LinkerDocumentStore) -> None:
    twice = [Document(id="x", content="first"), Document(id="x", content="second")]
    with pytest.raises(DuplicateDocumentError):
        store.write_documents(twice)
    assert store.write_documents(twice, DuplicatePolicy.SKIP) == 1
    assert store.filter_documents()[-1].content == "first"
    assert store.write_documents(twice, DuplicatePolicy.OVERWRITE) == 2
    assert store.filter_documents()[-1].content == "second"


def test_both_kinds_of_filters_limit_a_search(store: LinkerDocumentStore) -> None:
    def found(filters: Any) -> list[str]:
        retriever = LinkerRetriever(store, top_k=9)
        return sorted(d.id for d in retriever.run("flood", filters=filters)["documents"])

    late = {"field": "meta.year", "operator": ">=", "value": 2020}
    assert found(None) == ["d0", "d1", "d2"]
    assert found(late) == found("year>=2020") == found(["year>=2020"]) == ["d1", "d2"]
    assert found({"operator": "NOT", "conditions": [late]}) == ["d0"]
    store.delete_documents(["d1", "nobody"])
    assert found(late) == ["d2"]
    assert [d.id for d in store.filter_documents("year=2022")] == ["d3"]
    with pytest.raises(BadFilterError, match="did you mean 'year'"):
        found("yaer=2020")
    with pytest.raises(FilterError):
        found({"conditions": []})


async def test_a_search_in_a_thread_gives_the_same(store: LinkerDocumentStore) -> None:
    retriever = LinkerRetriever(store, top_k=2)
    assert await retriever.run_async("flood", filters="year>=2020") == retriever.run(
        "flood", filters="year>=2020"
    )
    asking = Pipeline()
    asking.add_component("retriever", retriever)
    answer = await asking.run_async({"retriever": {"query": "flood"}})
    assert answer["retriever"] == retriever.run("flood")


def test_a_pipeline_is_saved_loaded_and_run(store: LinkerDocumentStore) -> None:
    writing = Pipeline()
    writing.add_component("writer", DocumentWriter(store))
    writing.run({"writer": {"documents": [Document(id="w", content="flood flood flood")]}})
    asking = Pipeline()
    asking.add_component("retriever", LinkerRetriever(store, top_k=2, mode="bm25"))
    loaded = Pipeline.loads(asking.dumps(), allowed_modules=["linker.integrations.haystack"])
    for pipeline in (asking, loaded):
        first, _ = pipeline.run({"retriever": {"query": "flood"}})["retriever"]["documents"]
        assert first.id == "w"
        assert first.score > 0
    for wrong in ({"top_k": 0}, {"mode": "sparse"}):
        with pytest.raises(ValueError, match=r"top_k must|unknown mode"):
            LinkerRetriever(store, **wrong)
