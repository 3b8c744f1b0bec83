"""Add documents from a stream of JSON lines in bounded memory; unusable lines are reported."""

import dataclasses
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any

import orjson

from indexes.interface import BadDocumentError, Document, DuplicateIdError
from indexes.store.segments import storable
from linker.base.lines import MAX_LINE, Line, Splitter
from linker.base.printable import json_kind
from linker.corpora.records import Columns, UnusableError, make_document, repeated_id, too_long
from linker.engine.engine import Engine
from linker.server.api.served import Served
from linker.server.errors import ProblemError

BATCH_DOCUMENTS, BATCH_BYTES = 10_000, 16 << 20  # maximum per commit; no more of the body is held in memory
MOST_BAD = 10_000  # maximum number of unusable lines; if there are more, the rest of the stream is refused
RETRIES = 3  # attempts, since another process may add the same documents meanwhile


@dataclass(slots=True)
class LineCounts:
    """Counts of the lines read so far; `quarantined`: the number of each unusable line, with the reason."""

    index: str
    lines: int = 0
    added: int = 0
    replaced: int = 0
    commits: int = 0
    quarantined: list[dict[str, Any]] = field(default_factory=list)

    def refuse(self, line: int, reason: str) -> None:
        """Add a line to the quarantine."""
        self.quarantined.append({"line": line, "reason": reason})

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON values, with the quarantine in the order of the lines."""
        ordered = sorted(self.quarantined, key=lambda bad: int(bad["line"]))
        return dataclasses.asdict(self) | {"quarantined": ordered}


class DocumentStream:
    """Adds one stream of documents to an index."""

    def __init__(self, served: Served, *, replace: bool) -> None:
        """With `replace`, a document replaces any with the same id, even one earlier in the stream."""
        self._served, self._replace = served, replace
        self._pending: dict[str, tuple[int, Document]] = {}  # by id: the line's number and the document
        self._bytes = 0
        self.report = LineCounts(served.name)

    async def take(self, stream: AsyncIterator[bytes]) -> LineCounts:
        """Add the documents of all lines, with one commit per batch, and return the report.

        Raises ProblemError if too many lines are unusable, and the errors of `Engine.add`; earlier batches stay.
        """
        splitter = Splitter()
        async for block in stream:
            await self._lines(splitter.feed(block))
        await self._lines(splitter.rest())
        await self._commit()
        return self.report

    async def _lines(self, lines: Iterator[Line]) -> None:
        for line in lines:  # in a method of its own, so that no line of 16 MiB outlives its block
            await self._line(*line)

    async def _line(self, number: int, raw: bytes, size: int) -> None:
        self.report.lines = number
        if size > MAX_LINE or (size and not raw.isspace()):
            try:
                self._keep(number, _document(raw, size))
                self._bytes += size
            except UnusableError as e:
                self.report.refuse(number, str(e))
        if len(self.report.quarantined) > MOST_BAD:
            await self._commit()
            raise ProblemError(
                400, f"more than {MOST_BAD:,} lines are unusable: reading stopped at line {number}",
                "too-many-bad-lines",
            )  # fmt: skip
        if len(self._pending) >= BATCH_DOCUMENTS or self._bytes >= BATCH_BYTES:
            await self._commit()

    def _keep(self, number: int, document: Document) -> None:
        """Keep a document for the next commit. Raises UnusableError if its id is already there and stays."""
        if document.id in self._pending:
            if not self._replace:
                raise UnusableError(repeated_id(document.id))
            self.report.replaced += 1
        self._pending[document.id] = number, document

    async def _commit(self) -> None:
        batch, self._pending, self._bytes = self._pending, {}, 0
        if batch:
            await self._served.change(lambda: self._add(batch))

    def _add(self, batch: dict[str, tuple[int, Document]]) -> None:
        engine = self._served.engine
        for attempt in range(RETRIES):
            present = _present(engine, batch)
            if not self._replace:
                for id_ in present:
                    self.report.refuse(batch.pop(id_)[0], repeated_id(id_))
            try:
                if batch:
                    engine.add([document for _, document in batch.values()], replace=self._replace)
            except DuplicateIdError:  # another process has added it since
                if attempt == RETRIES - 1:
                    raise
                continue
            break
        replaced = len(present) if self._replace else 0
        self.report.replaced += replaced
        self.report.added += len(batch) - replaced
        self.report.commits += bool(batch)


def _present(engine: Engine, batch: dict[str, Any]) -> list[str]:
    engine.refresh()
    return [*engine.collection.present(list(batch))]


def _document(raw: bytes, size: int) -> Document:
    if size > MAX_LINE:
        raise UnusableError(too_long(size, MAX_LINE))
    try:
        fields = orjson.loads(raw)
    except orjson.JSONDecodeError as e:
        raise UnusableError(f"not JSON: {e}") from None
    if not isinstance(fields, dict):
        raise UnusableError(f"a JSON {json_kind(fields)}, not an object")
    try:
        return storable(make_document(fields, Columns()))
    except BadDocumentError as e:
        raise UnusableError(str(e)) from None
