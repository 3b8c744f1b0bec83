"""Bad input, end to end: a clear message, good lines kept, bad ones in quarantine, nothing half-written."""

import json
from pathlib import Path
from typing import Any

import pytest

from indexes.collection import Collection
from tests.helpers import linker

GOOD = b'{"id": "good1", "text": "rain in Valencia"}'
ALSO = b'{"id": "good2", "text": "parliament in Portugal"}'


def build(tmp_path: Path, *lines: bytes) -> tuple[list[str], list[dict[str, Any]]]:
    """Build from a corpus with these lines between two good ones; return the ids and the quarantined records."""
    corpus, out = tmp_path / "c.jsonl", tmp_path / "i"
    corpus.write_bytes(b"\n".join([GOOD, *lines, ALSO]) + b"\n")
    done = linker("index", "build", corpus, "--out", out)
    kept = [
        json.loads(line)
        for path in sorted((out / "quarantine").glob("*.jsonl"))
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
    if kept:
        assert f"{len(kept)} record{'s' * (len(kept) != 1)} could not be used" in done.stderr
        assert str(out / "quarantine") in done.stderr
    info = json.loads(linker("index", "info", out, "--json").stdout)
    assert info["quarantined"] == len(kept)
    linker("index", "verify", out)
    return list(Collection.open(out).rows.ids), kept


# tests/corpora/test_corpora.py has all kinds of bad lines.
BAD = (
    (b"not json", "JSON"), (b'{"text": "no id"}', "id"), (b'{"id": "a b", "text": "x"}', "white space"),
    (b'{"id": "x", "text": "caf\xe9"}', "UTF-8"), (b'{"id": "x", "text": ' + b"[" * 100_000, "JSON"),
)  # fmt: skip


def test_a_bad_line_is_quarantined_with_its_place(tmp_path: Path) -> None:
    ids, kept = build(tmp_path, *(line for line, _ in BAD), b'{"id": "good1", "text": "another"}')
    assert ids == ["good1", "good2"]
    *kept, repeated = sorted(kept, key=lambda record: int(record["line"]))
    assert repeated["line"] == 2 + len(BAD)
    assert "duplicate id 'good1'" in repeated["reason"]
    assert json.loads(repeated["raw"])["text"] == "another"
    assert [record["line"] for record in kept] == [*range(2, 2 + len(BAD))]
    for record, (line, reason) in zip(kept, BAD, strict=True):
        assert reason in record["reason"], line
        assert record["file"].endswith("c.jsonl")
        assert record["raw"]


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("array.json", b'[{"id": "1", "text": "x"}]', "array"),
        ("table.csv", b"a,b\n1,2\n", "a, b"),
        ("all-bad.jsonl", b"bad\n[]\n", "no record can be used; the first"),
        ("unknown.xyz", b"\x00\x01\x02", "unknown.xyz"),
    ],
)
def test_a_corpus_that_cannot_be_read_leaves_nothing_behind(
    tmp_path: Path, name: str, content: bytes, expected: str
) -> None:
    corpus = tmp_path / name
    corpus.write_bytes(content)
    done = linker("index", "build", corpus, "--out", tmp_path / "i", check=1)
    assert done.stderr.startswith("error: ")
    assert expected in done.stderr
    assert not (tmp_path / "i").exists()


def test_a_bad_query_file_is_refused_with_its_line_and_extreme_queries_are_answered(tmp_path: Path) -> None:
    build(tmp_path)
    queries = tmp_path / "q.tsv"
    for content, line in (
        (b"q1\n", 1),
        (b"q1\tx\nq1\ty\nq2\n", 3),
        (b"a b\tx\n", 1),
        (b"q1\t\xff\n", 1),
        (b"", 0),
    ):
        queries.write_bytes(content)
        done = linker("search", tmp_path / "i", "--queries", queries, check=1)
        assert (f"q.tsv:{line}" if line else "is empty") in done.stderr
        assert done.stdout == ""
    stopped, long = "to be or not to be", ("rain " * 20_000, "x" * 100_000)
    for text in ("", " ", "?", stopped, 'AND OR "(+-', "\u202e😀", *long):
        found = json.loads(linker("search", tmp_path / "i", f"--text={text}", "--json").stdout)
        assert [h["id"] for h in found["hits"]] in ([], ["good1"])


def test_a_build_that_read_nothing_can_be_repeated_after_the_correction(tmp_path: Path) -> None:
    corpus, out = tmp_path / "folder", tmp_path / "i"
    corpus.mkdir()
    (corpus / "a.jsonl").write_text('{"id": "a", "text": "Rain in Valencia"}')
    other = '{"id": "b", "text": "Rain in Graz"}'
    (corpus / "b.jsonl").write_text(other, encoding="utf-16")
    done = linker("index", "build", corpus, "--out", out, check=1)
    assert "b.jsonl is UTF-16" in done.stderr and not out.exists()
    (corpus / "b.jsonl").write_text(other)
    assert "2 documents added" in linker("index", "build", corpus, "--out", out).stdout


def test_an_unusable_query_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "c.jsonl").write_bytes(GOOD + b"\n")
    linker("index", "build", tmp_path / "c.jsonl", "--out", tmp_path / "i")
    (tmp_path / "q.csv").write_text("id;text\n1;rain\n2;\n")
    done = linker("search", tmp_path / "i", "--queries", tmp_path / "q.csv", check=1)
    assert "q.csv:3: no text" in done.stderr and "correct or remove this query" in done.stderr
