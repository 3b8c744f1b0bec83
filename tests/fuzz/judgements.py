"""Runs and judgements against a slow reader; links, pairs, grades, predictions, the ledger, entities, filters."""

import gzip
import io
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from indexes.interface import Filter
from indexes.rows import Rows
from linker.base.errors import InputError
from linker.evaluation import read_qrels, read_run
from linker.papers.all_pairs.input import read_links, read_vectors
from linker.papers.news.articles import Article, NewsPair, read_news
from linker.papers.news.recognise import MentionCache
from linker.papers.news.similarity_report import read_predictions
from linker.review.importing import import_judgements
from linker.review.ledger import Ledger
from linker.scoring.pairs.data import read_pairs
from linker.scoring.pairs.translate import ScriptedTranslator
from tests.fuzz.files import file_target

RUN = "q1 Q0 d1 1 12.5 name\nq1 Q0 d2 2 -1e-3 name\n\nq2\tQ0\tdé\t1\t3\tname more\nq10 Q0 d1 1 12345678.125 name\n"
QRELS = "q1 0 d1 1\nq1 0 d2 0\nq2 0 dé -1\nq10 0 d1 12\n"
BEIR = "query-id\tcorpus-id\tscore\nq1\td1\t1\nq2\td2\t+2\n"
TREC_TOKENS = (
    " ", "\t", "\x0b", "\x0c", "\x1f", "q1 Q0 d1 1 1 x\n", "q1 0 d1 1\n", "score", "1e5", "nan", "-.", "1.5e",
    "00000000000001.5",
)  # fmt: skip
HEADERS = (b"score", b"relevance", b"rel", b"label")

Table = Mapping[str, Mapping[str, float]]


def check_run(path: Path) -> None:
    _agree(read_run, _slow_run, path)


def check_qrels(path: Path) -> None:
    _agree(read_qrels, _slow_qrels, path)


def _agree(fast: object, slow: object, path: Path) -> None:
    """The reader accepts the same inputs as the slow reader, with the same results, and refuses the rest."""
    assert callable(fast)
    assert callable(slow)
    expected = slow(path.read_bytes())
    try:
        found = fast(path)
    except InputError:
        assert expected is None, f"refused, though it is {expected}"
        raise
    assert expected is not None, "taken, though malformed"
    assert {t: dict(found[t]) for t in found} == expected, "read otherwise"


def _slow_run(data: bytes) -> Table | None:
    rows = _cells(data)
    if rows is None or any(len(row) < 6 for row in rows):
        return None
    return _table([(row[0], row[2], _score(row[4])) for row in rows])


def _slow_qrels(data: bytes) -> Table | None:
    rows = _cells(data)
    if rows is None:
        return None
    first = data.removeprefix(b"\xef\xbb\xbf").partition(b"\n")[0].split()
    columns = 4
    if len(first) == 3:
        if first[2].lower() not in HEADERS:
            return None
        columns, rows = 3, rows[1:]
    if any(len(row) != columns for row in rows):
        return None
    return _table([(row[0], row[-2], _grade(row[-1])) for row in rows])


def _cells(data: bytes) -> list[list[bytes]] | None:
    if b"\0" in data:
        return None
    return [cells for line in data.removeprefix(b"\xef\xbb\xbf").split(b"\n") if (cells := line.split())]


def _table(rows: list[tuple[bytes, bytes, float | None]]) -> Table | None:
    table: dict[str, dict[str, float]] = {}
    for topic, document, value in rows:
        topic_id, id_ = topic.decode(errors="surrogateescape"), document.decode(errors="surrogateescape")
        if value is None or id_ in table.setdefault(topic_id, {}):
            return None
        table[topic_id][id_] = value
    return table or None


def _score(text: bytes) -> float | None:
    try:
        value = float("x" if b"_" in text else text)
    except ValueError:
        return None
    return None if value != value else value


def _grade(text: bytes) -> int | None:
    return int(text) if re.fullmatch(rb"[+-]?[0-9]{1,9}", text) else None


LEDGER = (
    '{"seed":"s1","id":"d1","verdict":"relevant","score":0.5,"time":"2026-01-01T00:00:00+00:00"}\n'
    '{"seed":"s1","id":"d2","verdict":"no","score":2}\n{"x":true}\n{"seed":"s2","id":"d1","verdict":1,"phase":"audit"}\n'
)


def check_ledger(path: Path) -> None:
    """Imported judgements are present, and are not imported a second time."""
    new = path.with_name("l.sqlite")
    for left in path.parent.glob("l.sqlite*"):
        left.unlink()
    with Ledger(new, durable=False) as ledger:
        report = import_judgements(path, ledger)
        assert report.present == 0, "an empty ledger held some"
        assert import_judgements(path, ledger).added == 0, "imported twice"
        assert len(ledger.history()) == report.added


METADATA: list[dict[str, Any]] = [
    {"a": 1, "b": ["x", "y"]}, {"a": "1"}, {"b": "x", "c": None}, {"a": 1.5, "c": {"a": 1}},
    {"a": True, "b": [["x"], 2]}, {},
]  # fmt: skip


def check_filter(path: Path) -> None:
    """A mask allows the rows that the slow definition accepts."""
    where = Filter.parse(path.read_bytes().decode(errors="surrogateescape").split("\n"))
    if where is not None:
        rows = Rows()
        rows.append([f"d{n}" for n in range(len(METADATA))], METADATA)
        mask = rows.mask(where)
        assert mask is not None
        assert mask.tolist() == [where.accepts(m) for m in METADATA], "the mask differs from the definition"


def check_entities(path: Path) -> None:
    cache = MentionCache(path)
    cache.add("new", [("Paris", "LOC")])
    assert MentionCache(path)["new"] == [("Paris", "LOC")]


def _npy() -> bytes:
    file = io.BytesIO()
    np.save(file, np.arange(12, dtype=np.float32).reshape(4, 3))
    return file.getvalue()


PAIRS = (
    '{"_id": "p1", "text1": "a b", "text2": "c", "score": 2.5}\n{"text1": "é", "text2": "f", "score": "4"}\n'
)
NEWS = (
    '{"_id": "1_2", "text1": "one text", "text2": "another", "title1": "T", "lang1": "en", '
    '"date1": "2020-01-01", "overall": 1.5}\n'
    '{"text1": "x", "title2": "y", "overall": "4"}\n'
)
PREDICTED = "id\tscore\tcosine\n1\t1.5\t0.3\n2\t4\t-1\n"
GRADED = [NewsPair(id_, Article("a"), Article("b"), 2.0) for id_ in ("1", "2")]
SCRIPTED = '{"source": "en", "target": "fr", "text": "a house", "translation": "une maison"}\n'

TARGETS = [
    file_target("run", "x.run", check_run, [RUN], TREC_TOKENS, cases=1000),
    file_target("qrels", "x.qrels", check_qrels, [QRELS, BEIR], TREC_TOKENS, cases=1000),
    file_target("qrels-gzip", "x.qrels.gz", read_qrels, [gzip.compress(QRELS.encode(), mtime=0)], cases=400),
    file_target("ledger", "l.jsonl", check_ledger, [LEDGER], ('"verdict"', "\n"), cases=800),
    file_target(
        "filter", "where", check_filter, ["a=1\nb=x\nb=y", "c=2", "b=2"],
        ("=", "a=", "=1", "\n", "true", "1.5"), cases=800,
    ),
    file_target(
        "entities", "e.jsonl", check_entities, ['{"key": "k", "entities": [["Paris", "LOC"]]}\n'],
        ('"key"', '"entities"'), 400,
    ),
    file_target("translations", "t.jsonl", ScriptedTranslator.read, [SCRIPTED], ('"source"', '"text"'), 400),
    file_target(
        "translations-tsv", "t.tsv", ScriptedTranslator.read, ["en\tfr\ta house\tune maison\n"], ("\t",), 300
    ),
    file_target("pairs", "p.jsonl", read_pairs, [PAIRS], ('"text1"', '"score"', "NaN", "1e999"), 400),
    file_target(
        "pairs-tsv", "p.tsv", read_pairs, ["_id\ttext1\ttext2\tscore\np\ta\tb\t2\n"], ("\t", "nan", "inf"),
        300,
    ),
    file_target("news", "n.jsonl", read_news, [NEWS], ('"text1"', '"overall"', "NaN"), 400),
    file_target(
        "predictions", "p.tsv", lambda path: read_predictions(path, GRADED), [PREDICTED],
        ("\t", "id", "score"), 300,
    ),
    file_target(
        "matrix", "v.npy", read_vectors, [_npy()], ("'descr'", "'|O'", "'<f4'", "'shape'", "(", ")", "True"),
        400,
    ),
    file_target(
        "links", "links", lambda path: read_links(path, (4, None), (4, None)), ["0 1\n2 3\n1 1\n"],
        (" ", "\n"), 300,
    ),
]  # fmt: skip
