"""The main class: open an index, search it, change it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from indexes.address import shown
from indexes.hybrid import Answer, Mode, Unavailable
from indexes.interface import BackendUnavailableError, DamagedError, Document, Filter, IndexesError, Where
from indexes.text.parameters import Bm25Parameters
from linker.base.logs import logger
from linker.engine.changing import Changing
from linker.engine.evidence import Span, evidence
from linker.engine.options import SearchOptions
from linker.engine.snapshot import Snapshot, query_vectors
from linker.scoring.ranking.ranker import Ranker
from linker.scoring.reranking import DEPTH, Reranker

if TYPE_CHECKING:
    import numpy.typing as npt

    from indexes.dtypes import Float64Array
    from linker.corpora import Query
    from linker.engine.groups import Groups
    from linker.engine.recall import RecallTuning
    from linker.engine.tuning import Tuning
    from linker.scoring.probability.calibration import Calibration
    from linker.scoring.ranking.candidates import PoolSettings
    from linker.scoring.ranking.searching import RankedSearch
    from linker.scoring.ranking.training import Training


class Engine(Changing):
    """An index with its encoder; one engine serves any number of threads.

    Each search sees one committed generation from beginning to end. Before it begins, the last commit of any process
    is opened, which costs one `stat` if nothing is new; the previous generation stays valid for the searches that
    began with it, and for their hits. Everything else reads the generation of the last search, change or `refresh`.
    Changes wait for other writers. `close`, or the end of a `with` block, releases the index's files.
    """

    def __len__(self) -> int:
        return len(self.collection)

    def __contains__(self, id_: object) -> bool:
        return isinstance(id_, str) and bool(self.collection.present([id_]))

    def document(self, id_: str) -> Document:
        """Return the document with this id. Raises UnknownIdError if no document has it."""
        return self.collection.document(id_)

    def documents(self, where: Filter | Where | None = None, after: str = "") -> Iterator[Document]:
        """Yield the documents that match `where`, in order, starting after the id `after`.

        Raises BadFilterError if the filter is invalid, UnknownIdError if there is no document `after`.
        """
        yield from self.collection.matching(self.filter(where), after)

    def passage(self, query: str, text: str) -> Span | None:
        """Return the start and end of the sentence of a text that a query is about; None if they share no word."""
        return evidence(self.collection, query, text).passage

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

        `vectors` (one [dim], or [n, dim]) are used instead of the encoder's for the texts; without texts, rank by
        cosine only. The stored ranker and calibration, fitted on the index's own search, are not used then. `mode`
        defaults to the one `index tune` chose; `where` is a Filter or an argument of `Filter.parse`, such as
        "lang=en|de", ["date>=2021-01-31", "likes>100"] or {"lang": ["en", "de"]}; `bm25` replaces the index's BM25
        parameters. A `reranker` reorders the top `depth` (at least k); a `weight` below 1 mixes its scores with the
        retrieval scores. A learned ranker finds its own candidates; the one stored in the index is used unless `mode`,
        `bm25` or `reranker` is given or `stored_ranker` is False. With `phrases`, documents must contain a text's
        quoted words consecutively; an unpaired quote is plain text. With `probabilities`, the answer has P(link) of
        each hit if the index has a calibration or a ranker. Raises BackendUnavailableError if no retriever can answer,
        IndexesError for an invalid argument, InputError if the ranker does not match the index.
        """
        texts = [texts] if isinstance(texts, str) else texts
        options = SearchOptions(
            k, mode=mode, where=Filter.parse(where), bm25=bm25, reranker=reranker, depth=depth, weight=weight,
            stored_ranker=stored_ranker, phrases=phrases, probabilities=probabilities,
        )  # fmt: skip
        snapshot = self._latest()
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
        """Return the groups of the index's documents: near-duplicates, and documents about the same story.

        `judged`: pairs of ids, and whether both are about the same story; if all are, two documents that no chain of
        these pairs connects count as different. Documents further apart than `days` are not linked. With a `precision`,
        improbable groups keep only their near-duplicates, so that, with 95 % confidence, at least this share of the
        pairs in groups is correct; `seed` draws the judged pairs that test it. Raises InputError if the index is empty,
        or has no dates or judged pairs for an option that needs them, BackendUnavailableError if a retriever cannot
        answer.
        """
        from linker.engine.grouping import group

        collection = self._latest().collection
        documents = list(collection.matching(None))
        rows = collection.rows.locate([d.id for d in documents])
        return group(collection, documents, rows, judged, days=days, precision=precision, seed=seed)

    def probabilities(
        self, texts: Sequence[str], answer: Answer, where: Filter | None = None
    ) -> list[Float64Array]:
        """Return P(link) of each hit of an answer to `texts`, one array per text; NaN if it is not known.

        Raises InputError if the index has no calibration, or one that was fitted with another encoder or other
        settings, and BackendUnavailableError if a retriever cannot answer.
        """
        return self._current().probabilities(texts, answer, where)

    @property
    def calibration(self) -> Calibration | None:
        """The calibration stored in the index. Raises InputError if it is damaged or was fitted on another index."""
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
        """Fit P(link) on judged queries, holding out a share of them to evaluate and certify it; store nothing.

        `complete`: documents that a query's judgements do not name count as not relevant; else they are left out.
        Raises InputError if too few hits are relevant, or too few are not.
        """
        from linker.scoring.probability.fitting import calibrate

        snapshot = self._latest()

        def find(texts: Sequence[str], k: int) -> Answer:
            return snapshot.search(texts, SearchOptions(k, stored_ranker=False, probabilities=False))

        collection = snapshot.collection
        embed = snapshot.embed if collection.manifest.embeds else None
        return calibrate(
            collection, embed, find, queries, qrels, complete=complete, held_share=held_share, seed=seed
        )

    def filter(self, where: Filter | Where | None) -> Filter | None:
        """Return the filter that `where` describes; None if it has no conditions. Raises BadFilterError."""
        parsed = Filter.parse(where)
        if parsed is not None:
            self.collection.check_fields(parsed)
            for remark in self.collection.misfits(parsed):
                logger.warning("%s", remark)
        return parsed

    @property
    def fields(self) -> tuple[str, ...]:
        """The metadata fields of the documents, sorted: the names for filters. Reads all metadata once."""
        return self.collection.fields

    @property
    def ranker(self) -> Ranker | None:
        """The ranker stored in the index, loaded on first use. Raises InputError if it is damaged."""
        return self._current().ranker

    def ranked_search(self, ranker: Ranker) -> RankedSearch:
        """Return the search that uses this ranker. Raises InputError if it was trained with another encoder."""
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
        """Train a ranker for this index on judged queries; with `encoder`, cosines of the index's encoder are features.

        The encoder must not have been trained on the same links. Queries without a judgement are left out. Raises
        InputError if too few queries have a relevant candidate, MissingExtraError without the extra `rank`.
        """
        from linker.scoring.ranking.learning import learn

        embed = self.embed if encoder else None
        return learn(self.collection, embed, queries, qrels, settings, seed, advance or (lambda step: None))

    def tune(
        self,
        queries: Sequence[Query],
        qrels: Mapping[str, Mapping[str, float]],
        measure: str = "mrr",
        *,
        seed: int = 0,
    ) -> Tuning:
        """Choose mode, fusion and BM25's parameters on judged queries, store and return the choice.

        The choice has to beat the untuned default in cross-validation over the queries, which `seed` divides into
        folds. Queries without a relevant document are left out. Raises InputError if none remain.
        """
        from linker.engine.tuning import Bm25Search, tune

        self._check_single()
        relevant_ids = {q: [d for d, r in docs.items() if r > 0] for q, docs in qrels.items()}
        judged = [q for q in queries if relevant_ids.get(q.id)]
        texts, hybrid = [q.text for q in judged], self.collection.ranking()
        rows, depth = hybrid.rows, hybrid.settings.depth
        relevant = [rows.find(relevant_ids[q.id]).tolist() for q in judged]
        bm25 = hybrid.text.search_rows(texts, depth) if hybrid.text else None
        manifest, dense = self.collection.manifest, None
        if hybrid.vectors and texts and (manifest.embeds or self._encoder.is_given):
            dense = hybrid.vectors.search_rows(self.embed(texts), depth)
        parameters = Bm25Search.of(hybrid, manifest, texts)
        tuning = tune(bm25, dense, relevant, measure, seed=seed, parameters=parameters)
        chosen = tuning.chosen
        with self._writer() as writer:
            fusion = chosen.fusion.to_json() if chosen.fusion else None
            search = {**writer.manifest.search, "mode": chosen.mode, "fusion": fusion}
            writer.commit(search=search, bm25=chosen.bm25)
        self.refresh()
        return tuning

    def tune_recall(
        self, target: float, k: int = 10, texts: Sequence[str] | None = None, *, sample: int = 500
    ) -> RecallTuning:
        """Choose how many candidates approximate vector search examines for a recall of `target` at k.

        Queries are `texts`, or `sample` held-out documents. The choice is stored in the index. Raises InputError if
        `target` or the queries are invalid, IndexesError if the index searches exactly, BackendUnavailableError if a
        server does not answer.
        """
        from linker.engine.recall import tune_recall

        self._check_single()
        index: Any = self.collection.ranking().vectors
        if index is None:
            raise IndexesError(
                f"{shown(self.directory)} has no vectors to tune: build it again with `encoder`"
            )
        if isinstance(index, Unavailable):
            raise index.error
        index = getattr(index, "retriever", index)  # unwrap the circuit breaker of a server's index
        tuning = tune_recall(index, target, k, None if texts is None else self.embed(texts), sample)
        with self._writer() as writer:
            writer.commit(search={**writer.manifest.search, "vectors": dict(tuning.chosen.settings)})
        self.refresh()
        return tuning
