"""AUT's transformation matrix of `linker reproduce bucc`, beside a least-squares solution of its definition."""

import numpy as np

from linker.crosslingual.pages.languages import language
from linker.crosslingual.pages.pages import Pages
from linker.crosslingual.task import Task
from linker.papers.reproduce.bucc import by_matrix, ridge


def test_the_matrix_minimises_its_penalised_error() -> None:
    rng = np.random.default_rng(0)
    source, target = (rng.normal(size=(30, k)).astype(np.float32) for k in (4, 3))
    links = np.array([(i, 29 - i) for i in range(20)])
    a = np.vstack([source[links[:, 0]], np.sqrt(0.3) * np.eye(4)])
    b = np.vstack([target[links[:, 1]], np.zeros((4, 3))])
    expected = np.linalg.lstsq(a, b, rcond=None)[0]
    np.testing.assert_allclose(ridge(source, target, links, 0.3), expected, atol=1e-4)


def test_the_matrix_links_pages_without_a_word_in_common() -> None:
    rng = np.random.default_rng(0)
    topics = [rng.choice(12, 4, replace=False) for _ in range(120)]  # what a page is about, of 12 subjects

    def pages(code: str) -> Pages:
        texts = [" ".join(f"{code}{'abcdefghijkl'[i]}{word}" for i in t for word in "xyz") for t in topics]
        return Pages(tuple(f"{code}{i}" for i in range(120)), tuple(texts), language("und"))

    links = np.array([(i, i) for i in range(80)])
    found = by_matrix(Task(pages("q"), pages("w"), train=links)).cut(5).targets[80:]
    assert (found == np.arange(80, 120)[:, None]).any(axis=1).mean() > 0.9
