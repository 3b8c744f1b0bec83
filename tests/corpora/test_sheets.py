"""Spreadsheets as newsrooms have them: encodings, delimiters, XLSX, guessed roles and dates, generated ids."""

import csv
import datetime as dt
import gzip
import json
import random
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indexes.interface import Document
from linker.base.errors import InputError
from linker.corpora import BadLine, Columns, columns_of, preview, read_corpus
from linker.corpora.dates import FORMATS, date_formats, iso_date
from linker.corpora.dialects import guess_delimiter, guess_encoding
from linker.corpora.guessing import describe
from linker.corpora.identity import identity
from linker.corpora.roles import Role
from linker.crosslingual.pages.pages import read_documents
from tests.helpers import linker

Write = Callable[[str, bytes], Path]
SENTENCES = [
    "Der Fluss überschwemmt die Straßen", "L’été à Genève – déjà 40 °C", "“Agua” en la plaza, 5 €",
    "plain words",
]  # fmt: skip


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(name: str, content: bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(gzip.compress(content, mtime=0) if name.endswith(".gz") else content)
        return path

    return write


def good(path: Path, columns: Columns | None = None) -> list[Document]:
    records = list(read_corpus(path, columns))
    assert not [r for r in records if isinstance(r, BadLine)]
    return [r for r in records if isinstance(r, Document)]


def bad(path: Path, columns: Columns | None = None) -> list[BadLine]:
    return [r for r in read_corpus(path, columns) if isinstance(r, BadLine)]


# --- encodings --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "cp1252", "iso-8859-15"]
)
@pytest.mark.parametrize("name", ["c.csv", "c.csv.gz", "c.tsv"])
def test_posts_come_in_whole_whatever_excel_saved(write: Write, encoding: str, name: str) -> None:
    sentences = [s for s in SENTENCES if encoding != "iso-8859-15" or s.isascii() or "ü" in s]
    texts = [random.Random(n).choice(sentences) for n in range(10_000)]
    lines = ["id\ttext", *(f"{n}\t{text}" for n, text in enumerate(texts))]
    if ".csv" in name:
        lines = [f'{a};"{b}"' for a, b in (line.split("\t") for line in lines)]
    path = write(name, "\r\n".join(lines).encode(encoding))
    assert [d.text for d in good(path)] == texts


def test_accents_that_come_late_in_a_large_file_count(write: Write) -> None:
    plain = b"".join(b"%d,plain words\n" % n for n in range(60_000))
    path = write("c.csv", b"id,text\n" + plain + "x,café\n".encode("cp1252"))
    assert good(path)[-1].text == "café"


def test_utf8_with_some_damage_stays_utf8_and_is_quarantined(write: Write) -> None:
    rows = b"".join(f"{n},café {n}\n".encode() for n in range(20))
    path = write("c.csv", b"id,text\n" + rows + b"x,caf\xe9 noir\ny,b\xfce\n")
    assert [line.reason for line in bad(path)] == ["invalid UTF-8"] * 2
    assert len(list(read_corpus(path))) == 22


def test_an_encoding_that_cannot_be_told_is_an_error_until_it_is_named(write: Write) -> None:
    text = "Наводнение в старом городе"
    path = write("c.csv", "\n".join(["id,text", *(f"{n},{text}" for n in range(50))]).encode("cp1251"))
    with pytest.raises(InputError, match="its encoding cannot be detected: name it with `encoding`"):
        list(read_corpus(path))
    assert {d.text for d in good(path, Columns(encoding="cp1251"))} == {text}
    assert len(bad(path, Columns(encoding="utf-8"))) == 50
    with pytest.raises(InputError, match="there is no encoding 'nonsense'"):
        list(read_corpus(path, Columns(encoding="nonsense")))
    for name in ("base64", "zip", "rot13", "idna\0"):
        with pytest.raises(InputError, match="there is no encoding"):
            list(read_corpus(path, Columns(encoding=name)))


def test_bytes_that_a_named_encoding_does_not_know_are_quarantined(write: Write) -> None:
    path = write("c.csv", b"id,text\n1,caf\xe9\n2,\x81x\n3,z\n")
    columns = Columns(encoding="cp1252")
    assert [(line.line, line.reason) for line in bad(path, columns)] == [(3, "invalid UTF-8")]
    assert len(list(read_corpus(path, columns))) == 3


def test_json_lines_in_another_encoding_once_it_is_named(write: Write) -> None:
    path = write("c.jsonl", '{"id": "1", "text": "café"}\n'.encode("utf-16"))
    assert good(path, Columns(encoding="utf-16")) == [Document("1", "café")]


# --- delimiters -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_guessed(write: Write, delimiter: str) -> None:
    rows = [["id", "text", "n"], ["1", '"a, b; c"', "1,5"], ["2", '"x | y\tz\n2nd"', "2,5"]]
    if delimiter == ",":
        rows = [[f'"{cell}"' if cell[0] != '"' else cell for cell in row] for row in rows]
    path = write("c.csv", "\n".join(delimiter.join(row) for row in rows).encode())
    assert [(d.text, d.metadata["n"]) for d in good(path)] == [("a, b; c", "1,5"), ("x | y\tz\n2nd", "2,5")]


def test_the_first_line_may_name_the_delimiter_for_excel(write: Write) -> None:
    assert good(write("c.csv", b"sep=#\r\nid#text\r\n1#a,b;c\r\n")) == [Document("1", "a,b;c")]


def test_a_named_delimiter_is_taken(write: Write) -> None:
    path = write("c.csv", b"id:text\n1:a,b\n")
    assert good(path, Columns(delimiter=":")) == [Document("1", "a,b")]
    assert guess_delimiter(["a,b;c", "1,2;3"]) == ","
    # not what occurs most
    assert guess_delimiter(["id;text, short or long", "1;fire", "2;rain", "3;snow"]) == ";"
    assert guess_delimiter(["one"]) == ","
    assert guess_delimiter([]) == ","


WORD = st.text(st.characters(codec="utf-8", exclude_characters="\0\r\n"), min_size=1, max_size=8)


@settings(deadline=None)
@given(st.lists(st.tuples(WORD, WORD), min_size=1, max_size=8), st.sampled_from(",;\t|"))
def test_a_well_quoted_table_is_read_whatever_it_holds(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]], delimiter: str
) -> None:
    path = tmp_path_factory.mktemp("csv") / "c.csv"
    quoted = [[str(n), *row] for n, row in enumerate(rows)]
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter=delimiter, quoting=csv.QUOTE_ALL).writerows(
            [["id", "text", "more"], *quoted]
        )
    found = {r.id: (r.text, r.metadata["more"]) for r in read_corpus(path) if isinstance(r, Document)}
    assert found == {str(n): row for n, row in enumerate(rows) if not row[0].isspace()}


# --- XLSX -------------------------------------------------------------------------------------------------------


def workbook(path: Path, *sheets: list[list[Any]]) -> Path:
    book = openpyxl.Workbook()
    book.remove(book.active)
    for number, rows in enumerate(sheets):
        sheet = book.create_sheet(f"sheet {number}")
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


def test_a_workbook(tmp_path: Path) -> None:
    when = dt.datetime(2026, 3, 2, 14, 5)
    rows: list[list[Any]] = [
        [None, None], ["id", "text", "n", "when", "day", "ok", "none"],
        [17, "Água", 1.5, when, dt.datetime(2026, 3, 2), True], [None, None, None],
        ["b 2", "x", 2.0, None, None, None, "z"], ["c", 5, None, None, None, None, None, "too many"],
        ["d", None, 3],
    ]  # fmt: skip
    path = workbook(tmp_path / "c.xlsx", rows, [["id", "text"], ["other", "y"]])
    first, *others = read_corpus(path)
    metadata = {"n": 1.5, "when": when.isoformat(), "day": "2026-03-02", "ok": True}
    assert first == Document("17", "Água", "", metadata)
    assert [(r.line, r.reason.split(":")[0]) for r in others if isinstance(r, BadLine)] == [
        (5, "id 'b 2' holds white space or control characters, which no column of a TREC file can hold"),
        (6, "8 fields, expected 7"),
        (7, "no text"),
    ]
    assert json.loads(others[1].raw)[-1] == "too many" if isinstance(others[1], BadLine) else False
    assert [d.id for d in good(path, Columns(sheet="sheet 1"))] == ["other"]
    with pytest.raises(InputError, match="no sheet 'x': it has sheet 0, sheet 1"):
        list(read_corpus(path, Columns(sheet="x")))
    with pytest.raises(InputError, match="no column body"):
        list(read_corpus(path, Columns(text="body")))


def test_a_file_that_is_no_workbook_is_named(tmp_path: Path, write: Write) -> None:
    whole = workbook(tmp_path / "c.xlsx", [["id", "text"], ["1", "a"]]).read_bytes()
    with zipfile.ZipFile(tmp_path / "other.xlsx", "w") as archive:
        archive.writestr("a", "b")
    for path in (
        write("noise.xlsx", b"\0\1\2 noise"),
        write("cut.xlsx", whole[:-40]),
        tmp_path / "other.xlsx",
    ):
        with pytest.raises(InputError, match=r"is not an XLSX workbook.*save it again"):
            list(read_corpus(path))
    with pytest.raises(InputError, match="is empty"):
        list(read_corpus(workbook(tmp_path / "e.xlsx", [])))


@pytest.mark.parametrize("seed", range(40))
def test_damaged_workbooks_end_in_an_error_or_in_records(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    rows: list[list[Any]] = [["id", "text"], *([n, "x" * n] for n in range(1, 30))]
    content = bytearray(workbook(tmp_path / "c.xlsx", rows).read_bytes())
    for _ in range(3):
        content[rng.randrange(len(content))] = rng.randrange(256)
    (tmp_path / "d.xlsx").write_bytes(content)
    try:
        assert list(read_corpus(tmp_path / "d.xlsx"))
    except InputError as e:
        assert "d.xlsx" in str(e)


def test_a_folder_of_workbooks(tmp_path: Path) -> None:
    for name in "ab":
        workbook(tmp_path / f"{name}.xlsx", [["id", "text"], [name, "x"]])
    assert [d.id for d in good(tmp_path)] == ["a", "b"]


# --- made ids ---------------------------------------------------------------------------------------------------


def test_made_ids_follow_the_content_wherever_it_stands(write: Write, tmp_path: Path) -> None:
    columns = Columns(id=None)
    before = good(write("a.csv", b"text,by\nrain in Valencia,ana\nrain,ben\nrain,ben\n"), columns)
    after = good(
        write("b.csv", b"text,by\nnew,ana\nrain,ben\nrain in Valencia,ana\nrain,ben\nrain,ben\n"), columns
    )
    ids = [d.id for d in before]
    assert len(set(ids)) == 3
    assert ids[2] == f"{ids[1]}-2"
    assert not any(character.isspace() for id_ in ids for character in id_)
    assert [d.id for d in after][1:4] == [ids[1], ids[0], ids[2]]
    lines = "\n".join(json.dumps({"text": t}) for t in ("x", "y", "x"))
    assert [d.id[16:] for d in good(write("c.jsonl", lines.encode()), columns)] == ["", "", "-2"]
    sheet = workbook(tmp_path / "d.xlsx", [["text", "by"], ["rain in Valencia", "ana"]])
    assert good(sheet, columns)[0].id == ids[0]  # the same row in another kind of file
    assert good(write("e.csv", b"id,text\n7,x\n"), columns)[0].metadata == {"id": "7"}


# --- dates ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("texts", "first", "iso"),
    [
        (["2026-03-02", "2026-03-14"], "iso", "2026-03-02"),
        (["2026-03-02T14:05:00Z"], "iso", "2026-03-02T14:05:00+00:00"),
        (["02.03.2026 14:05", "14.03.2026 00:00"], "%d.%m.%Y %H:%M", "2026-03-02T14:05:00"),
        (["03/14/2026", "03/02/2026"], "%m/%d/%Y", "2026-03-14"),
        (["03/02/2026", "04/02/2026"], "%d/%m/%Y", "2026-02-03"),
        (["Wed Oct 10 20:19:24 +0000 2018"], FORMATS[-9], "2018-10-10T20:19:24+00:00"),
        (["1772460300", "1772460301"], "unix", "2026-03-02T14:05:00+00:00"),
        (["1772460300000"], "unix-ms", "2026-03-02T14:05:00+00:00"),
        (["7", "12"], None, None),
        (["rain", "2026-03-02"], None, None),
        ([], None, None),
    ],
)
def test_formats_of_dates(texts: list[str], first: str | None, iso: str | None) -> None:
    formats = date_formats(texts)
    assert (formats[0] if formats else None) == first
    assert (iso_date(texts[0], first) if first else None) == iso


def test_days_and_months_that_cannot_be_told_apart_give_two_formats() -> None:
    assert date_formats(["03/02/2026", "04/02/2026"]) == ["%d/%m/%Y", "%m/%d/%Y"]


# --- previews ---------------------------------------------------------------------------------------------------


POSTS = [
    ["Tweet ID", "Inhalt", "Datum", "Nutzer", "Link", "Sprache", "Likes"],
    ["1234567890123456789", "Der Fluss überschwemmt Straßen", "02.03.2026 14:05", "@ana", "https://x.y/1", "de", "3"],
    ["1234567890123456790", "Keller voll; Straße gesperrt", "14.03.2026 09:00", "@jo", "https://x.y/2", "de", "0"],
    ["1234567890123456791", "Alles gut hier bei uns", "14.03.2026 10:00", "@jo", "https://x.y/3", "en", "12"],
]  # fmt: skip
ROLES = {
    "Tweet ID": "id", "Inhalt": "text", "Datum": "date", "Nutzer": "author", "Link": "url",
    "Sprache": "language",
}  # fmt: skip


@pytest.mark.parametrize("name", ["c.csv", "c.tsv", "c.xlsx", "c.jsonl"])
def test_a_preview_guesses_what_columns_are_for_and_reads_by_it(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    if name == "c.xlsx":
        workbook(path, POSTS)
    elif name == "c.jsonl":
        records = [dict(zip(POSTS[0], row, strict=True)) for row in POSTS[1:]]
        path.write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    else:
        lines = ["\t".join(r) if name == "c.tsv" else ";".join(f'"{c}"' for c in r) for r in POSTS]
        path.write_bytes("\r\n".join(lines).encode("cp1252"))
    seen = preview(path, rows=2)
    assert dict(seen.roles) == ROLES
    assert list(seen.columns) == POSTS[0]
    assert [list(row.values()) for row in seen.rows] == POSTS[1:3]
    assert seen.date_formats == ["%d.%m.%Y %H:%M"]
    table = {"c.csv": ("cp1252", ";"), "c.tsv": ("cp1252", "\t")}.get(name, (None, None))
    assert (seen.encoding, seen.delimiter) == table
    assert (seen.sheet, list(seen.sheets)) == (("sheet 0", ["sheet 0"]) if name == "c.xlsx" else (None, []))
    first = good(path, seen.guess())[0]
    assert (first.id, first.text) == ("1234567890123456789", POSTS[1][1])
    assert first.metadata == {
        "Likes": "3", "date": "2026-03-02T14:05:00", "url": "https://x.y/1", "author": "@ana", "language": "de"
    }  # fmt: skip


def test_content_overrules_names(write: Write) -> None:
    content = (
        "id,text,url,date,language,what was said\n"
        "1,A17,none,soon,Swahili or so,rain in the old town\n"
        "1,A17,none,later,German I think,the river is high today\n"
    )
    seen = preview(write("c.csv", content.encode()))
    assert dict(seen.roles) == {"what was said": "text"}
    assert [len(d.id) for d in good(seen.path, seen.guess())] == [16, 16]


def test_a_repeated_id_does_not_take_the_role_from_its_column(write: Write) -> None:
    rows = "a1;rain in the old town\na2;the river is high today\na2;nobody knows the way\n"
    path = write("c.csv", f"Post-Nr;Stimme\n{rows}".encode())
    assert dict(preview(path).roles) == {"Post-Nr": "id", "Stimme": "text"}
    assert [d.id for d in good(path, Columns())] == ["a1", "a2", "a2"]
    documents, (skipped,) = read_documents(path)
    assert list(documents) == ["a1", "a2"] and skipped.line == 4
    often = write("often.csv", f"Post-Nr;Stimme\n{rows}a1;many a voice in the wind\n".encode())
    assert dict(preview(often).roles) == {"Stimme": "text"}
    better = write("better.csv", b"id;uuid;text\n1;x;rain in town\n2;y;sun on it\n2;z;no wind at all\n")
    assert preview(better).roles["uuid"] == "id"


def test_roles_without_telling_names(write: Write) -> None:
    content = (
        "a,b,c,d\nhttps://x.y/1,100001,2026-03-02,a post about rain\n"
        "https://x.y/2,100002,2026-03-03,more of it now\n"
    )
    assert dict(preview(write("c.csv", content.encode())).roles) == {
        "a": "url", "b": "id", "c": "date", "d": "text",
    }  # fmt: skip


def test_a_field_that_has_the_name_of_a_role_is_not_lost(write: Write) -> None:
    path = write("c.csv", b"id,text,date,posted\n1,a,?,02.03.2026\n")
    roles: dict[str, Role] = {"id": "id", "text": "text", "posted": "date"}
    assert good(path, columns_of(roles, "%d.%m.%Y"))[0].metadata == {"date": "2026-03-02", "date_2": "?"}
    assert good(path, columns_of(roles, "%d/%m/%y"))[0].metadata["date"] == "02.03.2026"


def test_mistakes_of_a_mapping_and_of_a_preview(tmp_path: Path, write: Write) -> None:
    with pytest.raises(InputError, match="no column was chosen for the text"):
        columns_of({"a": "id"})
    with pytest.raises(InputError, match="the same role"):
        columns_of({"a": "text", "b": "text"})
    for path, reason in (
        (write("c.txt", b"x"), "is not a table"),
        (tmp_path / "none.csv", "no such file"),
        (write("e.csv", b"id,text\n"), "no records"),
    ):
        with pytest.raises(InputError, match=reason):
            preview(path)


# --- identity and the command line ------------------------------------------------------------------------------


def test_columns_that_say_nothing_new_identify_a_build_as_before() -> None:
    assert repr(Columns()) == "Columns(id='id', text='text', title=None)"
    assert repr(Columns(None, delimiter=";")) == "Columns(id=None, text='text', title=None, delimiter=';')"


def test_how_a_file_is_read_is_part_of_its_identity(write: Write, tmp_path: Path) -> None:
    path = write("c.csv", b"id,text\n1,a\n")
    assert identity(path, Columns(), tmp_path / "i") != identity(
        path, Columns(encoding="cp1252"), tmp_path / "i"
    )


def test_a_build_says_what_it_guessed_and_takes_what_it_is_told(write: Write, tmp_path: Path) -> None:
    path = write("c.csv", "id;text\n1;café über\n2;naïve\n".encode("cp1252"))
    done = linker("index", "build", path, "--out", tmp_path / "a")
    assert f"{path}: encoding cp1252, columns separated by semicolon" in done.stderr
    assert "2 documents added" in done.stdout
    told = ("--encoding", "latin-1", "--delimiter", "tab", "--text-column", "id;text", "--make-ids")
    assert "2 documents added" in linker("index", "build", path, "--out", tmp_path / "b", *told).stdout
    assert (
        "cannot separate" in linker("index", "add", tmp_path / "a", path, "--delimiter", "ab", check=1).stderr
    )
    sheet = workbook(tmp_path / "c.xlsx", [["id", "text"], [1, "a"]], [["id", "text"], [3, "b"]])
    assert "1 document added" in linker("index", "add", tmp_path / "a", sheet, "--sheet", "sheet 1").stdout
    assert guess_encoding(path) == "cp1252"
    assert describe(sheet, Columns()) == describe(write("u.csv", b"id,text\n1,a\n"), Columns()) == ""


@pytest.mark.parametrize(
    ("header", "document"),
    [
        ("Tweet ID,User ID,Text", Document("1", "c", "", {"User ID": "2"})),
        ("nr,Titel,Nachricht", Document("1", "c", "2")),
        ("Post No.,Titel,Text", Document("1", "c", "2")),
        ("#,Titel,Text", Document("1", "c", "2")),
        ("id,headline,text", Document("1", "c", "2")),
        ("ID,Tweet,Text", Document("1", "c", "", {"Tweet": "2"})),
        ("id,Tweet,Message", None),  # two are likely
    ],
)
def test_the_only_likely_name_stands_for_a_missing_usual_one(
    write: Write, tmp_path: Path, header: str, document: Document | None
) -> None:
    path = write("c.csv", f"{header}\n1,2,c\n".encode())
    book = workbook(tmp_path / "c.xlsx", [header.split(","), ["1", "2", "c"]])
    for file in (path, book):
        if document:
            assert list(read_corpus(file)) == [document]
        else:
            with pytest.raises(InputError, match="no column"):
                list(read_corpus(file))
    if document:
        named = [f"{role} from" in describe(path, Columns()) for role in ("id", "title", "text")]
        usual = [role in header.split(",") for role in ("id", "title", "text")]
        assert named == [not is_usual and (role != "title" or bool(document.title))
                         for role, is_usual in zip(("id", "title", "text"), usual, strict=True)]  # fmt: skip


CLAIMS = [
    ["claim", "checked text"],
    ["The dam broke", "No dam broke: the water came from the hills"],
    ["Schools stay shut", "All schools are open again, says the ministry"],
]


def test_columns_with_odd_names_are_guessed_from_the_content(write: Write, tmp_path: Path) -> None:
    content = "\n".join(",".join(f'"{cell}"' for cell in row) for row in CLAIMS)
    lines = "\n".join(json.dumps(dict(zip(CLAIMS[0], row, strict=True))) for row in CLAIMS[1:])
    cover = [["Checks of 2026"]]
    book = openpyxl.Workbook()
    book.active.title = "cover"
    for name, rows in (("cover", cover), ("checks", CLAIMS)):
        sheet = book.active if name == "cover" else book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    book.save(tmp_path / "c.xlsx")
    files = [write("c.csv", content.encode()), write("c.jsonl", lines.encode()), tmp_path / "c.xlsx"]
    for path in files:
        assert [(d.title, d.text) for d in good(path)] == [(row[0], row[1]) for row in CLAIMS[1:]]
        notes = describe(path, Columns())
        assert "ids made from the content, title from 'claim', text from 'checked text'" in notes
        assert ("sheet 'checks'" in notes) == (path.suffix == ".xlsx")
        seen = preview(path)
        assert (seen.column("title"), seen.column("text")) == ("claim", "checked text")


def test_a_column_that_numbers_the_rows_has_the_ids(write: Write) -> None:
    rows = [f"row {number} tells a story" for number in range(3)]
    for first, note in ((0, "id from 'column_1'"), (7, "id from 'column_1'")):
        path = write(
            "c.csv", "\n".join([",text", *(f"{first + n},{row}" for n, row in enumerate(rows))]).encode()
        )
        assert [d.id for d in good(path)] == [str(first + n) for n in range(3)]
        assert describe(path, Columns()).endswith(note)
    path = write(
        "c.csv", "\n".join(["likes,text", *(f"{7 * n},{row}" for n, row in enumerate(rows))]).encode()
    )
    assert describe(path, Columns()).endswith("ids made from the content")


def test_a_user_is_no_id_and_rows_without_a_header_are_no_names(write: Write) -> None:
    path = write("c.csv", b"user_id,text\n1,rain in town\n2,the river rose\n")
    assert [d.metadata for d in good(path)] == [{"user_id": "1"}, {"user_id": "2"}]
    assert describe(path, Columns()).endswith("ids made from the content")
    for content in (b"17,rain in the town\n18,the river rose\n", b"a,b\n1,2\n"):
        with pytest.raises(InputError, match="no column"):
            list(read_corpus(write("n.csv", content)))
