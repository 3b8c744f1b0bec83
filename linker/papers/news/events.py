"""Training pairs for deciding whether two articles report the same event, not just whether their topics are similar.

An article's nearest neighbours share its topic; names, places, dates and numbers distinguish them. So pairs that
people judged to be the same are contrasted with the neighbours, not with articles that are plainly different.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from linker.base.errors import InputError
from linker.papers.news.articles import SAME, UNRELATED, NewsPair, targets
from linker.papers.news.selftrain import articles_of
from linker.papers.news.siamese import Siamese

SAME_EVENT = 1.5  # maximum human score of pairs that count as reports of one event
TOP = 2  # neighbours of each article


def event_pairs(pairs: Sequence[NewsPair], encoder: Siamese, top: int = TOP) -> list[NewsPair]:
    """Return each article with its `top` nearest neighbours, scored 1 if both report one event, else 4.

    Two articles report one event if people scored them at most SAME_EVENT.

    Raises InputError if a pair has no score, or if none or all of them report one event.
    """
    targets(pairs)
    judged = [
        replace(pair, score=SAME if (pair.score or UNRELATED) <= SAME_EVENT else UNRELATED) for pair in pairs
    ]
    same = sum(pair.score == SAME for pair in judged)
    if not 0 < same < len(judged):
        raise InputError(
            f"{same} of {len(judged)} pairs have a score of at most {SAME_EVENT:g}: to learn what reports of one event "
            "have in common, give pairs below this score and pairs above it"
        )
    return [*judged, *(replace(pair, score=UNRELATED) for pair in nearest_pairs(pairs, encoder, top))]


def nearest_pairs(pairs: Sequence[NewsPair], encoder: Siamese, top: int = TOP) -> list[NewsPair]:
    """Return pairs, without scores, of each article and the `top` others with the highest cosines.

    Articles that are already in a pair together are left out; a pair found from both of its articles is returned
    once.
    """
    articles = articles_of(pairs)
    rows = {article.full: row for row, article in enumerate(articles)}
    vectors = np.asarray(encoder.encode([article.full for article in articles]), np.float32)
    cosines = vectors @ vectors.T
    np.fill_diagonal(cosines, -np.inf)
    for pair in pairs:
        a, b = rows[pair.first.full], rows[pair.second.full]
        cosines[a, b] = cosines[b, a] = -np.inf
    found: dict[tuple[int, int], None] = {}
    for row, of_row in enumerate(cosines):
        for other in np.argsort(-of_row, kind="stable")[:top].tolist():
            if np.isfinite(of_row[other]):
                found[min(row, other), max(row, other)] = None
    return [NewsPair(f"nearest-{a}-{b}", articles[a], articles[b]) for a, b in found]
