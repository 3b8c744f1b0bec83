"""Tables as people send them: titles above the header, odd encodings, repeated names, mixed dates, bad suffixes."""

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import openpyxl
import pytest

from indexes.store import manifest as manifests
from linker import BuildOptions, Engine
from linker.base.errors import InputError
from linker.corpora import Columns, preview, read_corpus, read_queries
from linker.corpora.dates import date_formats, iso_date, moment_of
from linker.corpora.dialects import guess_encoding
from linker.corpora.records import BadLine
from linker.corpora.trials import trial
from linker.engine.building import add
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


def test_the_header_row_is_guessed_on_the_command_line_as_on_the_page(tmp_path: Path) -> None:
    path = write(tmp_path / "titled.csv", TITLED)
    done = linker("index", "build", path, "--out", tmp_path / "i")
    assert f"{path}: columns separated by semicolon, column names in row 4" in done.stderr
    assert "2 documents added" in done.stdout
    failed = linker("index", "add", tmp_path / "i", path, "--header-row", "5", check=1)
    assert "--header-row" in failed.stderr


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


def test_dates_in_three_forms_are_read(tmp_path: Path) -> None:
    days = [
        "31.12.2001", "12/31/2001", "31 December 2001", "31. Dezember 2001", "2001-12-31",
        "31 de diciembre de 2001",
    ]  # fmt: skip
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
        with pytest.raises(InputError, match=r"old Excel workbook \(\.xls\).*save it as \.xlsx"):
            read(tmp_path / "old.csv")
    (tmp_path / "old.csv").rename(tmp_path / "old.xls")
    with pytest.raises(InputError, match=r"old Excel workbook \(\.xls\).*save it as \.xlsx"):
        list(read_corpus(tmp_path / "old.xls"))
    with zipfile.ZipFile(tmp_path / "open.ods", "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
    for reader in (preview, lambda p: list(read_corpus(p)), read_queries):
        with pytest.raises(InputError, match=r"OpenDocument.*save it as \.xlsx"):
            reader(tmp_path / "open.ods")


def test_a_trial_lists_what_cannot_be_used(tmp_path: Path) -> None:
    path = write(tmp_path / "bad.csv", "id,text\n1,rain\n2\n3,\n4,river\n")
    tried = trial(path, Columns())
    assert [(b.line, b.reason) for b in tried.bad] == [
        (3, "1 field, expected 2: id, text"), (4, "no text: text and title are empty"),
    ]  # fmt: skip
    assert (len(tried.documents), tried.is_whole) == (2, True)
    assert not trial(path, Columns(), most=2).is_whole


FRENCH = [
    "Les ingénieurs ont réparé le pont près de la gare après l'inondation",
    "La préfète a évoqué les dégâts causés par la tempête à Besançon",
    "Où est passé l'argent des élèves ? Le maire répond aux parents",
    "L'été dernier, la sécheresse a touché la moitié des départements",
]


def test_a_latin_1_table_keeps_every_row(tmp_path: Path) -> None:
    texts = [
        FRENCH[i // 12 % 4] if i % 12 == 7 and i < 9672 else "The mayor answers the parents"
        for i in range(10_000)
    ]
    assert sum(not text.isascii() for text in texts) == 806
    rows = [f"d{i};{text} {i}" for i, text in enumerate(texts)]
    (tmp_path / "c.csv").write_bytes("\r\n".join(["id;text", *rows]).encode("latin-1"))
    result = linker("index", "build", tmp_path / "c.csv", "--out", tmp_path / "index")
    assert "10,000 documents added" in result.stdout
    assert "encoding cp1252, columns separated by semicolon" in result.stderr
    with Engine.open(tmp_path / "index") as engine:
        assert engine.document("d19").text == f"{FRENCH[1]} 19"
        assert len(engine.search("préfète Besançon", k=500).hits[0]) == 202


@pytest.fixture
def index(tmp_path: Path) -> Path:
    (tmp_path / "c.csv").write_text("Nr;Inhalt;Titel;text\n1;Ein Hund;A;x\n2;Eine Katze;B;y\n")
    names = ("--id-column", "Nr", "--text-column", "Inhalt", "--title-column", "Titel")
    linker("index", "build", tmp_path / "c.csv", "--out", tmp_path / "index", *names)
    return tmp_path / "index"


def test_the_names_of_columns_are_remembered(index: Path, tmp_path: Path) -> None:
    assert manifests.load(index).build.columns == {"id": "Nr", "text": "Inhalt", "title": "Titel"}
    (tmp_path / "more.csv").write_text("Nr,Inhalt,Titel\n3,Ein Vogel,C\n")
    linker("index", "add", index, tmp_path / "more.csv")
    (tmp_path / "python.csv").write_text("Nr,Inhalt,Titel\n4,Ein Pferd,D\n")
    add([tmp_path / "python.csv"], index, None, BuildOptions())
    assert Engine.open(index).document("4").full_text == "D\nEin Pferd"
    (tmp_path / "other.csv").write_text("id,body\n5,Ein Fisch\n")
    linker("index", "add", index, tmp_path / "other.csv", check=1)
    (tmp_path / "seeds.csv").write_text("Nr;Inhalt;Titel\ns1;Hund;\n")
    run = linker("search", index, "--queries", tmp_path / "seeds.csv")
    assert run.stdout.split()[:3] == ["s1", "Q0", "1"] and "separated by semicolon" in run.stderr
    (tmp_path / "q.qrels").write_text("s1 0 1 1\n")
    found = linker(
        "find", index, "--seeds", tmp_path / "seeds.csv", "--judgements", tmp_path / "q.qrels", "--json"
    )
    assert json.loads(found.stdout)["relevant"] == 1


def test_queries_may_have_the_usual_names_beside_the_remembered_ones(index: Path, tmp_path: Path) -> None:
    for name, text in (
        ("q.csv", "id,text\nq1,Katze\n"),
        ("q.tsv", "q1\tKatze\n"),
        ("named.tsv", "Nr\tInhalt\tTitel\nq1\tKatze\t\n"),
        ("q.jsonl", '{"id": "q1", "content": "Katze"}'),
        ("n.jsonl", '{"Nr": "q1", "Inhalt": "Katze"}'),
    ):
        (tmp_path / name).write_text(text)
        run = linker("search", index, "--queries", tmp_path / name).stdout
        assert run.split()[:3] == ["q1", "Q0", "2"], name
    (tmp_path / "q.csv").write_bytes("frage|zahl\nKatze für|q1\n".encode("utf-16"))
    options = ("--text-column", "frage", "--id-column", "zahl", "--delimiter", "|", "--encoding", "utf-16")
    assert linker("search", index, "--queries", tmp_path / "q.csv", *options).stdout.split()[0] == "q1"
    wrong = linker("search", index, "--queries", tmp_path / "q.csv", "--encoding", "utf-16", check=1)
    assert "no column Nr or _id or id: the header has frage, zahl" in wrong.stderr


def test_json_lines_by_any_names(tmp_path: Path) -> None:
    (tmp_path / "c.jsonl").write_text('{"key": 7, "says": "hello", "text": "other"}')
    assert [vars_of(d) for d in read_corpus(tmp_path / "c.jsonl", Columns("key", "says"))] == [
        ("7", "hello", {"text": "other"})
    ]
    (tmp_path / "content.jsonl").write_text('{"id": "a", "content": "hello"}')
    assert [vars_of(d) for d in read_corpus(tmp_path / "content.jsonl")] == [("a", "hello", {})]


def vars_of(record: object) -> tuple[object, ...]:
    return tuple(getattr(record, name) for name in ("id", "text", "metadata"))


def test_queries_come_from_stdin(index: Path) -> None:
    command = [sys.executable, "-m", "linker", "search", str(index), "--queries", "-", "--format", "ranx"]
    done = subprocess.run(command, input=b"q1\tKatze\n", capture_output=True, check=True)
    assert list(json.loads(done.stdout)["q1"]) == ["2"]


def test_a_header_without_the_named_columns_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "q.tsv").write_text("Inhalt\tx\nKatze\ty\n")
    with pytest.raises(InputError, match="no column Nr"):
        read_queries(tmp_path / "q.tsv", Columns("Nr", "Inhalt"))


def test_a_time_without_a_zone_is_utc_on_every_machine() -> None:
    assert moment_of("2024-01-02T03:04") == moment_of("2024-01-02T05:04+02:00") != moment_of("2024-01-02")
    assert moment_of("2. Januar 2024") is moment_of("") is None
