"""Corpora, queries and pages: each record is accepted or goes to quarantine, and accepted ones can be stored."""

import gzip
import tempfile
from pathlib import Path

import orjson

from indexes.errors import IndexesError
from indexes.interface import Document
from indexes.store.segments import storable
from linker.corpora import BadLine, read_corpus, read_queries
from tests.fuzz.files import file_target

JSONL = (
    '{"_id": "d1", "title": "A title", "text": "One text", "metadata": {"year": 2020, "tags": ["a", null]}}\n'
    '{"id": 7, "contents": "Zwölf Boxkämpfer", "lang": "de"}\n\n'
    '{"_id": "d3", "body": "x\\u2028y\\ud83d\\ude00", "n": 1.5}\n'
)
CSV = 'id,title,text,year\nd1,"A ""quoted"", title","two\nlines",2020\nd2,,plain,\n"d3",x,"é",1\n'
TSV = "id\ttitle\ttext\nd1\tA title\tOne text\nd2\t\tAn 'odd' \"quote\nd3\tx\té\n"
QUERIES = "qid\tquery\nq1\twho was it\nq2\twhere\n"
WIKI = (
    "Page\nFirst. Then {{a|{{b}} c}} and [[Link|its text]] of <ref name='x'>no</ref> [[File:x.jpg|thumb|a [[b]]]]\n"
    "{| table\n|}<!-- note --> [https://e.org text] '''end'''.\n"
)
WIDTHS = (200, 1 << 24)  # maximum bytes per record: a limit that is hit, and the usual one


def consume(path: Path) -> None:
    """Read a corpus twice with the same result; every good record can be stored, every bad one recorded."""
    for limit in WIDTHS:
        records = list(read_corpus(path, limit=limit))
        again = list(read_corpus(path, limit=limit))
        assert repr(records) == repr(again), "two readings differ"
        for record in records:
            if isinstance(record, BadLine):
                orjson.dumps(record.to_json())
            else:
                check_storable(record)


def check_storable(document: Document) -> None:
    try:
        stored = storable(document)
    except IndexesError as e:
        raise AssertionError(f"a good record cannot be stored: {e}") from e
    whole = {"id": stored.id, "text": stored.text, "title": stored.title, "metadata": stored.metadata}
    assert orjson.loads(orjson.dumps(whole, option=orjson.OPT_NON_STR_KEYS)) == whole, (
        "stored otherwise than read"
    )


def consume_jsonl(path: Path) -> None:
    """Consume JSON lines like any corpus, and check that no line is lost."""
    consume(path)
    lines = [
        line
        for line in path.read_bytes().removeprefix(b"\xef\xbb\xbf").split(b"\n")
        if line and not line.isspace()
    ]
    assert len(list(read_corpus(path))) == len(lines), "not a record for each line"


def prepare_links(path: Path) -> None:
    """Make BUCC's data from two small collections of pages, with links from the file."""
    from linker.papers.bucc import prepare as bucc

    pages = [path.with_name(name) for name in ("fr.jsonl", "en.jsonl")]
    for page, code in zip(pages, ("fr", "en"), strict=True):
        page.write_text(
            "".join(f'{{"id": "{code}{n}", "title": "T {n}", "text": "One. Two {n}."}}\n' for n in range(6)),
            encoding="utf-8",
        )
    back = path.with_name("back.tsv")
    back.write_text("".join(f"en{n}\tfr{n}\n" for n in range(6)), encoding="utf-8")
    with tempfile.TemporaryDirectory(dir=path.parent) as out:
        bucc.prepare(pages[0], pages[1], Path(out), ("fr", "en"), path, back)


def prepare_pages(path: Path) -> None:
    """Make BUCC's data from the file's pages, linked by their own fields."""
    from linker.papers.bucc import prepare as bucc

    other = path.with_name("en.jsonl")
    other.write_text(
        '{"id": "e1", "title": "P", "text": "One. Two.", "langlinks": {"fr": "Q"}}\n', encoding="utf-8"
    )
    with tempfile.TemporaryDirectory(dir=path.parent) as out:
        bucc.prepare(path, other, Path(out), ("fr", "en"))


def read_pages(path: Path) -> None:
    from linker.crosslingual.pages import pages

    pages.read_pages(path)


def strip_markup(path: Path) -> None:
    from linker.papers.bucc import prepare as bucc

    bucc.strip_markup(path.read_text(encoding="utf-8", errors="replace"))


def members() -> bytes:
    """Gzip data as two members with padding between them."""
    return (
        gzip.compress(JSONL[:150].encode(), mtime=0) + bytes(3) + gzip.compress(JSONL[150:].encode(), mtime=0)
    )


PAGES = (
    '{"id": "f1", "title": "Q", "text": "Un. Deux {{x}} [[a|b]].", "langlinks": [{"lang": "en", "*": "P"}]}\n'
    '{"id": "f2", "title": "R", "text": "Trois. Quatre.", "langlinks": {"en": "e1"}, "language": "fr"}\n'
)
JSON_TOKENS = (
    '"_id"', '"id"', '"text"', '"title"', '"metadata"', "1e400", "\\ud800", "123456789012345678901234567890",
    "[[", "NaN",
)  # fmt: skip

TARGETS = [
    file_target("jsonl", "c.jsonl", consume_jsonl, [JSONL], JSON_TOKENS, cases=800),
    file_target("csv", "c.csv", consume, [CSV], ('"', '""', '"\n', ","), cases=800),
    file_target("tsv", "c.tsv", consume, [TSV], ("\t", '"')),
    file_target("plain-text", "c.txt", consume, ["A plain text.\nTwo lines é\n"], cases=200),
    file_target(
        "gzip", "c.jsonl.gz", consume, [gzip.compress(JSONL.encode(), mtime=0), members()], cases=800
    ),
    file_target("queries", "q.tsv", read_queries, [QUERIES, "q1\ttext\nq2\tother\n"], ("\t", "qid", "query")),
    file_target("queries-jsonl", "q.jsonl", read_queries, [JSONL], JSON_TOKENS, cases=300),
    file_target("pages", "fr.jsonl", read_pages, [PAGES, JSONL], JSON_TOKENS, cases=300),
    file_target(
        "bucc-ids", "links.tsv", prepare_links, ["".join(f"fr{n}\tT_{n}\n" for n in range(6))], ("\t",),
        cases=200,
    ),
    file_target(
        "bucc-pages", "p.jsonl", prepare_pages, [PAGES], ("langlinks", "links", '"lang"', '"*"'), cases=200
    ),
    file_target(
        "markup",
        "p.txt",
        strip_markup,
        [WIKI],
        (
            "{{", "}}", "{|", "|}", "[[", "]]", "|", "<ref", "<ref>", "</ref>", "<!--", "-->", "<math",
            "[http://a", "<a",
        ),
        cases=300,
    ),
]  # fmt: skip
