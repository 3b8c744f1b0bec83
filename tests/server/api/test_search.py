"""Searching, listing and evaluating over HTTP give the same results as the engine and the commands."""

from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from indexes.interface import Document, IndexesError
from linker.base.errors import InputError
from linker.engine.engine import Engine
from linker.evaluation.evaluator import evaluate
from linker.scoring.ranking import pooled, searching
from linker.server.api.served import Service
from linker.server.config import ServeConfig
from tests.helpers import HashEncoder, linker
from tests.server.api.support import DOCUMENTS, check_problem, client, dense_client


def search(api: TestClient, **body: Any) -> Any:
    answer = api.post("/v1/search", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.parametrize(
    "where", [None, "lang=de", ["lang=en", "likes>100"], {"lang": ["en", "de"]}, {"lang": {"!=": "en"}}]
)
def test_hits_are_the_engines(api: TestClient, folder: Path, where: Any) -> None:
    texts = ["rain in valencia", "parliament", "nothing of all this"]
    answer = search(api, texts=texts, k=3, where=where)
    expected = Engine(folder / "news").search(texts, 3, where=where)
    assert answer["mode"] == expected.mode == "bm25"
    for result, hits in zip(answer["results"], expected.hits, strict=True):
        assert [(hit["id"], hit["score"]) for hit in result["hits"]] == [(h.id, h.score) for h in hits]
        for hit, found in zip(result["hits"], hits, strict=True):
            assert found.document is not None
            assert (hit["title"], hit["text"]) == (found.document.title, found.document.text)
            assert hit["metadata"] == found.document.metadata


def test_texts_can_be_left_out_and_phrases_hold_their_words_together(api: TestClient) -> None:
    (result,) = search(api, text="rain", documents=False)["results"]
    assert {frozenset(hit) for hit in result["hits"]} == {frozenset({"id", "score"})}
    (result,) = search(api, text='"debates rain"', phrases=True)["results"]
    assert [hit["id"] for hit in result["hits"]] == ["d/ü?#%41"]


def test_an_explanation_has_the_score_of_each_retriever(folder: Path) -> None:
    texts = ["rain parliament", "volcano"]
    with dense_client(folder) as api:
        answer = search(api, texts=texts, k=4, explain=True, mode="hybrid")
    engine = Engine(folder / "vectors" / "dense", encoder=HashEncoder())
    for mode in ("bm25", "dense"):
        for result, hits in zip(answer["results"], engine.search(texts, 4, mode=mode).hits, strict=True):
            told = {
                hit["id"]: hit["explanation"][mode] for hit in result["hits"] if mode in hit["explanation"]
            }
            assert told == pytest.approx(dict(zip(hits.ids, hits.scores.tolist(), strict=True)))


def test_a_request_tells_p_link_of_its_own_texts(api: TestClient, folder: Path) -> None:
    """The texts of one request are estimated together, as in the library; those of several requests never are."""
    texts = [f"rain {n} in valencia" for n in range(searching.FEWEST)]
    expected = Engine(folder / "news").search(texts, 3, reranker=pooled.load())
    answer = search(api, texts=texts, k=3, rerank="pooled")
    assert [result["no_match"] for result in answer["results"]] == pytest.approx(expected.no_match, abs=1e-6)
    (single,) = search(api, text=texts[0], k=3, rerank="pooled")["results"]
    assert single["no_match"] != pytest.approx(expected.no_match[0], abs=1e-3)
    (served,) = Service(ServeConfig.of([folder / "news"])).indexes.values()
    assert served._most() == searching.FEWEST - 1


def test_the_parts_of_a_ranker_s_score_are_told(api: TestClient) -> None:
    answer = search(api, text="parliament debates", k=3, explain=True, rerank="pooled")
    assert answer["ranker"]
    (result,) = answer["results"]
    parts = [hit["explanation"]["ranker"] for hit in result["hits"] if "ranker" in hit["explanation"]]
    sums = [part["start"] + sum(part["features"].values()) + part["rest"] for part in parts]
    assert len(sums) == 2  # both documents with a word of the text
    assert sums == sorted(sums, reverse=True)
    assert 0 < result["no_match"] < 1
    assert result["hits"][0]["probability"] == pytest.approx(result["hits"][0]["score"])


def test_a_mistake_has_the_text_of_the_command_line(api: TestClient, folder: Path) -> None:
    answer = api.post("/v1/search", json={"text": "x", "mode": "dense"})
    assert "`mode` to bm25" in check_problem(answer, 400, "no-such-retriever")
    for where in ("lng=en", "likes>many", "nothing"):
        printed = linker("search", folder / "news", "rain", "--where", where, check=1).stderr
        detail = check_problem(
            api.post("/v1/search", json={"text": "rain", "where": where}), 400, "bad-filter"
        )
        assert printed == f"error: {detail}\n"


def test_a_range_that_some_values_cannot_fit_is_noted(api: TestClient) -> None:
    answer = search(api, text="rain", where="lang>=2021-01-01")
    (note,) = answer["notes"]
    assert "values of 'lang' cannot be compared with '2021-01-01'" in note
    assert search(api, text="rain", where="likes>=2")["notes"] == []
    refused = api.post("/v1/search", json={"text": "rain", "where": "likes>=2021-01-01"})
    assert "the field holds numbers" in check_problem(refused, 400, "bad-filter")


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, "#"), ({"text": "a", "texts": ["b"]}, "#"), ({"text": "a", "k": 0}, "#/k"),
        ({"text": "a", "k": 1001}, "#/k"), ({"text": "a", "modus": "bm25"}, "#/modus"),
        ({"text": "a" * 100_001}, "#/text"), ({"texts": ["a"] * 1001}, "#/texts"),
        ({"texts": ["a"] * 1000, "k": 101}, "#"), ({"text": "a", "k": 101, "explain": True}, "#"),
        ({"text": "a", "mode": "magic"}, "#/mode"), ({"text": 1}, "#/text"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_named(api: TestClient, body: Any, pointer: str) -> None:
    answer = api.post("/v1/search", json=body)
    detail = check_problem(answer, 422, "invalid-request")
    assert answer.json()["errors"][0]["pointer"] == pointer
    assert pointer in detail
    assert "a" * 40 not in answer.text  # the input is not echoed back (ids of requests are 32 hex digits)


def test_what_is_no_json_is_refused(api: TestClient) -> None:
    for body in (b"{", b"[" * 100_000, b'{"text": "\\ud800"}', b'{"text": NaN}', b"\xff"):
        answer = api.post("/v1/search", content=body, headers={"content-type": "application/json"})
        check_problem(answer, 400, "not-json")
    for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
        answer = api.post("/v1/search", content=b'{"text": "rain"}', headers={"content-type": kind})
        check_problem(answer, 415, "unsupported-media-type")


def test_several_indexes_have_names_which_differ(folder: Path, tmp_path: Path) -> None:
    with client(folder) as api:
        listed = {each["name"]: each for each in api.get("/v1/indexes").json()["indexes"]}
        assert list(listed) == ["news", "old"]
        assert listed["old"]["documents"] == 0
        assert listed["news"]["documents"] == len(DOCUMENTS)
        assert listed["news"]["fields"] == ["lang", "likes"]
        assert search(api, text="rain", index="news")["index"] == "news"
        assert "news, old" in check_problem(api.post("/v1/search", json={"text": "a"}), 400, "index-missing")
        asked = check_problem(
            api.post("/v1/documents:delete", json={"index": "news", "ids": []}), 400, "index-missing"
        )
        assert "?index=NAME: choose one of news, old" in asked
        wrong = api.post("/v1/search", json={"text": "a", "index": "new"})
        assert "news, old" in check_problem(wrong, 404, "unknown-index")
    (tmp_path / "other").mkdir()
    (folder / "news").rename(tmp_path / "other" / "old")
    with pytest.raises(InputError, match="two indexes are named 'old'"):
        ServeConfig.of([folder, tmp_path / "other"]).indexes()


def test_an_empty_folder_is_served_since_the_page_can_fill_it(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    assert ServeConfig.of([tmp_path / "one"]).indexes() == {}
    with client(tmp_path / "one") as api:
        assert api.get("/ready").status_code == 200
        assert api.get("/v1/indexes").json()["indexes"] == []
        assert "no index" in check_problem(api.post("/v1/search", json={"text": "a"}), 400, "index-missing")
        wrong = api.post("/v1/search", json={"text": "a", "index": "new"})
        assert "SIGHUP" in check_problem(wrong, 404, "unknown-index")
    with pytest.raises(InputError, match="there is no index"):
        ServeConfig.of([tmp_path / "one", tmp_path / "two"]).indexes()


def test_another_process_s_commit_is_seen_at_once_and_damage_does_not_say_where_it_lies(
    api: TestClient, folder: Path
) -> None:
    Engine(folder / "news").add([Document("new", "earthquake")])
    (result,) = search(api, text="earthquake")["results"]
    assert [hit["id"] for hit in result["hits"]] == ["new"]
    assert api.get("/v1/indexes").json()["indexes"][0]["documents"] == len(DOCUMENTS) + 1
    (folder / "news" / "manifest.json").write_text("{}")
    answer = api.post("/v1/search", json={"text": "rain"})
    assert "news" in check_problem(answer, 500, "damaged-index")
    assert str(folder) not in answer.text


def test_an_error_of_ours_shows_nothing(api: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("secret detail")

    monkeypatch.setattr(Engine, "search", fail)
    answer = api.post("/v1/search", json={"text": "rain"})
    check_problem(answer, 500, "internal-error")
    assert "secret" not in answer.text
    monkeypatch.setattr(Engine, "search", lambda *_, **__: (_ for _ in ()).throw(IndexesError("k is odd")))
    assert check_problem(api.post("/v1/search", json={"text": "rain"}), 400, "bad-request") == "k is odd"


QRELS, RUN = "q1 0 a 1\nq1 0 b 0\nq2 0 a 2\n", "q1 Q0 b 1 2.5 x\nq1 Q0 a 2 1.5 x\nq3 Q0 a 1 1 x\n"


def test_runs_are_measured_as_by_the_command_and_a_name_of_a_file_is_no_run(
    api: TestClient, tmp_path: Path
) -> None:
    (tmp_path / "qrels").write_text(QRELS)
    (tmp_path / "run").write_text(RUN)
    mapped = {"q1": {"b": 2.5, "a": 1.5}, "q3": {"a": 1}}
    body = {"qrels": QRELS, "runs": {"text": RUN, "mapping": mapped}, "measures": ["map", "MRR", "P.1,5"]}
    answer = api.post("/v1/evaluate", json=body | {"per_topic": True})
    results = answer.json()["results"]
    expected = evaluate(tmp_path / "qrels", tmp_path / "run", ["map", "MRR", "P.1,5"]).to_dict(per_topic=True)
    assert results["text"] == expected
    assert results["mapping"]["measures"] == expected["measures"]
    (tmp_path / "qrels").write_text(QRELS)
    answer = api.post("/v1/evaluate", json={"qrels": str(tmp_path / "qrels"), "runs": {"x": RUN}})
    assert check_problem(answer, 400, "bad-input").startswith("qrels:1:")
    answer = api.post("/v1/evaluate", json={"qrels": QRELS, "runs": {"x": "q1 Q0 a 1\n"}})
    assert check_problem(answer, 400, "bad-input").startswith("run 'x':1:")
    answer = api.post("/v1/evaluate", json={"qrels": QRELS, "runs": {"x": RUN}, "measures": ["mapp"]})
    check_problem(answer, 400, "bad-input")
