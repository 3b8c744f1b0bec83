"""The facade: open an index, search it, change it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Self

from indexes.collection import Collection
from indexes.hybrid import Answer, Mode, OnFailure
from indexes.interface import (
    BackendUnavailableError,
    Document,
    EncoderMismatchError,
    Filter,
    IndexesError,
    Matrix,
)
from indexes.store import manifest as manifests
from indexes.store.files import ENCODER
from indexes.store.records import EncoderRecord
from indexes.vectors.faiss_index import FaissIndex
from indexes.writer import Writer
from linker.encoders.interface import Encoder
from linker.encoders.loading import load_encoder, load_own
from linker.errors import LinkerError
from linker.reranking import DEPTH, Reranker, rerank
from linker.torch_scan import gpu_scan

if TYPE_CHECKING:
    from linker.corpora import Query
    from linker.recall import RecallTuning
    from linker.tuning import Tuning

BATCH = 256


def open_encoder(directory: Path, record: EncoderRecord, given: Encoder | None = None) -> Encoder:
    """Return the encoder that an index was built with; `given` stands for the one it names.

    Raises EncoderMismatchError, LinkerError. The check hashes the whole model: do it once.
    """
    own = record.name.startswith(f"{ENCODER}/")
    encoder = given or (load_own(directory, record.name) if own else load_encoder(record.name, fetch=False))
    found = encoder.fingerprint
    if found != record.fingerprint:
        raise EncoderMismatchError(
            f"the encoder {record.name!r} is not the one {directory} was built with (fingerprint "
            f"{found[:12]}, not {record.fingerprint[:12]}): "
            "name the right one with --encoder, or rebuild the index"
        )
    return encoder


class Engine:
    """An index with its encoder. Searches see one committed generation; changes commit a new one and show it."""

    def __init__(
        self, directory: Path, *, encoder: Encoder | None = None, on_failure: OnFailure = "degrade"
    ) -> None:
        """Open `directory`; `encoder` replaces the one the index names, and must have its fingerprint."""
        self.directory = directory
        self._on_failure = on_failure
        self._given = encoder
        self._encoder: Encoder | None = None  # once it is loaded and checked
        self._open()

    @classmethod
    def open(
        cls, directory: str | Path, *, encoder: str | None = None, on_failure: OnFailure = "degrade"
    ) -> Self:
        """Open an index; `encoder` (name or path) tells where its encoder is now, if it has moved.

        Raises IndexesError where there is no index, DamagedError naming the file where one is damaged.
        """
        given = load_encoder(encoder) if encoder else None
        return cls(Path(directory), encoder=given, on_failure=on_failure)

    def _open(self) -> None:
        self.collection = Collection.open(self.directory, on_failure=self._on_failure, scan=gpu_scan())

    def __len__(self) -> int:
        return len(self.collection.rows)

    def __contains__(self, id_: object) -> bool:
        return id_ in self.collection.rows

    def document(self, id_: str) -> Document:
        """Return a document by its id. Raises UnknownIdError."""
        return self.collection.document(id_)

    def search(
        self,
        texts: str | Sequence[str],
        k: int = 10,
        *,
        mode: Mode | None = None,
        where: Filter | Sequence[str] | None = None,
        reranker: Reranker | None = None,
        depth: int = DEPTH,
        weight: float = 1.0,
    ) -> Answer:
        """Return the best k documents of each text: `Answer.hits` holds one Hits a text, best first.

        `mode` is what `index tune` chose unless given; `where` is a Filter or texts like "field=value". A `reranker`
        orders the best `depth` (at least k) anew; a `weight` below 1 mixes its scores with the first ones.
        """
        texts = [texts] if isinstance(texts, str) else texts
        where = where if isinstance(where, Filter) or where is None else Filter.parse(where)
        first = max(k, depth) if reranker and k > 0 else k
        answer = self._ask(texts, first, mode, where)
        return rerank(answer, texts, reranker, self.document, k, weight) if reranker else answer

    def _ask(self, texts: Sequence[str], k: int, mode: Mode | None, where: Filter | None) -> Answer:
        """Ask both sides; if the server's has moved since this was opened, open the directory again, then ask anew."""

        def ask() -> Answer:
            return self.collection.hybrid.search(texts, k, embed=self._embed, mode=mode, where=where)

        try:
            answer = ask()
        except BackendUnavailableError:
            if not self._moved():
                raise
        else:
            if not answer.degraded or not self._moved():
                return answer
        self._open()
        return ask()

    def _moved(self) -> bool:
        """Say whether a commit names another index on the server: `compact` makes one, `rebuild --url` moves it."""
        with contextlib.suppress(IndexesError):
            return manifests.load(self.directory).elastic != self.collection.manifest.elastic
        return False

    def add(self, documents: Iterable[Document], *, replace: bool = False) -> None:
        """Add documents in one commit, all or nothing; with `replace`, those that are present are replaced.

        Raises DuplicateIdError, BadIdError.
        """
        documents = list(documents)
        with Writer.open(self.directory) as writer:
            if replace:
                writer.remove([d.id for d in documents if d.id in writer.rows])
            for start in range(0, len(documents), BATCH):
                batch = documents[start : start + BATCH]
                vectors = self.encoder.encode([d.full_text for d in batch]) if self._record else None
                writer.add(batch, vectors)
            writer.commit()
        self._open()

    def delete(self, ids: Sequence[str]) -> None:
        """Remove documents in one commit, all or nothing. Raises UnknownIdError naming the missing ids."""
        with Writer.open(self.directory) as writer:
            writer.remove(ids)
            writer.commit()
        self._open()

    def tune(
        self, queries: Sequence[Query], qrels: Mapping[str, Mapping[str, float]], measure: str = "mrr"
    ) -> Tuning:
        """Choose mode and fusion on judged queries, store the choice in the index and return it with its rivals.

        Queries without a relevant document are left out. Raises InputError when none is left.
        """
        from linker.tuning import tune

        wanted = {q: [d for d, r in docs.items() if r > 0] for q, docs in qrels.items()}
        judged = [q for q in queries if wanted.get(q.id)]
        texts, hybrid = [q.text for q in judged], self.collection.hybrid
        rows, depth = self.collection.rows, hybrid.settings.depth
        bm25 = hybrid.text.search_rows(texts, depth) if hybrid.text else None
        dense = hybrid.vectors.search_rows(self._embed(texts), depth) if hybrid.vectors and texts else None
        relevant = [[int(rows.locate([d])[0]) if d in rows else -1 for d in wanted[q.id]] for q in judged]
        tuning = tune(bm25, dense, relevant, measure)
        chosen = tuning.chosen
        with Writer.open(self.directory) as writer:
            fusion = chosen.fusion.to_json() if chosen.fusion else None
            writer.commit(search={**writer.manifest.search, "mode": chosen.mode, "fusion": fusion})
        self._open()
        return tuning

    def tune_recall(
        self, target: float, k: int = 10, texts: Sequence[str] | None = None, *, sample: int = 500
    ) -> RecallTuning:
        """Choose how thoroughly approximate vectors are searched, so that a share of the exact k best is found.

        Queries are `texts`, or `sample` documents held out. The choice is stored in the index. Raises InputError,
        IndexesError where the index searches exactly, BackendUnavailableError where it has no vectors of its own.
        """
        from linker.recall import tune_recall

        index = self.collection.hybrid.vectors
        if not isinstance(index, FaissIndex):
            raise BackendUnavailableError("only vectors in the directory itself can be tuned")
        tuning = tune_recall(index, target, k, None if texts is None else self._embed(texts), sample)
        with Writer.open(self.directory) as writer:
            writer.commit(search={**writer.manifest.search, "vectors": dict(tuning.chosen.settings)})
        self._open()
        return tuning

    @property
    def _record(self) -> EncoderRecord | None:
        return self.collection.manifest.encoder

    @property
    def encoder(self) -> Encoder:
        """The index's encoder, loaded on first use and checked against the index's fingerprint."""
        if self._record is None:
            raise BackendUnavailableError("the index was built without an encoder")
        if self._encoder is None:
            self._encoder = open_encoder(self.directory, self._record, self._given)
        return self._encoder

    def _embed(self, texts: Sequence[str]) -> Matrix:
        try:
            encoder = self.encoder
        except LinkerError as e:
            raise BackendUnavailableError(str(e)) from e
        return encoder.encode(texts)
