"""The start: three jobs, the sample, and an import of messy files that can be corrected, with and without scripts."""

import ast
import contextlib
import csv
import errno
import io
import os
import sqlite3
from pathlib import Path
from typing import Any, TypeGuard

import openpyxl
import orjson
import pytest
from starlette.testclient import TestClient

from indexes.errors import (
    CAUSES,
    DamagedError,
    IndexesError,
    LockedError,
    MissingExtraError,
    Reason,
    reason_of,
)
from linker.base.errors import InputError
from linker.corpora import BadLine, Columns, read_corpus
from linker.corpora.records import MAX_REASON
from linker.encoders import installed as models
from linker.review.database import Database
from linker.review.language import LANGUAGES, language
from linker.review.ledger import Ledger
from linker.review.project import Workspace
from linker.review.settings import guess_unit
from linker.server.page.reasons import REASONS, explain
from tests.house import files
from tests.server.page.chromium import answered, axe
from tests.server.page.support import client, form
from tests.server.page.test_projects import upload, wait

RAIN = "The river floods street {} of the old town again"
THINGS = (
    "harbour", "comet", "strike", "budget", "museum", "vaccine", "football", "taxes", "storm", "zebra",
    "border", "cinema",
)  # fmt: skip
SETUP = "/p/floods-2026/setup"


def table(rows: list[list[str]], delimiter: str = ",") -> str:
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter, lineterminator="\n").writerows(rows)
    return text.getvalue()


def titled() -> bytes:
    rows = [["id", "text", "date"], *([f"p{i}", RAIN.format(i), f"{i + 10}.12.2021"] for i in range(9))]
    return ("Export of March;;\n;;\n\n" + table(rows, ";")).encode()


def mac() -> bytes:
    rows = [
        ["id", "text"],
        *([f"p{i}", f"Der Fluß überschwemmt die Straße {i} für Fußgänger"] for i in range(9)),
    ]
    return table(rows).encode("mac_roman")


def twice() -> bytes:
    rows = [["id", "text", "text", ""], *([f"p{i}", "short", RAIN.format(i), "x"] for i in range(9))]
    return table(rows).encode()


def dated() -> bytes:
    days = ["31.12.2021", "12/30/2021", "29 December 2021"]
    rows = [["id", "text", "date"], *([f"p{i}", RAIN.format(i), days[i % 3]] for i in range(9))]
    return table(rows).encode()


def renamed() -> bytes:
    book = openpyxl.Workbook()
    for row in (["id", "text"], *([f"p{i}", RAIN.format(i)] for i in range(9))):
        book.active.append(row)
    written = io.BytesIO()
    book.save(written)
    return written.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("titled.csv", titled(), {"header_row": "4", "delimiter": ";", "date_format": "%d.%m.%Y"}),
        ("mac.csv", mac(), {"encoding": "mac_roman", "language": "german"}),
        ("twice.csv", twice(), {"text": "text_2"}),
        ("dated.csv", dated(), {"date": "date"}),
        ("workbook.csv", renamed(), {"sheet": "Sheet"}),
        ("table.xlsx", mac(), {"delimiter": ","}),
    ],
)  # fmt: skip
def test_messy_files_are_read_as_guessed(
    tmp_path: Path, name: str, content: bytes, expected: dict[str, str]
) -> None:
    with client(tmp_path) as browser:
        values = form(upload(browser, [("posts", (name, content))]), "/setup")
        assert {
            what: values[what if what == "language" else f"{what}.{name}"] for what in expected
        } == expected
        if name not in ("titled.csv", "workbook.csv"):
            return  # each job starts a process
        browser.post(SETUP, data=values)
        wait(browser, "floods-2026")
        assert "9 documents" in browser.get("/").text
        found = browser.get("/p/floods-2026/search", params={"q": "old town", "from.date": "2021-01-01"}).text
        assert "p3" in found


def test_what_is_changed_is_shown_before_it_is_read(tmp_path: Path) -> None:
    with client(tmp_path) as browser:
        values = form(upload(browser, [("posts", ("titled.csv", titled()))]), "/setup")
        other = browser.post(SETUP, data=values | {"header_row.titled.csv": "6"}).text
        assert form(other, "/setup")["header_row.titled.csv"] == "6"
        assert not Workspace(tmp_path).project("floods-2026").ready
        again = browser.post(SETUP, data=values | {"date_format.titled.csv": "%m/%d/%Y", "again": "1"}).text
        assert "9 values are not dates" in again
        assert form(again, "/setup")["date_format.titled.csv"] == "%m/%d/%Y"
        bad = browser.post(SETUP, data=values | {"encoding.titled.csv": "no-such"}).text
        assert "there is no encoding" in bad


def test_rows_that_cannot_be_used_are_listed_with_their_reasons(tmp_path: Path) -> None:
    content = b"id,text\n1,rain in town\n2\n3,\n4,the river rose\n4,the sea rose\n"
    with client(tmp_path) as browser:
        page = upload(browser, [("posts", ("bad.csv", content))])
        assert "3 rows cannot be used" in page
        assert "Row 3: The row has 1 cells, but there are 2 columns." in page
        assert "Row 4: The text is empty." in page
        assert "Row 6: An earlier row has the id 4, and only that row is used." in page
        told = browser.get("/p/floods-2026/setup", headers={"accept-language": "de"}).text
        assert "Zeile 4: Der Text ist leer." in told


READERS = [
    ("a.csv", b"id,text\n1,rain\n2,b,c\n3,\n4,\"a\" b\n" + "5,für\n".encode("latin-1")),
    ("b.jsonl", b'{"id": "1", "text": "a"}\n{"id": ""}\nnot\n[1]\n{"id": "a b", "text": "c"}\n{"id": "2", "text": 3}\n'
     b'{"id": "3", "text": "a\\u0000"}\n{"id": "4", "text": "a", "x": ' + b"[" * 70 + b"]" * 70 + b"}\n"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content"), READERS)
def test_every_reason_is_told_in_the_readers_language(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    reasons = [
        r.reason for r in read_corpus(tmp_path / name, Columns(encoding="utf-8")) if isinstance(r, BadLine)
    ]
    assert len(reasons) >= 4
    for reason in reasons:
        told = {explain(reason, language(code)) for code in LANGUAGES}
        assert len(told) == len(LANGUAGES), reason


def full(number: int = errno.ENOSPC) -> OSError:
    return OSError(number, os.strerror(number), "/srv/x")


def caused(error: Exception, source: Exception) -> Exception:
    """Return `error` with `source` as its cause, as code below the page raises it."""
    error.__cause__ = source
    return error


MACHINE = [
    full(), full(errno.EDQUOT), full(errno.EROFS), full(errno.EACCES), full(errno.EIO),
    caused(InputError("cannot store posts.csv: No space left on device"), full()),
    caused(IndexesError("build failed: Disk quota exceeded (/srv/x): free some space"), full(errno.EDQUOT)),
    caused(InputError("cannot make the folder /srv/x: Read-only file system"), full(errno.EROFS)),
    DamagedError("/srv/x/data is empty: restore it from a backup, or rebuild the index"),
    LockedError("process 7 is writing to /srv/x: wait"), MissingExtraError("scikit-learn", "review"),
]  # fmt: skip


@pytest.mark.parametrize("error", MACHINE, ids=repr)
def test_what_fails_on_the_machine_is_told_in_the_readers_language_without_a_path(error: Exception) -> None:
    values = orjson.loads(orjson.dumps(reason_of(error).to_json()))  # as reported by a job's process
    for reason in (reason_of(error), Reason.of(values)):
        texts = {explain(reason, language(code)) for code in LANGUAGES}
        assert len(texts) == len(LANGUAGES)
        assert not any(word in text for text in texts for word in ("/srv", "pip ", "--"))


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("database or disk is full", "disk-full"), ("attempt to write a readonly database", "not-allowed"),
        ("unable to open database file", "not-allowed"), ("database is locked", "busy"),
        ("disk I/O error", "disk-faulty"), ("database disk image is malformed", "damaged"),
    ],
)  # fmt: skip
def test_what_sqlite_says_of_a_ledger_has_a_cause(tmp_path: Path, text: str, cause: str) -> None:
    database = Database(tmp_path / "ledger", durable=False)
    with contextlib.closing(database), pytest.raises(InputError) as caught, database.writing():
        raise sqlite3.OperationalError(text)
    assert reason_of(caught.value).cause == cause


def test_every_cause_is_worded_and_every_worded_cause_occurs() -> None:
    code = "".join(
        path.read_text() for path in (*files("indexes"), *files("linker")) if path.name != "reasons.py"
    )
    assert {cause for cause in REASONS if f'"{cause}"' not in code} == set()
    calls = (node for node in ast.walk(ast.parse(code.replace("from __future__ import annotations", ""))))
    named = {ast.literal_eval(node.args[1]) for node in calls if is_reason(node)}
    assert named | set(CAUSES.values()) <= set(REASONS)


def is_reason(node: ast.AST) -> TypeGuard[ast.Call]:
    """Return whether a node constructs a reason with a literal cause."""
    return (
        isinstance(node, ast.Call)
        and getattr(node.func, "id", "") == "Reason"
        and len(node.args) == 2
        and isinstance(node.args[1], ast.Constant)
    )


def test_a_reason_keeps_its_cause_and_its_facts_whatever_is_done_to_it(tmp_path: Path) -> None:
    reason = Reason("/srv/seeds.csv is empty", "empty-file", name="seeds.csv")
    again = reason_of(InputError(reason.replace("/srv/", "").replace("seeds.csv", "posts.csv")))
    assert (again, again.cause, again.facts) == ("posts.csv is empty", "empty-file", {"name": "posts.csv"})
    header = [f"column {i}" for i in range(200)]
    (tmp_path / "wide.csv").write_text(table([header, ["1"]]), encoding="utf-8")
    (bad,) = (r for r in read_corpus(tmp_path / "wide.csv", Columns(None, "column 1")))
    assert isinstance(bad, BadLine)
    assert len(bad.reason) <= MAX_REASON + 1
    assert explain(bad.reason, language("en")) == "The row has 1 cells, but there are 200 columns."


def test_a_disk_that_is_full_is_told_beside_field(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device", "/srv/x")

    monkeypatch.setattr("linker.review.uploads.shutil.copyfileobj", full)
    with client(tmp_path) as browser:
        browser.headers["accept-language"] = "de"
        page = upload(browser, [("posts", ("posts.csv", b"id,text\n1,rain\n"))])
    assert "ist der Datenträger voll" in page
    assert "No space" not in page


def test_seeds_that_differ_are_rows_and_the_choice_is_stored_once(tmp_path: Path) -> None:
    rows = table([["id", "text"], *([f"r{i}", f"The {t} on {i}"] for i, t in enumerate(THINGS))]).encode()
    posts = table(
        [["id", "text"], *([f"p{i}", f"About a {t} we know more today"] for i, t in enumerate(THINGS))]
    ).encode()
    with client(tmp_path) as browser:
        page = upload(browser, [("posts", ("posts.csv", posts)), ("articles", ("rows.csv", rows))])
        (project,) = Workspace(tmp_path).projects
        assert form(page, "/setup")["unit"] == "pairs"
        browser.post(SETUP, data=form(page, "/setup"))
        wait(browser, project.key)
        ended = browser.get(f"/p/{project.key}/job", follow_redirects=False)
        # there are seeds: the first document is next
        assert ended.headers["location"] == f"/p/{project.key}/judge"
        with Ledger(project.ledger) as ledger:
            assert ledger.settings["unit"] == "pairs"
        assert "0 matched" in browser.get("/").text


@pytest.mark.parametrize(("job", "unit"), [("story", "topic"), ("rows", "pairs")])
def test_the_job_chosen_at_the_start_stands(tmp_path: Path, job: str, unit: str) -> None:
    with client(tmp_path) as browser:
        data = {
            key: value for key, value in form(browser.get(f"/new/{job}").text, "/upload").items() if value
        }
        files = [("posts", ("p.csv", titled())), ("articles", ("a.csv", titled()))]
        page = browser.post("/upload", data=data | {"about": "A river floods"}, files=files).text
        assert form(page, "/setup")["unit"] == unit
        (project,) = Workspace(tmp_path).projects
        with Ledger(project.ledger) as ledger:
            assert [seed.text for seed in ledger.seeds] == ["A river floods"]


def test_groups_are_a_job_of_the_start(tmp_path: Path) -> None:
    with client(tmp_path) as browser:
        assert "/new/groups" in browser.get("/").text
        asked = browser.get("/new/groups").text
        assert 'name="posts"' in asked and 'name="articles"' not in asked
        data = {key: value for key, value in form(asked, "/upload").items() if value}
        page = browser.post("/upload", data=data, files=[("posts", ("p.csv", titled()))]).text
        assert "unit" not in form(page, "/setup")
        (project,) = Workspace(tmp_path).projects
        browser.post(f"/p/{project.key}/setup", data=form(page, "/setup"))
        wait(browser, project.key)
        assert browser.get(f"/p/{project.key}/job").url.path == f"/p/{project.key}/groups"
        home = browser.get("/").text
        assert f'href="/p/{project.key}/groups"' in home and "0 found" not in home and "One story" not in home


def test_many_seeds_that_differ_are_told_from_one_story() -> None:
    stories = [f"The {word}" for word in THINGS]
    floods = [f"flooding in quarter {i}, says {word}" for i, word in enumerate(stories)]
    assert guess_unit(stories, ["some other text was seen"] * 20) == "pairs"
    assert guess_unit(floods, ["some other text was seen"] * 20) == "topic"
    assert guess_unit(stories[:3], []) == "topic"


def test_models_are_chosen_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = (models.KnownModel("tiny", (), ("german",)), models.KnownModel("wide", (), None))
    monkeypatch.setattr(models, "MODELS", here)
    assert (models.advised("german"), models.advised("greek")) == ("tiny", "wide")
    assert models.is_there("tiny")
    assert not models.is_there("no/such-model")
    with client(tmp_path) as browser:
        page = upload(browser, [("posts", ("mac.csv", mac()))])
        assert "Words and meaning: tiny" in page
        assert (
            page.index("Words and meaning: tiny")
            < page.index("suits these texts")
            < page.index("Words and meaning: wide")
        )
        answer = browser.post(SETUP, data=form(page, "/setup") | {"own": "nowhere"}).text
        assert "There is no such model" in answer


def test_the_sample_is_a_review_in_one_click(tmp_path: Path) -> None:
    with client(tmp_path / "new") as browser:
        send_sample(browser)
        (project,) = Workspace(tmp_path / "new").projects
        wait(browser, project.key)
        assert "90 documents" in browser.get("/").text
        assert "flood" in browser.get(f"/p/{project.key}/judge").text
        send_sample(browser)  # it already exists
        assert len(Workspace(tmp_path / "new").projects) == 1


def send_sample(browser: TestClient) -> None:
    browser.post("/sample", data={"csrf": form(browser.get("/").text, "/sample")["csrf"]})


@pytest.mark.parametrize("scripts", [True, False])
def test_a_messy_file_is_corrected_in_a_browser(tmp_path: Path, chrome: Any, scripts: bool) -> None:
    file = tmp_path / "titled.csv"
    file.write_bytes(titled())
    with answered(tmp_path / "reviews") as server:
        page = chrome.new_context(java_script_enabled=scripts, locale="en-GB").new_page()
        page.goto(server.address)
        page.get_by_role("link", name="Choose files for one story").press("Enter")
        page.set_input_files("#posts", file)
        page.get_by_role("button", name="Upload").press("Enter")
        page.wait_for_url("**/setup")
        change(page, "6", scripts)
        assert page.inner_text("table.preview thead").startswith("p1")
        change(page, "4", scripts)
        assert page.inner_text("table.preview thead").startswith("id")
        if scripts:
            assert axe(page) == []
        page.locator("main form button.main").press("Enter")
        page.wait_for_url("**/p/titled")
        assert "9" in page.inner_text("dl.facts")


def change(page: Any, row: str, scripts: bool) -> None:
    """Change the header row; without scripts, a button redisplays the rows."""
    before = page.inner_text("table.preview thead")
    page.fill("#header_row-1", row)
    if scripts:
        page.press("#header_row-1", "Tab")
        page.wait_for_function(
            "b => document.querySelector('table.preview thead')?.innerText !== b", arg=before
        )
    else:
        page.get_by_role("button", name="Show the rows again").press("Enter")
