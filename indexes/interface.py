"""The common interface of all index backends: documents, hits, filters, protocols and exceptions.

A higher score is better, everywhere. Ids are strings without white space (they become TREC columns).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from indexes.dtypes import BoolArray, Float64Array
from indexes.errors import (
    BackendUnavailableError,
    BadDocumentError,
    BadFilterError,
    BadIdError,
    BadVectorError,
    DamagedError,
    DuplicateIdError,
    EncoderMismatchError,
    FormatVersionError,
    IndexesError,
    LockedError,
    MissingExtraError,
    Reason,
    UnknownIdError,
)
from indexes.filters import Condition, Filter, Mask, Metadata, RowFilter, Where, filter_values
from indexes.showing import SHOWN, Pieces, brief, marked_html, one_line, table

__all__ = [
    "BackendUnavailableError",
    "BadDocumentError",
    "BadFilterError",
    "BadIdError",
    "BadVectorError",
    "Condition",
    "DamagedError",
    "Document",
    "DuplicateIdError",
    "EncoderMismatchError",
    "Filter",
    "FormatVersionError",
    "Hit",
    "Hits",
    "IndexesError",
    "LockedError",
    "Mask",
    "Matrix",
    "Metadata",
    "MissingExtraError",
    "RowArray",
    "RowFilter",
    "RowSearch",
    "ScoreArray",
    "TextIndex",
    "UnknownIdError",
    "VectorIndex",
    "Where",
    "check_id",
    "check_ids",
    "check_vectors",
    "filter_values",
]

Matrix = npt.NDArray[np.float32]  # [n, d], one vector per row
RowArray = npt.NDArray[np.int64]  # row numbers in one index; −1 pads short results
ScoreArray = npt.NDArray[np.float32]


def check_id(value: object) -> str:
    """Return `value` if it is a valid id. Raises BadIdError, which says why not."""
    if not isinstance(value, str):
        raise BadIdError(Reason(f"id {value!r} is {type(value).__name__}, not a string", "not-text"))
    if not value:
        raise BadIdError(Reason("empty id", "empty-id"))
    if " " in value or not value.isprintable():  # the space is the only printable whitespace character
        why = "holds white space or control characters, which no column of a TREC file can hold"
        raise BadIdError(Reason(f"id {value!r} {why}", "spaces-in-id", id=value))
    return value


def check_ids(ids: Sequence[object]) -> None:
    """Raise BadIdError, as `check_id` does, unless all of `ids` are valid; checking them together is far faster."""
    if all(isinstance(id_, str) and id_ for id_ in ids):
        joined = "".join(map(str, ids))
        if joined.isprintable() and " " not in joined:
            return
    for id_ in ids:
        check_id(id_)


def check_vectors(vectors: npt.ArrayLike, dim: int | None, ids: Sequence[str] | None = None) -> Matrix:
    """Return `vectors` as contiguous float32 [n, dim]; a `dim` of None accepts any dimension. Raises BadVectorError."""
    matrix = np.ascontiguousarray(vectors, dtype=np.float32)
    if matrix.ndim != 2 or (dim is not None and matrix.shape[1] != dim):
        raise BadVectorError(
            f"vectors have shape {matrix.shape}, expected [n, {dim if dim is not None else 'd'}]"
        )
    if ids is not None and len(ids) != len(matrix):
        raise BadVectorError(f"expected one vector per id, got {len(ids)} ids and {len(matrix)} vectors")
    finite = np.isfinite(matrix).all(axis=1)
    if not finite.all():
        row = int(np.argmin(finite))
        name = f" (id {ids[row]!r})" if ids is not None else ""
        raise BadVectorError(f"vector {row}{name} holds NaN or infinity")
    return matrix


@dataclass(frozen=True, slots=True)
class Document:
    """One text with its id; `full_text` (title, newline, text) is what is indexed and encoded."""

    id: str
    text: str
    title: str = ""
    metadata: Metadata = field(default_factory=dict)

    @property
    def full_text(self) -> str:
        """Title and text, joined by a newline if there is a title."""
        return f"{self.title}\n{self.text}" if self.title else self.text

    def field(self, name: str) -> str:
        """Return the title, the text, or the values of a metadata field, one per line; empty if there is none."""
        if name in ("title", "text"):
            return self.title if name == "title" else self.text
        return "\n".join(filter_values(self.metadata.get(name)))


class Hit(NamedTuple):
    """A document that was found; `document` is None if only the index was queried, not its documents."""

    id: str
    score: float
    document: Document | None = None


@dataclass(frozen=True, slots=True)
class Hits:
    """One query's hits, best first: `ids` and `scores` (float32 [k]) of equal length.

    Iterating yields a `Hit` for each; its document is read then, by `read`, from the generation of the index that was
    searched. `mark` returns an excerpt of a text in pieces, each flagged with whether it is a word of the query.
    `probabilities`, float64 [k]: P(link) of each hit, NaN if it is not known; None without a calibration. `no_match`:
    the probability that none of the documents is relevant, if a learned ranker ordered the hits.
    """

    ids: tuple[str, ...]
    scores: ScoreArray
    read: Callable[[str], Document] | None = field(default=None, repr=False, compare=False)
    mark: Callable[[str], Pieces] | None = field(default=None, repr=False, compare=False)
    probabilities: Float64Array | None = field(default=None, repr=False, compare=False)
    no_match: float | None = None

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[Hit]:
        for id_, score in zip(self.ids, self.scores.tolist(), strict=True):
            yield Hit(id_, score, self.read(id_) if self.read else None)

    def where(self, kept: BoolArray) -> Hits:
        """Return the hits that `kept` [k] marks."""
        ids = tuple(id_ for id_, keep in zip(self.ids, kept.tolist(), strict=True) if keep)
        known = None if self.probabilities is None else self.probabilities[kept]
        return replace(self, ids=ids, scores=self.scores[kept], probabilities=known)

    def __repr__(self) -> str:
        listed = brief([f"{i} {s:.4g}" for i, s in zip(self.ids, self.scores.tolist(), strict=True)])
        return f"<{len(self)} hits{f': {listed}' if self.ids else ''}>"

    def _repr_html_(self) -> str:
        first = Hits(self.ids[:SHOWN], self.scores[:SHOWN], self.read)
        rows = [
            (rank, f"{score:.4f}", id_, self._shown(document.full_text) if document else "")
            for rank, (id_, score, document) in enumerate(first, start=1)
        ]
        return table(rows, ("rank", "score", "id", "text"), f"{len(self)} hits")

    def _shown(self, text: str) -> str:
        return marked_html(self.mark(" ".join(text.split()))) if self.mark else one_line(text)


@runtime_checkable
class VectorIndex(Protocol):
    """Vectors by string id, compared by inner product after L2 normalisation, so a score is a cosine."""

    @property
    def dim(self) -> int:
        """Dimension of the vectors."""
        ...

    def add(self, ids: Sequence[str], vectors: Matrix, metadata: Sequence[Metadata] | None = None) -> None:
        """Add a batch, all or nothing. Raises DuplicateIdError, BadIdError, BadVectorError."""
        ...

    def remove(self, ids: Sequence[str]) -> None:
        """Remove a batch, all or nothing. Raises UnknownIdError naming the missing ids."""
        ...

    def search(self, vectors: Matrix, k: int, where: Filter | None = None) -> list[Hits]:
        """Return the top min(k, matching) documents for each of `vectors` (float32 [n, dim]).

        Equal scores come in row order. Raises IndexesError if k is below 1, BadVectorError.
        """
        ...

    def __len__(self) -> int:
        """Return the number of live documents."""
        ...


@runtime_checkable
class TextIndex(Protocol):
    """Texts by string id, ranked by BM25; a document that shares no term with the query is not returned."""

    def add(
        self, ids: Sequence[str], texts: Sequence[str], metadata: Sequence[Metadata] | None = None
    ) -> None:
        """Add a batch, all or nothing. Raises DuplicateIdError, BadIdError."""
        ...

    def remove(self, ids: Sequence[str]) -> None:
        """Remove a batch, all or nothing. Raises UnknownIdError naming the missing ids."""
        ...

    def search(self, texts: Sequence[str], k: int, where: Filter | None = None) -> list[Hits]:
        """Return the top k documents for each query; ties come in row order. Raises IndexesError if k is below 1."""
        ...

    def __len__(self) -> int:
        """Return the number of live documents."""
        ...


@runtime_checkable
class RowSearch(Protocol):
    """A search whose results are row numbers, so that they can be fused without handling strings.

    Two indexes that received the same documents in the same order have the same row numbers.
    """

    def search_rows(self, queries: Any, k: int, where: Filter | None = None) -> tuple[RowArray, ScoreArray]:
        """Return rows and scores, both [n_queries, k], best first, padded with row −1 and score −inf.

        `queries` is a sequence of texts, or vectors (float32 [n_queries, dim]). Raises IndexesError if k is below 1.
        """
        ...
