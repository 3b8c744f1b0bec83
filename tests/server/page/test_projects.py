"""From files to an index on the page, and responses to odd files."""

import gzip
import io
import os
import shutil
import tempfile
import time
import zipfile
from pathlib import Path

import openpyxl
import pytest
from starlette.testclient import TestClient

from linker.engine.engine import Engine
from linker.review.project import Workspace
from linker.review.uploads import stored
from tests.server.page.support import client, form

POSTS = b"tweet_id;text;lang;date\n" + b"".join(
    f"t{i};heavy rain floods street {i} of the town;en;{i % 28 + 1:02}.03.2026\n".encode() for i in range(30)
)
ARTICLES = b"id,title,text\na1,Floods,Heavy rain floods the town\na2,,\n"


def upload(browser: TestClient, files: list[tuple[str, tuple[str, bytes]]]) -> str:
    data = {"csrf": form(browser.get("/new/story").text, "/upload")["csrf"], "name": "Floods 2026"}
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
        assert "semicolons" in text  # the file's format was guessed
        index(browser, "floods-2026")
        text = browser.get("/p/floods-2026").text
        assert "Start reviewing" in text
        assert "articles that could not be used" in text
        unusable = browser.get("/p/floods-2026/quarantine/seeds").text
        assert "text and title are empty" in unusable and '"file":"news.csv"' in unusable
        query = {"q": "rain", "from.date": "2026-03-01", "to.date": "2026-03-02"}  # the dates were converted
        text = browser.get("/p/floods-2026/search", params=query).text
        assert [i for i in range(30) if f">t{i}<" in text or f">t{i} " in text] or "t28" in text
        assert ">t5<" not in text
        shutil.rmtree(tmp_path / "floods-2026" / "index")
        assert "posts.csv" in browser.get("/p/floods-2026").text, "the files can be read again"


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("posts.pdf", b"%PDF", "posts.pdf cannot be read"),
        ("posts.csv", b"", "is empty"),
        ("", b"", "Choose the file with"),
        ("posts.csv", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "in Excel’s old format (.xls)"),
        ("posts.csv", b"id;text\n", "contains no rows that can be read"),
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
        assert values["sheet.posts.xlsx"] == "notes"  # the first sheet that has records
        text = browser.post("/p/floods-2026/setup", data=values | {"sheet.posts.xlsx": "posts"}).text
        assert "heavy rain floods street 3" in text  # nothing is indexed before its columns are confirmed
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
        assert (
            "has been read into the review"
            in browser.post(f"/p/{project.key}/setup/remove", data=values).text
        )
        assert len(stored(project)) == 2


def test_a_file_is_deleted_before_it_is_indexed(tmp_path: Path) -> None:
    with client(tmp_path) as browser:
        text = upload(
            browser, [("posts", ("posts.csv", POSTS)), ("posts", ("other.csv", b"id,text\n9,another one\n"))]
        )
        (project,) = Workspace(tmp_path).projects
        for number in (1, 0):
            values = form(text, "/remove", number)
            assert values["name"] not in browser.post(f"/p/{project.key}/setup/remove", data=values).text
        assert stored(project) == []
        assert "no longer in the review" in browser.post(f"/p/{project.key}/setup/remove", data=values).text


def test_a_name_that_is_taken_is_said_and_nothing_changes(tmp_path: Path) -> None:
    with client(tmp_path) as browser:
        upload(browser, [("posts", ("posts.csv", POSTS))])
        assert "already" in upload(browser, [("posts", ("posts.csv", POSTS))])
        (project,) = Workspace(tmp_path).projects
        assert len(stored(project)) == 1


def test_review_is_deleted_only_by_name_and_without_foreign_files(browser: TestClient, folder: Path) -> None:
    foreign = folder / "floods" / "notes.txt"
    foreign.write_text("mine", encoding="utf-8")
    values = form(browser.get("/p/floods").text, "/delete") | {"name": "Floods"}
    assert "type its name" in browser.post("/p/floods/delete", data=values | {"name": "floods"}).text
    assert "notes.txt was not written by linker" in browser.post("/p/floods/delete", data=values).text
    assert (folder / "floods" / "review.sqlite").exists()
    assert browser.get("/p/floods/judge").status_code == 200
    foreign.unlink()
    browser.post("/p/floods/delete", data=values)
    assert Workspace(folder).projects == []


def test_a_broken_review_is_shown_with_reason_and_the_others_work(browser: TestClient, folder: Path) -> None:
    broken = Workspace(folder).create("Votes")
    (broken.own_folder / "project.json").write_text("{", encoding="utf-8")
    torn = Workspace(folder).create("Torn")
    torn.ledger.write_bytes(b"SQLite format 3\0" + bytes(5000))
    listed = browser.get("/").text
    assert "project.json is damaged" in listed
    assert "A file of this review is damaged" in listed
    assert browser.get("/p/floods").status_code == 200
    answer = browser.get("/p/votes")
    assert (answer.status_code, "votes/project.json is damaged" in answer.text) == (400, True)
    assert str(folder) not in listed + answer.text
    (folder / "floods" / "review.sqlite").write_bytes(b"SQLite format 3\0" + bytes(5000))
    assert "A file of this review is damaged" in browser.get("/p/floods").text


@pytest.mark.parametrize("role", [5, [1], {"a": 1}, "x"])
def test_an_unknown_role_in_project_json_is_left_out(browser: TestClient, folder: Path, role: object) -> None:
    project = Workspace(folder).project("floods")
    project.uploads.mkdir(exist_ok=True)
    (project.uploads / "posts.csv").write_text("id,text\n1,rain\n", encoding="utf-8")
    project.describe(roles={"posts.csv": role})
    answer = browser.get("/p/floods")
    assert (answer.status_code, "posts.csv" in answer.text) == (200, True)


def test_an_export_is_private_on_its_way(
    browser: TestClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modes = []
    fsync = os.fsync

    def seen(descriptor: int) -> None:
        modes.append(os.fstat(descriptor).st_mode & 0o077)
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", seen)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "way"))
    (tmp_path / "way").mkdir(0o700)
    assert browser.get("/p/floods/export/file", params={"format": "csv"}).content
    assert modes
    assert set(modes) == {0}
    assert list((tmp_path / "way").iterdir()) == []


RIS = b"TY  - JOUR\nTI  - Floods\nAB  - Heavy rain flooded the town\nAU  - Ana\nPY  - 2022\nID  - r1\nER  - \n\n"
NBIB = b"PMID- 12\nTI  - Votes\nAB  - The region elected a parliament\n\n"


def asreview_project() -> bytes:
    """Return a project as written by ASReview, with two unjudged records."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("project.json", '{"project_file_version": 3, "datasets": [{"name": "set.csv"}]}')
        archive.writestr("results.db", "")
        archive.writestr("data/set.csv", "title;abstract\nFloods;Heavy rain fell\nVotes;They voted\n")
    return content.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "ids"),
    [
        ("library.ris", RIS, ["r1"]),
        ("pubmed.nbib", NBIB, ["12"]),
        ("library.ris.gz", gzip.compress(RIS, mtime=0), ["r1"]),
        ("screening.asreview", asreview_project(), ["0", "1"]),
    ],
)
def test_files_of_reference_managers_and_asreview_become_documents(
    tmp_path: Path, name: str, content: bytes, ids: list[str]
) -> None:
    with client(tmp_path) as browser:
        assert "can be used" in upload(browser, [("posts", (name, content))])
        index(browser, "floods-2026")
        assert browser.get("/p/floods-2026/export").status_code == 200
    with Engine.open(tmp_path / "floods-2026" / "index") as engine:
        documents = list(engine.documents())
    assert [document.id for document in documents] == ids
    assert all(document.title in ("Floods", "Votes") and document.text for document in documents)
