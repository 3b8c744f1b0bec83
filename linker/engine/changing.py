"""Changes to an index's documents, ranker, calibration and lexicons, each in one commit."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from indexes.anywhere import AnyWriter
from indexes.interface import Document, Matrix, check_vectors
from indexes.writer import writer_of
from linker.base.errors import InputError
from linker.engine.following import Following

if TYPE_CHECKING:
    import numpy.typing as npt

    from linker.engine.foreign import Foreign
    from linker.engine.lexicons import QueryLexicon

BATCH = 256
WAIT = 30.0  # maximum number of seconds that a change waits for another writer


class Changing(Following):
    """An index that can be changed; see `Engine`."""

    def _check_single(self) -> None:
        """Raise InputError if several directories are open, which cannot be changed together."""
        if self.directories != (self.directory,):
            raise InputError(
                f"{', '.join(map(str, self.directories))} are open together, which allows reading only: open the "
                "one that you want to change on its own"
            )

    def _writer(self, wait: float = WAIT) -> AbstractContextManager[AnyWriter]:
        self._check_single()
        self._current()
        return writer_of(self.directory, wait=wait, before=self._verified_collection)

    def _commit(self, writer: AnyWriter) -> None:
        """Commit, open the new generation and start a merge if due; meanwhile, searches use the previous one."""
        with self._opening:
            writer.commit()
            self._reopen()
        self._merger.start()

    def add(
        self,
        documents: Iterable[Document],
        *,
        vectors: npt.ArrayLike | None = None,
        replace: bool = False,
        wait: float = WAIT,
    ) -> None:
        """Add documents in one commit, all or nothing; with `replace`, they replace documents with the same ids.

        `vectors` [n, dim], computed elsewhere, are used instead of the index's encoder. Waits at most `wait` seconds
        for another writer to finish. Raises LockedError if it has not, DuplicateIdError if an id is in the index or
        repeated, BadIdError if an id is invalid, IndexesError if the build of the index was interrupted.
        """
        documents = list(documents)
        matrix = None if vectors is None else check_vectors(vectors, None, [d.id for d in documents])
        with self._writer(wait) as writer:
            if replace:
                writer.remove(sorted(writer.present([d.id for d in documents])))
            self._take(writer, documents, matrix)
            self._commit(writer)

    def _take(self, writer: AnyWriter, documents: Sequence[Document], matrix: Matrix | None = None) -> None:
        record = writer.manifest.encoder
        for start in range(0, len(documents), BATCH):
            batch = documents[start : start + BATCH]
            if matrix is not None:
                writer.add(batch, matrix[start : start + BATCH])
            elif record:
                texts = [d.full_text for d in batch]
                writer.add(batch, self._encoder.encode(self.directory, record, texts))
            else:
                writer.add(batch, None)

    def apply(self, changes: Sequence[Document | str], *, wait: float = WAIT) -> list[bool]:
        """Add or replace each Document, and remove each id, in order; all or nothing, in one commit.

        Returns for each change whether a document with that id existed just before it; removing a missing id changes
        nothing. Raises the errors of `add`.
        """
        changes = [changes] if isinstance(changes, str) else changes  # its characters may be ids
        ids = [change if isinstance(change, str) else change.id for change in changes]
        with self._writer(wait) as writer:
            before = writer.present(ids)
            had, new, untouched = [], dict[str, Document](), set(before)
            for id_, change in zip(ids, changes, strict=True):
                had.append(id_ in untouched or id_ in new)
                untouched.discard(id_)
                new.pop(id_, None)  # so that a document added again comes last
                if isinstance(change, Document):
                    new[id_] = change
            if before or new:
                writer.remove(sorted(before))
                self._take(writer, list(new.values()))
                self._commit(writer)
        return had

    def delete(self, ids: str | Sequence[str], *, wait: float = WAIT) -> None:
        """Remove documents in one commit, all or nothing; a string is one id. Raises UnknownIdError, which names the
        missing ids, and LockedError if another writer has not finished in time.
        """
        with self._writer(wait) as writer:
            writer.remove([ids] if isinstance(ids, str) else ids)  # its characters may be ids
            self._commit(writer)

    def store_calibration(self, folder: Path) -> None:
        """Store the calibration in `folder`, in one commit. Raises InputError if it was fitted on another index."""
        from linker.scoring.probability.folder import FILE, load, name_of

        load(folder).check(self.collection.manifest)
        with self._writer() as writer:
            writer.store_calibration(name_of((folder / FILE).read_bytes()), folder)
        self.refresh()

    def store_ranker(self, folder: Path) -> None:
        """Store the ranker in `folder`, in one commit. Raises InputError if it does not match the index."""
        from linker.scoring.ranking.folder import load
        from linker.scoring.ranking.searching import RankedSearch, folder_name

        RankedSearch(self.collection, load(folder), self.embed)
        with self._writer() as writer:
            writer.store_ranker(folder_name(folder), folder)
        self.refresh()

    @property
    def lexicons(self) -> tuple[QueryLexicon, ...]:
        """The lexicons in the index, for searching it in other languages. Raises InputError if one is damaged."""
        return self._current().lexicons

    @property
    def foreign(self) -> Foreign:
        """The documents in the languages for which the index has a lexicon. Raises InputError if one is damaged."""
        return self._current().foreign

    def store_lexicon(self, lexicon: QueryLexicon) -> None:
        """Store a lexicon in one commit, replacing one for the same language; searches then accept that language."""
        from linker.scoring.ranking.searching import folder_name

        with tempfile.TemporaryDirectory() as folder:
            for one in (*(old for old in self.lexicons if old.code != lexicon.code), lexicon):
                one.write(Path(folder))
            with self._writer() as writer:
                writer.store_lexicon(folder_name(Path(folder)), Path(folder))
        self.refresh()
