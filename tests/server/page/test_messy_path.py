"""From five messy files to the judged file, in a browser: the job of rows, two reviewers at once.

Titles and blank rows above the header, cp1252, Mac Roman with two identical column names, dates in three formats, and
a workbook named .csv.
"""

import contextlib
import csv
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openpyxl
from playwright.sync_api import Page

from tests.server.page.chromium import Thread, answered, axe, press, window

PLACES = ("Plaza", "Brücke", "Straße", "Café", "Hafen")
FILES = ("titled", "western", "mac", "dated", "workbook")
DAYS = ("31.12.2021", "12/30/2021", "29 December 2021")
THEMES = (
    "comet crosses the northern sky", "strike closes every airport", "museum returns stolen bronzes",
    "vaccine against malaria approved", "zebra escapes from the zoo", "football final postponed twice",
    "budget raises taxes on gas",
)  # fmt: skip


def table(rows: list[list[str]], delimiter: str = ",") -> str:
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter, lineterminator="\r\n").writerows(rows)
    return text.getvalue()


def write(folder: Path, name: str, texts: list[str]) -> Path:
    """Write texts as a messy file of this name; ids begin with the name."""
    path, ids = folder / f"{name}.csv", [f"{name}{i}" for i in range(len(texts))]
    if name == "titled":
        rows = [["id", "text", "date"], *([i, t, "24.12.2021"] for i, t in zip(ids, texts, strict=True))]
        path.write_text("Export of March;;\r\n;;\r\n\r\n" + table(rows, ";"), encoding="utf-8", newline="")
    elif name == "western":
        path.write_bytes(table([["id", "text"], *map(list, zip(ids, texts, strict=True))]).encode("cp1252"))
    elif name == "mac":
        rows = [["id", "text", "text", ""], *([i, "short", t, "x"] for i, t in zip(ids, texts, strict=True))]
        path.write_bytes(table(rows).replace("\r\n", "\r").encode("mac_roman"))
    elif name == "dated":
        rows = [["id", "text", "date"]] + [
            [i, t, DAYS[n % 3]] for n, (i, t) in enumerate(zip(ids, texts, strict=True))
        ]
        path.write_text(table(rows), encoding="utf-8", newline="")
    else:
        book = openpyxl.Workbook()
        for row in (["id", "text"], *map(list, zip(ids, texts, strict=True))):
            book.active.append(row)
        book.save(path)
    return path


@contextlib.contextmanager
def reviewed(
    chrome: Any, folder: Path, link: str, posts: list[Path], articles: list[Path]
) -> Iterator[tuple[Thread, list[Page]]]:
    """Upload files, check the form's guesses, index them; give the windows of two reviewers on Judge."""
    faults: list[str] = []
    with answered(folder / "reviews") as server:
        pages = [window(chrome, server, name, faults) for name in ("ana", "ben")]
        page = pages[0]
        page.goto(server.address)
        page.get_by_role("link", name=link).press("Enter")
        page.set_input_files("#posts", posts)
        page.set_input_files("#articles", articles)
        page.fill("#name", "Messy")
        page.keyboard.press("Enter")
        page.wait_for_url("**/setup")
        assert page.locator("section.file .error").count() == 0
        assert axe(page) == []
        page.locator("main form button.main").press("Enter")
        page.wait_for_url(re.compile(r"/p/messy/judge"), timeout=120_000)
        for each in pages:
            each.goto(f"{server.address}/p/messy/judge")
        yield server, pages
        assert faults == []


def own_file(page: Page, server: Thread, name: str) -> list[dict[str, str]]:
    """Return the rows of an uploaded file as returned by Results."""
    page.goto(f"{server.address}/p/messy/export")
    with page.expect_download() as download:
        page.locator(f'a[href*="file={name}.csv"][href*="format=csv"]').click()
    text = download.value.path().read_text(encoding="utf-8-sig")
    lines = list(csv.reader(io.StringIO(text)))
    header = next(n for n, line in enumerate(lines) if "id" in line)
    return [dict(zip(lines[header], line, strict=False)) for line in lines[header + 1 :]]


def test_each_row_of_a_messy_file_is_matched_in_five_messy_files(tmp_path: Path, chrome: Any) -> None:
    claims, lists = tmp_path / "claims", [THEMES[i::5] for i in range(5)]
    claims.mkdir()
    posts = [
        write(claims, name, [f"Is it true that the {t} in {place}?" for t in part])
        for name, part, place in zip(FILES, lists, PLACES, strict=True)
    ]
    mine = write(tmp_path, "titled", [f"they say: {theme} !!!" for theme in THEMES])
    mine = mine.rename(tmp_path / "rows.csv")
    right = {
        f"titled{THEMES.index(t)}": f"{name}{i}"
        for name, part in zip(FILES, lists, strict=True)
        for i, t in enumerate(part)
    }
    with reviewed(chrome, tmp_path, "Choose two files", posts, [mine]) as (server, pages):
        for page in pages:
            page.wait_for_url(re.compile(r"/judge/rows"), timeout=120_000)
        for turn in range(len(THEMES) + 4):
            page = pages[turn % 2]
            if not page.locator("#verdict").count():
                continue
            form = page.locator("#verdict")
            row, document = form.get_attribute("data-row"), form.get_attribute("data-document")
            press(page, "y" if right[str(row)] == document else "n")
        rows = own_file(pages[1], server, "rows")
        assert [row["id"] for row in rows] == [f"titled{i}" for i in range(len(THEMES))]
        assert all(right[row["id"]] == row["match id"] for row in rows)
