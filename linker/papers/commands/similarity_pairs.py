"""Training data of `linker similarity` other than graded pairs: sampled and translated pairs; and its translators."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from linker.base.terminal import note

if TYPE_CHECKING:
    from indexes.interface import TextIndex
    from linker.encoders.interface import Encoder
    from linker.papers.news.articles import Article, NewsPair
    from linker.papers.news.similarity_config import SimilarityConfig
    from linker.scoring.pairs.translate import Translator


def translator_by(names: Mapping[str, str], cache: Path | None) -> Translator | None:
    """Return a translator, with its cache, for the models named by language; None if none is named."""
    from linker.scoring.pairs.translations import ByLanguage, KeptTranslator

    if not names:
        return None
    translator = ByLanguage(names)
    return KeptTranslator(translator, cache) if cache else translator


def chosen(
    pairs: Sequence[NewsPair], config: SimilarityConfig, share: float, encoder: Encoder | None
) -> SimilarityConfig:
    """Return the configuration with the best number of epochs on held-out pairs, and report the result of each."""
    from linker.papers.news.choosing import best_epochs

    epochs, found = best_epochs(pairs, config, share, encoder)
    note(f"epochs: {epochs}, by r on held-out pairs after each: {', '.join(f'{r:.3f}' for r in found)}")
    return replace(config, siamese=replace(config.siamese, epochs=epochs))


def sampled_pairs(
    pairs: Sequence[NewsPair], top: int, elastic: str | None, pool: Path | None, translator: Translator | None
) -> list[NewsPair]:
    """Return pairs of each article and the `top` others that BM25 finds by its title, or its English title."""
    from linker.papers.news.selftrain import articles_of, sample_pairs
    from linker.papers.news.similarity import ENGLISH
    from linker.papers.news.translated import in_language

    articles = articles_of(pairs)
    titles = [article.headline for article in articles]
    if translator is not None:
        headlines = [_headline_of(article) for article in articles]
        foreign = [row for row, a in enumerate(articles) if a.language not in ("", ENGLISH)]
        made = in_language([headlines[row] for row in foreign], translator, ENGLISH)
        for row, article in zip(foreign, made, strict=True):
            titles[row] = article.text
    others = _articles_in(pool) if pool else []
    with _text_index(elastic) as index:
        return sample_pairs(articles, index, pairs, top, pool=others, titles=titles)


def translated_pairs(
    pairs: Sequence[NewsPair],
    translator: str,
    languages: Sequence[str],
    side: Literal["second", "both"],
    label: Literal["pseudo", "copy"],
) -> list[NewsPair]:
    """Return pairs with one article translated; pairs for the model to label have no score."""
    from linker.papers.news.selftrain import translate_pairs
    from linker.scoring.pairs.translate import load_translator

    return translate_pairs(
        pairs,
        load_translator(translator),
        languages,
        label=label,
        sides=("first", "second") if side == "both" else ("second",),
    )


def _headline_of(article: Article) -> Article:
    from linker.papers.news.articles import Article

    return Article(article.headline, "", article.language)


def _articles_in(corpus: Path) -> list[Article]:
    """Return the articles of a corpus. Raises InputError if it cannot be read or holds none."""
    from indexes.interface import Document
    from linker.base.errors import InputError
    from linker.corpora.reading import read_corpus
    from linker.papers.news.articles import LEAST, Article
    from linker.scoring.pairs.words import count_words

    found = [
        Article(document.text, document.title)
        for document in read_corpus(corpus)
        if isinstance(document, Document) and count_words(document.text) >= LEAST
    ]
    if not found:
        raise InputError(
            f"{corpus} has no document of at least {LEAST} words: there is nothing to sample from"
        )
    return found


@contextmanager
def _text_index(elastic: str | None) -> Iterator[TextIndex]:
    """Yield an empty index for articles in several languages; on a server, it is deleted at the end."""
    from indexes.text.bm25 import Bm25Index

    if elastic is None:
        index = Bm25Index("none")
        yield index
        index.close()
        return
    from indexes.cluster.beside import ServerText
    from indexes.cluster.client import ElasticSettings
    from indexes.cluster.index import ClusterIndex, new_name
    from indexes.rows import Rows
    from indexes.store.records import Manifest
    from indexes.text.parameters import AnalysisSettings

    server = ClusterIndex(ElasticSettings((elastic,), new_name("linker-sample")))
    server.create()
    try:
        yield ServerText(Manifest(analysis=AnalysisSettings("none")), Rows(), server)
    finally:
        server.drop()
        server.close()
