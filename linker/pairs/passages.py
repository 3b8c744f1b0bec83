"""The passages of a document that hold most of a query: what a model with a short window should read of it."""

from __future__ import annotations

import math
import re
from collections import Counter

WORD = re.compile(r"\w+")
WORDS = 120  # of a passage
STEP = 60  # words from one passage to the next


def best_passages(query: str, text: str, count: int, *, words: int = WORDS, step: int = STEP) -> list[str]:
    """Return the `count` passages of a text with the most of a query, best first; a short text whole.

    A passage counts each of the query's words that it has once, by log(1 + passages ÷ passages that have it). Equal
    passages come in the order of the text.
    """
    places = [(match.start(), match.end(), match[0].lower()) for match in WORD.finditer(text)]
    if len(places) <= words:
        return [text]
    step = min(step, words)  # nothing is left out
    starts = range(0, len(places) - words + step, step)
    wanted = set(WORD.findall(query.lower()))
    held = [{word for *_, word in places[start : start + words]} & wanted for start in starts]
    frequencies = Counter(word for found in held for word in found)
    scores = [sum(math.log1p(len(held) / frequencies[word]) for word in found) for found in held]
    best = sorted(range(len(held)), key=lambda i: (-scores[i], i))[:count]
    return [text[places[starts[i]][0] : places[min(starts[i] + words, len(places)) - 1][1]] for i in best]
