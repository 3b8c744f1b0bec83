"""Near copies: worked Jaccard similarities, groups with their probability, and how `auto` reports them."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from linker.crosslingual.methods import link
from linker.crosslingual.options import Options
from linker.crosslingual.pages.pages import Pages
from linker.crosslingual.ranking.copies import groups_of, near_copies
from linker.crosslingual.ranking.evidence import AllEvidence
from linker.crosslingual.ranking.explain import DISTINCT, Explainer
from linker.crosslingual.task import Task
from linker.scoring.probability.verification import Verifier, names_of
from linker.scoring.ranking.calibrated_ranker import CalibratedRanker
from linker.scoring.ranking.fitting import FittedRanker
from linker.scoring.ranking.linear import LinearRanker
from linker.scoring.ranking.lists import CandidateLists
from tests.crosslingual.synthetic import Twin, twin

# Page 0 shares 8 of 10 words with page 1, 7 of 11 with page 2, and all with page 3; pages 4 and 5 are empty.
PAGES = np.zeros((6, 12), np.float32)
for page, words in enumerate([range(9), [*range(8), 9], [*range(7), 10, 11], range(9)]):
    PAGES[page, list(words)] = 1
PRESENT = sp.csr_array(PAGES)


def slow(page: int, other: int) -> bool:
    left, right = (set(np.flatnonzero(PAGES[i]).tolist()) for i in (page, other))
    return len(left & right) >= 0.8 * len(left | right)


def test_near_copies_share_four_fifths_of_their_words() -> None:
    for page in range(6):
        found = near_copies(PRESENT, page, np.arange(6)).tolist()
        assert found == [slow(page, other) for other in range(6)]
    assert near_copies(PRESENT, 0, np.arange(6)).tolist() == [True, True, False, True, False, False]


def fitted(lists: CandidateLists, first: list[float]) -> FittedRanker:
    """Probabilities of the candidates, and a verifier for which every first candidate is right with P = ¼."""
    n, c, _ = lists.features.shape
    ranker = LinearRanker(("x",), np.zeros(1), np.ones(1), np.ones(1), 0.0)
    weights = np.zeros(len(names_of(ranker)) + 1)
    verifier = Verifier(names_of(ranker), weights[1:], weights[1:] + 1, weights, weights)
    probabilities = np.full((n, c + 1), 0.01)
    probabilities[:, :4] = first
    return FittedRanker(CalibratedRanker(ranker, verifier), probabilities, 0.5)


def test_a_group_has_the_linked_page_first_and_its_probability_together() -> None:
    targets = np.array([[3, 2, 0, 1], [2, 4, 0, 1], [4, 5, 2, 0]])
    features = np.array([3.0, 0, 2, 1], np.float32)[None, :, None].repeat(3, axis=0)
    lists = CandidateLists(np.array([7, 8, 9]), targets, features, ("x",))
    groups = groups_of(PRESENT, lists, fitted(lists, [0.1, 0.05, 0.4, 0.3]), np.array([1, 2, 4]))
    assert set(groups) == {7, 9}  # page 2 has no copy
    assert groups[7].targets == (1, 0, 3)  # the linked page first, then by probability
    assert groups[7].probability == pytest.approx(0.8)  # the sum, as it is more than ¼
    assert groups[9].targets == (4, 5) and groups[9].probability == pytest.approx(0.25)
    assert not groups_of(PRESENT, lists, fitted(lists, [0.1, 0.05, 0.4, 0.3]), np.array([-1, -1, -1]))


@pytest.fixture(scope="module")
def corpus() -> Twin:
    """Page 80's counterpart has two near copies: one other word each."""
    corpus = twin(pages=90)
    text = corpus.target.texts[corpus.links[80, 1]]
    ids = (*corpus.target.ids, "copy1", "copy2")
    texts = (*corpus.target.texts, f"{text} first", f"{text} second")
    return replace(corpus, target=replace(corpus.target, ids=ids, texts=texts))


@pytest.mark.usefixtures("divided_once")
def test_auto_names_the_copies_and_sums_their_probabilities(corpus: Twin) -> None:
    options = Options(explain=True, self_train=False)
    task = Task(corpus.source, corpus.target, train=corpus.links[:60], options=options)
    links = link(task, "auto")
    members = {corpus.target.ids[corpus.links[80, 1]], "copy1", "copy2"}
    assert list(links.metadata["near_copies"]) == ["s80"]
    record = links.metadata["near_copies"]["s80"]
    reasons = {r["id"]: r for r in links.explanations or ()}
    assert set(record["group"]) == members and record["group"][0] == reasons["s80"]["link"]
    assert reasons["s80"].items() >= record.items()
    assert reasons["s80"]["probability"] < 0.7 and 0.9 < record["group_probability"] <= 1
    assert [r["id"] for r in reasons.values() if "group" in r] == ["s80"]


MANUAL = [*range(12), 101]  # pages of one collection: an author and a translator signed all of them


@pytest.fixture(scope="module")
def manuals() -> Twin:
    manuals = twin(pages=110)

    def signed(pages: Pages, rows: list[int], words: str) -> Pages:
        texts = [f"{text} {words}" if row in rows else text for row, text in enumerate(pages.texts)]
        return replace(pages, texts=tuple(texts))

    theirs = manuals.links[MANUAL, 1].tolist()
    source = signed(manuals.source, MANUAL, "Anula tlumaczka")
    return replace(manuals, source=source, target=signed(manuals.target, theirs, "cjwatson manpages"))


def test_names_on_the_same_pages_are_no_reason(manuals: Twin) -> None:
    evidence = AllEvidence(manuals.source, manuals.target)
    induced = evidence.learn(manuals.links[:100]).induced
    x, y = evidence.source_terms.position, evidence.target_terms.position
    anula, author = (
        x[evidence.source.language.terms("Anula")[0]],
        y[evidence.source.language.terms("cjwatson")[0]],
    )
    assert 0 < induced[anula, author] < DISTINCT  # learned, because it helps to rank
    matches = Explainer(evidence, induced).matches(101, int(manuals.links[101, 1]), most=50)
    assert matches and all(m.kind == "links" for m in matches)
    assert not {m.source for m in matches} & {"Anula", "tlumaczka"}
    pairs = set(manuals.dictionary)
    assert np.mean([(m.source, m.target) in pairs for m in matches]) > 0.9


def test_without_the_rule_they_would_be_shown(manuals: Twin) -> None:
    evidence = AllEvidence(manuals.source, manuals.target)
    induced = evidence.learn(manuals.links[:100]).induced
    matches = Explainer(evidence, induced.sign() * DISTINCT).matches(101, int(manuals.links[101, 1]), most=50)
    assert ("Anula", "cjwatson") in {(m.source, m.target) for m in matches}


def test_the_passage_across_languages_is_among_the_translated_words(manuals: Twin) -> None:
    theirs = dict(manuals.links.tolist())
    right, texts = 0, list(manuals.target.texts)
    for row in range(20):
        texts[theirs[row]] = (
            f"{manuals.target.texts[theirs[row + 20]]}.\n{manuals.target.texts[theirs[row]]}."
        )
    evidence = AllEvidence(manuals.source, replace(manuals.target, texts=tuple(texts)), manuals.dictionary)
    explainer = Explainer(evidence, evidence.learn(manuals.links[:0]).induced)
    for row in range(20):
        found = explainer.passage(row, theirs[row])
        assert found is not None
        right += found[0] > len(manuals.target.texts[theirs[row + 20]])
    assert right >= 18
    empty = replace(manuals.target, texts=("", *manuals.target.texts[1:]))
    nothing = AllEvidence(manuals.source, empty, manuals.dictionary)
    assert Explainer(nothing, explainer.induced).passage(0, 0) is None
