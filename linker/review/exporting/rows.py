"""Judgements with their seeds and documents, as records or as the rows of a table, and texts as table cells."""

import dataclasses
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import orjson

from indexes.interface import Document
from linker.engine.evidence import Span, passage_columns
from linker.review.interface import Judgement, Seed

# Spreadsheets interpret a cell that begins like this as a formula (OWASP, "CSV injection"), also with full-width signs.
# A cell with apostrophes before such a beginning also gets one more, so that removing one restores the original.
FORMULA = re.compile(r"'*[=+\-@\t\r\n＝＋－＠]")
MAX_CELL = 32_767  # maximum number of UTF-16 units in an XLSX cell
CUT = " … [cut: a cell holds 32,767 characters]"
# Characters that XML does not allow, or would change, are written _xHHHH_ (ECMA-376, part 1, 22.9.2.19), and so is an
# underscore that begins such a sequence.
FORBIDDEN = re.compile(r"[\x00-\x08\x0b-\x1f\ufffe\uffff]|_(?=x[0-9A-Fa-f]{4}_)")
ESCAPED = re.compile(r"_x([0-9A-Fa-f]{4})_")
Cell = str | int | float | bool | None
JUDGED = (
    "seed", "id", "verdict", "reviewer", "time", "note", "tags", "score", "probability", "phase", "model"
)  # fmt: skip
TEXTS = ("seed_title", "seed_text", "title", "text", "passage", "offset")
FIELDS = {f.name for f in dataclasses.fields(Judgement)}
DEFAULTS = {f.name: f.default for f in dataclasses.fields(Judgement)} | {"seed_title": "", "title": ""}


def guarded(text: str) -> str:
    """Return the text for a cell of CSV; a would-be formula is prefixed with an apostrophe."""
    return "'" + text if FORMULA.match(text) else text


def unguarded(text: str) -> str:
    """Return the text that was passed to `guarded`."""
    return text[1:] if text.startswith("'") and FORMULA.match(text) else text


def escaped(text: str) -> tuple[str, bool]:
    """Return the text for an XLSX cell and whether it was truncated."""
    text = FORBIDDEN.sub(lambda found: f"_x{ord(found[0]):04X}_", text)
    if len(text) * 2 <= MAX_CELL or len(units := text.encode("utf-16-le")) <= 2 * MAX_CELL:
        return text, False
    return units[: 2 * (MAX_CELL - len(CUT))].decode("utf-16-le", "ignore") + CUT, True


def unescaped(text: str) -> str:
    """Return the text that was passed to `escaped`."""
    return ESCAPED.sub(lambda found: chr(int(found[1], 16)), text)


def tags_text(tags: Sequence[str]) -> str:
    """Return tags as people write them, "one; two", or as a JSON array if a tag would not survive that."""
    plain = "; ".join(tags)
    return plain if tags_of(plain) == tuple(tags) else orjson.dumps(list(tags)).decode()


def tags_of(text: str) -> tuple[str, ...]:
    """Return the tags in a text from `tags_text`."""
    if text.startswith("["):
        try:
            values = orjson.loads(text)
        except orjson.JSONDecodeError:
            values = None
        if isinstance(values, list) and all(isinstance(value, str) for value in values):
            return tuple(values)
    return tuple(tag.strip() for tag in text.split(";") if tag.strip())


class Documents(Protocol):
    """A source of documents by id, such as an Engine."""

    def document(self, id_: str) -> Document:
        """Return the document with this id, which must exist."""

    def documents(self) -> Iterable[Document]:
        """Return all documents."""

    def passage(self, query: str, text: str) -> Span | None:
        """Return the start and end of the sentence of a text that a query is about; None if they share no word."""

    def __contains__(self, id_: object) -> bool: ...


@dataclass(frozen=True, slots=True)
class ExportRow:
    """A judgement, its seed and its document; the seed or document has no text if it is not known.

    `passage`: start and end, in the document's text, of the sentence that the seed is about, if they are known.
    """

    judgement: Judgement
    seed: Seed
    document: Document
    passage: Span | None = None

    def record(self) -> dict[str, Any]:
        """Return the row as JSON values: the judgement's fields, then seed and document with their metadata."""
        return {
            **{name: getattr(self.judgement, name) for name in JUDGED},
            "seed_title": self.seed.title,
            "seed_text": self.seed.text,
            "seed_metadata": dict(self.seed.metadata),
            "title": self.document.title,
            "text": self.document.text,
            **passage_columns(self.document.text, self.passage),
            "metadata": dict(self.document.metadata),
        }


def joined(
    judgements: Iterable[Judgement], seeds: Iterable[Seed], documents: Documents | None
) -> Iterator[ExportRow]:
    """Yield a row for each judgement; documents are looked up one by one to save memory."""
    by_id = {seed.id: seed for seed in seeds}
    for judgement in judgements:
        known = documents is not None and judgement.id in documents
        document = documents.document(judgement.id) if documents and known else Document(judgement.id, "")
        seed = by_id.get(judgement.seed, Seed(judgement.seed, ""))
        passage = documents.passage(seed.full_text, document.text) if documents and known else None
        yield ExportRow(judgement, seed, document, passage)


def table(rows: Callable[[], Iterable[ExportRow]], *, short: bool = False) -> Iterator[Sequence[Cell]]:
    """Yield the header, then a row of cells for each row from `rows`, which is called twice or more.

    First come the judgement and the texts, then the seed's metadata as seed_NAME, then the document's as NAME; a name
    already in use is prefixed with "metadata.". Fields are in order of first appearance, so that columns keep their
    places as a review grows. `short` leaves out columns in which nothing was stored.
    """
    seed_names, names = dict[str, None](), dict[str, None]()
    for row in rows():
        seed_names.update(dict.fromkeys(row.seed.metadata))
        names.update(dict.fromkeys(row.document.metadata))
    first = _stored(rows()) if short else [*JUDGED, *TEXTS]
    yield headed(first, (*(f"seed_{name}" for name in seed_names), *names))
    for row in rows():
        record = row.record() | {"tags": tags_text(row.judgement.tags)}
        fixed = [record[name] for name in first]
        more = [row.seed.metadata.get(name) for name in seed_names]
        yield [*fixed, *map(cell, more), *(cell(row.document.metadata.get(name)) for name in names)]


def _stored(rows: Iterable[ExportRow]) -> list[str]:
    """Return the names of the verdict's column and of all columns that are not empty.

    A column of scores that only repeat the probabilities counts as empty.
    """
    stored = {"verdict"}
    for row in rows:
        record = row.record()
        if record["score"] == record["probability"]:
            record["score"] = None
        stored.update(name for name in (*JUDGED, *TEXTS) if record[name] != DEFAULTS.get(name))
    return [name for name in (*JUDGED, *TEXTS) if name in stored]


def headed(first: Sequence[str], names: Iterable[str]) -> list[str]:
    """Return a table's header: the `first` columns, then `names`, with "metadata." before a name already in use."""
    header = list(first)
    for name in names:
        unique = name
        while unique in header:
            unique = f"metadata.{unique}"
        header.append(unique)
    return header


def cell(value: Any) -> Cell:
    """Return a JSON value as the content of a table cell."""
    if value is None or isinstance(value, str | int | float):
        return value
    return orjson.dumps(dict(value) if isinstance(value, Mapping) else value).decode()


def numbered(judgements: Iterable[Judgement]) -> dict[str, list[str]]:
    """Return, by seed, the documents in the order they were read."""
    order: dict[str, dict[str, None]] = {}
    for judgement in judgements:
        order.setdefault(judgement.seed, {})[judgement.id] = None
    return {seed: list(ids) for seed, ids in order.items()}


assert set(JUDGED) == FIELDS
