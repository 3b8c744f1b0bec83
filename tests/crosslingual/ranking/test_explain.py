"""Explanations: a learned pair is a reason only if it stands out from its rivals."""

from dataclasses import replace

import numpy as np
import pytest

from linker.crosslingual.pages.pages import Pages
from linker.crosslingual.ranking.evidence import AllEvidence
from linker.crosslingual.ranking.explain import DISTINCT, Explainer
from tests.crosslingual.synthetic import Twin, twin

MANUAL = [*range(12), 101]  # pages of one collection: an author and a translator signed all of them


@pytest.fixture(scope="module")
def corpus() -> Twin:
    corpus = twin(pages=110)

    def signed(pages: Pages, rows: list[int], words: str) -> Pages:
        texts = [f"{text} {words}" if row in rows else text for row, text in enumerate(pages.texts)]
        return replace(pages, texts=tuple(texts))

    theirs = corpus.links[MANUAL, 1].tolist()
    source = signed(corpus.source, MANUAL, "Anula tlumaczka")
    return replace(corpus, source=source, target=signed(corpus.target, theirs, "cjwatson manpages"))


def test_names_on_the_same_pages_are_no_reason(corpus: Twin) -> None:
    evidence = AllEvidence(corpus.source, corpus.target)
    induced = evidence.learn(corpus.links[:100]).induced
    x, y = evidence.source_terms.position, evidence.target_terms.position
    anula, author = (
        x[evidence.source.language.terms("Anula")[0]],
        y[evidence.source.language.terms("cjwatson")[0]],
    )
    assert 0 < induced[anula, author] < DISTINCT  # learned, because it helps to rank
    matches = Explainer(evidence, induced).matches(101, int(corpus.links[101, 1]), most=50)
    assert matches and all(m.kind == "links" for m in matches)
    assert not {m.source for m in matches} & {"Anula", "tlumaczka"}
    pairs = set(corpus.dictionary)
    assert np.mean([(m.source, m.target) in pairs for m in matches]) > 0.9


def test_without_the_rule_they_would_be_shown(corpus: Twin) -> None:
    evidence = AllEvidence(corpus.source, corpus.target)
    induced = evidence.learn(corpus.links[:100]).induced
    matches = Explainer(evidence, induced.sign() * DISTINCT).matches(101, int(corpus.links[101, 1]), most=50)
    assert ("Anula", "cjwatson") in {(m.source, m.target) for m in matches}


def test_the_passage_across_languages_is_among_the_translated_words(corpus: Twin) -> None:
    theirs = dict(corpus.links.tolist())
    right, texts = 0, list(corpus.target.texts)
    for row in range(20):
        texts[theirs[row]] = f"{corpus.target.texts[theirs[row + 20]]}.\n{corpus.target.texts[theirs[row]]}."
    evidence = AllEvidence(corpus.source, replace(corpus.target, texts=tuple(texts)), corpus.dictionary)
    explainer = Explainer(evidence, evidence.learn(corpus.links[:0]).induced)
    for row in range(20):
        found = explainer.passage(row, theirs[row])
        assert found is not None
        right += found[0] > len(corpus.target.texts[theirs[row + 20]])
    assert right >= 18
    empty = replace(corpus.target, texts=("", *corpus.target.texts[1:]))
    nothing = AllEvidence(corpus.source, empty, corpus.dictionary)
    assert Explainer(nothing, explainer.induced).passage(0, 0) is None
