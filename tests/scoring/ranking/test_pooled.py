"""The ranker that ships with linker: how it blends, how it is trained, and when it is used."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from indexes.dtypes import BoolArray
from indexes.text.features import NAMES
from linker.base.errors import InputError
from linker.scoring.ranking import folder, pooled
from linker.scoring.ranking.candidates import Pool
from linker.scoring.ranking.ranker import Ranker, blend_with_bm25
from tests.helpers import linker
from tests.scoring.ranking.synthetic import documents, judged_queries


def made_pool(seed: int, queries: int = 60) -> tuple[Pool, BoolArray]:
    """Return random candidates; the relevant one usually has the largest value of one feature."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(queries, 8, len(NAMES))).astype(np.float32)
    rows = np.tile(np.arange(8), (queries, 1))
    rows[rng.random(queries) < 0.3, 6:] = -1
    relevant = np.zeros(rows.shape, dtype=bool)
    best = np.where(rows >= 0, features[:, :, NAMES.index("sentence")], -np.inf).argmax(axis=1)
    relevant[np.arange(queries), best] = rng.random(queries) < 0.9
    return Pool(rows, features, NAMES), relevant


def pooled_ranker() -> Ranker:
    """Return a small blended ranker for two collections."""
    return pooled.learn([made_pool(1), made_pool(2)])[0]


def test_a_blend_is_two_zscores_added_in_which_rounding_does_not_outweigh_bm25() -> None:
    pool, _ = made_pool(0)
    scores = np.where(pool.valid, np.random.default_rng(1).normal(size=pool.rows.shape), -np.inf)
    found = blend_with_bm25(scores, pool, 0.5)
    for line in range(len(pool.rows)):
        here = np.flatnonzero(pool.valid[line])
        bm25 = pool.features[line, here, NAMES.index("bm25")].astype(float)
        parts = [(part - part.mean()) / part.std() for part in (scores[line, here], bm25)]
        np.testing.assert_allclose(found[line, here], parts[0] + 0.5 * parts[1], rtol=1e-6)
        assert (found[line, ~pool.valid[line]] == -np.inf).all()
    pool, _ = made_pool(0)
    one = pool.part(slice(1))
    noisy = np.where(one.valid, 0.1 + 1e-12 * np.arange(8), -np.inf)
    equal = np.where(one.valid, 0.1, -np.inf)
    np.testing.assert_array_equal(blend_with_bm25(noisy, one, 1.0), blend_with_bm25(equal, one, 1.0))


def test_it_learns_what_collections_share_and_is_saved_with_its_blend(tmp_path: Path) -> None:
    pytest.importorskip("lightgbm")
    ranker, text = pooled.learn([made_pool(0, 150), made_pool(1, 150)])
    pool, relevant = made_pool(2)
    order = ranker.rank(pool)
    first = [relevant[i, list(pool.rows[i]).index(row)] for i, row in enumerate(order.rows[:, 0])]
    assert np.mean(first) > 0.4  # .12 by chance
    saved = folder.save(ranker, text, tmp_path / "model")
    assert saved.blend == pooled.BLEND
    np.testing.assert_allclose(saved.rank(pool).scores, order.scores)
    np.testing.assert_allclose(order.links.sum(axis=1) + order.none, 1)


def test_a_ranker_replaces_another_of_several_collections_and_leaves_the_users_files(tmp_path: Path) -> None:
    shipped = (pooled.FOLDER / folder.TREES).read_text()
    folder.save(pooled.load(), shipped, tmp_path / "model")
    (tmp_path / "model" / "mine.txt").write_text("mine")
    ranker, text = pooled.learn([made_pool(1), made_pool(2)])
    folder.save(ranker, text, tmp_path / "model")
    assert (tmp_path / "model" / folder.TREES).read_text() == text
    assert (tmp_path / "model" / "mine.txt").read_text() == "mine"
    with pytest.raises(InputError, match="two collections"):
        pooled.learn([made_pool(0)])


def test_probabilities_are_fitted_again_with_same_trees_and_assume_that_half_of_queries_match() -> None:
    parts = [made_pool(1), made_pool(2)]
    ranker, text = pooled.learn(parts)
    again, same = pooled.learn(parts, text=text)
    assert same == text and again.calibration == ranker.calibration
    assert ranker.calibration.linked == pooled.load().calibration.linked == 0.5
    shipped = (pooled.FOLDER / folder.TREES).read_text()
    other, kept = pooled.learn(parts, text=shipped)
    assert kept == shipped and other.calibration == ranker.calibration


def test_few_documents_change_its_probabilities_and_many_do_not() -> None:
    calibration = pooled.load().calibration
    assert calibration.of_size(3000) is calibration and calibration.of_size(10**6) is calibration
    half, smallest = calibration.of_size(300), calibration.of_size(30)
    changes = np.array([smallest.weights, half.weights]) - calibration.weights
    np.testing.assert_allclose(changes[0], 2 * changes[1], atol=1e-12)
    assert changes[1, -1] < 0 and calibration.of_size(0) == calibration.of_size(1)
    other = dataclasses.replace(calibration, few=())
    assert other.of_size(3) is other


def test_a_ranker_counts_the_documents_only_if_their_number_may_matter() -> None:
    ranker = pooled.load()
    assert ranker.for_size_of(range(3000)) is ranker
    assert ranker.for_size_of(range(30)).calibration == ranker.calibration.of_size(30)
    learned = dataclasses.replace(ranker, calibration=dataclasses.replace(ranker.calibration, few=()))

    class Uncounted:
        def __len__(self) -> int:
            raise AssertionError("a request to the server")

    assert learned.for_size_of(Uncounted()) is learned


@pytest.mark.parametrize("few", [(1.0,), (float("nan"),) * 10])
def test_wrong_changes_for_few_documents_are_refused(few: tuple[float, ...], tmp_path: Path) -> None:
    shipped = pooled.load()
    ranker = dataclasses.replace(shipped, calibration=dataclasses.replace(shipped.calibration, few=few))
    with pytest.raises(InputError, match="does not describe a ranker"):
        folder.save(ranker, (pooled.FOLDER / folder.TREES).read_text(), tmp_path / "model")


@pytest.mark.parametrize("blend", [-1, 1e9, float("nan")])
def test_a_wrong_blend_is_refused(blend: float, tmp_path: Path) -> None:
    ranker = dataclasses.replace(pooled.load(), blend=blend)
    trees = (pooled.FOLDER / folder.TREES).read_text()
    with pytest.raises(InputError, match="does not describe a ranker"):
        folder.save(ranker, trees, tmp_path / "model")


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with an index without an encoder, and 40 links."""
    root = tmp_path_factory.mktemp("pooled")
    lines = [json.dumps({"_id": d.id, "text": d.text}) + "\n" for d in documents()]
    (root / "corpus.jsonl").write_text("".join(lines))
    linker("index", "build", root / "corpus.jsonl", "--out", root / "index", "--encoder", "none")
    asked, judged = judged_queries()
    texts = [json.dumps({"_id": q.id, "text": q.text}) + "\n" for q in asked[:40]]
    (root / "queries.jsonl").write_text("".join(texts))
    qrels = [f"{q.id} 0 {d} 1\n" for q in asked[:40] for d in judged[q.id]]
    (root / "qrels").write_text("".join(qrels))
    return root


def test_too_few_links_take_it_and_say_so_and_a_search_names_it(few: Path) -> None:
    links = ("--queries", few / "queries.jsonl", "--qrels", few / "qrels")
    done = linker("rank", "train", few / "index", *links, "--out", few / "model", "--json")
    assert "the ranker that comes with linker is used" in done.stderr
    figures = json.loads(done.stdout)
    assert figures["ranker"] == pooled.load().fingerprint and figures["queries"] == 40
    assert figures["mrr"] > 0
    text = judged_queries()[0][0].text
    done = linker("search", few / "index", "--text", text, "--rerank", "pooled", "--json")
    answer = json.loads(done.stdout.splitlines()[0])
    assert pooled.load().fingerprint in done.stdout
    assert answer
