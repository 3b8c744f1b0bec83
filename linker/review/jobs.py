"""Which of the two jobs a review has: everything about one story, or the match of each row."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from linker.review.settings import Unit

FEWEST = 10  # seeds: fewer may be about one story without a word in common
COMMON, TIMES = (
    0.5,
    2,
)  # a word of a story is in this share of its seeds, so many times what their lengths let expect
WORD = re.compile(r"[^\W\d_]{4,}")
ADDRESS = re.compile(r"(?:https?://|www\.|\w+\.\w+\.?\w*/)\S+")


def guess_unit(seeds: Sequence[str], documents: Sequence[str]) -> Unit:
    """Return "topic" where the seeds are few, or share a word that the documents seldom have; else "pairs"."""
    if len(seeds) < FEWEST:
        return "topic"
    among_seeds, among_documents = _counts(seeds), _counts(documents)
    longer = (among_seeds.total() / len(seeds)) / max(among_documents.total() / max(len(documents), 1), 1)
    for word, count in among_seeds.items():
        expected = 1 - (1 - among_documents[word] / max(len(documents), 1)) ** longer
        if count / len(seeds) >= max(COMMON, TIMES * expected):
            return "topic"
    return "pairs"


def _counts(texts: Iterable[str]) -> Counter[str]:
    """Return in how many texts each word is; addresses are left out, since posts of all stories share them."""
    return Counter(word for text in texts for word in set(WORD.findall(ADDRESS.sub("", text.lower()))))
