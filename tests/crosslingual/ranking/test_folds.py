"""Folds: every link once, all links of a page together, and a hash of the content decides."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from linker.crosslingual.pages.pages import Pages
from linker.crosslingual.ranking.folds import folds_of
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
