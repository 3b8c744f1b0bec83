"""Write a review for ASReview: every document, read or not, with labels, times and notes as ASReview writes them."""

import contextlib
import sqlite3
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

import orjson
import xxhash

from indexes.interface import Document
from linker.corpora.asreview import CONFIG, DATA, DATABASE, VERSION
from linker.corpora.dates import moment_of
from linker.review.agreement import decided
from linker.review.exporting import ris
from linker.review.exporting.rows import Cell, cell, tags_text
from linker.review.interface import Judgement, Seed

LABELS = {"relevant": 1, "not": 0}
ADDED = ("asreview_label", "asreview_time", "asreview_note", "asreview_tags")
OWN = ("id", "title", "abstract")
DATASET, DATASET_ID = "linker.csv", "linker"
# Timestamp of all files in the zip, so that the same review gives the same bytes.
OLDEST = (1980, 1, 1, 0, 0, 0)
# ASReview's default model, with which it continues the review.
MODEL = {
    "querier": "max", "classifier": "svm", "classifier_param": {"loss": "squared_hinge", "C": 0.11},
    "balancer": "balanced", "balancer_param": {"ratio": 9.8}, "feature_extractor": "tfidf",
    "feature_extractor_param": {"ngram_range": [1, 2], "sublinear_tf": True, "min_df": 1, "max_df": 0.95},
}  # fmt: skip
# The tables of ASReview 3, as ASReview creates them.
SCHEMA = """
CREATE TABLE record (dataset_row INTEGER NOT NULL, dataset_id VARCHAR NOT NULL, title VARCHAR NOT NULL,
    abstract VARCHAR NOT NULL, authors JSON NOT NULL, keywords JSON NOT NULL, year INTEGER, doi VARCHAR, url VARCHAR,
    included INTEGER, record_id INTEGER NOT NULL, duplicate_of INTEGER,
    group_id INTEGER NOT NULL GENERATED ALWAYS AS (COALESCE(duplicate_of, record_id)) VIRTUAL,
    PRIMARY KEY (record_id), UNIQUE (dataset_row, dataset_id),
    CONSTRAINT no_self_duplicate CHECK (duplicate_of IS NULL OR duplicate_of != record_id),
    FOREIGN KEY(duplicate_of) REFERENCES record (record_id) ON DELETE SET NULL);
CREATE INDEX idx_record_group_id ON record (group_id);
CREATE TABLE results (record_id INTEGER UNIQUE, label INTEGER, classifier TEXT, querier TEXT, balancer TEXT,
    feature_extractor TEXT, training_set INTEGER, time FLOAT, note TEXT, tags JSON, user_id INTEGER);
CREATE TABLE last_ranking (record_id INTEGER UNIQUE, ranking INT, classifier TEXT, querier TEXT, balancer TEXT,
    feature_extractor TEXT, training_set INTEGER, time FLOAT);
CREATE TABLE decision_changes (record_id INTEGER, label INTEGER, time FLOAT, user_id INTEGER);
CREATE TRIGGER trg_results_delete AFTER DELETE ON results FOR EACH ROW BEGIN
    INSERT INTO decision_changes (record_id, label, time, user_id)
    VALUES (OLD.record_id, OLD.label, OLD.time, OLD.user_id); END;
CREATE TRIGGER trg_results_label_update AFTER UPDATE OF label ON results FOR EACH ROW
    WHEN OLD.label IS NOT NEW.label BEGIN INSERT INTO decision_changes (record_id, label, time, user_id)
    VALUES (OLD.record_id, OLD.label, OLD.time, OLD.user_id); END;
PRAGMA user_version = 3;
"""
RECORD = "INSERT INTO record VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, NULL, ?, NULL)"
RESULT = "INSERT INTO results VALUES (?, ?, ?, ?, ?, ?, NULL, ?, ?, ?, NULL)"


@dataclass(frozen=True, slots=True)
class Labelled:
    """A document and the decision on it, None if it is unread or open. `prior`: whether it is prior knowledge."""

    document: Document
    judgement: Judgement | None = None
    prior: bool = False

    @property
    def added(self) -> tuple[int | None, str, str, str]:
        """The values of the columns listed in `ADDED`."""
        if (judgement := self.judgement) is None:
            return None, "", "", ""
        time = _seconds(judgement.time)
        written = f"{datetime.fromtimestamp(time, UTC):%Y-%m-%d %H:%M:%S}" if time else ""
        return LABELS[judgement.verdict], written, judgement.note, tags_text(judgement.tags)


def labelled(
    documents: Iterable[Document], judgements: Iterable[Judgement], seeds: Iterable[Seed]
) -> list[Labelled]:
    """Return every document with the decision on it: with several seeds, relevant if it is relevant to any.

    Documents that are seeds count as relevant prior knowledge; imported judgements are prior knowledge, too.
    """
    by_id: dict[str, Judgement] = {
        s.document: Judgement(s.id, s.document, "relevant", phase="prior") for s in seeds if s.document
    }
    for judgement in decided(judgements):
        known = by_id.get(judgement.id)
        if judgement.verdict in LABELS and (known is None or not known.relevant):
            by_id[judgement.id] = judgement
    return [Labelled(d, j, j.phase == "prior") if (j := by_id.get(d.id)) else Labelled(d) for d in documents]


def table(rows: Sequence[Labelled], *, added: bool = True) -> Iterator[Sequence[Cell]]:
    """Yield a header and a row of cells per document: its fields as ASReview names them and, if `added`, ADDED."""
    taken = {*OWN, *ADDED}
    names = [
        n for n in dict.fromkeys(name for row in rows for name in row.document.metadata) if n not in taken
    ]
    yield [*OWN, *names, *(ADDED if added else ())]
    for row in rows:
        document = row.document
        metadata = [_listed(document.metadata.get(name)) for name in names]
        yield [document.id, document.title, document.text, *metadata, *(row.added if added else ())]


def _listed(value: Any) -> Cell:
    """Return a cell; ASReview separates the items of a list by semicolons."""
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return ";".join(value)
    return cell(value)


def ris_lines(rows: Iterable[Labelled]) -> Iterator[str]:
    """Yield the lines of a RIS file as ASReview exports it."""
    for row in rows:
        label, time, note, tags = row.added
        yield from ris.document_lines(row.document)
        verdict = row.judgement.verdict if row.judgement else ""
        yield from ris.note_lines(ris.UNSEEN if label is None else ris.LABELS[verdict], time, note, tags)


def write_project(rows: Sequence[Labelled], dataset: bytes, file: IO[bytes], name: str) -> None:
    """Write a project of version 3, which ASReview opens and continues; `dataset` is the table of `rows` as CSV."""
    times = [_seconds(row.judgement.time) for row in rows if row.judgement]
    config = {
        "version": f"{VERSION}.0", "id": xxhash.xxh3_128_hexdigest(dataset), "mode": "oracle", "name": name,
        "created_at_unix": int(min((t for t in times if t), default=0)), "feature_matrices": [], "tags": None,
        "project_file_version": VERSION, "datasets": [{"id": DATASET_ID, "name": DATASET}],
        "review": {"status": "review", "model": {"name": "elas_u4", "current_value": MODEL}},
    }  # fmt: skip
    parts = {
        CONFIG: orjson.dumps(config), DATABASE: _database(rows), f"{DATA}/{DATASET}": dataset,
        "feature_matrices/": b"",
    }  # fmt: skip
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for part, content in parts.items():
            archive.writestr(zipfile.ZipInfo(part, OLDEST), content, zipfile.ZIP_DEFLATED)


def _database(rows: Sequence[Labelled]) -> bytes:
    numbers = {row.document.id: number for number, row in enumerate(rows)}
    judged = sorted((r for r in rows if r.judgement), key=lambda r: r.judgement.time if r.judgement else "")
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder, DATABASE)
        with contextlib.closing(sqlite3.connect(place)) as connection:
            connection.executescript(SCHEMA)
            connection.executemany(RECORD, (_record(number, row.document) for number, row in enumerate(rows)))
            connection.executemany(RESULT, (_result(numbers[r.document.id], r) for r in judged))
            connection.commit()
        return place.read_bytes()


def _record(number: int, document: Document) -> tuple[Any, ...]:
    metadata = document.metadata
    lists = [orjson.dumps(_texts(metadata.get(name))).decode() for name in ("authors", "keywords")]
    year, doi, url = metadata.get("year"), metadata.get("doi"), metadata.get("url")
    number_of_year = int(str(year)) if str(year).isdecimal() else None
    return (
        number, DATASET_ID, document.title, document.text, *lists, number_of_year, doi and str(doi), url and str(url),
        number,
    )  # fmt: skip


def _texts(value: Any) -> list[str]:
    if isinstance(value, list):
        return [str(item) for item in value]
    return [item.strip() for item in str(value).split(";")] if value else []


def _result(number: int, row: Labelled) -> tuple[Any, ...]:
    """Return a row of the table `results`, in which records without a querier are prior knowledge to ASReview."""
    judgement = row.judgement
    assert judgement is not None
    model = [None] * 4 if row.prior else ["linker"] * 4
    tags = orjson.dumps(_groups(judgement.tags)).decode() if judgement.tags else None
    return number, LABELS[judgement.verdict], *model, _seconds(judgement.time), judgement.note or None, tags


def _groups(tags: Sequence[str]) -> list[dict[str, Any]]:
    values = [{"label": tag, "export": tag, "checked": True, "id": n} for n, tag in enumerate(tags)]
    return [{"label": "linker", "export": "linker", "values": values, "id": 0}]


def _seconds(time: str) -> float | None:
    """Return a ledger's time in seconds since 1970; None if it is not a time."""
    moment = moment_of(time)
    return moment.timestamp() if moment else None
