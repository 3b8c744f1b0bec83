"""Semi-supervision for pairs of articles: pairs that BM25 samples and a model labels, and translated pairs."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from indexes.interface import TextIndex
from linker.base.errors import InputError
from linker.papers.news.articles import Article, NewsPair, scores_of, targets
from linker.papers.news.translated import in_language
from linker.scoring.pairs.translate import Translator
from linker.scoring.pairs.words import spaced

if TYPE_CHECKING:
    from linker.papers.news.similarity import NewsSimilarity

Side = Literal["first", "second"]
TOP = 5  # articles that each article is paired with


def articles_of(pairs: Sequence[NewsPair]) -> list[Article]:
    """Return the articles with distinct titles and texts, in order."""
    articles = (article for pair in pairs for article in (pair.first, pair.second))
    return list({article.full: article for article in articles}.values())


def sample_pairs(
    articles: Sequence[Article],
    index: TextIndex,
    known: Sequence[NewsPair],
    top: int = TOP,
    *,
    pool: Sequence[Article] = (),
    titles: Sequence[str] | None = None,
) -> list[NewsPair]:
    """Return unscored pairs of each article and the `top` others that BM25 finds best by its headline.

    The others are among the articles and those of a `pool`. `titles` are searched for in place of the headlines, one
    per article: if translated, they find articles in other languages. Known pairs are left out; a pair found from
    both of its articles is returned once. All articles are added to `index`. Raises InputError if `index` is not
    empty.
    """
    if titles is None:
        titles = [article.headline for article in articles]
    own = {article.full for article in articles}
    articles = [*articles, *{a.full: a for a in pool if a.full not in own}.values()]
    if len(index):
        raise InputError(f"sampling needs an empty text index; this one holds {len(index)} documents")
    rows = {article.full: row for row, article in enumerate(articles)}
    partners: dict[int, set[int]] = defaultdict(set)
    for pair in known:
        a, b = rows.get(pair.first.full), rows.get(pair.second.full)
        if a is not None and b is not None:
            partners[a].add(b)
            partners[b].add(a)
    index.add([str(row) for row in range(len(articles))], [spaced(article.full) for article in articles])
    # Hits that may be left out: the article itself and its known partners.
    excluded = 1 + max((len(rows_) for rows_ in partners.values()), default=0)
    sampled: dict[tuple[int, int], None] = {}
    for row, hits in enumerate(index.search([spaced(title) for title in titles], top + excluded)):
        others = [other for id_ in hits.ids if (other := int(id_)) != row and other not in partners[row]]
        sampled.update(dict.fromkeys((min(row, other), max(row, other)) for other in others[:top]))
    return [NewsPair(f"sampled-{a}-{b}", articles[a], articles[b]) for a, b in sampled]


def label(
    model: NewsSimilarity, pairs: Sequence[NewsPair], by: Literal["fusion", "encoder"] = "fusion"
) -> list[NewsPair]:
    """Return the pairs, unscored ones labelled by the model or its encoder's cosine (Singh et al., 2022)."""
    unscored = [pair for pair in pairs if pair.score is None]
    if not unscored:
        return list(pairs)
    predictions = model.predict(unscored)
    scores = predictions.scores if by == "fusion" else scores_of(predictions.columns["cosine"])
    labels = iter(scores.tolist())
    return [dataclasses.replace(p, score=next(labels)) if p.score is None else p for p in pairs]


def translate_pairs(
    pairs: Sequence[NewsPair],
    translator: Translator,
    language: str | Sequence[str],
    *,
    label: Literal["pseudo", "copy"] = "pseudo",
    sides: Sequence[Side] = ("second",),
    low: float = 0.5,
    high: float = 1.0,
) -> list[NewsPair]:
    """Return cross-language pairs: each pair with a similarity in [low, high], with one article translated.

    There is one new pair per language of `language` and per side of `sides`; articles that are already in the language,
    or in an unknown one, are left out. With "copy" a pair keeps its score; with "pseudo" it has none, so that `label`
    can set it. Raises InputError if a pair has no score.
    """
    similar = [pair for pair, y in zip(pairs, targets(pairs), strict=True) if low <= y <= high]
    languages = [language] if isinstance(language, str) else language
    translations = []
    for target in languages:
        for side in sides:
            suffix = target if side == "second" else f"{target}-first"
            chosen = [p for p in similar if getattr(p, side).language not in ("", target)]
            articles = in_language([getattr(p, side) for p in chosen], translator, target)
            for pair, article in zip(chosen, articles, strict=True):
                score = pair.score if label == "copy" else None
                new = dataclasses.replace(pair, id=f"{pair.id}-{suffix}", score=score)
                translations.append(_with(new, side, article))
    return translations


def _with(pair: NewsPair, side: Side, article: Article) -> NewsPair:
    if side == "first":
        return dataclasses.replace(pair, first=article)
    return dataclasses.replace(pair, second=article)
