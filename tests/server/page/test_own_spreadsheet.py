"""The user's own spreadsheet returned: columns, order and header unchanged, the results in extra columns."""

import csv
import io
from collections.abc import Iterator
from pathlib import Path

import openpyxl
import pytest
from starlette.testclient import TestClient

from linker.review.interface import Judgement, Verdict
from linker.review.ledger import Ledger
from linker.review.project import Workspace
from tests.server.page.support import client, opened
from tests.server.page.test_projects import index, upload

HEADER = ["Datum", "Beitrag", "Betrag", "Nummer", "note"]
ROWS = [
    [f"{i + 1}.3.2026", f"Straße {i} steht nach Regen unter Wasser", str(-i), f"n{i}", ""] for i in range(12)
]
ROWS[3][1] = "=HYPERLINK(1)"
ROWS[5][1] = ""  # no text: it does not become a document
ARTICLES = "Titel;Text;id\nHochwasser;Nach Regen steht die Straße unter Wasser;a1\nWahl;Das Parlament ist gewählt;a2\n"
ADDED = ["verdict", "match", "probability", "reviewer", "time (UTC)", "note (linker)", "match id"]


def table(rows: list[list[str]], encoding: str = "cp1252") -> bytes:
    text = io.StringIO()
    csv.writer(text, delimiter=";").writerows([HEADER, *rows])
    return text.getvalue().encode(encoding)


@pytest.fixture
def reviewed(tmp_path: Path) -> Iterator[TestClient]:
    """A browser at a review made from two uploads, with three documents judged."""
    with client(tmp_path) as browser:
        upload(
            browser, [("posts", ("Beiträge.csv", table(ROWS))), ("articles", ("news.csv", ARTICLES.encode()))]
        )
        index(browser, "floods-2026")
        with Ledger(Workspace(tmp_path).project("floods-2026").ledger) as ledger:
            verdicts: dict[str, Verdict] = {"n0": "relevant", "n3": "not", "n4": "maybe"}
            for id_, verdict in verdicts.items():
                ledger.add(Judgement("a1", id_, verdict, "Žana", note="sic" if id_ == "n0" else ""))
        yield browser


def fetched(browser: TestClient, file: str, kind: str) -> list[list[object]]:
    answer = browser.get("/p/floods-2026/export/own", params={"file": file, "format": kind})
    assert answer.status_code == 200
    if kind == "csv":
        return [list(row) for row in csv.reader(io.StringIO(answer.content.decode("utf-8-sig")))]
    sheet = openpyxl.load_workbook(io.BytesIO(answer.content)).active
    assert sheet.auto_filter.ref == f"A1:L{len(ROWS) + 1}"
    assert sheet.freeze_panes == "A2"
    assert sheet.column_dimensions["B"].width > sheet.column_dimensions["D"].width  # as wide as its texts
    return [["" if value is None else value for value in row] for row in sheet.iter_rows(values_only=True)]


def test_the_files_come_back_with_what_was_judged(reviewed: TestClient) -> None:
    assert "Beitrage.csv" in reviewed.get("/p/floods-2026/export").text
    for kind, quote in (("csv", "'"), ("xlsx", "")):  # text, not a formula
        header, *rows = fetched(reviewed, "Beitrage.csv", kind)
        assert header == [*HEADER, *ADDED]
        assert [row[0] for row in rows] == [row[0] for row in ROWS]  # dates as written, in their order
        assert [row[3] for row in rows] == [row[3] for row in ROWS]
        assert rows[5][1] == ""  # including the row that did not become a document
        assert [rows[0][i] for i in (5, 6, 8, 10, 11)] == ["relevant", "Hochwasser", "Žana", "sic", "a1"]
        assert [rows[3][5], rows[3][6], rows[4][5], rows[1][5]] == ["not relevant", "", "maybe", ""]
        assert rows[3][1] == f"{quote}=HYPERLINK(1)"
        assert rows[2][2] == f"{quote}-2"
    header, *rows = fetched(reviewed, "news.csv", "csv")
    assert header[:3] == ["Titel", "Text", "id"]
    assert rows[0][3:5] == ["relevant", str(ROWS[0][1])]
    assert rows[1][3:] == [""] * 7
    asked = {"file": "Beitrage.csv", "format": "csv"}
    answer = reviewed.get("/p/floods-2026/export/own", params=asked, headers={"accept-language": "de"})
    assert "Urteil,Gegenstück,Wahrscheinlichkeit" in answer.content.decode("utf-8-sig")
    for other in ("../review.sqlite", "project.json", "", "other.csv"):
        answer = reviewed.get("/p/floods-2026/export/own", params={"file": other})
        assert answer.status_code in (404, 422), other


def test_rows_come_back_with_their_states(reviewed: TestClient, tmp_path: Path) -> None:
    with Ledger(Workspace(tmp_path).project("floods-2026").ledger) as ledger:
        ledger.set("unit", "pairs")
    review = opened(reviewed.app, "floods-2026").review
    review.refresh()
    review.say_of_row("a2", "not", "Žana", "asked twice")
    page = reviewed.get("/p/floods-2026/export").text
    # the rows are the subject of the review
    assert page.index("file=news.csv") < page.index("file=Beitrage.csv")
    assert "Matched 1" in page
    assert "No match 1" in page
    _, *rows = fetched(reviewed, "news.csv", "csv")
    assert rows[0][3:5] == ["Matched", str(ROWS[0][1])]
    assert [rows[1][3], rows[1][4], rows[1][6], rows[1][8]] == ["No match", "", "Žana", "asked twice"]
