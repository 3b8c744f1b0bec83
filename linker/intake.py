"""Records in batches into a writer: encoded, added, quarantined, committed on the way."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
import signal
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Literal, TypeVar

import orjson

from indexes.disk import faults
from indexes.elastic.client import ElasticSettings
from indexes.interface import Document, Matrix
from indexes.writer import Writer
from linker.corpora import BadLine, Columns, read_corpus
from linker.encoders.interface import Encoder, Precision
from linker.errors import InputError
from linker.files import path_text
from linker.progress import bar

T = TypeVar("T")

COMMIT_SECONDS = 60.0
COMMIT_DOCUMENTS = 20_000
COMMIT_CHARACTERS = 1 << 26  # what is not committed yet is held in memory


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """What an index is made of. A build commits after `commit_every` documents (0: by volume) or a minute."""

    encoder: str = "none"
    vectors: str = "auto"
    language: str = "english"
    batch_size: int = 256
    commit_every: int = 0
    columns: Columns | None = None
    precision: Precision = "float32"
    compiled: bool = False
    elastic: ElasticSettings | None = None  # where the BM25 side lives, if not in the directory
    engine: Literal["local", "ray"] = "local"  # where texts are encoded
    keep: int | None = None  # older generations kept from now on; None: as before


@dataclass(frozen=True, slots=True)
class BuildReport:
    """What a build or an addition did; `interrupted` when Ctrl-C ended it after its last commit."""

    documents: int
    added: int
    quarantined: int
    generation: int
    interrupted: bool = False


class Intake:
    """Takes records in batches into a writer and commits on the way."""

    def __init__(
        self,
        writer: Writer,
        encoder: Encoder | None,
        options: BuildOptions,
        load: Callable[[], Encoder],
        *,
        replace: bool = False,
    ):
        """`load` loads the encoder again, in another process; with `replace`, ids that are present are replaced."""
        self._writer, self._encoder, self._options, self._replace = writer, encoder, options, replace
        self._load = load
        self._build = writer.manifest.build
        self._added = self._characters = 0
        self._taken: set[str] = set()  # ids of this run, when they replace what is present
        self._committed_at = time.monotonic()

    def run(self, corpora: Sequence[Path], interrupted: Interruption) -> BuildReport:
        """Take all records; an interrupted build keeps what it has, an interrupted addition keeps nothing."""
        before = self._writer.manifest
        building = not self._build.complete
        records = _records(corpora, self._options.columns)
        if building:
            records = itertools.islice(records, self._build.position, None)
        with (
            bar(None, "indexing", "documents") as progress,
            contextlib.closing(self._remote(corpora)) as remote,
        ):
            progress.update(self._build.position if building else 0)
            while not interrupted.is_set() and (batch := interrupted.read(records, self._options.batch_size)):
                self._take(batch, next(remote, None))
                progress.update(len(batch))
                if building:
                    position = self._build.position + len(batch)
                    self._build = dataclasses.replace(self._build, position=position)
                    self._commit_when_due()
        if interrupted.is_set() and not building:
            return BuildReport(before.documents, 0, 0, before.generation, True)
        if not interrupted.is_set():
            self._build = dataclasses.replace(self._build, complete=True)
        faults.point("build.read")
        after = self._writer.commit(self._build)
        quarantined = after.quarantined - before.quarantined
        return BuildReport(after.documents, self._added, quarantined, after.generation, interrupted.is_set())

    def _remote(self, corpora: Sequence[Path]) -> Generator[Matrix]:
        """Yield each batch's vectors as they come from Ray's workers; nothing when they are made here."""
        if self._encoder is None or self._options.engine != "ray":
            return
        from linker.scaleout import encoded

        texts = functools.partial(_texts, corpora, self._options, self._build.position)
        yield from encoded(texts, self._load, self._encoder)

    def _commit_when_due(self) -> None:
        pending = self._writer.pending + self._writer.quarantined
        due = (
            time.monotonic() - self._committed_at > COMMIT_SECONDS
            or pending >= (self._options.commit_every or COMMIT_DOCUMENTS)
            or (self._characters > COMMIT_CHARACTERS and not self._options.commit_every)
        )
        if pending and due:
            self._writer.commit(self._build)
            self._characters, self._committed_at = 0, time.monotonic()

    def _take(self, batch: Sequence[tuple[Path, int, Document | BadLine]], encoded: Matrix | None) -> None:
        """Add a batch's good documents, whose vectors may be given; quarantine its bad lines and repeated ids."""
        documents: dict[str, Document] = {}
        outdated: list[str] = []
        places: list[int] = []  # of the documents that are taken, among all
        place = -1
        for path, number, record in batch:
            place += isinstance(record, Document)
            if isinstance(record, BadLine):
                self._writer.quarantine(orjson.dumps(record.to_json()))
            elif (
                record.id in documents
                or record.id in self._taken
                or (record.id in self._writer.rows and not self._replace)
            ):
                self._writer.quarantine(_duplicate(path, number, record))
            else:
                documents[record.id] = record
                places.append(place)
                if record.id in self._writer.rows:
                    outdated.append(record.id)
        if encoded is not None and len(encoded) != place + 1:
            raise InputError("the corpora were changed while they were read: build the index again")
        if not documents:
            return
        vectors = self._encode(list(documents.values())) if encoded is None else encoded[places]
        if outdated:
            self._writer.remove(outdated)
        faults.point("build.encoded")
        self._writer.add(list(documents.values()), vectors)
        faults.point("build.added")
        self._added += len(documents)
        if self._replace:
            self._taken.update(documents)
        self._characters += sum(len(d.text) for d in documents.values())

    def _encode(self, documents: Sequence[Document]) -> Matrix | None:
        return self._encoder.encode([d.full_text for d in documents]) if self._encoder else None


def _records(
    corpora: Iterable[Path], columns: Columns | None
) -> Iterator[tuple[Path, int, Document | BadLine]]:
    for path in corpora:
        for number, record in enumerate(read_corpus(path, columns), start=1):
            yield path, number, record


def _texts(corpora: Sequence[Path], options: BuildOptions, position: int) -> Iterator[list[str]]:
    """Yield the texts of each batch's documents, from a position on: what the encoder of a local build is given."""
    records = itertools.islice(_records(corpora, options.columns), position, None)
    while batch := list(itertools.islice(records, options.batch_size)):
        yield [record.full_text for _, _, record in batch if isinstance(record, Document)]


def _duplicate(path: Path, number: int, document: Document) -> bytes:
    """Render a document whose id is taken as a quarantine record."""
    return orjson.dumps(
        {
            "file": path_text(path),
            "record": number,
            "reason": f"duplicate id {document.id!r}: the first one was kept",
            "raw": orjson.dumps(dataclasses.asdict(document)).decode(),
        }
    )


class Interruption(threading.Event):
    """Is set by the first Ctrl-C, which also ends a read that waits: Python would begin the read again otherwise."""

    def __init__(self) -> None:
        super().__init__()
        self._reading = False

    def read(self, records: Iterator[T], count: int) -> list[T]:
        """Return the next records, at most `count`; none once Ctrl-C came."""
        try:
            self._reading = True
            try:
                return list(itertools.islice(records, count))
            finally:
                self._reading = False
        except KeyboardInterrupt:
            return []

    def ask(self, number: int, frame: FrameType | None) -> None:
        """Handle SIGINT; the next one interrupts at once."""
        self.set()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if self._reading:
            self._reading = False
            raise KeyboardInterrupt


@contextlib.contextmanager
def interruptible() -> Iterator[Interruption]:
    """Let the first Ctrl-C ask for an orderly end; the second one interrupts at once."""
    asked = Interruption()
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return
    previous = signal.signal(signal.SIGINT, asked.ask)
    try:
        yield asked
    finally:
        signal.signal(signal.SIGINT, previous)
