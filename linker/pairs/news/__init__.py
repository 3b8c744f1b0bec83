"""The similarity of two news articles: encoders, named entities and semi-supervision."""

from __future__ import annotations

from typing import TYPE_CHECKING

from indexes.lazy import lazy

if TYPE_CHECKING:
    from linker.pairs.news.articles import Article, NewsPair, read_news
    from linker.pairs.news.similarity import NewsSimilarity
    from linker.pairs.news.similarity_config import SimilarityConfig

__all__ = ["Article", "NewsPair", "NewsSimilarity", "SimilarityConfig", "read_news"]
__getattr__ = lazy(
    __name__,
    {
        "Article": "linker.pairs.news.articles",
        "NewsPair": "linker.pairs.news.articles",
        "NewsSimilarity": "linker.pairs.news.similarity",
        "SimilarityConfig": "linker.pairs.news.similarity_config",
        "read_news": "linker.pairs.news.articles",
    },
)
