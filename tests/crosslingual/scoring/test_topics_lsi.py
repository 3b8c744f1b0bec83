"""Polylingual topics and the cross-language latent space, against worked numbers and slow oracles."""

import functools
from collections import Counter
from collections.abc import Callable
from itertools import product
from math import exp, lgamma

import numpy as np
import pytest
import scipy.sparse as sp

from indexes import kernels
from linker.crosslingual.scoring.dense import fit_lsi
from linker.crosslingual.scoring.topics import (
    PolylingualTopics,
    TopicTokens,
    fit_topics,
    jensen_shannon,
    sample_topics,
)


def two_topics(n: int, topic: np.ndarray, rng: np.random.Generator) -> sp.csr_array:
    """Pages of 30 words, nine in ten from their topic's 20 words."""
    counts = np.zeros((n, 40))
    for page in range(n):
        for _ in range(30):
            own = topic[page] if rng.random() < 0.9 else 1 - topic[page]
            counts[page, rng.integers(20) + 20 * own] += 1
    return sp.csr_array(counts)


def test_jensen_shannon_of_the_worked_example() -> None:
    assert jensen_shannon(np.array([0.5, 0.5]), np.array([0.9, 0.1])) == pytest.approx(0.10175, abs=1e-5)
    assert jensen_shannon(np.array([1.0, 0.0]), np.array([0.0, 1.0])) == pytest.approx(np.log(2))
    assert jensen_shannon(np.array([0.3, 0.7]), np.array([0.3, 0.7])) == pytest.approx(0)


@pytest.mark.parametrize(
    "fit", [fit_topics, functools.partial(sample_topics, rounds=40)], ids=["fitted", "sampled"]
)
def test_partners_agree_on_the_topic_and_an_empty_page_has_the_prior(
    fit: Callable[..., PolylingualTopics],
) -> None:
    rng = np.random.default_rng(3)
    topic = rng.integers(0, 2, 250)
    first, second = two_topics(250, topic, rng), two_topics(250, topic, rng)
    model = fit((first[:150], second[:150]), 2, alpha_sum=1.0)
    a, b = model.fold_in(first[150:], 0), model.fold_in(second[150:], 1)
    assert (a.argmax(axis=1) == b.argmax(axis=1)).mean() >= 0.95
    # Topic indices are arbitrary: the topics must separate the pages whichever index each one gets.
    agreement = (a.argmax(axis=1) == topic[150:]).mean()
    assert max(agreement, 1 - agreement) >= 0.95
    np.testing.assert_allclose(model.fold_in(sp.csr_array((2, 40)), 0), 0.5)
    for words in model.words:
        np.testing.assert_allclose(words.sum(axis=0), 1)


def test_mixtures_do_not_depend_on_the_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(4)
    pages = two_topics(30, rng.integers(0, 2, 30), rng)
    whole = fit_topics((pages, pages), 3, rounds=5)
    monkeypatch.setattr("linker.crosslingual.scoring.topics.BLOCK", 64)
    parts = fit_topics((pages, pages), 3, rounds=5)
    np.testing.assert_allclose(whole.words[0], parts.words[0])
    np.testing.assert_allclose(whole.fold_in(pages, 0), parts.fold_in(pages, 0))


def test_the_latent_space_is_that_of_numpy() -> None:
    rng = np.random.default_rng(0)
    left, right = rng.random((12, 9)).astype(np.float32), rng.random((12, 7)).astype(np.float32)
    model = fit_lsi(sp.csr_array(left), sp.csr_array(right), 4)
    components = np.linalg.svd(np.hstack([left, right]), full_matrices=False)[2][:4]
    expected = left @ components[:, :9].T
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    got = model.fold_source(sp.csr_array(left))
    np.testing.assert_allclose(got @ got.T, expected @ expected.T, atol=1e-4)
    assert model.fold_target(sp.csr_array(np.zeros((1, 7), np.float32))).tolist() == [[0.0] * 4]


def test_a_large_decomposition_agrees_with_a_small_one(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    left, right = (sp.csr_array(rng.random((15, n)).astype(np.float32)) for n in (10, 8))
    exact = fit_lsi(left, right, 3).fold_source(left)
    monkeypatch.setattr("linker.crosslingual.scoring.dense.EXACT", 5)
    iterated = fit_lsi(left, right, 3).fold_source(left)
    np.testing.assert_allclose(exact @ exact.T, iterated @ iterated.T, atol=1e-4)


ALPHA, BETA = 0.5, 0.1
PAGES = (sp.csr_array([[2, 0, 1], [0, 1, 1], [0, 0, 0]]), sp.csr_array([[1, 1], [0, 3], [1, 0]]))


@pytest.fixture(params=[True, False], ids=["compiled", "numpy"])
def either(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if not request.param:
        monkeypatch.setattr(kernels, "load", lambda *_: None)
    elif kernels.load("sampling") is None:
        pytest.skip("not built")


def drawn(size: int, seed: int) -> tuple[list[TopicTokens], np.ndarray]:
    by_page = np.zeros((3, size))
    rng = np.random.default_rng(seed)
    return [TopicTokens.drawn(counts, by_page, rng) for counts in PAGES], by_page


def slow_sweep(languages: list[TopicTokens], which: int, size: int, uniform: np.ndarray) -> list[int]:
    """Draw each topic of a language after recounting all other tokens of all languages from scratch."""
    topics: list[list[int]] = [tokens.topics.tolist() for tokens in languages]
    own, words = languages[which], PAGES[which].shape[1]
    for token, u in enumerate(uniform):
        weights = []
        for k in range(size):
            others = [i for i in range(len(own.topics)) if i != token and topics[which][i] == k]
            page = sum(own.pages[i] == own.pages[token] for i in others) + sum(
                z == k and page == own.pages[token]
                for number, tokens in enumerate(languages)
                if number != which
                for z, page in zip(topics[number], tokens.pages, strict=True)
            )
            word = sum(own.words[i] == own.words[token] for i in others)
            weights.append((page + ALPHA) * (word + BETA) / (len(others) + BETA * words))
        mark = u * sum(weights)
        topics[which][token] = next((k for k in range(size) if sum(weights[: k + 1]) > mark), size - 1)
    return topics[which]


@pytest.mark.usefixtures("either")
@pytest.mark.parametrize("seed", range(5))
def test_a_sweep_is_that_of_recounting_for_each_token(seed: int) -> None:
    languages, by_page = drawn(3, seed)
    rng = np.random.default_rng([seed, 1])
    for which in (0, 1, 0, 1):
        uniform = rng.random(len(languages[which].topics))
        expected = slow_sweep(languages, which, 3, uniform)
        languages[which].sweep(by_page, ALPHA, BETA, uniform)
        assert languages[which].topics.tolist() == expected
    for page in range(3):
        topics = [z for tokens in languages for z in tokens.topics[tokens.pages == page]]
        assert by_page[page].tolist() == np.bincount(np.array(topics, int), minlength=3).tolist()
    for tokens in languages:
        assert tokens.totals.tolist() == tokens.by_word.sum(0).tolist()
        np.testing.assert_allclose(tokens.probabilities(BETA).sum(0), 1)


def test_the_chain_visits_assignments_as_often_as_their_posterior_says() -> None:
    """Two tokens in one language and two in another on two pages: all 16 assignments can be enumerated."""
    counts = (sp.csr_array([[1, 0], [0, 1]]), sp.csr_array([[1, 0], [1, 0]]))
    rng = np.random.default_rng(7)
    by_page = np.zeros((2, 2))
    languages = [TopicTokens.drawn(c, by_page, rng) for c in counts]
    visits: Counter[tuple[int, ...]] = Counter()
    for _ in range(20_000):
        for tokens in languages:
            tokens.sweep(by_page, ALPHA, BETA, rng.random(2))
        visits[tuple(int(tokens.topics[tokens.pages == d][0]) for tokens in languages for d in (0, 1))] += 1

    def weight(z: tuple[int, ...]) -> float:
        """Return the probability of topics and words, integrated over their Dirichlet priors, up to a factor."""
        total = sum(lgamma((z[d], z[2 + d]).count(k) + ALPHA) for d in (0, 1) for k in (0, 1))
        for first, words in ((0, (0, 1)), (2, (0, 0))):
            for k in (0, 1):
                of_topic = [w for w, topic in zip(words, z[first : first + 2], strict=True) if topic == k]
                total += sum(lgamma(of_topic.count(w) + BETA) for w in (0, 1)) - lgamma(
                    len(of_topic) + 2 * BETA
                )
        return exp(total)

    states = list(product((0, 1), repeat=4))
    whole = sum(map(weight, states))
    for state in states:
        assert visits[state] / 20_000 == pytest.approx(weight(state) / whole, abs=0.02)


def test_a_seed_decides_the_topics() -> None:
    one, again, other = (sample_topics(PAGES, 2, rounds=3, seed=seed).words[0] for seed in (0, 0, 1))
    assert one.tolist() == again.tolist()
    assert one.tolist() != other.tolist()
