"""A text index of several fields, ranked by BM25F: a BM25 index for each field, all with the same row numbers."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

import numpy as np

from indexes.arrays import check_k
from indexes.interface import Document, Filter, Metadata, RowArray, ScoreArray
from indexes.rows import Rows
from indexes.text.analysis import Analysis
from indexes.text.bm25 import Bm25Index
from indexes.text.field_scoring import FieldScorer
from indexes.text.parameters import AnalysisSettings, Bm25Parameters
from indexes.text.postings import PostingsSegment
from indexes.text.queries import query_terms
from indexes.text.scoring import Bm25Scorer


def folder_of(number: int) -> str:
    """Return the name of the folder with a field's postings, given the field's position in the parameters."""
    return f"f{number}"


class FieldsIndex:
    """A TextSearch by BM25F over the fields in `parameters`; searches may run concurrently, but not during a change."""

    def __init__(
        self, indexes: Sequence[Bm25Index], rows: Rows, analysis: AnalysisSettings, parameters: Bm25Parameters
    ) -> None:
        """`indexes` has one index over `rows` for each field in `parameters`, in the same order."""
        self._names = [field.name for field in parameters.fields]
        self._indexes, self._rows, self._parameters = indexes, rows, parameters
        self.analysis = Analysis(analysis)
        self._query_terms = query_terms(self.analysis.settings)
        self._scorer: FieldScorer | None = None

    @classmethod
    def empty(cls, analysis: AnalysisSettings, parameters: Bm25Parameters, rows: Rows | None = None) -> Self:
        """Return an empty index in memory."""
        rows = Rows() if rows is None else rows
        return cls([Bm25Index(analysis, None, rows) for _ in parameters.fields], rows, analysis, parameters)

    @classmethod
    def open(
        cls,
        snapshot: Path,
        rows: Rows,
        analysis: AnalysisSettings,
        parameters: Bm25Parameters,
        known: Mapping[str, PostingsSegment] | None = None,
    ) -> Self:
        """Open a snapshot for reading; see `Bm25Index.open`. Raises DamagedError, FileNotFoundError."""
        numbers = range(len(parameters.fields))
        indexes = [Bm25Index.open(snapshot / folder_of(n), rows, analysis, known=known) for n in numbers]
        return cls(indexes, rows, analysis, parameters)

    @classmethod
    def resume(
        cls,
        snapshot: Path | None,
        scratch: Path,
        rows: Rows,
        analysis: AnalysisSettings,
        parameters: Bm25Parameters,
        known: Mapping[str, PostingsSegment] | None = None,
        *,
        building: bool = True,
    ) -> Self:
        """Return an index that continues from a snapshot in the folder `scratch`; see `Bm25Index.resume`."""
        names = [folder_of(n) for n in range(len(parameters.fields))]
        indexes = [
            Bm25Index.resume(
                snapshot / name if snapshot else None,
                scratch / name,
                rows,
                analysis,
                known=known,
                building=building,
            )
            for name in names
        ]
        return cls(indexes, rows, analysis, parameters)

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def folders(self) -> dict[str, Bm25Index]:
        """The index of each field, by the name of its folder in a snapshot."""
        return {folder_of(number): index for number, index in enumerate(self._indexes)}

    @property
    def segments(self) -> Sequence[PostingsSegment]:
        """The segments of all fields, excluding additions since the last commit."""
        return [segment for index in self._indexes for segment in index.segments]

    def add(self, documents: Sequence[Document], metadata: Sequence[Metadata] | None = None) -> None:
        """Add a batch, all or nothing; filters match against `metadata`. Raises DuplicateIdError, BadIdError."""
        # Steps that can fail come first: half a batch must never be added.
        parts = [
            index.numbers([document.field(name) for document in documents])
            for name, index in zip(self._names, self._indexes, strict=True)
        ]
        self._rows.append([document.id for document in documents], metadata)
        for index, part in zip(self._indexes, parts, strict=True):
            index.extend(*part)

    def remove(self, ids: Sequence[str]) -> None:
        """Remove a batch, all or nothing. Raises UnknownIdError."""
        self._rows.remove(ids)

    def commit(self) -> None:
        """Make changes searchable and durable in the folders, if there are any. Raises IndexesError, OSError."""
        self._committed()

    def scorers(self) -> dict[str, Bm25Scorer]:
        """Return the BM25 scorer of each field, by field name."""
        return dict(zip(self._names, [index.scorer() for index in self._indexes], strict=True))

    def _committed(self) -> FieldScorer:
        scorers = self.scorers()
        if self._scorer is None or not self._scorer.is_over(scorers):
            self._scorer = FieldScorer(scorers)
        return self._scorer

    def close(self) -> None:
        """Close the index; changes since the last commit may be lost."""
        for index in self._indexes:
            index.close()

    def holding(self, terms: Sequence[int]) -> RowArray:
        """Return the rows (int64 [n], ascending) that may have all of `terms` (hashes).

        Without both title and text among the fields, any row may have them. Raises the errors of `search_rows`.
        """
        if not {"title", "text"} <= set(self._names):
            return np.arange(len(self._rows.ids))
        return self._committed().holding(terms)

    def search_rows(
        self, queries: Sequence[str], k: int, where: Filter | None = None, bm25: Bm25Parameters | None = None
    ) -> tuple[RowArray, ScoreArray]:
        """Return rows and scores, both [n, k], best first, padded with −1 and −inf.

        `bm25` replaces the index's own parameters; fields that it does not name are left out, unless it names no
        fields. Raises IndexesError if k is below 1, there is no such field or the index is closed, DamagedError if a
        file has become shorter.
        """
        check_k(k)
        parameters = self._parameters.of_query(bm25 or self._parameters)
        return self._committed().best(self._query_terms.of(queries), k, self._rows.mask(where), parameters)
