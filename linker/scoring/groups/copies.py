"""Near copies: texts with equal or nearly equal words (retweets, agency texts, second editions)."""

import re
import unicodedata
from collections.abc import Callable, Sequence

import numpy as np
from xxhash import xxh3_64_intdigest

from indexes.arrays import distinct
from indexes.dtypes import AnyArray, Int64Array
from linker.scoring.pairs.words import CHARACTER_OR_WORD

THRESHOLD = 0.7  # minimum Jaccard similarity of the shingles of two copies
SHINGLE = 3  # words per shingle

# Differences between a post and its copies that do not count: retweet marks, URLs and mentions.
_FRAME = re.compile(r"^\s*(?:rt|via)\s+@\w+\s*:?|https?://\S+|@\w+|…", re.IGNORECASE)


def without_frame(text: str) -> str:
    """Return a text without the mark of a retweet, addresses and mentions."""
    return _FRAME.sub(" ", text)


def normalised_words(text: str) -> list[str]:
    """Return a text's words for comparison, without retweet mark, addresses, mentions, case or punctuation."""
    return CHARACTER_OR_WORD.findall(unicodedata.normalize("NFKC", without_frame(text)).casefold())


def shingles(words: Sequence[str]) -> set[str]:
    """Return the distinct runs of SHINGLE words; a shorter text is one run, and one without words has none."""
    count = max(len(words) - SHINGLE + 1, min(len(words), 1))
    return {" ".join(words[i : i + SHINGLE]) for i in range(count)}


def are_copies(one: set[str], other: set[str]) -> bool:
    """Return whether two texts are copies: Jaccard similarity of shingles (Broder, 1997) at least THRESHOLD."""
    return _share_enough(len(one & other), len(one), len(other))


def _share_enough(shared: int, one: int, other: int) -> bool:
    return shared > 0 and shared >= THRESHOLD * (one + other - shared)


def leaders(count: int, pairs: Int64Array, text: Callable[[int], str]) -> Int64Array:
    """Return, for each of `count` documents, the one that it nearly copies, or itself: int64 [count].

    `pairs` int64 [m, 2] are the possible copies. In order, each document joins the first earlier document that it
    copies and that is not a copy itself, so that no chain of small changes joins two different texts.
    """
    leader = np.arange(count)
    earlier: dict[int, list[int]] = {}
    for one, other in np.sort(pairs, axis=1).tolist():
        earlier.setdefault(other, []).append(one)
    known: dict[int, AnyArray] = {}  # hashes of the shingles, which take a tenth of the memory

    def of(document: int) -> AnyArray:
        if document not in known:
            every = shingles(normalised_words(text(document)))
            hashes = np.fromiter((xxh3_64_intdigest(s.encode()) for s in every), np.uint64, len(every))
            known[document] = distinct(hashes)
        return known[document]

    for document in sorted(earlier):
        for one in sorted({int(leader[i]) for i in earlier[document]}):
            shared = np.intersect1d(of(one), of(document), assume_unique=True)
            if _share_enough(len(shared), len(of(one)), len(of(document))):
                leader[document] = one
                break
    return leader
