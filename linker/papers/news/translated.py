"""Pairs of articles translated into one language, to compare their entities and words (Singh et al., 2022)."""

import dataclasses
from collections import defaultdict
from collections.abc import Sequence

from linker.papers.news.articles import Article, NewsPair
from linker.scoring.pairs.translate import Translator


def translated(pairs: Sequence[NewsPair], translator: Translator | None, language: str) -> list[NewsPair]:
    """Return the pairs with every article in another, known language translated into `language`.

    Articles that the translator returns unchanged keep their language. Without a translator, the pairs are unchanged.
    Raises the translator's errors.
    """
    if translator is None:
        return list(pairs)
    articles = list(dict.fromkeys(article for pair in pairs for article in (pair.first, pair.second)))
    foreign = [article for article in articles if article.language not in ("", language)]
    found = {
        article: new
        for article, new in zip(foreign, in_language(foreign, translator, language), strict=True)
        if new.text != article.text
    }
    return [
        dataclasses.replace(
            pair, first=found.get(pair.first, pair.first), second=found.get(pair.second, pair.second)
        )
        for pair in pairs
    ]


def in_language(articles: Sequence[Article], translator: Translator, language: str) -> list[Article]:
    """Return the articles translated into `language`, each distinct text once. Raises the translator's errors."""
    texts: dict[str, dict[str, None]] = defaultdict(dict)
    for article in articles:
        texts[article.language].update(dict.fromkeys(filter(str.strip, (article.text, article.title))))
    made = {
        source: dict(zip(of_source, translator.translate(list(of_source), source, language), strict=True))
        for source, of_source in texts.items()
        if of_source
    }
    return [
        dataclasses.replace(
            article,
            text=made.get(article.language, {}).get(article.text, article.text),
            title=made.get(article.language, {}).get(article.title, article.title),
            language=language,
        )
        for article in articles
    ]
