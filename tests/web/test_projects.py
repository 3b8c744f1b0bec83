"""From files to an index in the page, and what is answered to odd ones."""

import time
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from linker.review.project import Workspace
from linker.review.uploads import stored
from tests.web.support import client, form

POSTS = b"tweet_id;text;lang;date\n" + b"".join(
    f"t{i};heavy rain floods street {i} of the town;en;{i % 28 + 1:02}.03.2026\n".encode() for i in range(30)
)
ARTICLES = b"id,title,text\na1,Floods,Heavy rain floods the town\na2,,\n"


def upload(browser: TestClient, files: list[tuple[str, tuple[str, bytes]]]) -> str:
    data = {"csrf": form(browser.get("/").text, "/upload")["csrf"], "name": "Floods 2026"}
    return browser.post("/upload", data=data, files=files).text


def index(browser: TestClient, key: str) -> None:
    browser.post(f"/p/{key}/setup", data=form(browser.get(f"/p/{key}/setup").text, "/setup"))
    end = time.monotonic() + 60
    while browser.get(f"/p/{key}/job.json").json()["state"] == "running":
        assert time.monotonic() < end
        time.sleep(0.05)


def test_files_become_a_review(tmp_path: Path) -> None:
    with client(tmp_path) as browser:
        text = upload(browser, [("posts", ("posts.csv", POSTS)), ("articles", ("news.csv", ARTICLES))])
        assert "semicolons" in text  # how the file is written was guessed
        index(browser, "floods-2026")
        text = browser.get("/p/floods-2026").text
        assert "Begin to judge" in text
        assert "articles that could not be used" in text
        assert "text and title are empty" in browser.get("/p/floods-2026/quarantine/seeds").text
        query = {"q": "rain", "from.date": "2026-03-01", "to.date": "2026-03-02"}  # the dates were converted
        text = browser.get("/p/floods-2026/search", params=query).text
        assert [i for i in range(30) if f">t{i}<" in text or f">t{i} " in text] or "t28" in text
        assert ">t5<" not in text


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("posts.pdf", b"%PDF", "linker reads CSV"),
        ("posts.csv", b"", "is empty"),
        ("", b"", "Choose the files"),
    ],
)
def test_odd_files_are_answered_beside_the_field_and_leave_nothing(
    tmp_path: Path, name: str, content: bytes, said: str
) -> None:
    with client(tmp_path) as browser:
        text = upload(browser, [("posts", (name, content))] if name else [])
        assert said in text
        assert 'aria-invalid="true"' in text
        assert Workspace(tmp_path).projects == []


def test_a_file_without_texts_asks_for_the_column(tmp_path: Path) -> None:
    with client(tmp_path) as browser:
        upload(browser, [("posts", ("posts.csv", b"a,b\n1,2\n3,4\n"))])
        values = form(browser.get("/p/floods-2026/setup").text, "/setup") | {"text.posts.csv": ""}
        assert "Choose the column with the texts." in browser.post("/p/floods-2026/setup", data=values).text


def test_a_name_that_is_taken_is_said_and_nothing_changes(tmp_path: Path) -> None:
    with client(tmp_path) as browser:
        upload(browser, [("posts", ("posts.csv", POSTS))])
        assert "already" in upload(browser, [("posts", ("posts.csv", POSTS))])
        (project,) = Workspace(tmp_path).projects
        assert len(stored(project)) == 1


def test_a_review_is_deleted_only_by_its_name(browser: TestClient, folder: Path) -> None:
    values = form(browser.get("/p/floods").text, "/delete")
    assert "type its name" in browser.post("/p/floods/delete", data=values | {"name": "floods"}).text
    assert Workspace(folder).projects
    browser.post("/p/floods/delete", data=values | {"name": "Floods"})
    assert Workspace(folder).projects == []
