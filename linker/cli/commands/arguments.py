"""Arguments of the commands: an index (a directory or an open Engine), queries and links (files or mappings)."""

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from indexes.hybrid import OnFailure
from linker.base.errors import InputError
from linker.corpora import Query, read_queries
from linker.crosslingual.options import TABLES
from linker.crosslingual.sides import judged_between, links_between
from linker.engine.engine import Engine
from linker.evaluation.reading.judgements import merged_qrels
from linker.review.importing.judgements import NAMES, WORDS
from linker.review.importing.readers import read_records

Paths = str | Path | Sequence[str | Path]
Queries = Paths | Mapping[str, str]
Judgements = Paths | Mapping[str, Mapping[str, float]]
SOURCES = (*NAMES["seed"], "source", "qid", "query_id", "query-id", "post", "post_id", "id1")
TARGETS = (*NAMES["id"], "target", "doc_id", "docid", "corpus-id", "article", "article_id", "id2")


@contextlib.contextmanager
def open_index(
    index: Paths | Engine, encoder: str | None = None, on_failure: OnFailure = "degrade"
) -> Iterator[Engine]:
    """Yield the engine of an index, or of several as one; an engine opened here is closed at the end."""
    if isinstance(index, Engine):
        yield index
        return
    with Engine.open(index, encoder=encoder, on_failure=on_failure) as engine:
        yield engine


def paths(given: Paths) -> list[Path]:
    """Return one path or several as a list."""
    return [Path(given)] if isinstance(given, (str, Path)) else [Path(path) for path in given]


def queries_of(given: Queries) -> list[Query]:
    """Return the queries of files, or of a mapping from ids to texts."""
    if isinstance(given, Mapping):
        return [Query(id_, text) for id_, text in given.items()]
    return read_all(paths(given))


def read_all(files: Iterable[Path]) -> list[Query]:
    """Return the queries of all files; a query in several files must have the same text in each."""
    queries: dict[str, tuple[Query, Path]] = {}
    for path in files:
        for query in read_queries(path):
            first, where = queries.setdefault(query.id, (query, path))
            if first.text != query.text:
                raise InputError(f"the query {query.id!r} has one text in {where} and another one in {path}")
    return [query for query, _ in queries.values()]


def judgements_of(given: Judgements) -> Mapping[str, Mapping[str, float]]:
    """Return the judgements from files, or as given: query → document → relevance."""
    return given if isinstance(given, Mapping) else merged_qrels(paths(given))


def known_links(
    files: Sequence[Path], source: Mapping[str, object], target: Mapping[str, object]
) -> list[tuple[str, str]]:
    """Return the links in qrels (and BEIR's TSV) and in tables from an id of `source` to an id of `target`.

    A table is CSV, XLSX or JSON lines. It has a column of ids for each side, found by the usual names or else the
    first two, and optionally a verdict, of which only "relevant" counts. Links with other ids are left out and
    logged. Raises InputError if none of a file's links is between these texts.
    """
    found: dict[tuple[str, str], None] = {}
    for path in files:
        if path.suffix.lower() in TABLES:
            links = [(one, other) for one, other, verdict in _judged_in_table(path) if verdict == "relevant"]
        else:
            links = [(one, other) for one, other, grade in _from_qrels(path) if grade > 0]
        found |= dict.fromkeys(links_between(path, links, source, target))
    return list(found)


def judged_pairs(files: Sequence[Path], documents: Mapping[str, object]) -> dict[tuple[str, str], bool]:
    """Return judged pairs of documents of one corpus, and whether they belong together; files as in `known_links`.

    A judgement of 0 in qrels means that they do not. Pairs with a verdict other than "relevant" and "not" are left out,
    and so are pairs with other ids. Raises InputError if no pair of a file is between these documents.
    """
    found: dict[tuple[str, str], bool] = {}
    for path in files:
        if path.suffix.lower() in TABLES:
            judged = {
                (a, b): verdict == "relevant"
                for a, b, verdict in _judged_in_table(path)
                if verdict in ("relevant", "not")
            }
        else:
            judged = {(one, other): grade > 0 for one, other, grade in _from_qrels(path)}
        found |= judged_between(path, judged, documents)
    return found


def _from_qrels(path: Path) -> list[tuple[str, str, int]]:
    judged = merged_qrels([path])
    return [(one, other, grade) for one, of in judged.items() for other, grade in of.items()]


def _judged_in_table(path: Path) -> list[tuple[str, str, str | None]]:
    """Return the pairs of ids in a table with their verdicts; "relevant" if the table has no column of verdicts."""
    links: list[tuple[str, str, str | None]] = []
    for number, _, fields in read_records(path):
        if isinstance(fields, str):
            raise InputError(f"{path}:{number}: {fields}")
        names = list(fields)
        first = next((name for name in SOURCES if name in fields), names[0])
        second = next((n for n in TARGETS if n in fields and n != first), names[1] if len(names) > 1 else "")
        verdict = next((fields[n] for n in ("verdict", "label", "relevance", "relevant") if n in fields), "1")
        one, other = (str(fields.get(name) or "").strip() for name in (first, second))
        if one and other:
            links.append((one, other, WORDS.get(str(verdict).strip().lower())))
    return links
