"""Column names that an index remembers, queries from spreadsheets, Latin-1 files, and stdin."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from indexes.store import manifest as manifests
from linker import BuildOptions, Engine, build
from linker.base.errors import InputError
from linker.cli import app
from linker.corpora import Columns, read_corpus, read_queries
from linker.engine.building import add

FRENCH = [
    "Les ingénieurs ont réparé le pont près de la gare après l'inondation",
    "La préfète a évoqué les dégâts causés par la tempête à Besançon",
    "Où est passé l'argent des élèves ? Le maire répond aux parents",
    "L'été dernier, la sécheresse a touché la moitié des départements",
]


def invoke(*args: object, status: int = 0) -> Result:
    result = CliRunner().invoke(app, [str(a) for a in args], catch_exceptions=status == 1)
    assert result.exit_code == status, result.output
    return result


def test_a_latin_1_table_keeps_every_row(tmp_path: Path) -> None:
    texts = [
        FRENCH[i // 12 % 4] if i % 12 == 7 and i < 9672 else "The mayor answers the parents"
        for i in range(10_000)
    ]
    assert sum(not text.isascii() for text in texts) == 806
    rows = [f"d{i};{text} {i}" for i, text in enumerate(texts)]
    (tmp_path / "c.csv").write_bytes("\r\n".join(["id;text", *rows]).encode("latin-1"))
    result = invoke("index", "build", tmp_path / "c.csv", "--out", tmp_path / "index")
    assert "10000 documents added" in result.stdout
    assert "encoding cp1252, columns separated by semicolon" in result.stderr
    with Engine.open(tmp_path / "index") as engine:
        assert engine.document("d19").text == f"{FRENCH[1]} 19"
        assert len(engine.search("préfète Besançon", k=500).hits[0]) == 202


@pytest.fixture
def index(tmp_path: Path) -> Path:
    (tmp_path / "c.csv").write_text("Nr;Inhalt;Titel;text\n1;Ein Hund;A;x\n2;Eine Katze;B;y\n")
    names = ("--id-column", "Nr", "--text-column", "Inhalt", "--title-column", "Titel")
    invoke("index", "build", tmp_path / "c.csv", "--out", tmp_path / "index", *names)
    return tmp_path / "index"


def test_the_names_of_columns_are_remembered(index: Path, tmp_path: Path) -> None:
    assert manifests.load(index).build.columns == {"id": "Nr", "text": "Inhalt", "title": "Titel"}
    (tmp_path / "more.csv").write_text("Nr,Inhalt,Titel\n3,Ein Vogel,C\n")
    invoke("index", "add", index, tmp_path / "more.csv")
    (tmp_path / "python.csv").write_text("Nr,Inhalt,Titel\n4,Ein Pferd,D\n")
    add([tmp_path / "python.csv"], index, None, BuildOptions())
    assert Engine.open(index).document("4").full_text == "D\nEin Pferd"
    (tmp_path / "other.csv").write_text("id,body\n5,Ein Fisch\n")
    invoke("index", "add", index, tmp_path / "other.csv", status=1)
    (tmp_path / "seeds.csv").write_text("Nr;Inhalt;Titel\ns1;Hund;\n")
    run = invoke("search", index, "--queries", tmp_path / "seeds.csv")
    assert run.stdout.split()[:3] == ["s1", "Q0", "1"] and "separated by semicolon" in run.stderr
    (tmp_path / "q.qrels").write_text("s1 0 1 1\n")
    found = invoke(
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
        run = invoke("search", index, "--queries", tmp_path / name).stdout
        assert run.split()[:3] == ["q1", "Q0", "2"], name
    (tmp_path / "q.csv").write_bytes("frage|zahl\nKatze für|q1\n".encode("utf-16"))
    options = ("--text-column", "frage", "--id-column", "zahl", "--delimiter", "|", "--encoding", "utf-16")
    assert invoke("search", index, "--queries", tmp_path / "q.csv", *options).stdout.split()[0] == "q1"
    wrong = invoke("search", index, "--queries", tmp_path / "q.csv", "--encoding", "utf-16", status=1)
    assert "no column Nr or _id or id: the header has frage, zahl" in str(wrong.exception)


def test_json_lines_by_any_names(tmp_path: Path) -> None:
    (tmp_path / "c.jsonl").write_text('{"key": 7, "says": "hello", "text": "other"}')
    assert [vars_of(d) for d in read_corpus(tmp_path / "c.jsonl", Columns("key", "says"))] == [
        ("7", "hello", {"text": "other"})
    ]
    (tmp_path / "content.jsonl").write_text('{"id": "a", "content": "hello"}')
    assert [vars_of(d) for d in read_corpus(tmp_path / "content.jsonl")] == [("a", "hello", {})]


def vars_of(record: object) -> tuple[object, ...]:
    return tuple(getattr(record, name) for name in ("id", "text", "metadata"))


def test_what_an_index_of_usual_names_remembers_is_nothing(tmp_path: Path) -> None:
    (tmp_path / "c.jsonl").write_text('{"id": "a", "text": "hello"}')
    build([tmp_path / "c.jsonl"], tmp_path / "index", BuildOptions())
    assert b'"columns"' not in (tmp_path / "index" / manifests.NAME).read_bytes()


def test_queries_come_from_stdin(index: Path) -> None:
    command = [sys.executable, "-m", "linker", "search", str(index), "--queries", "-", "--format", "ranx"]
    done = subprocess.run(command, input=b"q1\tKatze\n", capture_output=True, check=True)
    assert list(json.loads(done.stdout)["q1"]) == ["2"]


def test_a_header_without_the_named_columns_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "q.tsv").write_text("Inhalt\tx\nKatze\ty\n")
    with pytest.raises(InputError, match="no column Nr"):
        read_queries(tmp_path / "q.tsv", Columns("Nr", "Inhalt"))
