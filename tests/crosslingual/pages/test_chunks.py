"""Functions over many texts in several processes: the same results as in one."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest

from linker.crosslingual.pages import chunks
from linker.crosslingual.pages.chunks import in_chunks
from linker.crosslingual.pages.pages import count_terms
from linker.crosslingual.scoring.passages import passages_of


def lengths(texts: Sequence[str]) -> list[int]:
    return [len(text) for text in texts]


def texts_of(n: int) -> tuple[str, ...]:
    rng = np.random.default_rng(4)
    return tuple(
        "\n".join(" ".join(f"w{i}" for i in rng.integers(0, 50, 40)) for _ in range(3)) * (k % 3 != 0)
        for k in range(n)
    )


def test_processes_return_what_one_process_does_in_order() -> None:
    texts = tuple("x" * i for i in range(100))
    found = list(in_chunks(lengths, texts, many=1, jobs=2))
    assert [n for part in found for n in part] == list(range(100))


@pytest.mark.parametrize("size", [1, 7, 2000])
def test_terms_and_passages_do_not_depend_on_the_chunks(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = texts_of(30)
    whole = count_terms(texts, str.split)
    cut = passages_of(texts, str.split, whole)
    monkeypatch.setattr(chunks, "CHUNK", size)
    parts = count_terms(texts, str.split)
    assert parts.vocabulary == whole.vocabulary
    for row, text in enumerate(texts):
        begin, end = parts.counts.indptr[row : row + 2]
        terms = [parts.vocabulary[i] for i in parts.counts.indices[begin:end]]
        assert dict(zip(terms, parts.counts.data[begin:end].tolist(), strict=True)) == Counter(text.split())
        assert terms == sorted(terms)
    again = passages_of(texts, str.split, whole)
    assert np.array_equal(again.begin, cut.begin)
    assert np.array_equal(again.present.indices, cut.present.indices)
    assert np.array_equal(again.present.indptr, cut.present.indptr)
    assert cut.begin[0] == 0 and np.diff(cut.begin).min() >= 1  # an empty text has one empty passage


def test_no_texts_at_all() -> None:
    terms = count_terms((), str.split)
    assert terms.counts.shape == (0, 0)
    assert passages_of((), str.split, terms).begin.tolist() == [0]
