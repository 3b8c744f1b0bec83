"""The main class: open an index, search it, change it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Self

from indexes.anywhere import AnyCollection, AnyWriter
from indexes.cluster.client import PRODUCTS
from indexes.collection import Collection
from indexes.hybrid import Answer, HybridIndex, Mode, OnFailure
from indexes.interface import (
    BackendUnavailableError,
    DamagedError,
    Document,
    Filter,
    IndexesError,
    Matrix,
    Where,
    check_vectors,
)
from indexes.merging import Merger
from indexes.showing import table
from indexes.store.records import EncoderRecord
from indexes.text.parameters import Bm25Parameters
from indexes.vectors.faiss_index import FaissIndex
from indexes.writer import writer_of
from linker.base.errors import InputError
from linker.base.logs import logger
from linker.encoders.interface import Encoder
from linker.encoders.loading import load_encoder
from linker.encoders.opened import OwnEncoder
from linker.engine import sharding
from linker.engine.options import SearchOptions
from linker.engine.snapshot import Snapshot, query_vectors
from linker.scoring.ranking.ranker import Ranker
from linker.scoring.reranking import DEPTH, Reranker

if TYPE_CHECKING:
    import numpy.typing as npt

    from indexes.dtypes import Float64Array
    from linker.corpora import Query
    from linker.engine.grouping import Groups
    from linker.engine.recall import RecallTuning
    from linker.engine.tuning import Bm25Search, Tuning
    from linker.scoring.probability.calibration import Calibration
    from linker.scoring.ranking.candidates import PoolSettings
    from linker.scoring.ranking.searching import RankedSearch
    from linker.scoring.ranking.training import Training

BATCH = 256
WAIT = 30.0  # seconds that a change waits for another writer


class Engine:
    """An index with its encoder; one engine serves any number of threads.

    Each search sees one committed generation from beginning to end. Before it begins, the last commit of any process is
    opened, which costs one `stat` where there is none; the generation before stays valid for the searches that began
    with it, and for their hits. Everything else reads the generation of the last search, change or `refresh`. Changes
    wait for other writers. `close`, or the end of a `with` block, lets go of the index's files.
    """

    def __init__(
        self,
        directory: Path | Sequence[Path],
        *,
        encoder: Encoder | None = None,
        on_failure: OnFailure = "degrade",
        follow: bool = True,
        verify: bool = True,
    ) -> None:
        """Open `directory`; `encoder` is taken instead of the one the index names, and must have its fingerprint.

        Several directories are searched as one index, and cannot be changed. Without `follow`, the commits of others
        are seen after `refresh` only. Without `verify`, files are not read to be compared with their checksums.
        """
        self.directory, self.directories = sharding.directories_of(directory)
        self._on_failure, self._follow, self._verify = on_failure, follow, verify
        self._encoder = OwnEncoder(encoder)
        self._opening = threading.Lock()
        self._snapshot: Snapshot | None = self._open()
        self._merger = Merger(self._checked, self._published)

    @classmethod
    def open(
        cls,
        directory: str | Path | Sequence[str | Path],
        *,
        encoder: str | None = None,
        on_failure: OnFailure = "degrade",
        follow: bool = True,
        verify: bool = True,
    ) -> Self:
        """Open an index, or several as one; `encoder` (name or path) says where its encoder is now, if it has moved.

        Without `follow`, the commits of others are seen after `refresh` only. Of several, one that cannot be opened is
        left out and named in `Answer.degraded`, unless `on_failure` is "fail". Without `verify`, the sizes of files are
        compared, but not their checksums: large indexes that are opened often can be verified now and then (`linker
        index verify`), and opened in a fraction of the time. Raises IndexesError where there is no
        index or several do not fit together, DamagedError naming a damaged file.
        """
        given = load_encoder(encoder, light=True) if encoder else None
        where: Path | list[Path]
        where = (
            Path(directory) if isinstance(directory, (str, Path)) else [Path(shard) for shard in directory]
        )
        return cls(where, encoder=given, on_failure=on_failure, follow=follow, verify=verify)

    def _open(self, before: Snapshot | None = None) -> Snapshot:
        return sharding.opened(self.directories, self._encoder, self._on_failure, before, self._verify)

    def _check_single(self) -> None:
        """Raise InputError where several directories are open, which cannot be changed together."""
        if self.directories != (self.directory,):
            raise InputError(
                f"{', '.join(map(str, self.directories))} are open together, for reading only: change one of them "
                "by itself"
            )

    def _writer(self, wait: float = WAIT) -> AbstractContextManager[AnyWriter]:
        self._check_single()
        self._current()
        return writer_of(self.directory, wait=wait, before=self._checked)

    def _checked(self) -> Collection | None:
        """Return the generation that is open, if its files have been checked."""
        opened = self._snapshot.collection if self._snapshot else None
        return opened if self._verify and isinstance(opened, Collection) else None

    def _published(self, commit: Callable[[], Collection | None]) -> None:
        """Commit a merge and go on with the generation that it returns; searches keep the one before it meanwhile."""
        with self._opening:
            merged = commit()
            if merged is not None and self._snapshot is not None:
                self._snapshot = self._snapshot.with_merged(merged)

    def _changed(self) -> None:
        """Open what was committed, and merge in a thread what the commit left."""
        self.refresh()
        self._merger.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        facts = self._facts()
        return f"<Engine {str(self.directory)!r}: {', '.join(facts.values()) if facts else 'closed'}>"

    def _repr_html_(self) -> str:
        return table(self._facts().items() or [("closed", "")], caption=str(self.directory))

    def _facts(self) -> dict[str, str]:
        """Return what the engine says of itself in a session; nothing where it is closed."""
        snapshot = self._snapshot
        if snapshot is None:
            return {}
        collection = snapshot.collection
        manifest = collection.manifest
        return {
            "documents": f"{manifest.documents:,} documents",
            "search": collection.hybrid.settings.mode,
            "encoder": _encoder_named(manifest.encoder),
            "backend": PRODUCTS.get(collection.backend, collection.backend),
            "generation": f"generation {manifest.generation}",
        }

    def close(self) -> None:
        """Let go of the index's files and the encoder, once segments are merged that are being merged.

        Running searches end as they began. May be repeated.
        """
        self._merger.wait()
        with self._opening:
            self._snapshot = None
        self._encoder.forget()

    def refresh(self) -> bool:
        """Open the last committed generation; return whether it is another one than before.

        Only files that are new are read to be checked. Raises IndexesError where the index is gone or the engine is
        closed, DamagedError naming a damaged file.
        """
        with self._opening:
            return self._reopen()

    def _reopen(self) -> bool:
        old = self._current()
        if old.is_last():
            return False
        self._snapshot = self._open(old)
        return True

    def _current(self) -> Snapshot:
        snapshot = self._snapshot
        if snapshot is None:
            raise IndexesError(f"the engine over {self.directory} is closed: open it again with Engine.open")
        return snapshot

    def _followed(self) -> Snapshot:
        """Return the last committed generation, or the one before it while another thread opens that."""
        snapshot = self._current()
        if self._follow and snapshot.is_old() and self._opening.acquire(blocking=False):
            try:
                self._reopen()
            finally:
                self._opening.release()
        return self._current()

    @property
    def collection(self) -> AnyCollection:
        """The generation that is open now. Raises IndexesError where the engine is closed."""
        return self._current().collection

    def __len__(self) -> int:
        return len(self.collection)

    def __contains__(self, id_: object) -> bool:
        return isinstance(id_, str) and bool(self.collection.present([id_]))

    def document(self, id_: str) -> Document:
        """Return the document with this id. Raises UnknownIdError where there is none."""
        return self.collection.document(id_)

    def documents(self, where: Filter | Where | None = None) -> Iterator[Document]:
        """Yield the documents that fit `where` in the order in which they were added. Raises BadFilterError."""
        yield from self.collection.matching(self.filter(where))

    def search(
        self,
        texts: str | Sequence[str] = (),
        k: int = 10,
        *,
        vectors: npt.ArrayLike | None = None,
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

        `vectors` (one [dim], or [n, dim]) are searched with instead of the texts' own; alone, without texts, by cosine.
        The stored ranker and calibration, fitted on the index's own search, take no part then.
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
        options = SearchOptions(
            k, mode=mode, where=Filter.parse(where), bm25=bm25, reranker=reranker, depth=depth, weight=weight,
            stored_ranker=stored_ranker, phrases=phrases, probabilities=probabilities,
        )  # fmt: skip
        snapshot = self._followed()
        by = None if vectors is None else query_vectors(vectors, texts, options)

        def ask(snapshot: Snapshot) -> Answer:
            return snapshot.search(texts, options) if by is None else snapshot.by_vectors(by, texts, options)

        try:
            answer = ask(snapshot)
            if not answer.degraded or not snapshot.has_moved():
                return answer
        except (BackendUnavailableError, DamagedError):
            if not snapshot.has_moved():
                raise
        self.refresh()
        return ask(self._current())

    def group(
        self,
        judged: Mapping[tuple[str, str], bool] | None = None,
        *,
        days: float | None = None,
        precision: float | None = None,
        seed: int = 0,
    ) -> Groups:
        """Return the groups of the index's documents: near copies, and documents about one story.

        `judged`: pairs of ids that are one story or not; of pairs that all are, those that no chain of them joins count
        as different stories. Documents further apart than `days` are not linked. With a `precision`, groups are kept
        while their pairs are certain to be right to this share, with 95 % confidence; `seed` draws the judged pairs
        that test it. Raises InputError where the index is empty, or an option lacks dates or judged pairs,
        BackendUnavailableError where a retriever cannot answer.
        """
        from linker.engine.grouping import group

        return group(self._followed().collection, judged, days=days, precision=precision, seed=seed)

    def probabilities(
        self, texts: Sequence[str], answer: Answer, where: Filter | None = None
    ) -> list[Float64Array]:
        """Return P(link) of each hit of an answer to `texts`, one array per text; NaN where it is not known.

        Raises InputError where the index has no calibration, or one that was fitted with another encoder or other
        settings, and BackendUnavailableError where a retriever cannot answer.
        """
        return self._current().probabilities(texts, answer, where)

    @property
    def calibration(self) -> Calibration | None:
        """The calibration stored in the index. Raises InputError where it is damaged or was fitted on another index."""
        stored = self.collection.manifest.search.get("calibration")
        return self._current().calibrated().calibration if stored else None

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
        from linker.scoring.probability.fitting import calibrate

        snapshot = self._followed()

        def find(texts: Sequence[str], k: int) -> Answer:
            return snapshot.search(texts, SearchOptions(k, stored_ranker=False, probabilities=False))

        collection = snapshot.collection
        embed = snapshot.embed if collection.manifest.embeds else None
        return calibrate(
            collection, embed, find, queries, qrels, complete=complete, held_share=held_share, seed=seed
        )

    def store_calibration(self, folder: Path) -> None:
        """Store the calibration in `folder` in the index, in one commit; answers have P(link) from now on.

        Raises InputError where it was fitted on another index.
        """
        from linker.scoring.probability.folder import FILE, load, name_of

        load(folder).check(self.collection.manifest)
        with self._writer() as writer:
            writer.store_calibration(name_of((folder / FILE).read_bytes()), folder)
        self.refresh()

    def filter(self, where: Filter | Where | None) -> Filter | None:
        """Return the filter that `where` describes; None if it has no conditions.

        Raises BadFilterError where it cannot be read, or names a field that no document has (with the near miss).
        """
        parsed = Filter.parse(where)
        if parsed is not None:
            self.collection.check_fields(parsed)
            for remark in self.collection.misfits(parsed):
                logger.warning("%s", remark)
        return parsed

    @property
    def fields(self) -> tuple[str, ...]:
        """The metadata fields of the documents, sorted: what a filter can name. Reads all metadata once."""
        return self.collection.fields

    @property
    def ranker(self) -> Ranker | None:
        """The ranker stored in the index, loaded on first use. Raises InputError where it is damaged."""
        return self._current().ranker

    def ranked_search(self, ranker: Ranker) -> RankedSearch:
        """Return this index's search with a ranker. Raises InputError where it was trained with another encoder."""
        return self._current().ranked_search(ranker)

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
        from linker.scoring.ranking.learning import learn

        embed = self.embed if encoder else None
        return learn(self.collection, embed, queries, qrels, settings, seed, advance or (lambda step: None))

    def store_ranker(self, folder: Path) -> None:
        """Store the ranker in `folder` in the index, in one commit; searches use it from now on.

        Raises InputError where it does not fit the index.
        """
        from linker.scoring.ranking.folder import load
        from linker.scoring.ranking.searching import RankedSearch, folder_name

        RankedSearch(self.collection, load(folder), self.embed)
        with self._writer() as writer:
            writer.store_ranker(folder_name(folder), folder)
        self.refresh()

    def add(
        self,
        documents: Iterable[Document],
        *,
        vectors: npt.ArrayLike | None = None,
        replace: bool = False,
        wait: float = WAIT,
    ) -> None:
        """Add documents in one commit, all or nothing; with `replace`, they replace documents of the same ids.

        `vectors` [n, dim], computed elsewhere, are taken instead of those that the index's encoder makes.
        Another writer has `wait` seconds to end. Raises LockedError where it has not, DuplicateIdError where an id is
        in the index or repeated, BadIdError where one cannot be used, IndexesError where the build of the index was
        interrupted.
        """
        documents = list(documents)
        matrix = None if vectors is None else check_vectors(vectors, None, [d.id for d in documents])
        with self._writer(wait) as writer:
            if replace:
                writer.remove(sorted(writer.present([d.id for d in documents])))
            self._take(writer, documents, matrix)
            writer.commit()
        self._changed()

    def _take(self, writer: AnyWriter, documents: Sequence[Document], matrix: Matrix | None = None) -> None:
        """Add documents with their vectors, which are encoded where none are given."""
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
        """Put documents, in place of those of the same ids, and remove ids, in order; all or nothing, in one commit.

        Returns for each change whether there was a document of that id just before it; to remove one that is not there
        changes nothing. Raises as `add`.
        """
        ids = [change if isinstance(change, str) else change.id for change in changes]
        with self._writer(wait) as writer:
            before = writer.present(ids)
            had, new, untouched = [], dict[str, Document](), set(before)
            for id_, change in zip(ids, changes, strict=True):
                had.append(id_ in untouched or id_ in new)
                untouched.discard(id_)
                new.pop(id_, None)  # so that it comes after those that were put meanwhile
                if isinstance(change, Document):
                    new[id_] = change
            if before or new:
                writer.remove(sorted(before))
                self._take(writer, list(new.values()))
                writer.commit()
        self._changed()
        return had

    def delete(self, ids: Sequence[str], *, wait: float = WAIT) -> None:
        """Remove documents in one commit, all or nothing. Raises UnknownIdError naming the missing ids, LockedError."""
        with self._writer(wait) as writer:
            writer.remove(ids)
            writer.commit()
        self._changed()

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
        from linker.engine.tuning import tune

        self._check_single()
        relevant_ids = {q: [d for d, r in docs.items() if r > 0] for q, docs in qrels.items()}
        judged = [q for q in queries if relevant_ids.get(q.id)]
        texts, hybrid = [q.text for q in judged], self.collection.ranking()
        rows, depth = hybrid.rows, hybrid.settings.depth
        relevant = [rows.find(relevant_ids[q.id]).tolist() for q in judged]
        bm25 = hybrid.text.search_rows(texts, depth) if hybrid.text else None
        dense = (
            hybrid.vectors.search_rows(self.embed(texts), depth)
            if hybrid.vectors and texts and self._embeds
            else None
        )
        tuning = tune(bm25, dense, relevant, measure, seed=seed, parameters=self._bm25_search(hybrid, texts))
        chosen = tuning.chosen
        with self._writer() as writer:
            fusion = chosen.fusion.to_json() if chosen.fusion else None
            search = {**writer.manifest.search, "mode": chosen.mode, "fusion": fusion}
            writer.commit(search=search, bm25=chosen.bm25)
        self.refresh()
        return tuning

    @property
    def _embeds(self) -> bool:
        """Whether texts have vectors: the index's encoder is known, or one was given."""
        return self.collection.manifest.embeds or self._encoder.is_given

    def _bm25_search(self, hybrid: HybridIndex, texts: Sequence[str]) -> Bm25Search | None:
        """Return how `tune` searches with other parameters of BM25; on a server, only k3 can differ per query."""
        from linker.engine.tuning import GRID, Bm25Search

        text, depth, manifest = hybrid.text, hybrid.settings.depth, self.collection.manifest
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
        from linker.engine.recall import tune_recall

        self.collection.check_can("`recall`")
        index = self.collection.hybrid.vectors
        if index is None:
            raise IndexesError(f"{self.directory} has no vectors to tune: build it again with `encoder`")
        if not isinstance(index, FaissIndex):
            raise BackendUnavailableError("only vectors in the directory itself can be tuned")
        tuning = tune_recall(index, target, k, None if texts is None else self.embed(texts), sample)
        with self._writer() as writer:
            writer.commit(search={**writer.manifest.search, "vectors": dict(tuning.chosen.settings)})
        self.refresh()
        return tuning

    @property
    def encoder(self) -> Encoder:
        """The index's encoder, loaded on first use and checked against the index's fingerprint.

        Raises BackendUnavailableError where the index has none, and errors as `open_encoder` does.
        """
        return self._current().encoder

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Return the vectors of queries, float32 [n, dim]. Raises BackendUnavailableError without the encoder."""
        return self._current().embed(texts)


def _encoder_named(record: EncoderRecord | None) -> str:
    if record is None:
        return "no encoder"
    return (
        f"encoder {record.name}" if record.fingerprint else f"vectors from elsewhere, {record.dim} dimensions"
    )
