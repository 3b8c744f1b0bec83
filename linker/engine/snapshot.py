"""One generation of an index, opened by an `Engine`; a search uses one generation from beginning to end."""

from __future__ import annotations

import dataclasses
import functools
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from indexes.address import shown
from indexes.anywhere import AnyCollection
from indexes.arrays import check_k
from indexes.hybrid import Answer, Mode, OnFailure, by_filter
from indexes.interface import BackendUnavailableError, Filter, Hits, IndexesError, Matrix, check_vectors
from indexes.showing import WIDTH, Pieces
from indexes.text.parameters import Bm25Parameters
from linker.base.errors import InputError
from linker.encoders.opened import OwnEncoder
from linker.engine.evidence import evidence, query_terms
from linker.engine.foreign import Foreign
from linker.engine.generation import Generation, Stamp
from linker.engine.lexicons import QueryLexicon, translate_queries
from linker.engine.options import SearchOptions
from linker.scoring.ranking.ranker import Ranker
from linker.scoring.reranking import rerank

if TYPE_CHECKING:
    import numpy.typing as npt

    from indexes.dtypes import Float64Array
    from linker.scoring.probability.answering import Probabilities
    from linker.scoring.ranking.searching import RankedSearch


class Snapshot(Generation):
    """A committed generation and its ranker. Any number of threads may search; later commits do not disturb it."""

    def __init__(
        self, collection: AnyCollection, seen: Stamp | None, encoder: OwnEncoder, on_failure: OnFailure
    ) -> None:
        super().__init__(collection, seen, encoder, on_failure)
        self._lock = threading.RLock()
        self._ranker: Ranker | None = None
        self._search: RankedSearch | None = None
        self._probabilities: Probabilities | None = None

    @functools.cached_property
    def lexicons(self) -> tuple[QueryLexicon, ...]:
        """The lexicons stored in the index, one per language of queries. Raises InputError if one is damaged."""
        name = self.collection.manifest.search.get("lexicon")
        if not name:
            return ()
        with self.collection.stored(name) as folder:
            return tuple(QueryLexicon.read(path) for path in sorted(folder.iterdir()))

    @functools.cached_property
    def foreign(self) -> Foreign:
        """The documents in the languages for which the index has a lexicon. Raises InputError if one is damaged."""
        return Foreign(self.collection, self.lexicons)

    @property
    def ranker(self) -> Ranker | None:
        """The ranker stored in the index, loaded on first use. Raises InputError if it is damaged."""
        name = self.collection.manifest.search.get("ranker")
        if not name:
            return None
        with self._lock:
            if self._ranker is None:
                from linker.scoring.ranking.folder import load

                with self.collection.stored(name) as folder:
                    self._ranker = load(folder)
            return self._ranker

    def ranked_search(self, ranker: Ranker) -> RankedSearch:
        """Return the search that uses this ranker. Raises InputError if it was trained with another encoder."""
        from linker.scoring.ranking.searching import RankedSearch

        with self._lock:
            if self._search is None or self._search.ranker is not ranker:
                self._search = RankedSearch(self.collection, ranker, self.embed)
            return self._search

    def search(self, texts: Sequence[str], options: SearchOptions) -> Answer:
        """Search this generation as `Engine.search` does; the hits read their documents from it."""
        where = options.filter
        notes = self._filter_notes(where)
        read, remarks = translate_queries(texts, self.lexicons)
        if options.phrases and texts:
            filters = [self.collection.phrases.filter(text, where) for text in texts]
            answer = by_filter(lambda part, allowed: self._answer(part, options, allowed), read, filters)
        else:
            answer = self._answer(read, options, where)
        return self._readable(_with_notes(answer, (*notes, *remarks)), read)

    def _filter_notes(self, where: Filter | None) -> tuple[str, ...]:
        """Return notes about a filter's values. Raises BadFilterError if the filter is invalid for these documents."""
        if where is None:
            return ()
        self.collection.check_fields(where)
        return self.collection.misfits(where)

    def by_vectors(self, vectors: Matrix, texts: Sequence[str], options: SearchOptions) -> Answer:
        """Search by query vectors, float32 [n, dim], and by the texts that they represent, if any.

        The stored ranker and calibration are not used: they were fitted on the index's own search.
        """
        where = options.filter
        notes = self._filter_notes(where)
        mode: Mode = options.mode or ("hybrid" if texts and self.collection.hybrid.text else "dense")
        words = texts or [""] * len(vectors)
        first = max(options.k, options.depth) if options.reranker and options.k > 0 else options.k
        answer = self.collection.hybrid.search(
            words, first, embed=lambda _: vectors, mode=mode, where=where, bm25=options.bm25
        )
        if options.reranker and not isinstance(options.reranker, Ranker):
            document = self.collection.document
            answer = rerank(answer, texts, options.reranker, document, options.k, options.weight)
        return self._readable(_with_notes(answer, notes), words)

    def _readable(self, answer: Answer, texts: Sequence[str]) -> Answer:
        document, mark = self.collection.document, self._marking
        hits = [
            Hits(h.ids, h.scores, document, mark(text), h.probabilities, h.no_match)
            for h, text in zip(answer.hits, texts, strict=True)
        ]
        return dataclasses.replace(answer, hits=hits)

    def _marking(self, query: str) -> Callable[[str], Pieces]:
        terms = None

        def mark(text: str) -> Pieces:
            nonlocal terms
            terms = query_terms(self.collection, query) if terms is None else terms
            return evidence(self.collection, terms, text).excerpt(WIDTH).pieces

        return mark

    def _answer(self, texts: Sequence[str], options: SearchOptions, where: Filter | None) -> Answer:
        k, reranker = options.k, options.reranker
        if reranker is None and options.mode is None and options.bm25 is None and options.stored_ranker:
            reranker = self.ranker
        if isinstance(reranker, Ranker):
            answer = self._rank(texts, k, where, reranker)
        else:
            first = max(k, options.depth) if reranker and k > 0 else k
            answer = self._first(texts, first, where, options)
            if reranker:
                answer = rerank(answer, texts, reranker, self.collection.document, k, options.weight)
        return self._with_probabilities(answer, texts, where) if options.probabilities else answer

    def _first(self, texts: Sequence[str], k: int, where: Filter | None, options: SearchOptions) -> Answer:
        """Return the candidates for a pair scorer to rerank: the stored ranker's, unless `options` say otherwise."""
        ranker = self.ranker if options.reranker and options.stored_ranker else None
        if ranker is None or options.mode is not None or options.bm25 is not None:
            return self._ask(texts, k, where, options.mode, options.bm25)
        return self._rank(texts, k, where, ranker)

    def _with_probabilities(self, answer: Answer, texts: Sequence[str], where: Filter | None) -> Answer:
        """Add P(link) of each hit to an answer or, if it is not available, a note with the reason."""
        if not answer.ranker and not self.collection.manifest.search.get("calibration"):
            return answer
        from linker.scoring.probability.answering import of_ranker, refuse

        if answer.ranker:
            return of_ranker(answer)
        try:
            return self.calibrated().with_probabilities(answer, texts, where)
        except InputError as e:
            return refuse(answer, e)

    def probabilities(
        self, texts: Sequence[str], answer: Answer, where: Filter | None = None
    ) -> list[Float64Array]:
        """Return P(link) of each hit, one array per text; NaN if unknown. Raises the errors of `calibrated`."""
        if answer.probabilities is None:
            answer = self.calibrated().with_probabilities(answer, texts, where)
        if answer.probabilities is None:
            raise BackendUnavailableError(answer.notes[-1])
        return list(answer.probabilities)

    def calibrated(self) -> Probabilities:
        """Return the index's calibration. Raises InputError if it is missing, damaged or belongs to another index."""
        directory, name = self.collection.directory, self.collection.manifest.search.get("calibration")
        if not name:
            raise InputError(f"{shown(directory)} has no calibration: fit one with `linker calibrate`")
        with self._lock:
            if self._probabilities is None:
                from linker.scoring.probability.answering import Probabilities
                from linker.scoring.probability.folder import load

                with self.collection.stored(name) as folder:
                    calibration = load(folder)
                self._probabilities = Probabilities(self.collection, calibration, self.embed)
            return self._probabilities

    def _rank(self, texts: Sequence[str], k: int, where: Filter | None, ranker: Ranker) -> Answer:
        from linker.scoring.ranking.searching import fill_up

        check_k(k)
        try:
            answer = self.ranked_search(ranker).search(texts, k, where)
        except BackendUnavailableError as e:
            if self._on_failure == "fail":
                raise
            first = self._ask(texts, k, where)
            reason = first.degraded or f"the ranker is unavailable: {e}"
            return dataclasses.replace(first, degraded=reason)
        if all(len(hits) >= k for hits in answer.hits):
            return answer
        return fill_up(answer, self._ask(texts, k, where), k)

    def _ask(
        self,
        texts: Sequence[str],
        k: int,
        where: Filter | None,
        mode: Mode | None = None,
        bm25: Bm25Parameters | None = None,
    ) -> Answer:
        manifest = self.collection.manifest
        if mode is None and "mode" not in manifest.search and manifest.encoder and self._encoder.is_given:
            mode = "hybrid"  # the vectors were computed elsewhere, and the user now names their encoder
        return self.collection.hybrid.search(texts, k, embed=self.embed, mode=mode, where=where, bm25=bm25)


def _with_notes(answer: Answer, notes: Sequence[str]) -> Answer:
    return dataclasses.replace(answer, notes=(*notes, *answer.notes)) if notes else answer


def query_vectors(vectors: npt.ArrayLike, texts: Sequence[str], options: SearchOptions) -> Matrix:
    """Return query vectors, float32 [n, dim]. Raises IndexesError if they do not match the other arguments."""
    matrix = check_vectors(np.atleast_2d(np.asarray(vectors)), None)
    if texts and len(texts) != len(matrix):
        raise IndexesError(f"expected one vector per text, got {len(matrix)} for {len(texts)} texts")
    if not texts and (options.reranker or options.bm25 or options.mode in ("bm25", "hybrid")):
        raise IndexesError(
            "vectors alone are searched by cosine: give the texts, too, for BM25 or a reranker"
        )
    if options.phrases or isinstance(options.reranker, Ranker):
        raise IndexesError(
            "neither phrases nor a learned ranker can be combined with vectors: leave one of them out"
        )
    return matrix
