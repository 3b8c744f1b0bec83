"""One application holds each index and each review once, whoever requests it."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from indexes.interface import Document
from linker.engine.engine import Engine
from linker.review.project import Workspace
from linker.server.config import ServeConfig
from linker.server.page.sessions import REVIEWER
from linker.server.running import application
from linker.server.shelf import Shelf
from tests.server.page.support import BASE, make_review


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Return a list of the directories opened from now on."""
    found: list[Path] = []
    real = Engine.open.__func__  # type: ignore[attr-defined]  # a class method

    def open_(cls: type[Engine], /, directory: Path, **options: Any) -> Engine:
        found.append(directory)
        engine: Engine = real(cls, directory, **options)
        return engine

    monkeypatch.setattr(Engine, "open", classmethod(open_))
    return found


def test_page_and_api_share_the_engine_of_an_index(tmp_path: Path, opened: list[Path]) -> None:
    key = make_review(tmp_path)
    index = tmp_path / key / "index"
    opened.clear()
    with TestClient(
        application(ServeConfig.of(tmp_path)), base_url=BASE, cookies={REVIEWER: "ana"}
    ) as client:

        def found() -> list[str]:
            page = client.get(f"/p/{key}/search", params={"q": "meteorite"})
            hits = client.post("/v1/search", json={"text": "meteorite"}).json()["results"][0]["hits"]
            assert page.status_code == 200
            assert all(hit["id"] in page.text for hit in hits)
            return [hit["id"] for hit in hits]

        assert client.get(f"/p/{key}/judge").status_code == 200
        assert found() == []
        with Engine(index) as other:
            other.add([Document("m1", "A meteorite fell into a lake")])
        assert found() == ["m1"]
    assert opened == [index]


def test_a_shelf_opens_each_once_and_again_after_it_was_closed(tmp_path: Path, opened: list[Path]) -> None:
    project = Workspace(tmp_path).project(make_review(tmp_path))
    opened.clear()
    shelf = Shelf()
    with ThreadPoolExecutor(8) as threads:
        reviews = [*threads.map(lambda _: shelf.review(project), range(8))]
    assert all(review is reviews[0] for review in reviews)
    other = shelf.review(project, "other")
    assert other is not reviews[0] and other.engine is reviews[0].engine
    shelf.close_review(project)
    reopened = shelf.review(project)
    assert reopened is not reviews[0] and reopened.engine is reviews[0].engine
    assert opened == [project.index]
    shelf.forget(project)
    assert shelf.review(project).engine is not reopened.engine
    assert shelf.size(project) == len(reopened.engine) > 0
    shelf.close()
    assert shelf.size(project) == len(reopened.engine)
    assert opened == [project.index] * 2
