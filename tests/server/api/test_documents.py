"""Documents over HTTP: one by one with any id, many in a stream, listed in pages, and deleted in one commit."""

import json
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

from indexes.interface import Document
from linker.base.lines import MAX_LINE
from linker.engine.engine import Engine
from linker.server.api import bulk, children
from tests.server.api.support import DOCUMENTS, check_problem

IDS = ["plain", "a/b", "/a//b/", "..", "a/../b", "%", "%2F", "a?b=c#d", "ü€𝄞", ":bulk", "é"]
NDJSON = {"content-type": "application/x-ndjson"}


def address(id_: str) -> str:
    """Return the path of a document; a client would resolve unencoded dots."""
    return "/v1/documents/" + quote(id_, safe="").replace(".", "%2E")


@pytest.mark.parametrize("id_", IDS)
def test_a_document_of_any_id_is_put_read_found_and_deleted(api: TestClient, folder: Path, id_: str) -> None:
    body = {"text": "an earthquake", "title": "Lisbon", "metadata": {"year": 1755}}
    answer = api.put(address(id_), json=body)
    assert (answer.status_code, answer.json()["created"]) == (201, True)
    assert api.get(address(id_)).json() == {"id": id_, **body}
    answer = api.put(address(id_), json={"text": "another earthquake"})
    assert (answer.status_code, answer.json()["created"]) == (200, False)
    (result,) = api.post("/v1/search", json={"text": "earthquake"}).json()["results"]
    assert [hit["id"] for hit in result["hits"]] == [id_]
    assert Engine(folder / "news").document(id_).text == "another earthquake"
    assert api.delete(address(id_)).status_code == 204
    check_problem(api.get(address(id_)), 404, "unknown-document")
    check_problem(api.delete(address(id_)), 404, "unknown-document")


def test_a_document_of_half_a_megabyte_is_put(api: TestClient) -> None:
    """Its body is validated in another process, which has to find the route that takes a body."""
    text = "earthquake " * (2 * children.LARGE // 11)
    assert api.put(address("long"), json={"text": text}).status_code == 201
    assert api.get(address("long")).json()["text"] == text


def test_what_cannot_be_a_document_is_refused(api: TestClient) -> None:
    for path in ("a%20b", "", "a%00", "a%09b"):
        check_problem(api.put(f"/v1/documents/{path}", json={"text": "x"}), 400, "bad-id")
    for path in ("%FF", "%ED%A0%80"):  # not UTF-8
        check_problem(api.get(f"/v1/documents/{path}"), 400, "bad-path")
    wide = json.loads("[" * 65 + "]" * 65)
    for body in ({}, {"text": " "}, {"text": "a\0b"}, {"text": "x", "metadata": wide}):
        assert api.put("/v1/documents/x", json=body).status_code in (400, 422), body
    deep: dict[str, Any] = {}
    for _ in range(70):
        deep = {"d": deep}
    answer = api.put("/v1/documents/x", json={"text": "x", "metadata": {"m": deep}})
    assert "nested" in check_problem(answer, 400, "bad-document")


def test_while_another_writes_the_client_is_told_to_come_back(
    api: TestClient, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from indexes.writer import Writer

    writer = Engine._writer
    monkeypatch.setattr(Engine, "_writer", lambda self, wait: writer(self, min(wait, 0.1)))
    with Writer.open(folder / "news"):
        answer = api.put("/v1/documents/x", json={"text": "x"})
    check_problem(answer, 503, "locked")
    assert int(answer.headers["retry-after"]) >= 1


def send(api: TestClient, lines: Any, **parameters: Any) -> Any:
    content = lines if not isinstance(lines, list) else b"".join(line + b"\n" for line in lines)
    return api.post("/v1/documents:bulk", content=content, headers=NDJSON, params=parameters)


def line(id_: str, text: str = "earthquake", **metadata: Any) -> bytes:
    return json.dumps({"id": id_, "text": text, **metadata}).encode()


def test_every_line_is_added_or_named(api: TestClient, folder: Path) -> None:
    lines = [
        line("x", lang="pt"), b"nonsense", b"", line("a"), b"[1]", line("x"), line("no id"), b'{"text": "t"}',
        b'{"id": "y", "text": "\\ud800"}', b"\xff", b'{"id": "y", "text": ""}', line("ü/z"),
    ]  # fmt: skip
    answer = send(api, b"\n".join(lines))  # the last line has no newline
    assert answer.status_code == 200
    report = answer.json()
    assert (report["lines"], report["added"], report["replaced"]) == (12, 2, 0)
    bad = {each["line"]: each["reason"] for each in report["quarantined"]}
    assert list(bad) == [2, 4, 5, 6, 7, 8, 9, 10, 11]
    assert "not JSON" in bad[2]
    assert "duplicate id 'a'" in bad[4]
    assert "white space" in bad[7]
    assert "no id" in bad[8]
    engine = Engine(folder / "news")
    assert engine.document("x") == Document("x", "earthquake", metadata={"lang": "pt"})
    assert engine.document("a") == DOCUMENTS[0]
    assert len(engine) == len(DOCUMENTS) + 2


def test_the_last_one_stays_where_documents_are_replaced(
    api: TestClient, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "BATCH_DOCUMENTS", 2)
    lines = [line("a", "one"), line("x", "one"), line("a", "two"), line("a", "three"), line("y")]
    report = send(api, lines, replace=True).json()
    assert (report["added"], report["replaced"], report["quarantined"]) == (2, 3, [])
    assert report["commits"] == 2
    assert Engine(folder / "news").document("a").text == "three"


async def test_batches_are_committed_while_the_body_still_comes(
    api: TestClient, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "BATCH_BYTES", 100)
    sizes = []

    # The client assembles the body before sending it, so the chunks go through Bulk itself.
    async def chunks() -> AsyncIterator[bytes]:
        for number in range(6):
            yield line(f"s{number}", "x" * 60) + b"\n"
            sizes.append(len(Engine(folder / "news")))

    served = api.app.state.service.indexes["news"]  # type: ignore[attr-defined]
    report = await bulk.DocumentStream(served, replace=False).take(chunks())
    assert report.commits == 3
    assert sizes[0] < sizes[2] < sizes[4]


def test_too_many_bad_lines_end_it_with_a_report(
    api: TestClient, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "MOST_BAD", 3)
    answer = send(api, [line("x"), *[b"bad"] * 10, line("y")])
    check_problem(answer, 400, "too-many-bad-lines")
    report = answer.json()["report"]
    assert (report["lines"], report["added"], len(report["quarantined"])) == (5, 1, 4)
    engine = Engine(folder / "news")
    assert "x" in engine
    assert "y" not in engine


def test_a_race_with_another_process_costs_its_documents_alone(
    api: TestClient, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add, other = Engine.add, Engine(folder / "news")

    def raced(self: Engine, documents: Any, **how: Any) -> None:
        if "x" not in other:
            add(other, [Document("x", "was first")])
        add(self, documents, **how)

    monkeypatch.setattr(Engine, "add", raced)
    report = send(api, [line("x"), line("y")]).json()
    assert report["added"] == 1
    assert [each["line"] for each in report["quarantined"]] == [1]


def test_only_json_lines_of_a_possible_length_are_taken(api: TestClient) -> None:
    report = send(api, [b" " * (MAX_LINE + 1), line("y")]).json()
    assert (report["added"], [each["line"] for each in report["quarantined"]]) == (1, [1])
    for headers in ({"content-type": "application/json"}, {}, NDJSON | {"content-encoding": "gzip"}):
        answer = api.post("/v1/documents:bulk", content=line("x"), headers=headers)
        check_problem(answer, 415, "unsupported-media-type")


def test_changes_of_many_clients_come_one_after_another(api: TestClient, folder: Path) -> None:
    answers: list[int] = []

    def put(number: int) -> None:
        answers.append(api.put(f"/v1/documents/t{number}", json={"text": "x"}).status_code)

    threads = [threading.Thread(target=put, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [201] * 8
    assert len(Engine(folder / "news")) == len(DOCUMENTS) + 8


def pages(api: TestClient, **asked: Any) -> list[str]:
    ids, after = [], ""
    while True:
        page = api.get("/v1/documents", params={**asked, "after": after}).json()
        ids += [document["id"] for document in page["documents"]]
        if page["next"] is None:
            return ids
        after = page["next"]


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 1000])
def test_pages_are_all_documents_in_order(api: TestClient, limit: int) -> None:
    assert pages(api, limit=limit) == [d.id for d in DOCUMENTS]
    assert pages(api, limit=limit, where="lang=de") == ["c", "d/ü?#%41"]


def test_a_page_lists_documents_as_they_are_and_mistakes_are_errors(api: TestClient) -> None:
    page = api.get("/v1/documents", params={"after": "a", "limit": 1}).json()
    assert page == {
        "documents": [
            {
                "id": "b",
                "title": "Portugal",
                "text": "voters elect parliament",
                "metadata": {"lang": "en", "likes": 200},
            }
        ],
        "next": "b",
    }
    check_problem(api.get("/v1/documents", params={"after": "gone"}), 404, "unknown-document")
    check_problem(api.get("/v1/documents", params={"where": "no=field"}), 400, "bad-filter")
    check_problem(api.get("/v1/documents", params={"limit": 0}), 422, "invalid-request")


def test_many_are_deleted_in_one_commit(api: TestClient, folder: Path) -> None:
    before = Engine(folder / "news").collection.manifest.generation
    answer = api.post("/v1/documents:delete", json={"ids": ["a", "no", "c", "a"]}).json()
    assert answer == {"deleted": 2, "missing": ["no"], "generation": before + 1}
    assert [d.id for d in Engine(folder / "news").documents()] == ["b", "d/ü?#%41"]
    answer = api.post("/v1/documents:delete", json={"ids": ["a"]}).json()
    assert answer == {"deleted": 0, "missing": ["a"], "generation": before + 1}
