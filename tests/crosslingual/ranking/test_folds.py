"""Folds: every link once, all links of a page together, assigned by a hash of the content."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indexes.dtypes import Int64Array
from linker.crosslingual.pages.pages import Pages
from linker.crosslingual.ranking.evidence import AllEvidence
from linker.crosslingual.ranking.folds import divisions_of, folds_of, held_out
from linker.crosslingual.ranking.interface import Learned
from linker.crosslingual.ranking.learning import out_of_fold
from tests.crosslingual.synthetic import twin
from tests.crosslingual.tiny import numbered

ROWS = st.lists(st.integers(0, 19), min_size=1, max_size=40)


def pages() -> Pages:
    return numbered([f"text {n}" for n in range(20)], "p")


@settings(max_examples=50, deadline=None)
@given(ROWS, st.integers(1, 7), st.integers(0, 5))
def test_every_link_is_in_one_fold_with_the_others_of_its_page(
    rows: list[int], folds: int, seed: int
) -> None:
    links = np.stack([np.array(rows), np.arange(len(rows))], axis=1)
    parts = folds_of(links, pages(), folds, seed)
    assert sorted(np.concatenate(parts).tolist()) == list(range(len(rows)))
    sizes = [len(set(links[part, 0].tolist())) for part in parts]
    assert sum(sizes) == len(set(rows)) and len(sizes) == min(folds, len(set(rows)))
    assert max(sizes) - min(sizes) <= 1 and all(np.diff(part).min(initial=1) > 0 for part in parts)


def test_the_content_and_the_seed_decide() -> None:
    links = np.stack([np.arange(20), np.arange(20)], axis=1)
    texts = pages().texts
    order = np.random.default_rng(0).permutation(20)
    moved = numbered([texts[i] for i in order], "other")

    def contents(pages: Pages, seed: int) -> list[set[str]]:
        return [{pages.texts[i] for i in part} for part in folds_of(links, pages, 4, seed)]

    assert contents(pages(), 0) == contents(moved, 0)
    assert contents(pages(), 0) != contents(pages(), 1)


def test_few_links_are_divided_several_times_and_each_time_otherwise() -> None:
    def pairs(n: int) -> Int64Array:
        return np.stack([np.arange(n), np.arange(n)], axis=1)

    assert [divisions_of(pairs(n)) for n in (0, 20, 242, 330, 538, 700, 920, 5000)] == [
        4,
        4,
        4,
        3,
        2,
        1,
        1,
        1,
    ]
    assert divisions_of(np.zeros((5000, 2), np.int64)) == 4  # many targets, but a single page
    folds = held_out(pairs(20), pages(), 4, seed=1, divisions=3)
    assert len(folds) == 12
    for division in range(3):
        part = folds[4 * division : 4 * division + 4]
        assert sorted(np.concatenate(part).tolist()) == list(range(20))
    assert len({tuple(fold.tolist()) for fold in folds}) == 12
    np.testing.assert_array_equal(folds[0], folds_of(pairs(20), pages(), 4, seed=1)[0])


def test_no_link_of_a_page_teaches_its_own_description(monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = twin(pages=40)
    evidence, links, unlinked = (
        AllEvidence(corpus.source, corpus.target),
        corpus.links[:24],
        np.arange(24, 40),
    )
    learned, learn, taught = evidence.learn(links), AllEvidence.learn, list[Int64Array]()

    def spy(self: AllEvidence, links: Int64Array) -> Learned:
        taught.append(links)
        return learn(self, links)

    monkeypatch.setattr(AllEvidence, "learn", spy)
    parts = out_of_fold(evidence, links, unlinked, learned=learned, folds=3)
    assert len(parts) == len(taught) == 3
    for part, teachers in zip(parts, taught, strict=True):
        assert sorted([*teachers[:, 0].tolist(), *part.lists.rows.tolist()]) == list(range(24))
