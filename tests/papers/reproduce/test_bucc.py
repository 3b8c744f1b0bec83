"""AUT's transformation matrix in `linker reproduce bucc`, against a least-squares solution of its definition."""

import json
from pathlib import Path

import numpy as np

from linker.crosslingual.pages.languages import language
from linker.crosslingual.pages.pages import Pages
from linker.crosslingual.task import Task
from linker.papers.bucc.prepare import prepare
from linker.papers.reproduce.bucc import by_matrix, ridge, studies


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
    topics = [rng.choice(12, 4, replace=False) for _ in range(120)]  # subjects of each page, out of 12

    def pages(code: str) -> Pages:
        texts = [" ".join(f"{code}{'abcdefghijkl'[i]}{word}" for i in t for word in "xyz") for t in topics]
        return Pages(tuple(f"{code}{i}" for i in range(120)), tuple(texts), language("und"))

    links = np.array([(i, i) for i in range(80)])
    found = by_matrix(Task(pages("q"), pages("w"), train=links)).cut(5).targets[80:]
    assert (found == np.arange(80, 120)[:, None]).any(axis=1).mean() > 0.9


def test_prepared_pages_are_counted_and_cut_at_the_first_full_stop(tmp_path: Path) -> None:
    for code, other in (("fr", "en"), ("en", "fr")):
        texts = [f"Version 3.{i} is it. The text {'x' * 40}" for i in range(8)]
        rows = [
            {"_id": f"{code}{i}", "text": t, "langlinks": {other: f"{other}{i}"}} for i, t in enumerate(texts)
        ]
        (tmp_path / f"{code}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    data = tmp_path / "data"
    prepare(tmp_path / "fr.jsonl", tmp_path / "en.jsonl", data, ("fr", "en"), first_stop=True)
    first = json.loads((data / "en.test.jsonl").read_text().splitlines()[0])["text"]
    assert first.endswith("x" * 40) and " is it. The text" in first
    counts, french = studies(data, tmp_path, quick=False)
    assert french.name == "fr"
    assert counts.systems[0].run(0).measures == {
        "linked both ways": 8, "with text": 8, "kept": 8, "train": 4, "test": 4,
    }  # fmt: skip
    assert not counts.systems[0].why
