"""Fold near-duplicates (retweets, copies, news agency texts) in a result list into one entry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse

from linker.scoring.groups.copies import THRESHOLD, are_copies, normalised_words, shingles

if TYPE_CHECKING:
    from indexes.interface import Document
    from linker.engine.engine import Engine

COPIES = 32  # initial number of hits compared with a document to find its copies


@dataclass(frozen=True, slots=True)
class Folded:
    """Positions in a result list: the best-ranked text of a group, and its near-duplicates in order of rank."""

    leader: int
    copies: tuple[int, ...] = ()


def fold(texts: Sequence[str], threshold: float = THRESHOLD) -> list[Folded]:
    """Group the near-duplicates in a result list, best first; each text is in exactly one group.

    A text joins the first group whose leader has the same words, or whose shingles have a Jaccard similarity (Broder,
    1997: |A ∩ B| / |A ∪ B|) of at least `threshold` with the text's. A text is compared with leaders only, so that no
    chain of small changes joins two different texts. All intersections come from one exact sparse product: a result
    list is too short to need MinHash. Texts without words are never folded.
    """
    words = [normalised_words(text) for text in texts]
    first: dict[str, int] = {}  # words → position of the first text that has exactly these
    same = [first.setdefault(" ".join(w), i) if w else i for i, w in enumerate(words)]
    distinct = sorted(set(same))
    similar = _similarity([shingles(words[i]) for i in distinct])
    leaders: list[int] = []  # positions among the distinct texts
    leader_of: dict[int, int] = {}
    for at, i in enumerate(distinct):
        joined = next((lead for lead in leaders if similar[at, lead] >= threshold), None)
        if joined is None:
            leaders.append(at)
        leader_of[i] = i if joined is None else distinct[joined]
    groups: dict[int, list[int]] = {}
    for i, text in enumerate(same):
        groups.setdefault(leader_of[text], []).append(i)
    return [Folded(members[0], tuple(members[1:])) for members in groups.values()]


def _similarity(sets: Sequence[set[str]]) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Return the Jaccard similarity of each pair of sets [n, n]; 0 for two empty sets."""
    columns: dict[str, int] = {}
    indices = [columns.setdefault(s, len(columns)) for members in sets for s in members]
    sizes = np.array([len(members) for members in sets], dtype=np.float64)
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    shape = (len(sets), max(len(columns), 1))
    member = scipy.sparse.csr_array((np.ones(len(indices)), indices, starts), shape=shape)
    shared = np.asarray((member @ member.T).todense())
    union = sizes[:, None] + sizes[None, :] - shared
    return shared / np.maximum(union, 1)


def copies(engine: Engine, document: Document, *, query: str = "") -> tuple[str, ...]:
    """Return the ids of the documents that are copies of `document`, in the order of a search for it.

    A copy is a text that `fold` would put in the document's group: it has the same words, or similar enough shingles.
    Copies rank first if the query is the text itself or, which is faster, its rarest words (`query`); so only the top
    hits are compared, and their number is doubled as long as the second half still contains a copy. Raises
    IndexesError if the index cannot be searched.
    """
    text = query or document.full_text
    words = normalised_words(document.full_text)
    own, k = shingles(words), COPIES
    while True:
        (hits,) = engine.search(text, k, mode="bm25", stored_ranker=False, probabilities=False).hits
        others = [id_ for id_ in hits.ids if id_ != document.id]
        collection = engine.collection
        texts = (collection.documents[row].full_text for row in collection.rows.locate(others).tolist())
        alike = [i for i, text in enumerate(texts) if _is_copy(text, words, own)]
        if max(alike, default=-1) < len(others) // 2 or len(hits) < k:
            return tuple(others[i] for i in alike)
        k *= 2


def _is_copy(text: str, words: Sequence[str], own: set[str]) -> bool:
    other = normalised_words(text)
    if not words or not other or other == words:
        return bool(words) and other == words
    return are_copies(own, shingles(other))
