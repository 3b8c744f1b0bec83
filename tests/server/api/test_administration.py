"""Indexes over HTTP: created, filled, saved, restored and deleted, only by an admin, only in the served folder."""

import io
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest
from starlette.testclient import TestClient

from linker.encoders.installed import MODELS
from linker.engine import Engine
from linker.server.api.routes import indexes
from linker.server.api.routes.indexes import TAR
from tests.server.api.support import check_problem, client
from tests.server.api.test_guard import bearer

SENT = {"content-type": TAR}


@pytest.fixture
def service(folder: Path) -> Iterator[TestClient]:
    """The service over the folder of the indexes "news" and "old"."""
    with client(folder) as opened:
        yield opened


def names(api: TestClient) -> list[str]:
    return [index["name"] for index in api.get("/v1/indexes").json()["indexes"]]


def test_an_index_is_created_filled_searched_and_deleted(service: TestClient, folder: Path) -> None:
    response = service.put("/v1/indexes/berichte", json={"language": "german", "stop_words": True})
    assert (response.status_code, response.json()["language"], response.json()["documents"]) == (
        201,
        "german",
        0,
    )
    assert names(service) == ["berichte", "news", "old"]
    answer = service.put("/v1/documents/a?index=berichte", json={"text": "die Häuser der Stadt"})
    assert answer.status_code == 201
    (result,) = service.post("/v1/search", json={"index": "berichte", "text": "ein Haus"}).json()["results"]
    assert [hit["id"] for hit in result["hits"]] == ["a"]
    assert service.get("/v1/indexes/berichte").json()["documents"] == 1
    check_problem(service.put("/v1/indexes/berichte", json={}), 409, "index-exists")
    assert service.delete("/v1/indexes/berichte").status_code == 204
    assert not (folder / "berichte").exists()
    assert names(service) == ["news", "old"]
    check_problem(service.delete("/v1/indexes/berichte"), 404, "unknown-index")
    assert service.put("/v1/indexes/berichte", json={}).status_code == 201  # the name is available again


def test_an_index_created_without_a_body_has_the_defaults(service: TestClient) -> None:
    with_body, without = service.put("/v1/indexes/one", json={}), service.put("/v1/indexes/two")
    assert (with_body.status_code, without.status_code) == (201, 201)
    assert without.json() | {"name": "one"} == with_body.json()
    labelled = service.put("/v1/indexes/three", headers={"content-type": "application/json"})
    assert labelled.status_code == 201
    unlabelled = service.put("/v1/indexes/four", content=b'{"language": "german"}')
    check_problem(unlabelled, 415, "unsupported-media-type")
    described = service.get("/openapi.json").json()["paths"]["/v1/indexes/{name}"]["put"]["requestBody"]
    assert not described.get("required", False) and described["content"]["application/json"]["examples"]


def test_an_index_with_an_encoder_finds_by_meaning(
    service: TestClient, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    response = service.put("/v1/indexes/meanings", json={"encoder": "star"})
    assert (response.status_code, response.json()["encoder"], response.json()["mode"]) == (
        201,
        "star",
        "hybrid",
    )
    for id_, text in (("a", "A storm floods the coast."), ("b", "The bank raises interest rates.")):
        assert service.put(f"/v1/documents/{id_}?index=meanings", json={"text": text}).status_code == 201
    query = {"index": "meanings", "text": "heavy rain and high water", "mode": "dense"}
    (result,) = service.post("/v1/search", json=query).json()["results"]
    assert [hit["id"] for hit in result["hits"]] == ["a", "b"]
    for other in ("/etc/passwd", "someone/model", "hub:model"):
        assert service.put("/v1/indexes/other", json={"encoder": other}).status_code == 422
    monkeypatch.setattr(indexes, "installed", list)
    detail = check_problem(service.put("/v1/indexes/other", json={"encoder": "star"}), 400, "no-encoder")
    assert detail.endswith("choose one of none")
    assert not (folder / "other").exists()


def test_the_encoders_are_the_models_with_a_name() -> None:
    assert {*get_args(indexes.EncoderName)} == {"none", *(model.name for model in MODELS)}


def test_a_snapshot_is_restored_as_it_was(service: TestClient, folder: Path) -> None:
    taken = service.get("/v1/indexes/news/snapshot")
    assert (taken.status_code, taken.headers["content-type"]) == (200, TAR)
    assert service.put("/v1/indexes/copy/snapshot", content=taken.content, headers=SENT).status_code == 201
    one, other = Engine(folder / "news"), Engine(folder / "copy")
    assert list(one.documents()) == list(other.documents())
    check_problem(
        service.put("/v1/indexes/copy/snapshot", content=taken.content, headers=SENT), 409, "index-exists"
    )
    assert service.delete("/v1/indexes/copy").status_code == 204


def escaping() -> bytes:
    """Return an archive with a member outside of the folder."""
    archive, member = io.BytesIO(), tarfile.TarInfo("../evil")
    member.size = 1
    with tarfile.open(fileobj=archive, mode="w") as tar:
        tar.addfile(member, io.BytesIO(b"x"))
    return archive.getvalue()


@pytest.mark.parametrize("sent", [b"", b"no archive", b"\0" * 4096, escaping()])
def test_what_is_no_snapshot_makes_no_index(service: TestClient, folder: Path, sent: bytes) -> None:
    path = "/v1/indexes/copy/snapshot"
    detail = check_problem(service.put(path, content=sent, headers=SENT), 400, "bad-snapshot")
    assert str(folder) not in detail
    assert not (folder / "evil").exists() and not (folder / "copy").exists()
    plain = service.put(path, content=sent, headers={"content-type": "text/plain"})
    check_problem(plain, 415, "unsupported-media-type")


@pytest.mark.parametrize("name", ["News", ".hidden", "..", "a.b", "-a", "%2E%2E%2Fx", "a" * 64, "a_b", "ü"])
def test_a_name_that_could_lead_elsewhere_is_refused(service: TestClient, folder: Path, name: str) -> None:
    before = sorted(folder.parent.rglob("*"))
    for answer in (
        service.put(f"/v1/indexes/{name}", json={}),
        service.delete(f"/v1/indexes/{name}"),
        service.put(f"/v1/indexes/{name}/snapshot", content=b"", headers=SENT),
    ):
        assert answer.status_code in (404, 405, 422), name
    assert sorted(folder.parent.rglob("*")) == before


def test_what_the_service_did_not_make_is_left_alone(service: TestClient, folder: Path) -> None:
    check_problem(service.delete("/v1/indexes/news"), 409, "not-made-here")
    assert len(Engine(folder / "news")) == 4
    (folder / "notes").mkdir()
    (folder / "notes" / "file").write_text("mine")
    check_problem(service.put("/v1/indexes/notes", json={}), 409, "index-exists")
    assert (folder / "notes" / "file").read_text() == "mine"
    service.put("/v1/indexes/shared", json={})
    (folder / "shared" / "notes.txt").write_text("mine")
    assert service.delete("/v1/indexes/shared").status_code == 204
    assert [path.name for path in (folder / "shared").iterdir()] == ["notes.txt"]
    detail = check_problem(service.put("/v1/indexes/x", json={"language": "klingon"}), 400, "bad-request")
    assert "klingon" in detail
    assert not (folder / "x").exists()


def test_where_named_indexes_are_served_none_is_made(api: TestClient) -> None:
    check_problem(api.put("/v1/indexes/more", json={}), 409, "no-folder")


def test_an_admin_alone_creates_deletes_and_copies(folder: Path) -> None:
    tokens = folder.parent / "tokens"
    tokens.write_text(f"{'w' * 32} read,write writer\n{'a' * 32} admin boss\n")
    tokens.chmod(0o600)
    with client(folder, token_file=tokens) as service:
        for method, path in (
            ("PUT", "/v1/indexes/x"), ("DELETE", "/v1/indexes/news"), ("GET", "/v1/indexes/news/snapshot"),
            ("PUT", "/v1/indexes/x/snapshot"),
        ):  # fmt: skip
            body: dict[str, str] | None = {} if path == "/v1/indexes/x" else None
            answer = service.request(method, path, headers=bearer("w" * 32), json=body)
            check_problem(answer, 403, "scope-missing")
        assert service.put("/v1/indexes/x", json={}, headers=bearer("a" * 32)).status_code == 201
