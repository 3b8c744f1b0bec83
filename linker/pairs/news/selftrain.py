"""Semi-supervision for pairs of articles: pairs sampled by BM25 and labelled by a model, and translated pairs."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from indexes.interface import TextIndex
from linker.errors import InputError
from linker.pairs.news.articles import Article, NewsPair, scores_of, targets
from linker.pairs.translate import Translator

if TYPE_CHECKING:
    from linker.pairs.news.similarity import NewsSimilarity

TOP = 5  # articles that each one is paired with


def articles_of(pairs: Sequence[NewsPair]) -> list[Article]:
    """Return every distinct article once, in order; texts decide."""
    sides = (side for pair in pairs for side in (pair.first, pair.second))
    return list({side.full: side for side in sides}.values())


def sample_pairs(
    articles: Sequence[Article], index: TextIndex, known: Sequence[NewsPair], top: int = TOP
) -> list[NewsPair]:
    """Pair each article with the `top` others that BM25 ranks best for its title; known pairs are left out.

    `index` must be empty; the articles are added to it. A pair found from both sides counts once. No scores yet.
    """
    if len(index):
        raise InputError(f"sampling needs an empty text index; this one holds {len(index)} documents")
    rows = {article.full: row for row, article in enumerate(articles)}
    partners: dict[int, set[int]] = defaultdict(set)
    for pair in known:
        a, b = rows.get(pair.first.full), rows.get(pair.second.full)
        if a is not None and b is not None:
            partners[a].add(b)
            partners[b].add(a)
    index.add([str(row) for row in range(len(articles))], [article.full for article in articles])
    most = 1 + max(
        (len(found) for found in partners.values()), default=0
    )  # itself and what it is paired with
    found: dict[tuple[int, int], None] = {}
    for row, hits in enumerate(index.search([article.headline for article in articles], top + most)):
        others = [other for id_ in hits.ids if (other := int(id_)) != row and other not in partners[row]]
        found.update(dict.fromkeys((min(row, other), max(row, other)) for other in others[:top]))
    return [NewsPair(f"sampled-{a}-{b}", articles[a], articles[b]) for a, b in found]


def label(
    model: NewsSimilarity, pairs: Sequence[NewsPair], by: Literal["fusion", "encoder"] = "fusion"
) -> list[NewsPair]:
    """Give pairs that have no score the model's; the others keep theirs. The paper's are its encoder's cosines."""
    unscored = [pair for pair in pairs if pair.score is None]
    if not unscored:
        return list(pairs)
    found = model.predict(unscored)
    scores = found.scores if by == "fusion" else scores_of(found.columns["cosine"])
    given = iter(scores.tolist())
    return [dataclasses.replace(p, score=next(given)) if p.score is None else p for p in pairs]


def translate_pairs(
    pairs: Sequence[NewsPair],
    translator: Translator,
    language: str,
    *,
    label: Literal["pseudo", "copy"] = "pseudo",
    low: float = 0.5,
    high: float = 1.0,
) -> list[NewsPair]:
    """Translate the second sides of pairs whose similarity is in [low, high] into `language`: pairs across languages.

    Sides in that language already, or in no known one, are left out. With "copy" a pair keeps its score, with
    "pseudo" it has none until a model gives it one.
    """
    alike = [
        pair
        for pair, y in zip(pairs, targets(pairs), strict=True)
        if low <= y <= high and pair.second.language not in ("", language)
    ]
    by_language: dict[str, list[NewsPair]] = defaultdict(list)
    for pair in alike:
        by_language[pair.second.language].append(pair)
    made = []
    for source, group in by_language.items():
        texts = translator.translate([pair.second.text for pair in group], source, language)
        titled = [pair for pair in group if pair.second.title]
        titles = iter(
            translator.translate([p.second.title for p in titled], source, language) if titled else ()
        )
        for pair, text in zip(group, texts, strict=True):
            title = next(titles) if pair.second.title else ""
            second = dataclasses.replace(pair.second, text=text, title=title, language=language)
            score = pair.score if label == "copy" else None
            made.append(NewsPair(f"{pair.id}-{language}", pair.first, second, score))
    return made
