"""Tables as people send them: titles above the header, odd encodings, repeated names, mixed dates, bad suffixes."""

from __future__ import annotations

from pathlib import Path

import openpyxl
import pytest

from linker.base.errors import InputError
from linker.corpora import Columns, columns_of, preview, read_corpus
from linker.corpora.dates import date_formats, iso_date
from linker.corpora.dialects import guess_encoding
from linker.corpora.previews import trial
from linker.corpora.records import BadLine
from tests.helpers import linker

TITLED = (
    "Export of the newsroom, 2022\n\n;;\nid;text;date\n1;rain, again;31.12.2001\n2;the river;30.12.2001\n;;\n"
)
GERMAN = "id;text\n1;Der Fluß überschwemmt Straßen\n2;Größe für „alle“ – ärgerlich\n"


def write(path: Path, text: str, encoding: str = "utf-8") -> Path:
    path.write_bytes(text.encode(encoding))
    return path


def texts(path: Path, columns: Columns) -> list[str]:
    return [r.text for r in read_corpus(path, columns) if not isinstance(r, BadLine)]


def test_rows_above_the_header_are_left_out(tmp_path: Path) -> None:
    path = write(tmp_path / "titled.csv", TITLED)
    seen = preview(path)
    assert (seen.header_row, seen.delimiter, list(seen.columns)) == (4, ";", ["id", "text", "date"])
    assert texts(path, seen.guess()) == ["rain, again", "the river"]
    wrong = preview(path, header_row=5)
    assert list(wrong.columns) == ["1", "rain, again", "31.12.2001"]
    book = openpyxl.Workbook()
    for row in (["Export"], [], ["id", "text", "date"], ["1", "rain", "x"], ["2", "the river", "y"]):
        book.active.append(row)
    book.save(tmp_path / "titled.xlsx")
    seen = preview(tmp_path / "titled.xlsx")
    assert seen.header_row == 3
    assert texts(seen.path, seen.guess()) == ["rain", "the river"]


def test_the_header_row_is_named_on_the_command_line(tmp_path: Path) -> None:
    path = write(tmp_path / "titled.csv", TITLED)
    failed = linker("index", "build", path, "--out", tmp_path / "i", check=1)
    assert "--header-row" in failed.stderr
    assert (
        "2 documents added"
        in linker("index", "build", path, "--out", tmp_path / "i", "--header-row", "4").stdout
    )


@pytest.mark.parametrize("encoding", ["cp1252", "mac_roman", "utf-8", "utf-16"])
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_encodings_of_excel_are_told_apart(tmp_path: Path, encoding: str, newline: str) -> None:
    path = write(tmp_path / "g.csv", GERMAN.replace("\n", newline), encoding)
    assert guess_encoding(path) == encoding
    assert texts(path, Columns())[0] == "Der Fluß überschwemmt Straßen"


@pytest.mark.parametrize("text", ["don’t say “never”", "Où êtes-vous, François ?", "mañana será otro día"])
@pytest.mark.parametrize("encoding", ["cp1252", "mac_roman"])
def test_other_languages_are_told_apart_too(tmp_path: Path, text: str, encoding: str) -> None:
    assert guess_encoding(write(tmp_path / "g.csv", f"id,text\n1,{text}\n", encoding)) == encoding


def test_columns_of_one_name_are_numbered(tmp_path: Path) -> None:
    path = write(tmp_path / "twice.csv", "id,text,text,\n1,a word or two,another word or two,x\n")
    seen = preview(path)
    assert list(seen.columns) == ["id", "text_1", "text_2", "column_4"]
    assert texts(path, columns_of({"id": "id", "text_2": "text"})) == ["another word or two"]


def test_dates_in_three_forms_are_read(tmp_path: Path) -> None:
    days = [
        "31.12.2001",
        "12/31/2001",
        "31 December 2001",
        "31. Dezember 2001",
        "2001-12-31",
        "31 de diciembre de 2001",
    ]
    first, *_ = date_formats(days * 2)
    assert {iso_date(day, first) for day in days} == {"2001-12-31"}
    day_first, month_first = date_formats(["03/04/2022", "2 March 2022", "31.12.2001"])
    assert (iso_date("03/04/2022", day_first), iso_date("03/04/2022", month_first)) == (
        "2022-04-03",
        "2022-03-04",
    )
    rows = "".join(f"{i},some words here,{day}\n" for i, day in enumerate([*days * 4, "soon"]))
    path = write(tmp_path / "dates.csv", f"id,text,date\n{rows}")
    tried = trial(path, preview(path).guess())
    assert list(tried.undated) == ["soon"]
    assert tried.documents[0].metadata["date"] == "2001-12-31"


def test_content_counts_not_the_suffix(tmp_path: Path) -> None:
    path = write(tmp_path / "table.xlsx", "id,text\n1,rain in town\n")
    assert preview(path).kind == "csv"
    assert texts(path, Columns()) == ["rain in town"]
    book = openpyxl.Workbook()
    for row in (["id", "text"], ["1", "the river"]):
        book.active.append(row)
    book.save(tmp_path / "book.xlsx")
    (tmp_path / "book.xlsx").rename(tmp_path / "book.csv")
    assert texts(tmp_path / "book.csv", Columns()) == ["the river"]
    (tmp_path / "old.csv").write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600))
    for read in (preview, lambda p: list(read_corpus(p))):
        with pytest.raises(InputError, match=r"old Excel \(\.xls\).*save it as \.xlsx"):
            read(tmp_path / "old.csv")


def test_a_trial_lists_what_cannot_be_used(tmp_path: Path) -> None:
    path = write(tmp_path / "bad.csv", "id,text\n1,rain\n2\n3,\n4,river\n")
    tried = trial(path, Columns())
    assert [(b.line, b.reason) for b in tried.bad] == [
        (3, "1 fields, expected 2: id, text"), (4, "no text: text and title are empty"),
    ]  # fmt: skip
    assert (len(tried.documents), tried.is_whole) == (2, True)
    assert not trial(path, Columns(), most=2).is_whole
