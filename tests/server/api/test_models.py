"""/v1/embeddings, /v1/models and /v1/rerank: the shapes of OpenAI, Cohere and TEI, over a real encoder interface."""

import base64
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from starlette.testclient import TestClient

from tests.helpers import HashEncoder
from tests.server.api.support import check_problem, dense_client

TEXTS = ["rain floods valencia", "voters elect parliament", "volcano"]


@pytest.fixture
def dense(folder: Path) -> Iterator[TestClient]:
    with dense_client(folder) as opened:
        yield opened


def test_the_real_client_of_openai_gets_the_encoders_vectors(dense: TestClient) -> None:
    """Its requests reach the application without a port."""
    openai = pytest.importorskip("openai")  # it takes a second, which collecting workers need not spend
    client = openai.OpenAI(
        base_url="http://127.0.0.1:8000/v1", api_key="unused", max_retries=0, http_client=dense
    )
    oracle = HashEncoder().encode(TEXTS)
    answer = client.embeddings.create(model="dense", input=TEXTS)  # requests base64 by default
    assert np.array_equal(np.array([d.embedding for d in answer.data], np.float32), oracle)
    assert [d.index for d in answer.data] == [0, 1, 2]
    assert (answer.model, answer.object, answer.usage.prompt_tokens) == ("dense", "list", 7)
    one = client.embeddings.create(model="hash", input=TEXTS[0], encoding_format="float")
    assert np.allclose(one.data[0].embedding, oracle[0])
    assert [m.id for m in client.models.list()] == ["dense"]
    with pytest.raises(openai.NotFoundError, match="choose one of dense"):
        client.embeddings.create(model="text-embedding-3-small", input="x")


def test_bytes_are_little_endian_and_the_errors_say_what_to_do(dense: TestClient, api: TestClient) -> None:
    body = {"model": "dense", "input": TEXTS[0], "encoding_format": "base64", "dimensions": 16}
    (data,) = dense.post("/v1/embeddings", json=body).json()["data"]
    assert np.array_equal(
        np.frombuffer(base64.b64decode(data["embedding"]), "<f4"), HashEncoder().encode(TEXTS[:1])[0]
    )
    wrong = dense.post("/v1/embeddings", json=body | {"dimensions": 8})
    assert "16 dimensions" in check_problem(wrong, 400, "wrong-dimension")
    tokens = dense.post("/v1/embeddings", json={"model": "dense", "input": [[1, 2]]})
    assert "send texts" in check_problem(tokens, 422, "invalid-request")
    for empty in ("", [], [""]):
        assert dense.post("/v1/embeddings", json={"model": "dense", "input": empty}).status_code == 422
    check_problem(api.post("/v1/embeddings", json={"model": "news", "input": "x"}), 400, "no-encoder")
    assert api.get("/v1/models").json() == {"object": "list", "data": []}


def test_rerank_answers_in_the_shape_it_is_asked_in(dense: TestClient) -> None:
    query = "rain over valencia"
    vectors = HashEncoder().encode([query, *TEXTS])
    cosines = [float(vectors[0] @ vector) for vector in vectors[1:]]
    order = sorted(range(3), key=lambda i: -cosines[i])
    cohere = dense.post(
        "/v1/rerank",
        json={"model": "dense", "query": query, "documents": [TEXTS[0], {"text": TEXTS[1]}, TEXTS[2]], "top_n": 2,
              "return_documents": True},
    ).json()  # fmt: skip
    assert [r["index"] for r in cohere["results"]] == order[:2]
    assert cohere["results"][0]["relevance_score"] == pytest.approx(cosines[order[0]], abs=1e-6)
    assert cohere["results"][0]["document"] == {"text": TEXTS[order[0]]}
    tei = dense.post("/v1/rerank", json={"query": query, "texts": TEXTS, "raw_scores": True}).json()
    assert [r["index"] for r in tei] == order
    assert [r["score"] for r in tei] == pytest.approx([cosines[i] for i in order], abs=1e-6)
    assert min(cosines) < 0  # so that the next line can fail
    clipped = dense.post("/v1/rerank", json={"query": query, "texts": TEXTS, "return_text": True}).json()
    assert clipped[-1] == {"index": order[-1], "score": 0.0, "text": TEXTS[order[-1]]}
    assert dense.post("/v1/rerank", json={"query": query}).status_code == 422
    unknown = dense.post("/v1/rerank", json={"query": query, "texts": TEXTS, "model": "other"})
    assert "choose one of dense" in check_problem(unknown, 404, "unknown-model")
