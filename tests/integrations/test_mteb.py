"""MTEB's own evaluation, on tiny tasks in memory: an encoder and a search by linker give what linker itself gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

mteb = pytest.importorskip("mteb")

from mteb.mocks.mock_tasks import MockRerankingTask, MockRetrievalTask, MockSTSTask  # noqa: E402
from mteb.models import EncoderProtocol, SearchProtocol  # noqa: E402

from linker.encoders.configs import BagConfig  # noqa: E402
from linker.encoders.loading import load_encoder  # noqa: E402
from linker.integrations.mteb import LinkerEncoder, LinkerSearch  # noqa: E402
from tests.integrations.test_sentence_transformers import saved  # noqa: E402

LETTERS = "abcdefg"


class LetterTask(MockRetrievalTask):  # type: ignore[misc]  # mteb is not followed
    """Thirty documents of letters with awkward ids; a query's document repeats its letters."""

    def load_data(self, num_proc: int | None = None, **kwargs: Any) -> None:
        from datasets import Dataset  # type: ignore[import-untyped]  # it has no types

        random = np.random.default_rng(0)
        texts = [" ".join(random.choice(list(LETTERS), size=n)) for n in random.integers(3, 9, 30)]
        corpus = [{"id": f"d {n}/ü", "title": "t" if n % 2 else "", "text": t} for n, t in enumerate(texts)]
        queries = [{"id": f"q{n}", "text": texts[n][:7]} for n in range(10)]
        split = {
            "corpus": Dataset.from_list(corpus),
            "queries": Dataset.from_list(queries),
            "relevant_docs": {f"q{n}": {f"d {n}/ü": 1} for n in range(10)},
            "top_ranked": None,
        }
        self.dataset = {"default": {"test": split, "val": split}}
        self.data_loaded = True


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mteb") / "m"
    saved(BagConfig(8), folder)
    return folder


def score(result: Any) -> float:
    (task,) = result.task_results
    return float(task.get_score())


def run(model: Any, task: Any) -> Any:
    return mteb.evaluate(model, task, cache=None, show_progress_bar=False, co2_tracker=False)


def test_dense_search_scores_what_mteb_scores_over_the_encoder(model: Path) -> None:
    encoder, search = LinkerEncoder(model), LinkerSearch(model, mode="dense")
    assert isinstance(encoder, EncoderProtocol)
    assert isinstance(search, SearchProtocol)
    by_mteb = score(run(encoder, LetterTask()))
    assert 0.1 < by_mteb < 1
    assert score(run(search, LetterTask())) == pytest.approx(by_mteb, abs=1e-4)
    search.close()


def test_hybrid_and_bm25_search_run_and_have_their_names(model: Path) -> None:
    hybrid, bm25 = LinkerSearch(model), LinkerSearch()
    results = {run(search, LetterTask()).model_name: search for search in (hybrid, bm25)}
    assert set(results) == {"linker/hybrid-m", "linker/bm25"}
    assert hybrid.mteb_model_meta.revision == load_encoder(model).fingerprint
    assert score(run(bm25, LetterTask())) > 0.1


def test_a_search_returns_the_hits_of_the_engine(model: Path) -> None:
    task = LetterTask()
    task.load_data()
    data, search = task.dataset["default"]["test"], LinkerSearch(model)
    search.index(data["corpus"])
    found = search.search(data["queries"], top_k=5)
    assert search._engine is not None
    for query in data["queries"]:
        hits = search._engine.search(query["text"], 5).hits[0]
        assert list(found[query["id"]]) == [data["corpus"]["id"][int(id_)] for id_ in hits.ids]
        assert list(found[query["id"]].values()) == pytest.approx(list(hits.scores))
    search.close()


@pytest.mark.parametrize("mode", ["dense", "bm25"])
def test_reranking_keeps_to_the_candidates(model: Path, mode: Any) -> None:
    search = LinkerSearch(model, mode=mode)
    assert 0 <= score(run(search, MockRerankingTask())) <= 1
    task = LetterTask()
    task.load_data()
    data = task.dataset["default"]["test"]
    search.index(data["corpus"])
    candidates = {query["id"]: data["corpus"]["id"][20:24] for query in data["queries"]}
    found = search.search(data["queries"], top_k=3, top_ranked=candidates)
    assert all(len(scores) == 3 and set(scores) <= set(candidates[q]) for q, scores in found.items())
    search.close()


def test_sentence_similarity_by_the_encoder(model: Path) -> None:
    assert -1 <= score(run(LinkerEncoder(model), MockSTSTask())) <= 1
