"""From files to an index in the page, and what is answered to odd ones."""

import io
import time
from pathlib import Path

import openpyxl
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
    wait(browser, key)


def wait(browser: TestClient, key: str) -> None:
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


def workbook(**sheets: list[list[str]]) -> bytes:
    book, written = openpyxl.Workbook(write_only=True), io.BytesIO()
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    book.save(written)
    return written.getvalue()


def test_the_sheet_of_a_workbook_is_chosen(tmp_path: Path) -> None:
    notes = [["remark", "by"], ["the posts are on the other sheet", "ana"], ["really they are", "ana"]]
    posts = [["tweet_id", "text"], *([f"t{i}", f"heavy rain floods street {i}"] for i in range(9))]
    file = workbook(empty=[], notes=notes, posts=posts)
    with client(tmp_path) as browser:
        text = upload(browser, [("posts", ("posts.xlsx", file))])
        values = form(text, "/setup")
        assert values["sheet.posts.xlsx"] == "notes"  # the first that has records
        text = browser.post("/p/floods-2026/setup", data=values | {"sheet.posts.xlsx": "posts"}).text
        assert "heavy rain floods street 3" in text  # nothing is indexed before its columns were seen
        assert form(text, "/setup")["id.posts.xlsx"] == "tweet_id"
        browser.post("/p/floods-2026/setup", data=form(text, "/setup"))
        wait(browser, "floods-2026")
        assert "heavy" in browser.get("/p/floods-2026/search", params={"q": "street"}).text
        assert "remark" not in browser.get("/p/floods-2026/search", params={"q": "other sheet"}).text
        values |= {"sheet.posts.xlsx": "none"}
        assert browser.post("/p/floods-2026/setup", data=values).status_code < 500


def test_an_indexed_file_is_not_deleted_alone(tmp_path: Path) -> None:
    with client(tmp_path) as browser:
        files = [("posts", ("posts.csv", POSTS)), ("posts", ("broken.csv", b"id,text\n1,a\n1,b\n"))]
        text = upload(browser, files)
        (project,) = Workspace(tmp_path).projects
        index(browser, project.key)
        assert browser.get(f"/p/{project.key}/job.json").json()["state"] == "done"
        values = form(text, "/remove", 1)
        assert "posts.csv" in values["name"]
        assert "is indexed" in browser.post(f"/p/{project.key}/setup/remove", data=values).text
        assert len(stored(project)) == 2


def test_a_file_is_deleted_before_it_is_indexed(tmp_path: Path) -> None:
    with client(tmp_path) as browser:
        text = upload(browser, [("posts", ("posts.csv", POSTS)), ("posts", ("other.csv", b"\xff\xfe"))])
        (project,) = Workspace(tmp_path).projects
        for number in (1, 0):
            values = form(text, "/remove", number)
            assert values["name"] not in browser.post(f"/p/{project.key}/setup/remove", data=values).text
        assert stored(project) == []
        assert "may have been deleted" in browser.post(f"/p/{project.key}/setup/remove", data=values).text


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
