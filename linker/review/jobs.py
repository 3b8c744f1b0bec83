"""Guess which of the two jobs a review has: everything about one story, or a match for each row."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from linker.review.settings import Unit

FEWEST = 10  # minimum number of seeds for pairs: fewer may be about one story without sharing a word
SEEDS, DOCUMENTS, CHARACTERS = 40, 1000, 3000  # how many seeds, documents and characters of each are examined
TOP = 0.01  # share of the documents that count as a seed's nearest, at most ten
SHARED = 0.045  # share of their nearest documents that two seeds have in common: about 0.01 by chance
OFTEN = 0.1  # share of the documents: a word in more of them is not informative
COMMON, TIMES = 0.5, 2  # a story's word is in this share of the seeds, twice as often as in the documents
WORD = re.compile(r"[^\W\d_]{4,}")
ADDRESS = re.compile(r"(?:https?://|www\.|\w+\.\w+\.?\w*/)\S+")


def guess_unit(seeds: Sequence[str], documents: Sequence[str]) -> Unit:
    """Return "topic" if there are few seeds, or if they lead to the same documents; else "pairs".

    Seeds that share no words with the documents (being in another language) are about one story if half of them share a
    word.
    """
    if len(seeds) < FEWEST:
        return "topic"
    ours, theirs = _words(_spread(seeds, SEEDS)), _words(_spread(documents, DOCUMENTS))
    near = _nearest(ours, theirs)
    if sum(map(bool, near)) < len(near) / 2:
        return "topic" if _has_common_word(ours, theirs) else "pairs"
    most = max(map(len, near))
    shared = [len(a & b) / most for a, b in itertools.combinations(near, 2)]
    return "topic" if sum(shared) >= SHARED * len(shared) else "pairs"


def _spread(texts: Sequence[str], most: int) -> Sequence[str]:
    """Return a sample of the texts, evenly spread, since files are often in chronological order."""
    return texts[:: math.ceil(len(texts) / most)] if texts else texts


def _words(texts: Iterable[str]) -> list[frozenset[str]]:
    """Return the words of each text, without those in web addresses, which posts of all stories share."""
    return [frozenset(WORD.findall(ADDRESS.sub("", text[:CHARACTERS].lower()))) for text in texts]


def _nearest(seeds: Sequence[frozenset[str]], documents: Sequence[frozenset[str]]) -> list[set[int]]:
    """Return the positions of the documents most similar to each seed, by the cosine of rare words."""
    places = defaultdict(list)
    for place, words in enumerate(documents):
        for word in words:
            places[word].append(place)
    weights = {
        word: math.log(1 + len(documents) / len(found)) ** 2
        for word, found in places.items()
        if len(found) <= max(1, OFTEN * len(documents))
    }
    lengths = [math.sqrt(sum(weights.get(word, 0) for word in words)) for words in documents]
    count, found = min(10, math.ceil(TOP * len(documents))), []
    for words in seeds:
        scores: dict[int, float] = defaultdict(float)
        for word in words & weights.keys():
            for place in places[word]:
                scores[place] += weights[word] / lengths[place]
        # a seed that is one of the documents finds itself
        same = [place for place in scores if documents[place] == words]
        for place in same:
            del scores[place]
        found.append(set(sorted(scores, key=scores.__getitem__, reverse=True)[:count]))
    return found


def _has_common_word(seeds: Sequence[frozenset[str]], documents: Sequence[frozenset[str]]) -> bool:
    ours, theirs = (Counter(itertools.chain.from_iterable(texts)) for texts in (seeds, documents))
    return any(
        count / len(seeds) >= max(COMMON, TIMES * theirs[word] / max(len(documents), 1))
        for word, count in ours.items()
    )
