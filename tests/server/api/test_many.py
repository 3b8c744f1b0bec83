"""Many documents over HTTP: listed page by page without a gap, and deleted in one commit."""

from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from linker.engine import Engine
from tests.server.api.support import DOCUMENTS, check_problem


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
