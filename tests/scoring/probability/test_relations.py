"""Evidence about a candidate from other texts, against a pairwise oracle; what trees may learn from it."""

import math
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indexes.dtypes import BoolArray, Float64Array, Int64Array
from linker.evaluation.significance import fold_numbers
from linker.scoring.probability.competition import Lists, softmax
from linker.scoring.probability.relations import FOLDS, LEAST, NAMES, OWN, relate, relations
from linker.scoring.ranking.forest import Forest
from linker.scoring.ranking.training import TrainingLists, grow


def oracle(lists: Lists) -> Float64Array:
    """Return the result of `relations`, candidate by candidate."""
    p = softmax(lists.logits())[:, :-1] * (1 - lists.none[:, None])
    out = np.zeros((*lists.documents.shape, len(NAMES)))
    log = [[math.log(max(v, LEAST)) for v in line] for line in p.tolist()]
    documents = lists.documents.tolist()

    def others(i: int, d: int) -> list[float]:
        return [
            p[o, j] for o, of in enumerate(documents) if o != i for j, other in enumerate(of) if other == d
        ]

    def lead(i: int, j: int) -> float:
        return log[i][j] - math.log(max([LEAST, *others(i, documents[i][j])]))

    for i, of in enumerate(documents):
        mine = [j for j, d in enumerate(of) if d >= 0]
        best = sorted((log[i][j] for j in mine), reverse=True)
        margin = best[0] - (best[1] if len(best) > 1 else math.log(LEAST)) if best else 0
        first = max(mine, key=lambda j: log[i][j], default=0)
        for j in mine:
            rest, d = others(i, of[j]), of[j]
            strongest = math.log(max([LEAST, *rest]))
            out[i, j] = [
                log[i][j], log[i][j] - best[0], margin, sum(log[i][k] > log[i][j] for k in mine), strongest,
                lead(i, j), sum(v > p[i, j] for v in others(i, d)), sum(rest), len(rest), lead(i, first),
                log[i][j] - (strongest + best[0]) / 2,
            ]  # fmt: skip
    return out


@st.composite
def collections(draw: st.DrawFn) -> Lists:
    texts, width = draw(st.integers(1, 6)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    documents = np.stack([rng.permutation(5)[:width] for _ in range(texts)])
    documents = np.where(rng.random(documents.shape) < 0.2, -1, documents)
    scores = np.where(documents >= 0, rng.normal(size=documents.shape), -np.inf)
    return Lists(documents, scores, rng.random(texts))


@given(collections())
@settings(max_examples=60, deadline=None)
def test_relations_are_the_oracle(lists: Lists) -> None:
    np.testing.assert_allclose(relations(lists), oracle(lists), atol=1e-4)


def shared(texts: int, seed: int = 0) -> tuple[Lists, Int64Array]:
    """Return texts, ten per document; three of ten prefer a document that no other text wants."""
    rng = np.random.default_rng(seed)
    own = np.arange(texts) // 10
    documents = np.stack([own, 10_000 + np.arange(texts)], axis=1)
    scores = np.where(np.arange(texts)[:, None] % 10 < 3, [[0.0, 1.0]], [[2.0, 0.0]]) + rng.normal(
        0, 0.2, (texts, 2)
    )
    return Lists(documents, scores, np.full(texts, 0.1)), own


def without(lists: Lists, relevant: BoolArray) -> Lists:
    """Return the lists without the relevant candidates; P(none) is .8 for each."""
    documents = np.where(relevant, -1, lists.documents)
    return Lists(documents, np.where(relevant, -np.inf, lists.scores), np.full(len(lists), 0.8))


def test_a_known_text_is_scored_by_trees_that_did_not_see_its_links(monkeypatch: pytest.MonkeyPatch) -> None:
    """Random links cannot be predicted unless the trees saw them."""
    lists, own = shared(300)
    relevant = lists.documents == own[:, None]
    seen = list[int]()

    def spy(taught: TrainingLists, *how: Any) -> Any:
        seen.append(len(taught.sizes))
        return grow(taught, *how)

    monkeypatch.setattr("linker.scoring.probability.relations.grow", spy)
    first = lists.at(np.arange(200))
    known, _, rest = (
        relate(first, without(first, relevant[:200]), relevant[:200], lists.at(np.arange(200, 300)))
        or pytest.fail()
    )
    assert sum(200 - count for count in seen[:-1]) == 200 and seen[-1] == 200
    assert (known.scores[:, 0] > known.scores[:, 1]).mean() > 0.95
    assert (rest.scores[:, 0] > rest.scores[:, 1]).mean() > 0.95
    noise = np.random.default_rng(1).random(200) < 0.5
    wrong = np.where(noise[:, None], relevant[:200], ~relevant[:200])
    learned, *_ = relate(first, without(first, wrong), wrong, lists.at(np.arange(0))) or pytest.fail()
    fitted = ((learned.scores[:, 0] > learned.scores[:, 1]) == wrong[:, 0]).mean()
    assert fitted < 0.65


def test_lists_keep_their_width_and_few_links_teach_nothing() -> None:
    lists, own = shared(200)
    relevant = lists.documents == own[:, None]
    short = Lists(np.array([[3]]), np.array([[0.0]]), np.array([0.5]))
    known, _, rest = relate(lists, without(lists, relevant), relevant, short) or pytest.fail()
    assert known.scores.shape == (200, 2) and rest.scores.shape == (1, 1)
    assert rest.documents is short.documents and np.isfinite(rest.scores).all()
    few = np.arange(99)
    assert relate(lists.at(few), lists.at(few), relevant[few], short) is None


def test_texts_without_document_are_scored_while_others_keep_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The oracle hides the documents of one fold at a time, in a whole copy of the collection."""
    lists, own = shared(200)
    relevant = lists.documents == own[:, None]
    absent, forests = without(lists, relevant), list[Forest]()

    def spy(text: str) -> Forest:
        forests.append(read(text))
        return forests[-1]

    read = Forest.read
    monkeypatch.setattr("linker.scoring.probability.relations.Forest.read", spy)
    _, hidden, _ = relate(lists, absent, relevant, lists.at(np.arange(0))) or pytest.fail()
    fold, expected = fold_numbers(200, FOLDS, 0), np.full((200, 2), -np.inf)
    for number, forest in enumerate(forests[:FOLDS]):
        here = (fold == number)[:, None]
        documents, scores = (
            np.where(here, a, b)
            for a, b in ((absent.documents, lists.documents), (absent.scores, lists.scores))
        )
        x = relations(Lists(documents, scores, np.where(here[:, 0], absent.none, lists.none)))
        kept = here & (documents >= 0)
        expected[kept] = forest.scores(x[kept]) + OWN * x[kept][:, 0]
    assert (np.isfinite(hidden.scores) == np.isfinite(expected)).all()
    finite = np.isfinite(expected)
    slopes = hidden.scores[finite] / expected[finite]
    np.testing.assert_allclose(slopes, slopes[0], rtol=1e-6)


def test_without_lightgbm_nothing_is_learned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    lists, own = shared(200)
    assert relate(lists, lists, lists.documents == own[:, None], lists) is None
