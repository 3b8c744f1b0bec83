"""BM25F: the formula by hand and written out, compiled and numpy alike, and the storage of several fields."""

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indexes import kernels
from indexes.interface import DamagedError, DuplicateIdError, Filter, IndexesError
from indexes.rows import Rows
from indexes.text import postings
from indexes.text.bm25 import Bm25Index
from indexes.text.field_scoring import FieldScorer
from indexes.text.fields import FieldsIndex
from indexes.text.parameters import AnalysisSettings, Bm25Parameters, Field
from indexes.text.postings import BLOCK, PostingsSegment
from indexes.text.queries import Queries
from indexes.text.scoring import Bm25Scorer
from indexes.text.vocabulary import term_hash
from linker import Document

compiled = pytest.mark.skipif(kernels.load("postings") is None, reason=kernels.status("postings"))
NONE = AnalysisSettings("none")
WEIGHED = Bm25Parameters(1.2, 0.75, 1, (Field("title", 2.0, 0.5), Field("text"), Field("tags", 0.7, 0.0)))
WORDS = ("a", "b", "c", "d")


def index_of(
    documents: Sequence[Document], parameters: Bm25Parameters = WEIGHED, step: int = 0
) -> FieldsIndex:
    """Return an index committed after every `step` documents."""
    index = FieldsIndex.empty(NONE, parameters)
    for start in range(0, len(documents), step or len(documents)):
        part = documents[start : start + (step or len(documents))]
        index.add(part, [d.metadata for d in part])
        index.commit()
    return index


def oracle(documents: Sequence[Document], query: Counter[str], p: Bm25Parameters) -> dict[int, float]:
    """BM25F written out."""
    fields = [f for f in p.fields if f.weight]
    counts = [[Counter(d.field(f.name).split()) for f in fields] for d in documents]
    averages = [sum(row[n].total() for row in counts) / len(documents) or 1.0 for n in range(len(fields))]
    scores: dict[int, float] = {}
    for term, times in query.items():
        frequency = sum(any(term in c for c in row) for row in counts)
        idf = math.log(1 + (len(documents) - frequency + 0.5) / (frequency + 0.5))
        k3 = p.k3 * max(1, query.total() / 32)
        for number, row in enumerate(counts):
            mixed = 0.0
            for field, average, count in zip(fields, averages, row, strict=True):
                b = p.b if field.b is None else field.b
                if term in count:
                    mixed += field.weight * count[term] / (1 - b + b * count.total() / average)
            if mixed:
                gain = (k3 + 1) * times / (k3 + times) * idf * (p.k1 + 1) * mixed / (p.k1 + mixed)
                scores[number] = scores.get(number, 0.0) + gain
    return scores


def test_a_score_by_hand() -> None:
    documents = [
        Document("x", "b b b b", "a b", {"tags": ["a", "a"]}),
        Document("y", "a b", ""),
        Document("z", "c", "c c"),
    ]
    rows, scores = index_of(documents).search_rows(["a"], 3)
    # titles have 4/3 terms on average, texts 7/3; tags are not discounted
    first = 2 / (0.5 + 0.5 * 2 / (4 / 3)) + 0.7 * 2
    second = 1 / (0.25 + 0.75 * 2 / (7 / 3))
    idf = math.log(1 + 1.5 / 2.5)  # two of three rows; one of them has the term in two fields
    assert rows.tolist() == [[0, 1, -1]]
    assert scores[0, :2].tolist() == pytest.approx(
        [idf * 2.2 * first / (1.2 + first), idf * 2.2 * second / (1.2 + second)], rel=1e-6
    )


TEXT = st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join)
DOCUMENTS = st.lists(
    st.builds(lambda text, title, tags: Document("", text, title, {"tags": tags}), TEXT, TEXT, TEXT),
    min_size=1,
    max_size=12,
).map(lambda made: [Document(f"d{n}", d.text, d.title, d.metadata) for n, d in enumerate(made)])
WEIGHT = st.sampled_from([0.0, 0.001, 0.5, 1.0, 3.0, 1000.0])
UNIT = st.floats(0, 1)
PARAMETERS = st.builds(
    lambda k1, b, k3, weights, bs: Bm25Parameters(
        k1, b, k3, tuple(map(Field, ("title", "text", "tags"), weights, bs))
    ),
    st.floats(0, 10), UNIT, st.floats(0, 10),
    st.lists(WEIGHT, min_size=3, max_size=3).filter(any), st.lists(UNIT | st.none(), min_size=3, max_size=3),
)  # fmt: skip


@settings(deadline=None, max_examples=60)
@given(DOCUMENTS, TEXT.filter(bool), PARAMETERS, st.integers(1, 5))
def test_scores_are_bm25fs(documents: list[Document], query: str, p: Bm25Parameters, step: int) -> None:
    index = index_of(documents, step=step)
    (rows,), (scores,) = index.search_rows([query], len(documents), None, p)
    expected = oracle(documents, Counter(query.split()), p)
    hits = rows[rows >= 0].tolist()
    assert set(hits) == set(expected)
    assert scores[: len(hits)].tolist() == pytest.approx([expected[row] for row in hits], rel=1e-4)
    assert all(
        (-a, i) < (-b, j) for (a, i), (b, j) in itertools.pairwise(zip(scores.tolist(), hits, strict=False))
    )
    # one segment or several, compiled or not: the same to the last bit
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "load", lambda *_: None)
        slow = index_of(documents).search_rows([query], len(documents), None, p)
    assert slow[0].tobytes() == rows.tobytes()
    assert slow[1].tobytes() == scores.tobytes()


def far_apart(count: int) -> list[Document]:
    rng = np.random.default_rng(1)
    words = [f"w{n}" for n in range(30)]

    def text(most: int) -> str:
        return " ".join(rng.choice(words, rng.integers(0, most)).tolist())

    return [Document(f"d{n}", text(12), text(3), {"tags": text(2)}) for n in range(count)]


@compiled
def test_compiled_and_numpy_agree_over_blocks_and_segments() -> None:
    documents = far_apart(BLOCK + 900)
    queries = ["w1 w2 w3 w3", "w4", "nothing", "w5 w29 w0"]
    allowed = Filter.parse(["tags=w3", "tags=w1", "tags="])
    index = index_of(documents, step=1700)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "load", lambda *_: None)
        plain = index_of(documents)
        for k, where in itertools.product((1, 10, 5000), (None, allowed)):
            for part in (queries, queries[:1]):
                fast, slow = (i.search_rows(part, k, where) for i in (index, plain))
                assert [a.tobytes() for a in fast] == [b.tobytes() for b in slow]


def cut_differently(documents: Sequence[Document]) -> FieldsIndex:
    """Return an index whose fields have segments with different edges."""
    rows = Rows()
    indexes = [Bm25Index(NONE, None, rows) for _ in WEIGHED.fields]
    rows.append([d.id for d in documents])
    for index, field, share in zip(indexes, WEIGHED.fields, (1.0, 0.6, 0.75), strict=True):
        start = 0
        while start < len(documents):  # each segment is smaller than the previous one, so they are not merged
            part = documents[start : start + max(1, int(share * (len(documents) - start)))]
            index.extend(*index.numbers([d.field(field.name) for d in part]))
            index.scorer()
            start += len(part)
    assert len({tuple(s.first for s in index._segments) for index in indexes}) == len(indexes)
    return FieldsIndex(indexes, rows, NONE, WEIGHED)


@pytest.mark.parametrize("way", ["compiled", "numpy"])
def test_fields_may_be_cut_into_segments_at_different_rows(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    documents, queries = far_apart(400), ["w1 w2 w3 w3", "w4", "w5 w29 w0"]
    whole = index_of(documents).search_rows(queries, 300)
    if way == "numpy":
        monkeypatch.setattr(kernels, "load", lambda *_: None)
    assert [a.tobytes() for a in cut_differently(documents).search_rows(queries, 300)] == [
        b.tobytes() for b in whole
    ]


def test_one_field_of_weight_1_is_plain_bm25() -> None:
    documents = far_apart(300)
    plain = Bm25Index(NONE)
    plain.add([d.id for d in documents], [d.text for d in documents])
    queries = ["w1 w2 w3 w3", "w4 w5", "nothing"]
    for fields in ((Field("text"),), (Field("title", 0), Field("text", 1, 0.3))):
        index = index_of(documents, Bm25Parameters(1.5, 0.3, 2, fields))
        same = plain.search_rows(queries, 50, None, Bm25Parameters(1.5, 0.3, 2))
        assert [a.tobytes() for a in index.search_rows(queries, 50)] == [b.tobytes() for b in same]
    # If all fields but one are empty, the other formula ranks texts in the same order.
    alone = [Document(d.id, d.text) for d in documents]
    rows, scores = index_of(alone, Bm25Parameters(fields=(Field("title"), Field("text")))).search_rows(
        queries, 50
    )
    close_rows, close = plain.search_rows(queries, 50)
    assert scores == pytest.approx(close, rel=1e-5)
    assert (rows == close_rows).mean() > 0.95


@compiled
def test_wrong_rows_in_a_file_do_not_leave_the_arrays() -> None:
    hashes = np.array([term_hash(f"t{n}") for n in range(3)], dtype=np.uint64)
    tokens = np.array([0, 1, 2] * 40, dtype=np.int32)
    whole = postings.from_tokens(0, tokens, np.full(40, 3), hashes)
    half = [postings.from_tokens(first, tokens[:60], np.full(20, 3), hashes) for first in (0, 20)]
    rng = np.random.default_rng(0)
    for wrong in (rng.integers(0, 2**32, whole.size, np.uint32), np.full(whole.size, 2**32 - 1, np.uint32),
                  whole.rows[::-1].copy(), whole.rows + np.uint32(30)):  # fmt: skip
        damaged = PostingsSegment(
            0, 40, whole.tokens, whole.terms, whole.starts, wrong, whole.counts, whole.lengths
        )
        p = Bm25Parameters(fields=(Field("one", 2), Field("two")))
        scorer = FieldScorer({"one": Bm25Scorer([damaged]), "two": Bm25Scorer(half)})
        found, _ = scorer.best(Queries.of([{int(h): 1 for h in hashes}]), 5, None, p)
        assert found.max() < 40


@pytest.mark.parametrize(
    ("name", "weight", "b", "message"),
    [
        ("", 1, None, "not a valid field name"), ("a=b", 1, None, "not a valid field name"),
        ("a,b", 1, None, "not a valid field name"), ("a", -1, None, "weight of a is -1"),
        ("a", math.nan, None, "weight of a is nan"), ("a", 1e-9, None, "from 0.001 to 1000"),
        ("a", 1, 1.5, "b of a is 1.5"),
    ],
)  # fmt: skip
def test_fields_out_of_range_are_refused(name: str, weight: float, b: float | None, message: str) -> None:
    with pytest.raises(IndexesError, match=message):
        Field(name, weight, b)


def test_parameters_of_fields_are_stored_and_replaced() -> None:
    assert Bm25Parameters.from_json(WEIGHED.to_json()) == WEIGHED
    assert "fields" not in Bm25Parameters().to_json()
    changed = WEIGHED.weighted({"text": 3}, {"title": 0.1})
    assert changed.fields == (Field("title", 2.0, 0.1), Field("text", 3), Field("tags", 0.7, 0.0))
    with pytest.raises(IndexesError, match="no field 'x': its fields are title, text, tags"):
        WEIGHED.weighted({"x": 3})
    with pytest.raises(IndexesError, match="build it with `fields`"):
        Bm25Parameters().weighted({"x": 3})
    with pytest.raises(IndexesError, match="different fields, got a, a"):
        Bm25Parameters(fields=(Field("a"), Field("a")))


def test_parameters_of_a_query_name_fields_of_the_index() -> None:
    index = index_of([Document("x", "a", "b", {"tags": "c"})])
    only = Bm25Parameters(fields=(Field("title"),))
    assert index.search_rows(["a", "b"], 1, None, only)[0].tolist() == [[-1], [0]]
    # the index's own weights
    assert index.search_rows(["a"], 1, None, Bm25Parameters(k1=3))[0].tolist() == [[0]]
    for wrong, message in ((Field("no"), "no field 'no'"), (Field("text", 0), "weight 0")):
        with pytest.raises(IndexesError, match=message):
            index.search_rows(["a"], 1, None, Bm25Parameters(fields=(wrong,)))
    with pytest.raises(IndexesError, match="has no fields"):
        Bm25Index().search_rows(["a"], 1, None, only)


def test_a_batch_is_added_whole_or_not_and_removed_rows_do_not_answer() -> None:
    index = index_of([Document("x", "a"), Document("y", "a", "a")])
    with pytest.raises(DuplicateIdError):
        index.add([Document("z", "a"), Document("x", "a")])
    index.remove(["x"])
    index.add([Document("z", "a")])
    assert index.search_rows(["a"], 5)[0].tolist() == [[1, 2, -1, -1, -1]]
    assert len(index) == 2
    assert index.holding([term_hash("a")]).tolist() == [0, 1, 2]
    assert FieldsIndex.empty(NONE, WEIGHED).search_rows(["a"], 2)[0].tolist() == [[-1, -1]]
    index.close()
    with pytest.raises(IndexesError, match="closed"):
        index.search_rows(["a"], 1)


def test_terms_are_held_by_any_field() -> None:
    documents = [Document("x", "a", "b"), Document("y", "a b"), Document("z", "b", "", {"tags": "a"})]
    index = index_of(documents, step=2)
    assert index.holding([term_hash("a"), term_hash("b")]).tolist() == [0, 1, 2]
    assert index.holding([term_hash("a"), term_hash("c")]).tolist() == []
    # A title without its own field can contain a phrase: every row is a candidate.
    only = index_of(documents, Bm25Parameters(fields=(Field("text"),)))
    assert only.holding([term_hash("b")]).tolist() == [0, 1, 2]


def test_a_field_with_other_rows_is_damaged(tmp_path: Path) -> None:
    index = FieldsIndex.resume(None, tmp_path, Rows(), NONE, WEIGHED)
    index.add([Document("x", "a", "b")])
    index.commit()
    assert {p.parent.name for p in tmp_path.rglob("*.postings")} == {"f0", "f1", "f2"}
    rows = Rows()
    rows.restore(["x"], np.empty(0, dtype=np.int64))
    assert FieldsIndex.open(tmp_path, rows, NONE, WEIGHED).search_rows(["b"], 1)[0].tolist() == [[0]]
    (path,) = (tmp_path / "f1").iterdir()
    path.unlink()
    with pytest.raises(DamagedError, match="f1 holds 0 documents, but there are 1"):
        FieldsIndex.open(tmp_path, rows, NONE, WEIGHED)
