"""Pass records to an index writer in batches: encode and add or quarantine them, and commit from time to time."""

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
from typing import TypeVar

import orjson

from indexes.anywhere import AnyWriter
from indexes.disk import faults
from indexes.interface import Document, Matrix
from linker.base.errors import InputError
from linker.base.progress import bar
from linker.corpora import BadLine, Columns
from linker.corpora.reading import read_lines_of
from linker.corpora.vectors import GivenVectors
from linker.encoders.interface import Encoder
from linker.engine.options import BuildOptions

T = TypeVar("T")

COMMIT_SECONDS = 60.0
COMMIT_DOCUMENTS = 20_000
COMMIT_CHARACTERS = 1 << 26  # limited, because uncommitted documents are held in memory


@dataclass(frozen=True, slots=True)
class BuildReport:
    """Counts of documents after a build or addition; `interrupted`: Ctrl-C ended it early.

    `notes` say which parts of a vector file were not used.
    """

    documents: int
    added: int
    quarantined: int
    generation: int
    interrupted: bool = False
    notes: tuple[str, ...] = ()


class Intake:
    """Adds records to a writer in batches and commits from time to time."""

    def __init__(
        self,
        writer: AnyWriter,
        encoder: Encoder | None,
        options: BuildOptions,
        load: Callable[[], Encoder],
        *,
        replace: bool = False,
        given: GivenVectors | None = None,
    ):
        """`load` loads the encoder in another process; with `replace`, existing documents are replaced.

        Documents get their vectors from `given` or, if it is None, from the encoder.
        """
        self._vectors = given
        self._writer, self._encoder, self._options, self._replace = writer, encoder, options, replace
        self._load = load
        self._build = writer.manifest.build
        self._added = self._quarantined = self._characters = 0
        self._added_ids: set[str] = set()  # ids added by this run, if it replaces documents
        self._committed_at = time.monotonic()

    def run(self, corpora: Sequence[Path], interrupted: Interruption) -> BuildReport:
        """Add all records; an interrupted build keeps those added so far, an interrupted addition none."""
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
        if interrupted.is_set() and not building and self._writer.takes_back:
            return BuildReport(before.documents, 0, 0, before.generation, True)
        if not interrupted.is_set():
            self._build = dataclasses.replace(self._build, complete=True)
        faults.point("build.read")
        after = self._writer.commit(self._build)
        notes = self._vectors.notes if self._vectors else ()
        return BuildReport(
            after.documents, self._added, self._quarantined, after.generation, interrupted.is_set(), notes
        )

    def _remote(self, corpora: Sequence[Path]) -> Generator[Matrix]:
        """Yield each batch's vectors [n, dim] from Ray's workers; nothing if they are computed in this process."""
        if self._encoder is None or self._options.engine != "ray":
            return
        from linker.engine.scaleout import encoded

        texts = functools.partial(_texts, corpora, self._options, self._build.position)
        yield from encoded(texts, self._load, self._encoder, self._options.worker_gpus)

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
        """Add the valid documents of a batch; quarantine its invalid lines and repeated ids.

        `encoded` [n, dim] are its documents' vectors; None: compute them. Raises InputError if the counts differ.
        """
        documents: dict[str, Document] = {}
        outdated: list[str] = []
        present = self._writer.present([r.id for _, _, r in batch if isinstance(r, Document)])
        positions: list[int] = []  # positions of the accepted documents in the batch
        position = -1
        for path, line, record in batch:
            position += isinstance(record, Document)
            if isinstance(record, BadLine):
                self._quarantine(record)
            elif (
                record.id in documents
                or record.id in self._added_ids
                or (record.id in present and not self._replace)
            ):
                self._quarantine(BadLine.repeated(path, line, record))
            else:
                documents[record.id] = record
                positions.append(position)
                if record.id in present:
                    outdated.append(record.id)
        if encoded is not None and len(encoded) != position + 1:
            raise InputError("the corpora changed while they were being read: build the index again")
        if not documents:
            return
        vectors = self._encode(list(documents.values())) if encoded is None else encoded[positions]
        if outdated:
            self._writer.remove(outdated)
        faults.point("build.encoded")
        self._writer.add(list(documents.values()), vectors)
        faults.point("build.added")
        self._added += len(documents)
        if self._replace:
            self._added_ids.update(documents)
        self._characters += sum(len(d.text) for d in documents.values())

    def _quarantine(self, bad: BadLine) -> None:
        self._writer.quarantine(orjson.dumps(bad.to_json()))
        self._quarantined += 1

    def _encode(self, documents: Sequence[Document]) -> Matrix | None:
        if self._vectors:
            return self._vectors.of([d.id for d in documents])
        return self._encoder.encode([d.full_text for d in documents]) if self._encoder else None


def check_given(given: GivenVectors, corpora: Sequence[Path], columns: Columns | None) -> None:
    """Raise InputError unless exactly the corpora's documents have vectors; reads them all."""
    ids, unusable = list[str](), 0
    for _, _, record in _records(corpora, columns):
        if isinstance(record, Document):
            ids.append(record.id)
        else:
            unusable += 1
    given.check(ids, unusable)


def _records(
    corpora: Iterable[Path], columns: Columns | None
) -> Iterator[tuple[Path, int, Document | BadLine]]:
    for path in corpora:
        for line, record in read_lines_of(path, columns):
            yield path, line, record


def _texts(corpora: Sequence[Path], options: BuildOptions, position: int) -> Iterator[list[str]]:
    """Yield the texts of each batch's documents, starting at `position`, in the batches of a local build."""
    records = itertools.islice(_records(corpora, options.columns), position, None)
    while batch := list(itertools.islice(records, options.batch_size)):
        yield [record.full_text for _, _, record in batch if isinstance(record, Document)]


class Interruption(threading.Event):
    """An event set by the first Ctrl-C, which also ends a blocking read that Python would otherwise restart."""

    def __init__(self) -> None:
        super().__init__()
        self._reading = False

    def read(self, records: Iterator[T], count: int) -> list[T]:
        """Return the next records, at most `count`; none after Ctrl-C."""
        try:
            self._reading = True
            try:
                return list(itertools.islice(records, count))
            finally:
                self._reading = False
        except KeyboardInterrupt:
            return []

    def ask(self, number: int, frame: FrameType | None) -> None:
        """Handle SIGINT; the next one interrupts at once. Raises KeyboardInterrupt to end a blocking read."""
        self.set()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if self._reading:
            self._reading = False
            raise KeyboardInterrupt


@contextlib.contextmanager
def interruptible() -> Iterator[Interruption]:
    """Let the first Ctrl-C request an orderly end; the second interrupts at once."""
    interruption = Interruption()
    if threading.current_thread() is not threading.main_thread():
        yield interruption
        return
    previous = signal.signal(signal.SIGINT, interruption.ask)
    try:
        yield interruption
    finally:
        signal.signal(signal.SIGINT, previous)
