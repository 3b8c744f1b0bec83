"""The millions of documents of a benchmark: a tenth real, the rest changed copies, reproducible from the seed."""

import itertools
from pathlib import Path

import numpy as np
import orjson
import pytest

from benchmarks.support import many_documents as many
from benchmarks.support.common import shared_data
from indexes.arrays import normalised
from indexes.interface import Matrix

TEXTS = [f"alpha{n} beta{n} gamma{n} delta{n} epsilon{n} zeta{n} eta{n}" for n in range(60)]


def vectors(dim: int = 8) -> Matrix:
    return normalised(np.random.default_rng(0).standard_normal((len(TEXTS), dim), dtype=np.float32))


def all_of(shard: many.Shard, *, words: bool = True) -> tuple[list[str], list[str], Matrix]:
    ids, texts, found = zip(*shard.blocks(words), strict=True)
    flat = itertools.chain.from_iterable
    return list(flat(ids)), list(flat(texts)), np.vstack(found)


def most_alike(text: str) -> int:
    """Return how many words of its likeliest original a text has kept in place."""
    return max(sum(a == b for a, b in zip(text.split(), other.split(), strict=True)) for other in TEXTS)


def test_a_tenth_is_real_and_each_real_text_is_in_one_shard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(many, "BLOCK", 17)
    real: list[str] = []
    for number in range(3):
        ids, texts, matrix = all_of(many.Shard(number, 3, 100, TEXTS, vectors()))
        assert len(set(ids)) == len(ids) == len(texts) == len(matrix) == 100
        assert texts[:10] == TEXTS[number::3][:10]
        np.testing.assert_array_equal(matrix[:10], vectors()[number::3][:10])
        real += texts[:10]
        words = [most_alike(text) for text in texts[10:]]
        assert 4.5 < np.mean(words) < 6  # of seven words, two are replaced; a place may be drawn twice
        assert min(words) == 5
        np.testing.assert_allclose(np.linalg.norm(matrix, axis=1), 1, atol=1e-5)
    assert len(set(real)) == 30


def test_a_shard_is_the_same_again_and_unlike_the_next() -> None:
    one, again, other = (all_of(many.Shard(n, 3, 50, TEXTS, vectors())) for n in (1, 1, 2))
    assert one[:2] == again[:2]
    np.testing.assert_array_equal(one[2], again[2])
    assert one[1] != other[1]
    assert all_of(many.Shard(1, 3, 50, TEXTS, vectors()), words=False)[1] == one[0]


def test_files_hold_what_the_blocks_are(tmp_path: Path) -> None:
    shard = many.Shard(0, 3, 40, TEXTS, vectors())
    corpus, matrix, names = many.write(shard, 40, 8, tmp_path)
    ids, texts, found = all_of(shard)
    lines = [orjson.loads(line) for line in corpus.read_bytes().splitlines()]
    assert [(line["_id"], line["text"]) for line in lines] == list(zip(ids, texts, strict=True))
    assert names.read_text().split() == ids
    np.testing.assert_array_equal(np.load(matrix), found)


@pytest.mark.skipif(not shared_data().is_dir(), reason="needs the shared data")
def test_queries_are_not_among_the_texts() -> None:
    first = [text for text, _ in zip(many.real_texts(), range(300), strict=False)]
    assert len(set(first)) == 300
    assert max(len(text.split()) for text in first) <= many.LONGEST
    later = [text for text, _ in zip(many.real_texts(first[:100]), range(300), strict=False)]
    assert not set(first[:100]) & set(later)
