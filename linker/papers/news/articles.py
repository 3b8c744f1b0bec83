"""Pairs of news articles, graded from 1 (the same story) to 4 (unrelated) as in SemEval-2022 Task 8."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from indexes.dtypes import Float64Array
from linker.base.errors import InputError
from linker.scoring.pairs.data import filled_lines, json_object
from linker.scoring.pairs.words import count_words, first_words

SAME, UNRELATED = 1.0, 4.0
LEAST = 10  # minimum number of words per article (Singh et al., 2022)
HEADLINE = 15  # words that stand in for a missing title
SCORES = ("overall", "score", "gold")


@dataclass(frozen=True, slots=True)
class Article:
    """One article of a pair. `language` is a code such as "de"; `date`, the day of publication, is free text."""

    text: str
    title: str = ""
    language: str = ""
    date: str = ""

    @property
    def full(self) -> str:
        """Title and text, the input for encoding and entity recognition."""
        return f"{self.title} {self.text}".strip()

    @property
    def headline(self) -> str:
        """The title, or if there is none, the beginning of the first line."""
        return self.title.strip() or first_words(self.text.strip().partition("\n")[0], HEADLINE)


@dataclass(frozen=True, slots=True)
class NewsPair:
    """Two articles; `score` is the human judgement from 1 (the same story) to 4, None if there is none."""

    id: str
    first: Article
    second: Article
    score: float | None = None

    @property
    def kind(self) -> str:
        """Both languages, as in "de-en"; empty if neither is known."""
        languages = (self.first.language, self.second.language)
        return "-".join(languages) if any(languages) else ""


@dataclass(frozen=True, slots=True)
class ScorablePairs:
    """Pairs that can be scored, and the ids of those left out because an article is empty or short."""

    pairs: tuple[NewsPair, ...]
    empty: tuple[str, ...]
    short: tuple[str, ...]

    @property
    def remark(self) -> str:
        """A sentence that says how many pairs were left out; empty if none were."""
        if not self.empty and not self.short:
            return ""
        return (
            f"{len(self.pairs)} pairs are used; left out: {len(self.empty)} with an empty article, "
            f"{len(self.short)} with an article of fewer than {LEAST} words"
        )


def similarity(score: float) -> float:
    """Return the similarity (4 − x)/3, from 0 to 1, of a score x from 1 to 4."""
    return (UNRELATED - score) / (UNRELATED - SAME)


def scores_of(similarities: Float64Array) -> Float64Array:
    """Return the scores 4 − 3p, clipped to [1, 4], of predicted similarities p: float64 [n]."""
    return np.asarray(np.clip(UNRELATED - (UNRELATED - SAME) * similarities, SAME, UNRELATED), np.float64)


def targets(pairs: Sequence[NewsPair]) -> Float64Array:
    """Return the human similarities from 0 to 1, float64 [n]. Raises InputError if a pair has no score."""
    for pair in pairs:
        if pair.score is None:
            raise InputError(f"the pair {pair.id!r} has no score")
    return np.array([similarity(pair.score) for pair in pairs if pair.score is not None], np.float64)


def keep_long(pairs: Sequence[NewsPair], least: int = LEAST) -> ScorablePairs:
    """Return the pairs whose articles have at least `least` words each, and the ids of the others."""
    lengths = {
        pair.id: min(count_words(article.full) for article in (pair.first, pair.second)) for pair in pairs
    }
    return ScorablePairs(
        tuple(pair for pair in pairs if lengths[pair.id] >= least),
        tuple(pair.id for pair in pairs if lengths[pair.id] == 0),
        tuple(pair.id for pair in pairs if 0 < lengths[pair.id] < least),
    )


def keep_scorable(pairs: Sequence[NewsPair]) -> tuple[tuple[NewsPair, ...], str]:
    """Return the pairs without an empty article, and a remark on empty or short articles, if there are any."""
    kept, short = keep_long(pairs, 1), keep_long(pairs).short
    remarks = []
    if kept.empty:
        remarks.append(f"{_have(len(kept.empty))} an empty article: no score")
    if short:
        remarks.append(f"{_have(len(short))} an article of fewer than {LEAST} words: a less reliable score")
    return kept.pairs, "; ".join(remarks)


def _have(count: int) -> str:
    return "1 pair has" if count == 1 else f"{count} pairs have"


def read_news(path: Path, *, graded: bool = True) -> list[NewsPair]:
    """Read pairs from JSON lines, plain or gzipped: text1, text2, overall; optionally _id, title1, lang1, date1 …

    With `graded`, every pair needs a score. Raises InputError, naming file and line, if a pair lacks an article, its
    score is missing or outside 1–4, or its id is repeated.
    """
    pairs: dict[str, NewsPair] = {}
    for number, where, line in filled_lines(path):
        pair = _pair(line, where, number, graded)
        if pair.id in pairs:
            raise InputError(f"{where}: the id {pair.id!r} appears twice: ids must differ")
        pairs[pair.id] = pair
    if not pairs:
        raise InputError(f"{path} is empty: it holds no pairs")
    return list(pairs.values())


def _pair(line: str, where: str, number: int, graded: bool) -> NewsPair:
    fields = json_object(line, where)
    id_ = next((fields[name] for name in ("_id", "id") if fields.get(name) not in (None, "")), number)
    return NewsPair(str(id_), _side(fields, 1, where), _side(fields, 2, where), _score(fields, where, graded))


def _side(fields: dict[str, Any], side: int, where: str) -> Article:
    """Return one article of a pair. Raises InputError if it is missing; `keep_long` drops empty texts later."""
    names = ("text", "title", "lang", "date")
    values = {name: fields.get(f"{name}{side}") for name in names}
    if values["text"] is None and values["title"] is None:
        raise InputError(
            f"{where}: one article is missing: there is no text{side} (nor title{side}); add it or remove the pair"
        )
    for name, value in values.items():
        if value is not None and not isinstance(value, str):
            raise InputError(f"{where}: {name}{side} is {type(value).__name__}, not a string")
    text, title, language, date = (values[name] or "" for name in names)
    return Article(text, title, language, date)


def _score(fields: dict[str, Any], where: str, graded: bool) -> float | None:
    value = next((fields[name] for name in SCORES if fields.get(name) is not None), None)
    if value is None:
        if graded:
            raise InputError(f"{where}: no score: add a field overall from 1 (the same) to 4 (unrelated)")
        return None
    try:
        score = float(value)
    except (TypeError, ValueError):
        raise InputError(f"{where}: the score {value!r} is not a number") from None
    if not (math.isfinite(score) and SAME <= score <= UNRELATED):
        raise InputError(
            f"{where}: the score {value!r} is outside 1–4, where 1 is the same story and 4 is unrelated"
        )
    return score
