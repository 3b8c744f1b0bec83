"""`auto` without any links: shared strings, then self-training that is tested on held-out pseudo-links."""

from dataclasses import replace

import numpy as np
import pytest

from indexes.dtypes import Float64Array, Int64Array
from linker.crosslingual import learned_methods
from linker.crosslingual.methods import link
from linker.crosslingual.options import Options
from linker.crosslingual.ranking import self_training
from linker.crosslingual.ranking.auto import CROSS_FITS, NOTHING, Solution, solve
from linker.crosslingual.ranking.evidence import AllEvidence
from linker.crosslingual.ranking.interface import Learned
from linker.crosslingual.ranking.pooled import SETTINGS, rankers
from linker.crosslingual.ranking.self_training import ALONE, ROUNDS, SURE, average, retrieval, self_train
from linker.crosslingual.task import LinkingResult, Task
from linker.scoring.ranking.fitting import FittedRanker
from linker.scoring.ranking.lists import CandidateLists, Chances
from tests.crosslingual.synthetic import LETTERS, Twin, twin

pytestmark = pytest.mark.usefixtures("divided_once")


def named(corpus: Twin, share: float = 0.6) -> Twin:
    """Give both pages of this share of the pairs three common strings, like names; nothing else is alike."""
    rng = np.random.default_rng(1)
    other_letters = str.maketrans(LETTERS, LETTERS[::-1])
    source, target = list(corpus.source.texts), [t.translate(other_letters) for t in corpus.target.texts]
    for s, t in corpus.links.tolist():
        names = " ".join(f"name{n}" for n in rng.integers(0, 3 * len(source), 3))
        if rng.random() < share:
            source[s] += f" {names}"
            target[t] += f" {names}"
    pages = [replace(p, texts=tuple(x)) for p, x in ((corpus.source, source), (corpus.target, target))]
    return replace(corpus, source=pages[0], target=pages[1])


@pytest.fixture(scope="module")
def corpus() -> Twin:
    return named(twin(pages=150))


def right(corpus: Twin, links: LinkingResult) -> float:
    gold = dict(corpus.links.tolist())
    return float(
        np.mean([links.candidates.targets[row, 0] == gold[row] for row in range(len(corpus.source))])
    )


def linked(corpus: Twin, self_train: bool | None = None, layout: bool = True) -> LinkingResult:
    options = Options(self_train=self_train, layout=layout)
    return link(Task(corpus.source, corpus.target, options=options), "auto")


@pytest.fixture(scope="module")
def from_nothing(corpus: Twin) -> LinkingResult:
    return linked(corpus)


def test_it_teaches_itself_words_of_unlike_pages(corpus: Twin, from_nothing: LinkingResult) -> None:
    strings = linked(corpus, self_train=False)
    assert strings.metadata["learned_word_pairs"] == 0
    assert 0.5 < right(corpus, strings) < 0.75
    assert right(corpus, from_nothing) > right(corpus, strings) + 0.15
    assert from_nothing.metadata["learned_word_pairs"] > 20
    assert from_nothing.metadata["transductive"] is True
    assert from_nothing.metadata["evidence"] == ["strings", "layout"]
    rounds = from_nothing.metadata["self_training"]
    assert 1 <= len(rounds) <= ROUNDS
    before, after = rounds[0]["retrieval"]
    assert rounds[0]["kept"] and after > before


def test_a_few_links_leave_self_training_to_its_guard(corpus: Twin, from_nothing: LinkingResult) -> None:
    task = Task(corpus.source, corpus.target, train=corpus.links[:30])
    plain, own = (link(replace(task, options=Options(self_train=wish)), "auto") for wish in (False, None))
    assert "self_training" not in plain.metadata and own.metadata["self_training"][0]["kept"]
    gold = dict(corpus.links.tolist())

    def share(links: LinkingResult) -> float:
        return float(np.mean([links.candidates.targets[row, 0] == gold[row] for row in range(30, 150)]))

    assert share(own) > share(plain) + 0.1
    assert share(own) >= share(from_nothing) - 0.02


@pytest.mark.parametrize(("least", "known"), [("ALONE", 0), ("SURE", 30)])
def test_how_likely_pseudo_links_are_depends_on_what_is_given(
    corpus: Twin, monkeypatch: pytest.MonkeyPatch, least: str, known: int
) -> None:
    monkeypatch.setattr(learned_methods, least, 1.1)  # no link is as likely as that
    links = link(Task(corpus.source, corpus.target, train=corpus.links[:known]), "auto")
    assert links.metadata["self_training"] == []
    assert ALONE < SURE


def test_without_layout_punctuation_decides_nothing() -> None:
    corpus = named(twin(pages=60), share=1)
    marked = [
        replace(p, texts=tuple(f"{t}\n{'!?;' * (3 + row % 7)}" for row, t in enumerate(p.texts)))
        for p in (corpus.source, corpus.target)
    ]
    plain, other = (
        linked(replace(corpus, source=s, target=t), layout=False, self_train=False)
        for s, t in ((corpus.source, corpus.target), marked)
    )
    assert plain.metadata["evidence"] == ["strings"]
    # Pages with equal scores are ranked by a hash of their content, which the marks change.
    assert np.mean(plain.candidates.targets[:, 0] == other.candidates.targets[:, 0]) > 0.95
    assert "marks" not in AllEvidence(marked[0], marked[1], layout=False).fixed


def test_every_setting_has_a_ranker_of_its_own_features() -> None:
    assert {setting.name for setting in SETTINGS} == set(rankers())
    for setting in SETTINGS:
        names = rankers()[setting.name].ranker.names
        assert any(name.startswith("marks.") for name in names) == setting.layout
        assert any(name.startswith("encoder.") for name in names) == setting.encoder
        assert any(name.startswith("dictionary.") for name in names) == setting.dictionary
        assert any(name.startswith("lsi.") for name in names) == (setting.taught != "nothing")


def lists(names: tuple[str, ...]) -> CandidateLists:
    """Two pages with three candidates each; one feature."""
    targets = np.array([[5, 6, 7], [8, 9, 5]])
    features = np.array([[[3.0], [1.0], [1.0]], [[0.0], [2.0], [1.0]]], np.float32)
    return CandidateLists(np.array([0, 4]), targets, features, names)


@pytest.mark.parametrize(
    ("links", "expected"),
    [
        ([[0, 5], [4, 9]], 1.0),
        ([[0, 6], [4, 5]], ((1 / 2 + 1 / 3) / 2 + 1 / 2) / 2),  # ties are in random order
        ([[4, 8], [0, 1]], (1 / 3 + 0) / 2),  # a target that is not listed
    ],
)
def test_retrieval_of_held_out_links(links: list[list[int]], expected: float) -> None:
    assert retrieval(lists(("lsi.z",)), np.array(links)).mean() == pytest.approx(expected)
    # Without the score learned from links, all candidates are equally good.
    listed = np.mean([link in ([0, 5], [4, 9], [0, 6], [4, 5], [4, 8]) for link in links])
    assert retrieval(lists(("marks.z",)), np.array(links)).mean() == pytest.approx(
        listed * (1 + 1 / 2 + 1 / 3) / 3
    )


class Misled(AllEvidence):
    """Evidence that learns from shuffled links, as if all confident links were wrong, from the `first` learning on."""

    first, learned = 0, 0

    def learn(self, links: Int64Array) -> Learned:
        self.learned += 1
        if self.learned <= self.first:
            return super().learn(links)
        wrong = links.copy()
        wrong[:, 1] = np.random.default_rng(0).permutation(links[:, 1])
        return super().learn(wrong)


def test_a_round_that_learns_nothing_true_is_not_kept(corpus: Twin) -> None:
    evidence = Misled(corpus.source, corpus.target)
    first = solve(evidence, NOTHING)
    best, rounds = self_train(evidence, NOTHING, first)
    assert [r["kept"] for r in rounds] == [False]
    assert best is first


def test_a_later_round_that_learns_nothing_true_is_not_kept(corpus: Twin) -> None:
    evidence = Misled(corpus.source, corpus.target)
    evidence.first = 2 + CROSS_FITS  # the start and the first round
    best, rounds = self_train(evidence, NOTHING, solve(evidence, NOTHING), least=ALONE)
    assert [r["kept"] for r in rounds] == [True, False]
    assert rounds[0]["learned_from"] == len(best.extra)


def test_later_rounds_may_lose_a_standard_error(corpus: Twin, monkeypatch: pytest.MonkeyPatch) -> None:
    evidence = AllEvidence(corpus.source, corpus.target)
    first = solve(evidence, NOTHING)
    reciprocal = np.tile([0.0, 1.0], 8)
    error = reciprocal.std() / np.sqrt(len(reciprocal))
    monkeypatch.setattr(self_training, "ROUNDS", 2)
    for errors, kept in ((0.5, [True, True]), (2, [True, False])):
        ranks = iter([0 * reciprocal, reciprocal, 0 * reciprocal, reciprocal - 0.5 - errors * error])
        monkeypatch.setattr(self_training, "retrieval", lambda lists, held_out, ranks=ranks: next(ranks))
        assert [r["kept"] for r in self_train(evidence, NOTHING, first)[1]] == kept


def test_the_average_of_rounds() -> None:
    listed = lists(("lsi.z",))
    other = replace(listed, targets=np.array([[6, 5, 9], [8, 9, 5]]))
    p = np.array([[0.6, 0.2, 0.1, 0.1], [0.3, 0.3, 0.3, 0.1]])
    start = next(iter(rankers().values()))
    rounds = [
        Solution(each, Learned.__new__(Learned), FittedRanker(start, p, 1.0), NOTHING)
        for each in (other, listed)
    ]
    result = average(rounds)
    assert result.lists is listed
    # The first page's targets have .2, .6 and, where it is not listed, .0001 in the first round.
    mean = np.sqrt([0.6 * 0.2, 0.2 * 0.6, 0.1 * 0.0001, 0.1 * 0.1])
    assert result.probabilities == pytest.approx(np.array([mean / mean.sum(), p[1]]))


def test_known_links_are_averaged_as_they_are_judged() -> None:
    """Their probabilities out of fold carry the promise of a precision; a page that a round lacks keeps its own."""
    listed, p = lists(("lsi.z",)), np.array([[0.6, 0.2, 0.1, 0.1], [0.3, 0.3, 0.3, 0.1]])
    start = next(iter(rankers().values()))

    def solution(rows: list[int], probabilities: Float64Array) -> Solution:
        held = Chances(np.array(rows), listed.targets, probabilities, np.array([listed.targets[0, 0], -1]))
        fitted = FittedRanker(start, p, 1.0, held_out=(held, held))
        return Solution(listed, Learned.__new__(Learned), fitted, NOTHING)

    result = average([solution([7, 8], p[::-1]), solution([7, 9], p)]).fitted.held_out
    assert result is not None
    mean = np.sqrt(p[0] * p[1])
    for held in result:
        assert held.probabilities == pytest.approx(np.array([mean / mean.sum(), p[1]]))
    assert result[0].right.tolist() == [True, False]


def test_the_fewer_pages_compete_the_lower_are_the_odds_of_a_counterpart() -> None:
    start = next(iter(rankers().values()))
    features = np.zeros((3, len(start.verifier.names)))
    full, some, few = (start.of_size(count).verifier.odds(features) for count in (4000, 400, 40))
    np.testing.assert_allclose(full - few, 2 * (full - some))
    assert (few < some).all() and start.of_size(10**6) is start
    here = replace(start, elsewhere=False)
    assert here.of_size(40) is here
