"""The LangChain classes keep LangChain's contract: its standard tests, and ours."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("langchain_tests")

from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding

from indexes.interface import BackendUnavailableError, BadFilterError, EncoderMismatchError, IndexesError
from linker.base.errors import InputError
from linker.engine import Engine, building
from linker.integrations.langchain import LinkerRetriever, LinkerVectorStore

if TYPE_CHECKING:
    from builtins import object as RetrieversIntegrationTests
    from builtins import object as VectorStoreIntegrationTests
else:
    from langchain_tests.integration_tests import RetrieversIntegrationTests, VectorStoreIntegrationTests

SIZE = 6


def made(folder: Path, **options: Any) -> LinkerVectorStore:
    return LinkerVectorStore.from_texts(
        [], DeterministicFakeEmbedding(size=SIZE), directory=folder / "lc.index", **options
    )


class Sided(DeterministicFakeEmbedding):  # type: ignore[misc]  # LangChain may be absent
    """A model that encodes queries differently from documents."""

    def embed_query(self, text: str) -> list[float]:
        vector: list[float] = super().embed_query(f"query: {text}")
        return vector


def test_queries_are_embedded_as_queries(tmp_path: Path) -> None:
    texts = ["rain", "floods"]
    store = LinkerVectorStore.from_texts(texts, Sided(size=SIZE), directory=tmp_path / "i", mode="dense")
    plain = LinkerVectorStore.from_texts(
        texts, DeterministicFakeEmbedding(size=SIZE), directory=tmp_path / "plain", mode="dense", name="plain"
    )
    asked, expected = (
        s.similarity_search_with_score(q) for s, q in ((store, "rain"), (plain, "query: rain"))
    )
    assert [(d.page_content, round(score, 5)) for d, score in asked] == [
        (d.page_content, round(score, 5)) for d, score in expected
    ]
    assert len(store.max_marginal_relevance_search("rain", 2)) == 2


class TestStandardVectorStore(VectorStoreIntegrationTests):
    @pytest.fixture
    def vectorstore(self, tmp_path: Path) -> LinkerVectorStore:
        return made(tmp_path, mode="dense")


class TestStandardRetriever(RetrieversIntegrationTests):
    @pytest.fixture(autouse=True)
    def _index(self, tmp_path: Path) -> None:
        building.create(tmp_path / "i")
        self.engine = Engine.open(tmp_path / "i")
        made_of(self.engine)

    @property
    def retriever_constructor(self) -> Any:
        return LinkerRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"index": self.engine}

    @property
    def retriever_query_example(self) -> str:
        return "flood"


def made_of(engine: Engine) -> LinkerVectorStore:
    """Fill an index with five documents."""
    store = LinkerVectorStore(engine)
    texts = ["flood in Valencia", "flood in Lorca", "no flood here", "flood again", "an election"]
    places = [{"year": 2019 + n, "lang": "en" if n % 2 else "de"} for n in range(5)]
    store.add_texts(texts, places, ids=list("abcde"))
    return store


@pytest.fixture
def store(tmp_path: Path) -> LinkerVectorStore:
    building.create(tmp_path / "i")
    return made_of(Engine.open(tmp_path / "i"))


def test_documents_are_added_replaced_read_and_deleted(store: LinkerVectorStore) -> None:
    added = store.add_documents([Document("x y", id="n", metadata={"lang": "fr"}), Document("no id")])
    assert added[0] == "n"
    assert store.get_by_ids([added[1], "nobody"])[0].page_content == "no id"
    store.add_documents([Document("x z", id="n")])
    assert store.get_by_ids(["n"]) == [Document("x z", id="n")]
    assert store.delete(["n", "nobody"])
    assert not store.get_by_ids(["n"])
    with pytest.raises(InputError, match="name the ids"):
        store.delete()
    with pytest.raises(InputError, match="as many ids and metadatas as texts"):
        store.add_texts(["a", "b"], ids=["x"])


def test_filters_are_those_of_linker(store: LinkerVectorStore) -> None:
    def found(where: Any) -> set[str | None]:
        return {d.id for d in store.similarity_search("flood", k=9, filter=where)}

    assert found(None) == set("abcd")
    assert found("lang=en") == set("bd")
    assert found(["lang=en", "year>2020"]) == set("d")
    assert found({"year": {"<": 2021}}) == set("ab")
    with pytest.raises(BadFilterError, match="did you mean 'lang'"):
        found("lnag=en")


def test_scores_are_those_of_the_index(store: LinkerVectorStore) -> None:
    hits = store.engine.search("flood", 3).hits[0]
    assert [(d.id, s) for d, s in store.similarity_search_with_score("flood", k=3)] == list(
        zip(hits.ids, hits.scores.tolist(), strict=True)
    )
    with pytest.raises(BackendUnavailableError, match="needs vectors or"):
        store.similarity_search_with_relevance_scores("flood")


def test_relevance_is_the_cosine(tmp_path: Path) -> None:
    store = made(tmp_path)
    store.add_texts(["alpha", "beta", "gamma"])
    (first, relevance), *others = store.similarity_search_with_relevance_scores("alpha", k=3)
    assert (first.page_content, relevance) == ("alpha", pytest.approx(1))
    assert all(0 <= value <= 1 for _, value in others)
    assert store.as_retriever(
        search_type="similarity_score_threshold", search_kwargs={"score_threshold": 0.999, "k": 3}
    ).invoke("alpha") == [first]


def test_marginal_relevance_leaves_out_what_is_said_already(tmp_path: Path) -> None:
    store = made(tmp_path, mode="dense")
    store.add_texts(["alpha", "alpha", "beta", "gamma"], ids=list("abcd"))
    found = store.as_retriever(search_type="mmr", search_kwargs={"k": 2, "lambda_mult": 0.1}).invoke("alpha")
    assert found[0].page_content == "alpha"
    assert found[1].page_content != "alpha"
    assert not made(tmp_path / "other").max_marginal_relevance_search("alpha")


def test_an_index_keeps_to_its_embedding(tmp_path: Path) -> None:
    made(tmp_path).add_texts(["alpha"])
    again = LinkerVectorStore(tmp_path / "lc.index", embedding=DeterministicFakeEmbedding(size=SIZE))
    assert again.similarity_search("alpha", mode="dense")[0].page_content == "alpha"
    other = DeterministicFakeEmbedding(size=SIZE + 1)
    with pytest.raises(EncoderMismatchError):
        LinkerVectorStore(tmp_path / "lc.index", embedding=other).similarity_search("alpha", mode="dense")
    with pytest.raises(IndexesError, match="already holds an index"):
        made(tmp_path)


def test_a_retriever_says_scores_and_limits(store: LinkerVectorStore, tmp_path: Path) -> None:
    retriever = LinkerRetriever(index=tmp_path / "i", k=2, filter="lang=en")
    found = retriever.invoke("flood")
    assert {d.id for d in found} == {"b", "d"}
    assert all(d.metadata["_score"] > 0 and "_probability" not in d.metadata for d in found)
    assert {d.id for d in retriever.invoke("flood", filter="lang=de")} == {"a", "c"}
    assert len(retriever.invoke("flood", k=1)) == 1


def test_async_gives_the_same(store: LinkerVectorStore) -> None:
    async def both() -> tuple[Any, Any]:
        await store.aadd_documents([Document("flood flood", id="z")])
        found = await store.asimilarity_search("flood", k=9)
        await store.adelete(["z"])
        return found, await store.as_retriever(search_kwargs={"k": 9}).ainvoke("flood")

    before, after = asyncio.run(both())
    assert {d.id for d in before} - {d.id for d in after} == {"z"}
