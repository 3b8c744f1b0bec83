"""The main class: open an index, search it, change it."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Self

from indexes.arrays import check_k
from indexes.collection import Collection
from indexes.hybrid import Answer, Mode, OnFailure, by_filter
from indexes.interface import (
    BackendUnavailableError,
    Document,
    EncoderMismatchError,
    Filter,
    IndexesError,
    Matrix,
    Where,
)
from indexes.store import manifest as manifests
from indexes.store.files import ENCODER
from indexes.store.records import EncoderRecord
from indexes.text.parameters import Bm25Parameters
from indexes.vectors.faiss_index import FaissIndex
from indexes.writer import Writer
from linker.encoders.interface import Encoder
from linker.encoders.loading import load_encoder, load_own
from linker.errors import InputError, LinkerError
from linker.ranking.ranker import Ranker
from linker.reranking import DEPTH, Reranker, rerank
from linker.torch_scan import gpu_scan

if TYPE_CHECKING:
    from indexes.dtypes import Float64Array
    from linker.corpora import Query
    from linker.probability.answering import Probabilities
    from linker.probability.calibration import Calibration
    from linker.ranking.candidates import PoolSettings
    from linker.ranking.searching import RankedSearch
    from linker.ranking.training import Training
    from linker.recall import RecallTuning
    from linker.tuning import Bm25Search, Tuning

BATCH = 256


def open_encoder(directory: Path, record: EncoderRecord, given: Encoder | None = None) -> Encoder:
    """Return the encoder that an index was built with; `given` is taken instead of the one that the index names.

    Raises EncoderMismatchError where its fingerprint is not the index's, LinkerError where it cannot be loaded. The
    check hashes the whole model: do it once.
    """
    inside = record.name.startswith(f"{ENCODER}/")
    encoder = given or (
        load_own(directory, record.name) if inside else load_encoder(record.name, fetch=False)
    )
    fingerprint = encoder.fingerprint
    if fingerprint != record.fingerprint:
        raise EncoderMismatchError(
            f"the encoder {record.name!r} is not the one {directory} was built with (fingerprint "
            f"{fingerprint[:12]}, not {record.fingerprint[:12]}): "
            "name the right one with --encoder, or rebuild the index"
        )
    return encoder


class Engine:
    """An index with its encoder. Searches see one committed generation; a change commits a new one and opens it."""

    def __init__(
        self, directory: Path, *, encoder: Encoder | None = None, on_failure: OnFailure = "degrade"
    ) -> None:
        """Open `directory`; `encoder` is taken instead of the one the index names, and must have its fingerprint."""
        self.directory = directory
        self._on_failure = on_failure
        self._given = encoder
        self._encoder: Encoder | None = None  # once it is loaded and checked
        self._open()

    @classmethod
    def open(
        cls, directory: str | Path, *, encoder: str | None = None, on_failure: OnFailure = "degrade"
    ) -> Self:
        """Open an index; `encoder` (name or path) says where its encoder is now, if it has moved.

        Raises IndexesError where there is no index, DamagedError naming a damaged file.
        """
        given = load_encoder(encoder) if encoder else None
        return cls(Path(directory), encoder=given, on_failure=on_failure)

    def _open(self) -> None:
        self.collection = Collection.open(self.directory, on_failure=self._on_failure, scan=gpu_scan())
        self._ranker: Ranker | None = None
        self._search: RankedSearch | None = None
        self._probabilities: Probabilities | None = None

    def __len__(self) -> int:
        return len(self.collection.rows)

    def __contains__(self, id_: object) -> bool:
        return id_ in self.collection.rows

    def document(self, id_: str) -> Document:
        """Return the document with this id. Raises UnknownIdError where there is none."""
        return self.collection.document(id_)

    def search(
        self,
        texts: str | Sequence[str],
        k: int = 10,
        *,
        mode: Mode | None = None,
        where: Filter | Where | None = None,
        bm25: Bm25Parameters | None = None,
        reranker: Reranker | Ranker | None = None,
        depth: int = DEPTH,
        weight: float = 1.0,
        stored_ranker: bool = True,
        phrases: bool = False,
        probabilities: bool = True,
    ) -> Answer:
        """Return the top k documents for each text: `Answer.hits` holds one Hits per text, best first.

        `mode` defaults to the one `index tune` chose; `where` is a Filter or what `Filter.parse` reads, such as
        "lang=en|de", ["date>=2021-01-31", "likes>100"] or {"lang": ["en", "de"]}; `bm25` replaces
        the index's parameters of BM25. A `reranker` reorders the top `depth` (at least k); a `weight` below 1 mixes its
        scores with the retrieval scores. A learned ranker finds its own candidates; the one stored in the index is used
        unless `mode`, `bm25` or `reranker` is given or `stored_ranker` is False. With `phrases`, documents must have
        the words that a text puts in quotes one after the other; a quote without its partner is plain text. With
        `probabilities`, the answer has P(link) of each hit where the index has a calibration or a ranker. Raises
        BackendUnavailableError where no retriever can answer, IndexesError for an argument that cannot be used,
        InputError where the ranker does not fit the index.
        """
        texts = [texts] if isinstance(texts, str) else texts
        where = self.filter(where)
        if phrases and texts:
            filters = [self.collection.phrases.filter(text, where) for text in texts]
            find = functools.partial(
                self.search, mode=mode, bm25=bm25, reranker=reranker, depth=depth, weight=weight,
                stored_ranker=stored_ranker, probabilities=probabilities,
            )  # fmt: skip
            return by_filter(lambda part, allowed: find(part, k, where=allowed), texts, filters)
        if reranker is None and mode is None and bm25 is None and stored_ranker:
            reranker = self.ranker
        if isinstance(reranker, Ranker):
            answer = self._ranked(texts, k, where, reranker)
        else:
            first = max(k, depth) if reranker and k > 0 else k
            answer = self._ask(texts, first, mode, where, bm25)
            if reranker:
                answer = rerank(answer, texts, reranker, self.document, k, weight)
        return self._told(answer, texts, where) if probabilities else answer

    def _told(self, answer: Answer, texts: Sequence[str], where: Filter | None) -> Answer:
        """Return an answer with P(link) of each hit; if there are none to have, with the reason among its notes."""
        from linker.probability.answering import of_ranker, refused

        if answer.ranker:
            return of_ranker(answer)
        if not self.collection.manifest.search.get("calibration"):
            return answer
        try:
            return self._calibrated().told(answer, texts, where)
        except InputError as e:
            return refused(answer, e)

    def probabilities(
        self, texts: Sequence[str], answer: Answer, where: Filter | None = None
    ) -> list[Float64Array]:
        """Return P(link) of each hit of an answer to `texts`, one array per text; NaN where it is not known.

        Raises InputError where the index has no calibration, or one that was fitted with another encoder or other
        settings, and BackendUnavailableError where a retriever cannot answer.
        """
        if answer.probabilities is None:
            answer = self._calibrated().told(answer, texts, where)
        if answer.probabilities is None:
            raise BackendUnavailableError(answer.notes[-1])
        return list(answer.probabilities)

    @property
    def calibration(self) -> Calibration | None:
        """The calibration stored in the index. Raises InputError where it is damaged or was fitted on another index."""
        stored = self.collection.manifest.search.get("calibration")
        return self._calibrated().calibration if stored else None

    def _calibrated(self) -> Probabilities:
        name = self.collection.manifest.search.get("calibration")
        if not name:
            raise InputError(f"{self.directory} has no calibration: fit one with `linker calibrate`")
        if self._probabilities is None:
            from linker.probability.answering import Probabilities
            from linker.probability.folder import load

            self._probabilities = Probabilities(self.collection, load(self.directory / name), self.embed)
        return self._probabilities

    def calibrate(
        self,
        queries: Sequence[Query],
        qrels: Mapping[str, Mapping[str, float]],
        *,
        complete: bool = True,
        held_share: float = 0.5,
        seed: int = 0,
    ) -> Calibration:
        """Fit P(link) on judged queries, and hold a share of them out for measures and promises; store nothing.

        `complete`: documents that a query's judgements do not name count as not relevant; otherwise they are left out.
        Raises InputError where too few hits are relevant, or too few are not.
        """
        from linker.probability.fitting import calibrate

        find = functools.partial(self.search, stored_ranker=False, probabilities=False)
        embed = self.embed if self._record else None
        return calibrate(
            self.collection, embed, find, queries, qrels,
            complete=complete, held_share=held_share, seed=seed,
        )  # fmt: skip

    def store_calibration(self, folder: Path) -> None:
        """Store the calibration in `folder` in the index, in one commit; answers have P(link) from now on.

        Raises InputError where it was fitted on another index.
        """
        from linker.probability.folder import FILE, load, name_of

        load(folder).check(self.collection.manifest)
        with Writer.open(self.directory) as writer:
            writer.store_calibration(name_of((folder / FILE).read_bytes()), folder)
        self._open()

    def filter(self, where: Filter | Where | None) -> Filter | None:
        """Return the filter that `where` describes; None if it has no conditions.

        Raises BadFilterError where it cannot be read, or names a field that no document has (with the near miss).
        """
        parsed = Filter.parse(where)
        if parsed is not None:
            self.collection.check_fields(parsed)
        return parsed

    @property
    def fields(self) -> tuple[str, ...]:
        """The metadata fields of the documents, sorted: what a filter can name. Reads all metadata once."""
        return self.collection.rows.fields

    @property
    def ranker(self) -> Ranker | None:
        """The ranker stored in the index, loaded on first use. Raises InputError where it is damaged."""
        name = self.collection.manifest.search.get("ranker")
        if name and self._ranker is None:
            from linker.ranking.folder import load

            self._ranker = load(self.directory / name)
        return self._ranker

    def ranked_search(self, ranker: Ranker) -> RankedSearch:
        """Return this index's search with a ranker. Raises InputError where it was trained with another encoder."""
        from linker.ranking.searching import RankedSearch

        if self._search is None or self._search.ranker is not ranker:
            self._search = RankedSearch(self.collection, ranker, self.embed)
        return self._search

    def _ranked(self, texts: Sequence[str], k: int, where: Filter | None, ranker: Ranker) -> Answer:
        from linker.ranking.searching import followed

        check_k(k)
        try:
            answer = self.ranked_search(ranker).search(texts, k, where)
        except BackendUnavailableError as e:
            if self._on_failure == "fail":
                raise
            first = self._ask(texts, k, None, where, None)
            reason = first.degraded or f"the ranker cannot be used: {e}"
            return dataclasses.replace(first, degraded=reason)
        if all(len(hits) >= k for hits in answer.hits):
            return answer
        return followed(answer, self._ask(texts, k, None, where, None), k)

    def train_ranker(
        self,
        queries: Sequence[Query],
        qrels: Mapping[str, Mapping[str, float]],
        settings: PoolSettings | None = None,
        *,
        encoder: bool = True,
        seed: int = 0,
        advance: Callable[[str], object] | None = None,
    ) -> Training:
        """Train a ranker for this index on judged queries; with `encoder`, it sees the cosines of the index's encoder.

        The encoder must not have learned from the same links. Queries without a judgement are left out. Raises
        InputError where too few queries have a relevant candidate, MissingExtraError without the extra `rank`.
        """
        from linker.ranking.learning import learn

        embed = self.embed if encoder else None
        return learn(self.collection, embed, queries, qrels, settings, seed, advance or (lambda step: None))

    def store_ranker(self, folder: Path) -> None:
        """Store the ranker in `folder` in the index, in one commit; searches use it from now on.

        Raises InputError where it does not fit the index.
        """
        from linker.ranking.folder import load
        from linker.ranking.searching import RankedSearch, folder_name

        RankedSearch(self.collection, load(folder), self.embed)
        with Writer.open(self.directory) as writer:
            writer.store_ranker(folder_name(folder), folder)
        self._open()

    def _ask(
        self,
        texts: Sequence[str],
        k: int,
        mode: Mode | None,
        where: Filter | None,
        bm25: Bm25Parameters | None,
    ) -> Answer:
        """Query the retrievers; if the index on the server has moved since it was opened, reopen and query again."""

        def ask() -> Answer:
            return self.collection.hybrid.search(
                texts, k, embed=self.embed, mode=mode, where=where, bm25=bm25
            )

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
        """Return whether the last commit names another server index: `compact` makes one, `rebuild --url` moves it."""
        with contextlib.suppress(IndexesError):
            return manifests.load(self.directory).elastic != self.collection.manifest.elastic
        return False

    def add(self, documents: Iterable[Document], *, replace: bool = False) -> None:
        """Add documents in one commit, all or nothing; with `replace`, they replace documents of the same ids.

        Raises DuplicateIdError where an id is in the index or repeated, BadIdError where one cannot be used,
        IndexesError where the build of the index was interrupted.
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
        self,
        queries: Sequence[Query],
        qrels: Mapping[str, Mapping[str, float]],
        measure: str = "mrr",
        *,
        seed: int = 0,
    ) -> Tuning:
        """Choose mode, fusion and BM25's parameters on judged queries, store and return the choice.

        The choice has to beat the untuned default in cross-validation over the queries, which `seed` deals to folds.
        Queries without a relevant document are left out. Raises InputError where none is left.
        """
        from linker.tuning import tune

        relevant_ids = {q: [d for d, r in docs.items() if r > 0] for q, docs in qrels.items()}
        judged = [q for q in queries if relevant_ids.get(q.id)]
        texts, hybrid = [q.text for q in judged], self.collection.hybrid
        rows, depth = self.collection.rows, hybrid.settings.depth
        bm25 = hybrid.text.search_rows(texts, depth) if hybrid.text else None
        dense = hybrid.vectors.search_rows(self.embed(texts), depth) if hybrid.vectors and texts else None
        relevant = [
            [int(rows.locate([d])[0]) if d in rows else -1 for d in relevant_ids[q.id]] for q in judged
        ]
        tuning = tune(bm25, dense, relevant, measure, seed=seed, parameters=self._bm25_search(texts, depth))
        chosen = tuning.chosen
        with Writer.open(self.directory) as writer:
            fusion = chosen.fusion.to_json() if chosen.fusion else None
            search = {**writer.manifest.search, "mode": chosen.mode, "fusion": fusion}
            writer.commit(search=search, bm25=chosen.bm25)
        self._open()
        return tuning

    def _bm25_search(self, texts: Sequence[str], depth: int) -> Bm25Search | None:
        """Return how `tune` searches with other parameters of BM25; on a server, only k3 can differ per query."""
        from linker.tuning import GRID, Bm25Search

        text, manifest = self.collection.hybrid.text, self.collection.manifest
        if text is None:
            return None
        grid = {"k3": GRID["k3"]} if manifest.elastic else GRID
        return Bm25Search(lambda bm25: text.search_rows(texts, depth, None, bm25), manifest.bm25, grid)

    def tune_recall(
        self, target: float, k: int = 10, texts: Sequence[str] | None = None, *, sample: int = 500
    ) -> RecallTuning:
        """Choose how many candidates approximate vector search examines, to find the share `target` of the exact top k.

        Queries are `texts`, or `sample` documents held out. The choice is stored in the index. Raises InputError where
        `target` or the queries cannot be used, IndexesError where the index searches exactly, BackendUnavailableError
        where its directory holds no vectors.
        """
        from linker.recall import tune_recall

        index = self.collection.hybrid.vectors
        if not isinstance(index, FaissIndex):
            raise BackendUnavailableError("only vectors in the directory itself can be tuned")
        tuning = tune_recall(index, target, k, None if texts is None else self.embed(texts), sample)
        with Writer.open(self.directory) as writer:
            writer.commit(search={**writer.manifest.search, "vectors": dict(tuning.chosen.settings)})
        self._open()
        return tuning

    @property
    def _record(self) -> EncoderRecord | None:
        return self.collection.manifest.encoder

    @property
    def encoder(self) -> Encoder:
        """The index's encoder, loaded on first use and checked against the index's fingerprint.

        Raises BackendUnavailableError where the index has none, and errors as `open_encoder` does.
        """
        if self._record is None:
            raise BackendUnavailableError("the index was built without an encoder")
        if self._encoder is None:
            self._encoder = open_encoder(self.directory, self._record, self._given)
        return self._encoder

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Return the vectors of texts, float32 [n, dim]. Raises BackendUnavailableError without the encoder."""
        try:
            encoder = self.encoder
        except LinkerError as e:
            raise BackendUnavailableError(str(e)) from e
        return encoder.encode(texts)
