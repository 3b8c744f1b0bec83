"""Readers of corpora and queries: what is returned, what is refused, and that nothing else is lost."""

import base64
import gzip
import json
import os
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any, Literal

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from indexes.interface import Document
from linker.base.errors import InputError
from linker.base.lines import Line, Splitter, read_lines
from linker.corpora import BadLine, Columns, Query, read_corpus, read_queries
from linker.corpora.tables import read_csv

FAST = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

GOOD = b'{"_id": "a", "text": "one"}'
LAST = b'{"_id": "z", "text": "last"}'


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, bytes], Path]:
    def write(name: str, content: bytes) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(content, mtime=0) if name.endswith(".gz") else content)
        return path

    return write


Write = Callable[[str, bytes], Path]


def good(path: Path, **options: Any) -> list[Document]:
    return [r for r in read_corpus(path, **options) if isinstance(r, Document)]


def bad(path: Path, **options: Any) -> list[BadLine]:
    return [r for r in read_corpus(path, **options) if isinstance(r, BadLine)]


# --- JSON lines -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["c.jsonl", "c.ndjson", "c.json", "c.jsonl.gz", "C.JSONL", "unnamed"])
def test_json_lines(write: Write, name: str) -> None:
    line = {
        "_id": 7, "text": "t", "title": "T", "metadata": {"date": "d"}, "lang": "de", "tags": ["x"], "n": 1.5,
    }  # fmt: skip
    path = write(name, json.dumps(line).encode() + b"\n\n  \r\n" + GOOD)
    first, second = read_corpus(path)
    assert first == Document("7", "t", "T", {"date": "d", "lang": "de", "tags": ["x"], "n": 1.5})
    assert second == Document("a", "one")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ({"id": "b", "contents": "c"}, Document("b", "c")),
        ({"id": "b", "body": "c", "title": None}, Document("b", "c")),
        ({"_id": "b", "id": "other", "text": "c"}, Document("b", "c", metadata={"id": "other"})),
        ({"_id": "b", "text": "", "title": "T"}, Document("b", "", "T")),
        ({"_id": "b", "text": "c", "metadata": "kept"}, Document("b", "c", metadata={"metadata": "kept"})),
        ({"_id": "b", "text": "c", "x": 1, "metadata": {"x": 2}}, Document("b", "c", metadata={"x": 2})),
        ({"_id": 2**63, "text": "c"}, Document(str(2**63), "c")),
    ],
)
def test_fields_of_a_json_line(write: Write, line: dict[str, object], expected: Document) -> None:
    assert list(read_corpus(write("c.jsonl", json.dumps(line).encode()))) == [expected]


def test_named_columns_of_json_lines(write: Write) -> None:
    path = write("c.jsonl", b'{"key": "k", "says": "s", "head": "h", "text": "t"}')
    assert list(read_corpus(path, Columns("key", "says", "head"))) == [Document("k", "s", "h", {"text": "t"})]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"text": "t"}', "no id: no field _id or id among text"),
        (b'{"_id": "b"}', "no text: no field text or contents or content or body or abstract among none"),
        (b'{"_id": null, "text": "t"}', "NoneType, not a string"),
        (b'{"_id": 1.5, "text": "t"}', "float, not a string"),
        (b'{"_id": true, "text": "t"}', "bool, not a string"),
        (b'{"_id": 123456789012345678901234567890, "text": "t"}', "float, not a string"),
        (b'{"_id": "", "text": "t"}', "empty id"),
        (b'{"_id": "b c", "text": "t"}', "white space"),
        (b'{"_id": "b\\nc", "text": "t"}', "white space or control"),
        (b'{"_id": "b", "text": 5}', "the text is int, not a string"),
        (b'{"_id": "b", "text": "t", "title": ["T"]}', "the title is list, not a string"),
        (b'{"_id": "b", "text": " \\n", "title": ""}', "no text"),
        (b'{"_id": "b", "text": "a\\u0000b"}', "NUL"),
        (b'{"_id": "b", "text": "\\ud800"}', "not JSON"),
        (b'{"_id": "b", "text": "\xff"}', "invalid UTF-8"),
        (b'{"_id": "b", "text": "t", "x": NaN}', "not JSON"),
        (b'{"_id": "b", "text": "t", "x": 1e999}', "not JSON"),
        (b'{"_id": "b", "text": "t"', "not JSON"),
        (b"[1, 2]", "a JSON array, not an object (a single array? convert it to lines: jq -c '.[]')"),
        (b"17", "a JSON number, not an object"),
        (b"null", "a JSON null, not an object"),
        (b'"text"', "a JSON string, not an object"),
        (b"[" * 100_000, "not JSON"),
        (b'{"_id": "b", "text": "t", "x": ' + b"[" * 300 + b"]" * 300 + b"}", "nested deeper than 64"),
        (b'{"_id": "b", "text": "t", "metadata": {"x": ' + b'{"y":' * 80 + b"1" + b"}" * 82, "nested deeper"),
        (b'{"_id": "' + b"i " * 9000 + b'", "text": "t"}', "white space"),
    ],
)
def test_a_bad_line_is_reported_and_the_others_kept(write: Write, line: bytes, reason: str) -> None:
    first, found, last = read_corpus(write("c.jsonl", GOOD + b"\n" + line + b"\n" + LAST))
    assert isinstance(first, Document)
    assert isinstance(last, Document)
    assert isinstance(found, BadLine)
    assert (found.line, found.raw[:65536]) == (2, line[:65536])
    assert reason in found.reason or (reason == "white space" and found.reason.endswith("…"))
    assert len(found.reason) < 500
    assert orjson.loads(orjson.dumps(found.to_json()))["line"] == 2


@pytest.mark.parametrize(
    "content", [b"[\n" + GOOD + b"\n]", b"[" + GOOD + b",\n" + LAST + b"]", b'{\n"_id": "a"\n}']
)
def test_a_file_of_one_json_value_is_refused_with_the_remedy(write: Write, content: bytes) -> None:
    with pytest.raises(InputError, match=r"jq -c"):
        list(read_corpus(write("c.json", content)))


def test_bom_crlf_and_a_missing_last_newline(write: Write) -> None:
    path = write("c.jsonl", b"\xef\xbb\xbf" + GOOD + b"\r\n" + LAST)
    assert [d.id for d in good(path)] == ["a", "z"]


def test_utf16_is_named(write: Write) -> None:
    with pytest.raises(InputError, match="UTF-16"):
        list(read_corpus(write("c.jsonl", GOOD.decode().encode("utf-16"))))


# --- size and damage --------------------------------------------------------------------------------------------


def test_a_line_beyond_the_limit_is_cut_and_reading_goes_on(write: Write) -> None:
    long = b'{"_id": "long", "text": "' + b"x" * 1000 + b'"}'
    path = write("c.jsonl", GOOD + b"\n" + long + b"\n" + LAST)
    assert [d.id for d in good(path, limit=len(long))] == ["a", "long", "z"]
    (found,) = bad(path, limit=len(long) - 1)
    assert found.reason == "1,027 bytes, more than the limit of 1,026 bytes per record"
    assert [d.id for d in good(path, limit=len(long) - 1)] == ["a", "z"]


def test_a_line_of_50_mb_takes_bounded_memory(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    with path.open("wb") as file:
        file.write(b'{"_id": "a", "text": "')
        for _ in range(50):
            file.write(b"x" * 2**20)
        file.write(b'"}\n' + LAST)
    tracemalloc.start()
    (found, last) = read_corpus(path, limit=2**20)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert isinstance(found, BadLine)
    assert (found.truncated, len(found.raw), last) == (True, 65536, Document("z", "last"))
    assert peak < 8 * 2**20


@given(st.lists(st.binary(max_size=20)), st.integers(1, 12))
def test_blocks_are_cut_into_lines_as_by_split(blocks: list[bytes], limit: int) -> None:
    splitter = Splitter(limit)
    lines = [each for block in blocks for each in splitter.feed(block)] + list(splitter.rest())
    whole = b"".join(blocks).split(b"\n")
    if not whole[-1]:
        whole.pop()
    assert lines == [(n, text[:limit], len(text)) for n, text in enumerate(whole, 1)]


def _lines(n: int) -> bytes:
    random = Random(0)
    return b"".join(
        b'{"_id": "%d", "text": "%s"}\n' % (i, random.randbytes(20).hex().encode()) for i in range(n)
    )


def test_a_damaged_gzip_keeps_the_lines_before_the_damage(tmp_path: Path) -> None:
    path, content = tmp_path / "c.jsonl.gz", _lines(20_000)
    parts = [gzip.compress(content), b"no gzip at all"]
    path.write_bytes(b"".join(parts))
    *documents, last = read_corpus(path)
    assert len(documents) == 20_000
    assert isinstance(last, BadLine)
    assert "damaged gzip data" in last.reason
    broken = bytearray(parts[0])
    broken[len(broken) // 2 : len(broken) // 2 + 64] = bytes(64)
    path.write_bytes(broken)
    records = list(read_corpus(path))
    intact = {line: i for i, line in enumerate(content.splitlines())}
    found = [r for r in records if isinstance(r, Document)]
    assert len(found) > 9000  # all before the damage
    lines = [b'{"_id": "%s", "text": "%s"}' % (d.id.encode(), d.text.encode()) for d in found[:9000]]
    assert [intact[line] for line in lines] == list(range(9000))
    assert isinstance(records[-1], BadLine)


def test_gzip_members_follow_each_other(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl.gz"
    path.write_bytes(gzip.compress(b"") + gzip.compress(GOOD + b"\n") + gzip.compress(LAST) + bytes(512))
    assert [d.id for d in good(path)] == ["a", "z"]


def test_gzip_is_known_by_its_content(write: Write) -> None:
    assert good(write("c.jsonl", gzip.compress(GOOD)))[0].id == "a"
    path = write("c.jsonl.gz", b"")
    path.write_bytes(GOOD)
    with pytest.raises(InputError, match="is not gzip data"):
        list(read_corpus(path))


@pytest.mark.parametrize("name", ["c.jsonl", "c.csv", "c.tsv", "c.txt", "c", "c.jsonl.gz", "c.csv.gz"])
def test_an_empty_file_is_refused(write: Write, name: str) -> None:
    with pytest.raises(InputError, match="is empty"):
        list(read_corpus(write(name, b"")))


@pytest.mark.parametrize(
    ("name", "content"), [("c.jsonl", b"\n \n"), ("c.csv", b"id,text\n"), ("c.tsv", b"id\ttext")]
)
def test_a_file_without_records_is_refused(write: Write, name: str, content: bytes) -> None:
    with pytest.raises(InputError, match="is empty"):
        list(read_corpus(write(name, content)))


def test_paths_that_cannot_be_read(tmp_path: Path, write: Write) -> None:
    with pytest.raises(InputError, match="no such file or folder"):
        list(read_corpus(tmp_path / "none.jsonl"))
    with pytest.raises(InputError, match="cannot read"):
        list(read_corpus(tmp_path / ("n" * 300)))
    with pytest.raises(InputError, match=r"nothing to read in the folder .* \*\.jsonl"):
        list(read_corpus(tmp_path))
    with pytest.raises(InputError, match="cannot tell what"):
        list(read_corpus(write("what", b"some text")))
    with pytest.raises(InputError, match="mixes kinds"):
        write("f/a.txt", b"x"), write("f/b.csv", b"x")
        list(read_corpus(tmp_path / "f"))


# --- tables -----------------------------------------------------------------------------------------------------


def test_csv_with_quotes_newlines_and_metadata(write: Write) -> None:
    content = b'id,title,text,lang\r\n1,T,"a ""b"", c\r\nd",de\r\n\r\n2,,plain 5" nail,fr'
    assert list(read_corpus(write("c.csv", content))) == [
        Document("1", 'a "b", c\r\nd', "T", {"lang": "de"}),
        Document("2", 'plain 5" nail', "", {"lang": "fr"}),
    ]


def test_two_tab_separated_fields_with_counted_ids_need_no_header(write: Write) -> None:
    """`id TAB text`, the queries of MS MARCO, is a corpus like any other; a header that lacks names is an error."""
    found = [(d.id, d.text) for d in good(write("q.tsv", b"q1\tflooded streets\nq12\tparliament\n"))]
    assert found == [("q1", "flooded streets"), ("q12", "parliament")]
    for data in (b"foo\tbar\n7\tRegen\n", b"q1\tone line\n", b"q1\ta\nq1\tb\n", b"q1\ta\tb\nq2\ta\tb\n"):
        with pytest.raises(InputError, match="no column _id or id"):
            good(write("c.tsv", data))


def test_tsv_does_not_know_quotes(write: Write) -> None:
    path = write("c.tsv.gz", b'id\ttext\tx\r\n1\t"a\ty\r\n2\tb"\t\n')
    assert list(read_corpus(path)) == [
        Document("1", '"a', "", {"x": "y"}),
        Document("2", 'b"', "", {"x": ""}),
    ]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (b"2,b", "2 fields, expected 3: id, text, x"), (b"2,b,c,d", "4 fields, expected 3"),
        (b'2,"b"c,d', "'\"'"), (b"2,\xff,c", "invalid UTF-8"), (b"2 3,b,c", "white space"),
        (b"2,a\0b,c", "NUL"), (b"2,,c", "no text"), (b'2,"b,c', "unexpected end of data"),
    ],
)  # fmt: skip
def test_a_bad_csv_row_is_reported_and_the_others_kept(write: Write, row: bytes, reason: str) -> None:
    first, found, last = read_corpus(write("c.csv", b"id,text,x\n1,a,c\n" + row + b"\n3,z,c\n"))
    assert (first, last) == (Document("1", "a", "", {"x": "c"}), Document("3", "z", "", {"x": "c"}))
    assert isinstance(found, BadLine)
    assert (found.line, found.raw) == (3, row)
    assert reason in found.reason


def test_a_csv_record_beyond_the_limit(write: Write) -> None:
    path = write("c.csv", b'id,text\n1,"' + b"x\n" * 40 + b'"\n2,b\n')
    first, *_, last = read_corpus(path, limit=50)
    assert isinstance(first, BadLine)
    assert "more than the limit" in first.reason
    assert last == Document("2", "b")
    assert [d.id for d in good(path)] == ["1", "2"]


def test_lines_after_a_stray_quote_come_in_their_order(write: Write) -> None:
    path = write("c.csv", b'id,text\n1,a\n2,"never closed\n3,c\n4,d\n5,e\n')
    found = [r.id if isinstance(r, Document) else r.reason for r in read_corpus(path)]
    assert (found[0], found[2:]) == ("1", ["3", "4", "5"])
    assert found[1] == "unexpected end of data"


def test_stray_quotes_in_every_line_are_read_through(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("linker.corpora.tables.MAX_RECORD_LINES", 500)
    steps = 0

    def counted(lines: Iterator[Line]) -> Iterator[Line]:
        nonlocal steps
        for line in lines:
            steps += 1
            yield line

    content = b"id,text\n1,good\n" + b'a","b\n' * 2000 + b"2,after\n"
    records = [r for _, r in read_csv(Path("c"), counted(read_lines(write("c.csv", content))), Columns())]
    assert steps == 2003  # each line is read from the file once
    assert [r.id for r in records if isinstance(r, Document)] == ["1", "2"]
    assert len(records) == 2002
    assert isinstance(records[1], BadLine)
    assert "does not close within 500 lines" in records[1].reason
    assert isinstance(records[2], BadLine)
    assert "does not close within 100 lines" in records[2].reason


def test_columns_of_a_table(write: Write) -> None:
    path = write("c.csv", b"nr,says,head,_id\n1,s,h,x\n")
    expected = Document("1", "s", "h", {"_id": "x"})
    assert list(read_corpus(path, Columns("nr", "says", "head"))) == [expected]
    with pytest.raises(
        InputError,
        match=r"no column text or contents or content or body or abstract: the header has nr, says, head, _id",
    ):
        list(read_corpus(path))
    with pytest.raises(InputError, match=r"no column caption"):
        list(read_corpus(path, Columns("nr", "says", "caption")))
    twice = write("d.csv", b"id,text,text,,note\n1,a,b,c,d")
    with pytest.raises(
        InputError, match=r"the header has id, text_1, text_2, column_4, note; .*`header_row`"
    ):
        list(read_corpus(twice))
    (document,) = read_corpus(twice, Columns(text="text_2"))
    assert document == Document("1", "b", metadata={"text_1": "a", "column_4": "c", "note": "d"})
    with pytest.raises(InputError, match="cannot read the header"):
        list(read_corpus(write("e.csv", b"id,\xff\n1,a")))


# --- folders ----------------------------------------------------------------------------------------------------


def test_a_beir_folder(tmp_path: Path, write: Write) -> None:
    write("b/corpus.jsonl.gz", GOOD)
    write("b/queries.jsonl", b'{"_id": "q", "text": "what"}')
    write("b/qrels/test.tsv", b"q\ta\t1\n")
    assert [d.id for d in good(tmp_path / "b")] == ["a"]
    assert read_queries(tmp_path / "b") == [Query("q", "what")]


def test_a_folder_of_text_files(tmp_path: Path, write: Write) -> None:
    for name in ("b.txt", "a.txt.gz", "sub/My 100% page.txt", ".hidden.txt", "~$open.xlsx", "note.md"):
        write(f"f/{name}", f"text of {name}\r\nend\n".encode())
    write("f/empty.txt", b"")
    write("f/latin.txt", b"un \xe9t\xe9 sec")
    write("f/wide.txt", "un hiver".encode("utf-16"))
    write("f/damaged.txt", b"half of a \xf0\x9f face")
    write("f/unknown.txt", b"\x81\x8d\x90\n" * 40)
    write("f/qrels/test.txt", b"q 0 a 1")
    records = list(read_corpus(tmp_path / "f"))
    documents = {r.id: r.text for r in records if isinstance(r, Document)}
    assert list(documents) == ["a", "b", "latin", "wide", "sub/My%20100%25%20page"]
    assert documents["b"] == "text of b.txt\r\nend" and documents["latin"] == "un été sec"
    assert documents["wide"] == "un hiver"
    failures = {r.path.name: r.reason for r in records if isinstance(r, BadLine)}
    wrong = dict.fromkeys(("damaged.txt", "unknown.txt"), "invalid UTF-8")
    assert failures == {"empty.txt": "no text: text and title are empty", **wrong}
    assert records == list(read_corpus(tmp_path / "f"))


def test_file_names_that_are_not_utf8(tmp_path: Path) -> None:
    folder = tmp_path / "f"
    folder.mkdir()
    (folder / os.fsdecode(b"\xff.txt")).write_bytes(b"x")
    (folder / os.fsdecode(b"\xfe.txt")).write_bytes(b"")
    failure, document = read_corpus(folder)
    assert isinstance(document, Document)
    assert document.id == "%FF"
    assert isinstance(failure, BadLine)
    assert orjson.dumps(failure.to_json())


def test_a_text_file_beyond_the_limit(write: Write) -> None:
    path = write("c.txt", b"line\n" * 100)
    assert len(good(path, limit=500)[0].text) == 499
    assert "500 bytes" not in bad(path, limit=498)[0].reason
    assert "more than the limit of 498" in bad(path, limit=498)[0].reason


def test_a_folder_of_json_lines(tmp_path: Path, write: Write) -> None:
    for name in ("b.jsonl", "a.jsonl.gz", "sub/c.ndjson"):
        write(f"f/{name}", json.dumps({"_id": name, "text": "t"}).encode())
    write("f/empty.jsonl", b"")
    write("f/queries.jsonl", GOOD)
    assert [d.id for d in good(tmp_path / "f")] == ["a.jsonl.gz", "b.jsonl", "sub/c.ndjson"]


def test_a_pipe_can_be_read() -> None:
    reading, writing = os.pipe()
    os.write(writing, GOOD + b"\n" + LAST)
    os.close(writing)
    assert [d.id for d in good(Path(f"/dev/fd/{reading}"))] == ["a", "z"]
    os.close(reading)


# --- bad lines --------------------------------------------------------------------------------------------------


def test_the_raw_bytes_can_be_recovered() -> None:
    latin = BadLine.of(Path("f"), 3, "r", b"caf\xe9 \\xe9").to_json()
    assert latin["raw"] == "caf\\xe9 \\xe9"
    assert base64.b64decode(latin["raw_base64"]) == b"caf\xe9 \\xe9"
    assert BadLine.of(Path("f"), 3, "r", "é".encode()).to_json() == {
        "file": "f", "line": 3, "reason": "r", "raw": "é", "truncated": False,
    }  # fmt: skip


# --- queries ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("q.jsonl", b'{"_id": "1", "text": "a b"}\n{"_id": 2, "text": "c"}'),
        ("q.jsonl.gz", b'{"_id": "1", "text": "a b"}\n{"_id": 2, "text": "c"}'), ("q.tsv", b"1\ta b\n2\tc\n"),
        ("q.tsv", b"id\ttext\r\n1\ta b\r\n\r\n2\tc"), ("q.txt", b"qid\tquery\n1\ta b\n2\tc"),
        ("q", b"1\ta b\n2\tc\n"), ("q", b'{"_id": "1", "text": "a b"}\n{"_id": 2, "text": "c"}'),
        ("q.tsv", b"Query-ID\tlang\tText\n1\ten\ta b\n2\tde\tc"), ("q.csv", b'id,text\n1,"a b"\n2,c'),
    ],
)  # fmt: skip
def test_queries(write: Write, name: str, content: bytes) -> None:
    assert read_queries(write(name, content)) == [Query("1", "a b"), Query("2", "c")]


def test_seeds_are_documents(write: Write) -> None:
    assert read_queries(write("s.jsonl", b'{"_id": "1", "title": "T", "text": "t"}')) == [Query("1", "T\nt")]
    write("f/a.txt", b"seed")
    assert read_queries(write("f/b.txt", b"other").parent) == [Query("a", "seed"), Query("b", "other")]


def test_a_first_query_that_looks_a_little_like_a_header(write: Write) -> None:
    path = write("q.tsv", b"id\twhat is an id\ntext\tquery\n")
    assert read_queries(path) == [Query("id", "what is an id"), Query("text", "query")]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("q.jsonl", GOOD + b"\n{", r"q.jsonl:2: not JSON"),
        ("q.tsv", b"1\ta\n2\tb\tc\n", r"q.tsv:2: 3 fields, expected 2: id, text"),
        ("q.tsv", b"1\ta\njust text\n", r"q.tsv:2: 1 field, expected 2.*begin each line with an id and a tab"),
        ("q.tsv", b"1\t\xff\n", r"q.tsv:1: invalid UTF-8"), ("q.tsv", b"1\t \n", r"q.tsv:1: no text"),
        ("q.jsonl", b"", "is empty"), ("q.tsv", b"id\ttext\n", "is empty"),
    ],
)  # fmt: skip
def test_a_bad_query_is_an_error(write: Write, name: str, content: bytes, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_queries(write(name, content))


def test_a_repeated_query_is_left_out_and_reported(write: Write, caplog: pytest.LogCaptureFixture) -> None:
    path = write("q.tsv", b"1\ta\n\n1\tb\n2\tc\n")
    with caplog.at_level("INFO", "linker"):
        assert read_queries(path) == [Query("1", "a"), Query("2", "c")]
    (said,) = caplog.messages
    assert said.endswith(
        "q.tsv: 1 unusable entry left out; the first is line 3: duplicate id '1': the first one was kept"
    )
    with pytest.raises(InputError, match=r"q.tsv:3: no text"):
        read_queries(write("q.tsv", b"1\ta\n1\tb\n2\t\n"))


def test_queries_of_a_cut_gzip(tmp_path: Path) -> None:
    path = tmp_path / "q.tsv.gz"
    path.write_bytes(gzip.compress(b"1\ta\n2\tb\n")[:-4])
    with pytest.raises(InputError, match=r"q.tsv.gz:3: the gzip data end here"):
        read_queries(path)
    with pytest.raises(InputError, match="no such file"):
        read_queries(tmp_path / "none")


# --- properties -------------------------------------------------------------------------------------------------

_surrogates: tuple[Literal["Cs"]] = ("Cs",)
_not_for_ids: tuple[Literal["C", "Z"], ...] = ("C", "Z")
_free = st.characters(exclude_categories=_surrogates, exclude_characters="\0")
_plain = st.characters(exclude_categories=_surrogates, exclude_characters='\0",\r\n')
_texts = st.text(_free, max_size=60).map(lambda text: text if text.strip() else f"{text}x")
_ids = st.text(st.characters(exclude_categories=_not_for_ids), min_size=1, max_size=12)
_names = st.text("abcdefgh", min_size=1, max_size=3)
_documents = st.lists(
    st.builds(Document, _ids, _texts, st.text(_free, max_size=20), st.dictionaries(_names, st.text(_free), max_size=3)),
    min_size=1, max_size=8,
)  # fmt: skip


def _as_json(document: Document) -> bytes:
    fields = {
        "_id": document.id, "text": document.text, "title": document.title, "metadata": document.metadata,
    }  # fmt: skip
    return orjson.dumps(fields)


@FAST
@given(documents=_documents)
def test_json_lines_round_trip(tmp_path: Path, documents: list[Document]) -> None:
    path = tmp_path / "c.jsonl"
    path.write_bytes(b"\n".join(map(_as_json, documents)))
    assert list(read_corpus(path)) == documents


@FAST
@given(documents=_documents)
def test_tsv_round_trip(tmp_path: Path, documents: list[Document]) -> None:
    flat = [Document(d.id, " ".join(d.text.split()) or "x", " ".join(d.title.split())) for d in documents]
    path = tmp_path / "c.tsv"
    rows = [f"{d.id}\t{d.text}\t{d.title}\n" for d in flat]
    path.write_bytes(("_id\tcontents\ttitle\n" + "".join(rows)).encode())
    assert list(read_corpus(path)) == flat


_soup = st.lists(st.sampled_from([b'"', b",", b"\n", b"\t", b"{", b"a", b"\xff", b"\0"])).map(b"".join)


@FAST
@given(
    content=st.binary(max_size=300) | _soup,
    name=st.sampled_from(["c.jsonl", "c.csv", "c.tsv", "c.txt", "c", "c.jsonl.gz"]),
)  # fmt: skip
def test_no_bytes_raise_anything_but_an_input_error(tmp_path: Path, content: bytes, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    for read in (read_corpus, read_queries):
        try:
            records = list(read(path))
        except InputError:
            continue
        assert records
        assert all(orjson.dumps(r.to_json()) for r in records if isinstance(r, BadLine))


_garbage = st.binary(max_size=40).map(lambda raw: raw.replace(b"\n", b"x"))


@FAST
@given(documents=_documents, garbage=st.lists(_garbage, min_size=9, max_size=9))
def test_good_json_lines_survive(tmp_path: Path, documents: list[Document], garbage: list[bytes]) -> None:
    documents = [d for d in documents if d.id != "0"]
    lines = [
        b"first",
        *(part for pair in zip(map(_as_json, documents), garbage, strict=False) for part in pair),
    ]
    path = tmp_path / "c.jsonl"
    path.write_bytes(b"\n".join(lines))
    records = list(read_corpus(path))
    assert [r for r in records if isinstance(r, Document)] == documents
    kept = {r.raw for r in records if isinstance(r, BadLine)}
    assert kept == {b"first", *(g for g in garbage[: len(documents)] if g.strip())}


@FAST
@given(
    rows=st.lists(st.text(_plain).map(lambda text: f"{text}x"), max_size=6),
    garbage=st.lists(_garbage.map(lambda raw: raw.replace(b'"', b"x")), min_size=6, max_size=6),
)  # fmt: skip
def test_good_csv_rows_survive_among_garbage(tmp_path: Path, rows: list[str], garbage: list[bytes]) -> None:
    path = tmp_path / "c.csv"
    lines = [f"r{i},{row}".encode() + b"\n" + garbage[i] for i, row in enumerate(rows)]
    path.write_bytes(b"\n".join([b"id,text", *lines, b"end,end"]))
    found = {d.id: d.text for d in good(path)}
    assert found["end"] == "end"
    assert {f"r{i}": row for i, row in enumerate(rows)}.items() <= found.items()


@FAST
@given(texts=st.lists(_texts, min_size=1, max_size=5), cut=st.integers(1, 400))
def test_any_cut_of_a_gzip_keeps_a_prefix(tmp_path: Path, texts: list[str], cut: int) -> None:
    documents = [Document(str(i), text) for i, text in enumerate(texts)]
    whole = gzip.compress(b"".join(_as_json(d) + b"\n" for d in documents), mtime=0)
    path = tmp_path / "c.jsonl.gz"
    path.write_bytes(whole[: max(len(whole) - cut, 2)])
    *kept, last = read_corpus(path)
    assert kept == documents[: len(kept)]
    assert isinstance(last, BadLine)


# --- real data --------------------------------------------------------------------------------------------------
