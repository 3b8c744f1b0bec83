"""Polylingual topics and the cross-language latent space, against worked numbers and slow oracles."""

import numpy as np
import pytest
import scipy.sparse as sp

from linker.crosslingual.scoring.dense import fit_lsi
from linker.crosslingual.scoring.topics import fit_topics, jensen_shannon


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


def test_partners_agree_on_the_topic_and_an_empty_page_has_the_prior() -> None:
    rng = np.random.default_rng(3)
    topic = rng.integers(0, 2, 250)
    first, second = two_topics(250, topic, rng), two_topics(250, topic, rng)
    model = fit_topics((first[:150], second[:150]), 2, alpha_sum=1.0)
    a, b = model.fold_in(first[150:], 0), model.fold_in(second[150:], 1)
    assert (a.argmax(axis=1) == b.argmax(axis=1)).mean() >= 0.95
    # Topics have no names: whatever the number of a topic, it must separate the pages.
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
    monkeypatch.setattr("linker.crosslingual.scoring.lsi.EXACT", 5)
    iterated = fit_lsi(left, right, 3).fold_source(left)
    np.testing.assert_allclose(exact @ exact.T, iterated @ iterated.T, atol=1e-4)
