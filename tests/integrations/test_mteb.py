"""MTEB's own evaluation, on tiny tasks in memory: encoder and search by linker score as in linker itself."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from linker.encoders.configs import BagConfig
from linker.encoders.loading import load_encoder
from tests.integrations.test_sentence_transformers import saved

pytestmark = pytest.mark.skipif(find_spec("mteb") is None, reason="mteb is not installed")


@pytest.fixture(scope="module")
def mteb() -> Any:
    """The library with its tasks and linker's models, imported only if these tests run."""
    from tests.integrations import mteb_tasks

    return mteb_tasks


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mteb") / "m"
    saved(BagConfig(8), folder)
    return folder


def test_dense_search_scores_what_mteb_scores_over_the_encoder(mteb: Any, model: Path) -> None:
    encoder, search = mteb.LinkerEncoder(model), mteb.LinkerSearch(model, mode="dense")
    assert isinstance(encoder, mteb.EncoderProtocol)
    assert isinstance(search, mteb.SearchProtocol)
    by_mteb = mteb.score(mteb.run(encoder, mteb.LetterTask()))
    assert 0.1 < by_mteb < 1
    assert mteb.score(mteb.run(search, mteb.LetterTask())) == pytest.approx(by_mteb, abs=1e-4)
    search.close()


def test_hybrid_and_bm25_search_run_and_have_their_names(mteb: Any, model: Path) -> None:
    hybrid, bm25 = mteb.LinkerSearch(model), mteb.LinkerSearch()
    results = {mteb.run(search, mteb.LetterTask()).model_name: search for search in (hybrid, bm25)}
    assert set(results) == {"linker/hybrid-m", "linker/bm25"}
    assert hybrid.mteb_model_meta.revision == load_encoder(model).fingerprint
    assert mteb.score(mteb.run(bm25, mteb.LetterTask())) > 0.1


def test_a_search_returns_the_hits_of_the_engine(mteb: Any, model: Path) -> None:
    task = mteb.LetterTask()
    task.load_data()
    data, search = task.dataset["default"]["test"], mteb.LinkerSearch(model)
    search.index(data["corpus"])
    found = search.search(data["queries"], top_k=5)
    assert search._engine is not None
    for query in data["queries"]:
        hits = search._engine.search(query["text"], 5).hits[0]
        assert list(found[query["id"]]) == [data["corpus"]["id"][int(id_)] for id_ in hits.ids]
        assert list(found[query["id"]].values()) == pytest.approx(list(hits.scores))
    search.close()


@pytest.mark.parametrize("mode", ["dense", "bm25"])
def test_reranking_keeps_to_the_candidates(mteb: Any, model: Path, mode: Any) -> None:
    search = mteb.LinkerSearch(model, mode=mode)
    assert 0 <= mteb.score(mteb.run(search, mteb.MockRerankingTask())) <= 1
    task = mteb.LetterTask()
    task.load_data()
    data = task.dataset["default"]["test"]
    search.index(data["corpus"])
    candidates = {query["id"]: data["corpus"]["id"][20:24] for query in data["queries"]}
    found = search.search(data["queries"], top_k=3, top_ranked=candidates)
    assert all(len(scores) == 3 and set(scores) <= set(candidates[q]) for q, scores in found.items())
    search.close()


def test_sentence_similarity_by_the_encoder(mteb: Any, model: Path) -> None:
    assert -1 <= mteb.score(mteb.run(mteb.LinkerEncoder(model), mteb.MockSTSTask())) <= 1
