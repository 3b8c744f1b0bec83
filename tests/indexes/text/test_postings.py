"""Postings, their merging and their files; the compiled loop, numpy and BM25 written out give the same."""

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from indexes import kernels
from indexes.interface import DamagedError, Filter
from indexes.text import postings, scoring, segment_files
from indexes.text.analysis import ASCII, SEPARATED, Analysis
from indexes.text.bm25 import Bm25Index
from indexes.text.parameters import (
    BIGRAMS,
    TOKENIZERS,
    AnalysisSettings,
    Bm25Parameters,
    TokenizerName,
)
from indexes.text.postings import BLOCK, LENGTHS, PostingsSegment
from indexes.text.queries import Queries, QueryTerms
from indexes.text.vocabulary import TermVocabulary, term_hash

compiled = pytest.mark.skipif(kernels.load("postings") is None, reason=kernels.status("postings"))
DEFAULT = Bm25Parameters()
HASHES = np.array([term_hash(f"t{n}") for n in range(12)], dtype=np.uint64)
PARAMETERS = st.builds(
    Bm25Parameters, st.floats(0, 1000), st.floats(0, 1), st.floats(0, 1e6) | st.just(math.inf)
)
CORPUS = st.lists(st.lists(st.integers(0, 11), max_size=30), min_size=1, max_size=30)


def segment_of(texts: list[list[int]], first: int = 0) -> PostingsSegment:
    tokens = np.array([t for text in texts for t in text], dtype=np.int32)
    lengths = np.array([len(t) for t in texts], dtype=np.int64)
    return postings.from_tokens(first, tokens, lengths, HASHES)


def content(segment: PostingsSegment) -> dict[int, list[tuple[int, int]]]:
    """Return each term's rows and counts."""
    return {
        int(term): list(zip(segment.rows[a:b].tolist(), segment.counts[a:b].tolist(), strict=True))
        for term, a, b in zip(segment.terms, segment.starts, segment.starts[1:], strict=False)
    }


def oracle(texts: list[list[int]]) -> dict[int, list[tuple[int, int]]]:
    found: dict[int, list[tuple[int, int]]] = {}
    for row, text in enumerate(texts):
        for term, count in sorted(Counter(text).items()):
            found.setdefault(int(HASHES[term]), []).append((row, count))
    return found


def test_lengths_are_exact_and_then_within_a_thousandth() -> None:
    assert len(LENGTHS) == 1 << 16
    assert LENGTHS[: 1 << 15].tolist() == [*range(1 << 15)]
    steps = np.diff(LENGTHS)
    assert (steps > 0).all()
    assert (steps[1 << 15 :] / LENGTHS[1 << 15 : -1]).max() < 0.001
    assert LENGTHS[-1] >= postings.MOST_TOKENS // 4


@settings(deadline=None)
@given(CORPUS, st.sampled_from([kernels.load, lambda name: None]))
def test_postings_are_the_counts_of_each_row(texts: list[list[int]], load: Callable[[str], Any]) -> None:
    """The compiled loop counts them, or numpy."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "load", load)
        segment = segment_of(texts)
    assert content(segment) == oracle(texts)
    assert (np.diff(segment.terms.astype(object)) > 0).all()
    assert segment.tokens == sum(map(len, texts))
    assert [LENGTHS[b] for b in segment.lengths[: len(texts)]] == [len(t) for t in texts]
    assert len(segment.lengths) % BLOCK == 0


@given(CORPUS, st.lists(st.integers(0, 15), max_size=8))
def test_terms_are_found_where_their_postings_are(texts: list[list[int]], terms: list[int]) -> None:
    segment = segment_of(texts)
    hashes = np.array([term_hash(f"t{n}") for n in terms], np.uint64)
    for places in (postings.find([segment], hashes)[0], postings._find_by_numpy(segment, hashes)):
        for n, begin, end in zip(terms, *places[:2].tolist(), strict=True):
            holding = [row for row, text in enumerate(texts) if n in text]
            assert segment.rows[begin:end].tolist() == holding


def test_a_count_is_capped(way: str) -> None:
    segment = segment_of([[1], [0] * 70_000])
    assert content(segment) == {int(HASHES[1]): [(0, 1)], int(HASHES[0]): [(1, 65_535)]}
    assert segment.tokens == 70_001
    assert LENGTHS[segment.lengths[1]] == 69_952


@settings(deadline=None)
@given(CORPUS, st.integers(1, 5), st.integers(1, 40), st.sampled_from([kernels.load, lambda name: None]))
def test_merged_segments_are_those_of_all_texts(
    texts: list[list[int]], parts: int, chunk: int, load: Callable[[str], Any]
) -> None:
    """The compiled loop copies them, or numpy."""
    edges = np.linspace(0, len(texts), parts + 1).astype(int).tolist()
    segments = [segment_of(texts[a:b], 7 + a) for a, b in itertools.pairwise(edges)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(postings, "CHUNK", chunk)
        patch.setattr(kernels, "load", load)
        found = postings.merged(segments)
    assert content(found) == oracle(texts)
    assert (found.first, found.documents) == (7, len(texts))
    assert found.lengths.tolist() == segment_of(texts).lengths.tolist()


def test_a_file_is_named_by_its_content_and_read_back(tmp_path: Path) -> None:
    segment = segment_of([[1, 1, 2], [], [2] * 1001])
    written = postings.write(segment, tmp_path)
    again = postings.write(segment_of([[1, 1, 2], [], [2] * 1001]), tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == [written.path.name if written.path else ""]
    assert again.path == written.path
    (read,) = postings.read_folder(tmp_path)
    assert content(read) == content(segment)
    assert read.lengths.tolist() == segment.lengths.tolist()
    assert LENGTHS[read.lengths[2]] == 1001
    assert not read.rows.flags.writeable


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    path = postings.write(segment_of([[1, 1, 2], [], [2]]), tmp_path).path
    assert path
    whole = path.read_bytes()
    starts = segment_files.HEAD + 2 * 8  # after two terms
    for wrong in (
        b"",
        whole[:-1],
        whole + b"x",
        b"x" + whole[1:],
        whole[:starts] + b"\xff" + whole[starts + 1 :],
    ):
        path.write_bytes(wrong)
        with pytest.raises(DamagedError, match=path.name):
            postings.read(path)
    path.unlink()
    postings.write(segment_of([[1]], 4), tmp_path)
    with pytest.raises(DamagedError, match="postings of row 0"):
        postings.read_folder(tmp_path)


@compiled
def test_wrong_rows_in_a_file_do_not_leave_the_arrays(tmp_path: Path) -> None:
    """Damage that a checksum has missed gives wrong results at worst."""
    segment = segment_of([[1, 1, 2], [2], [3] * 500])
    rows = np.random.default_rng(0).integers(0, 2**32, len(segment.rows), dtype=np.uint32)
    for wrong in (rows, rows % 4096, np.full_like(rows, 2**32 - 1), rows[::-1].copy()):
        damaged = PostingsSegment(
            0, 3, segment.tokens, segment.terms, segment.starts, wrong, segment.counts, segment.lengths
        )
        found, _ = scoring.Bm25Scorer([damaged]).best(Queries.of([{int(h): 1 for h in HASHES}]), 3)
        assert found.max() < 3


@pytest.fixture(params=["compiled", "numpy"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Score with the compiled loop or with numpy."""
    if request.param == "numpy":
        monkeypatch.setattr(kernels, "load", lambda *_, **__: None)
    elif kernels.load("postings") is None:
        pytest.skip(kernels.status("postings"))
    yield request.param


def ranked(
    texts: list[list[int]], query: dict[int, int], k: int, p: Bm25Parameters = DEFAULT
) -> list[tuple[int, float]]:
    """BM25 written out."""
    k3 = p.k3 * max(1, sum(query.values()) / 32)
    counts = [Counter(text) for text in texts]
    average = sum(map(len, texts)) / len(texts) or 1
    scores: dict[int, float] = {}
    for term, times in query.items():
        n = sum(term in c for c in counts)
        idf = math.log(1 + (len(texts) - n + 0.5) / (n + 0.5))
        for row, c in enumerate(counts):
            if term in c:
                weight = times if math.isinf(k3) else (k3 + 1) * times / (k3 + times)
                norm = p.k1 * (1 - p.b + p.b * len(texts[row]) / average)
                scores[row] = scores.get(row, 0) + weight * idf * (p.k1 + 1) * c[term] / (c[term] + norm)
    return sorted(scores.items(), key=lambda item: (-round(item[1], 6), item[0]))[:k]


@pytest.mark.parametrize(
    "parameters",
    [
        DEFAULT, Bm25Parameters(0, 0.5, 0), Bm25Parameters(2, 0.9, math.inf), Bm25Parameters(0.9, 0, 8),
        Bm25Parameters(k3=math.inf),
    ],
    ids=str,
)  # fmt: skip
def test_scores_are_bm25s(way: str, parameters: Bm25Parameters) -> None:
    rng = np.random.default_rng(3)
    texts = [rng.integers(0, 12, rng.integers(0, 30)).tolist() for _ in range(200)]
    scorer = scoring.Bm25Scorer([segment_of(texts[:90]), segment_of(texts[90:], 90)])
    queries = [{1: 1}, {2: 1, 3: 4, 11: 1}, {n: n + 1 for n in range(12)}, {}]
    rows, scores = scorer.best(
        Queries.of([{int(HASHES[t]): n for t, n in q.items()} for q in queries]), 250, None, parameters
    )
    for query, found, values in zip(queries, rows, scores, strict=True):
        expected = ranked(texts, query, 250, parameters)
        assert found[found >= 0].tolist() == [row for row, _ in expected]
        assert values[found >= 0] == pytest.approx([score for _, score in expected], rel=1e-5)


@compiled
@settings(max_examples=60, deadline=None)
@given(st.data())
def test_compiled_and_numpy_agree_to_the_last_bit(data: st.DataObject) -> None:
    texts = data.draw(CORPUS)
    # rows far apart, counts beyond the table, several segments
    far = [[], *([[0] * 9 + [1]] * 3), *[[] for _ in range(BLOCK * 2)], *texts]
    cut = data.draw(st.integers(0, len(far)))
    segments = [s for s in (segment_of(far[:cut]), segment_of(far[cut:], cut)) if s.documents]
    counts = st.dictionaries(st.sampled_from(HASHES.tolist()), st.integers(1, 3))
    queries = Queries.of(data.draw(st.lists(counts, max_size=4)))
    k = data.draw(st.integers(1, 50))
    mask = np.random.default_rng(data.draw(st.integers(0, 99))).random(len(far)) < 0.7
    allowed = data.draw(st.sampled_from([None, mask]))
    parameters = data.draw(PARAMETERS)
    fast = scoring.Bm25Scorer(segments).best(queries, k, allowed, parameters)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "load", lambda *_, **__: None)
        slow = scoring.Bm25Scorer(segments).best(queries, k, allowed, parameters)
    assert [a.tobytes() for a in fast] == [b.tobytes() for b in slow]


def test_many_queries_go_in_parts(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    scorer = scoring.Bm25Scorer([segment_of([[1], [2], [1, 2]])])
    queries = Queries.of([{int(HASHES[1 + n % 2]): 1} for n in range(11)])
    whole = scorer.best(queries, 2)
    monkeypatch.setattr(scoring, "KEYS", 4)
    assert [a.tobytes() for a in scorer.best(queries, 2)] == [a.tobytes() for a in whole]


TEXT = st.text(max_size=40) | st.text(
    st.sampled_from(list("aZ910_-—'’.,;:/@#«»\u200c\u0301éİıß\u0e33東京ـ،()[]“”\ud800𝐀Ⓐ²·٣\u0964\n\t ")),
    max_size=40,
)


@settings(max_examples=300, deadline=None)
@given(
    TEXT,
    st.sampled_from(["english", "german", "turkish", "arabic", "tamil", "none", "chinese", "korean"]),
    st.sampled_from(TOKENIZERS),
    st.sampled_from([1, 2]),
    st.booleans(),
)
@example("don't—stop… “now”", "english", "words", 1, False)
@example("İSTANBUL'da I", "turkish", "words", 1, False)
@example("1.5 1.5.", "english", "words", 1, False)
@example("a https://t.co/x?1,2\u00a0#A_bC@d1.5", "english", "posts", 1, False)
def test_a_text_has_the_terms_that_its_analysis_finds(
    text: str, language: str, tokenizer: TokenizerName, shortest: int, slow: bool
) -> None:
    analysis = Analysis(AnalysisSettings(language, tokenizer, min_token=shortest))
    with pytest.MonkeyPatch.context() as patch:
        if slow:
            patch.setattr(kernels, "load", lambda *_, **__: None)
        vocabulary, terms = TermVocabulary(analysis), QueryTerms(analysis)
    tokens, lengths = vocabulary.numbers([text, "", text])
    assert lengths.tolist() == [lengths[0], 0, len(tokens) - lengths[0]]
    numbers = [tokens[: lengths[0]], tokens[lengths[0] :], vocabulary.numbers([text])[0]]  # from memory
    expected = [term_hash(t) for t in analysis.terms(analysis.prepare(text))]
    assert [[int(vocabulary.hashes[n]) for n in part] for part in numbers] == [expected] * 3
    counts = {term_hash(t): n for t, n in analysis.query_terms(text).items()}
    for _ in range(2):
        queries = terms.of([text, "", text])
        assert queries.first.tolist() == [0, len(counts), len(counts), 2 * len(counts)]
        pairs = list(zip(queries.hashes.tolist(), queries.counts.tolist(), strict=True))
        assert pairs == [*counts.items()] * 2


def test_what_separates_pieces_separates_words_in_every_language() -> None:
    separators = [chr(n) for n in range(0x110000) if not 0xD800 <= n < 0xE000 and not SEPARATED.match(chr(n))]
    assert len(separators) > 500
    text = "".join(f"a{c}" for c in separators) + "a"
    assert [c for c in map(chr, range(128)) if ASCII[ord(c)] == c and c != " "] == [
        c for c in map(chr, range(128)) if SEPARATED.match(c)
    ]
    for language in ("english", "tamil", "none", *BIGRAMS):
        analyze = Analysis(language).terms
        assert analyze(text) == ["a"] * (len(separators) + 1)


def test_a_vocabulary_that_is_full_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("indexes.text.vocabulary.MOST", 3)
    index = Bm25Index("none")
    for n in range(20):
        index.add([f"d{n}"], [f"shared own{n}"])
    assert [index.search([f"own{n} own{n + 1}"], 5)[0].ids for n in range(3)] == [
        ("d0", "d1"),
        ("d1", "d2"),
        ("d2", "d3"),
    ]
    assert len(index.search(["shared"], 50)[0]) == 20


@pytest.mark.parametrize("pending", [1, 5, 1 << 20])
def test_segments_merge_as_a_counter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pending: int) -> None:
    monkeypatch.setattr("indexes.text.bm25.PENDING", pending)
    index = Bm25Index("none", tmp_path / "live")
    for n in range(100):
        index.add([f"d{n}"], ["a b c"], [{"odd": n % 2}])
        if not n % 10:
            index.commit()
    index.remove(["d0"])
    assert index.search(["b"], 3, Filter.parse(["odd=0"]))[0].ids == ("d2", "d4", "d6")
    assert len(index._segments) <= 1 + math.log2(100)
    assert {p.name for p in (tmp_path / "live").iterdir()} == {s.path.name for s in index._segments if s.path}


def test_texts_indexed_anew_answer_the_same() -> None:
    texts = ["one cat", "two cats", "no dog", "cat cat"]
    index = Bm25Index()
    index.add([f"d{n}" for n in range(4)], texts)
    index.remove(["d0"])
    before = index.search(["cat", "dog"], 4)
    again = Bm25Index.rebuilt(texts, index._rows)
    for old, new in zip(before, again.search(["cat", "dog"], 4), strict=True):
        assert new.ids == old.ids
        assert new.scores.tolist() == old.scores.tolist()
    with pytest.raises(DamagedError, match="3 documents, but there are 4 ids"):
        Bm25Index.rebuilt(texts[:3], index._rows)


@pytest.mark.parametrize("part", [1, 50, 1 << 20])
def test_texts_in_parts_and_a_growing_table(way: str, monkeypatch: pytest.MonkeyPatch, part: int) -> None:
    monkeypatch.setattr("indexes.text.vocabulary.PART", part)
    rng = np.random.default_rng(0)
    words = [f"{'“é’'[n % 4 :]}w{n}" for n in range(20_000)]
    texts = [" ".join(words[w] for w in rng.integers(0, len(words), rng.integers(0, 90))) for _ in range(300)]
    vocabulary, analysis = TermVocabulary(Analysis("none")), Analysis("none")
    for _ in range(2):
        tokens, lengths = vocabulary.numbers(texts)
        expected = [[term_hash(t) for t in analysis.terms(text)] for text in texts]
        assert lengths.tolist() == [len(e) for e in expected]
        assert vocabulary.hashes[tokens].tolist() == [h for e in expected for h in e]
    assert [a.tolist() for a in vocabulary.numbers([])] == [[], []]


@pytest.mark.parametrize(
    "query",
    [
        dict.fromkeys(range(2000), 1),
        {0: 10**9} | dict.fromkeys(range(1, 2000), 1),
    ],
    ids=["long", "lopsided"],
)
def test_scores_are_exact_however_long_and_lopsided_a_query(way: str, query: dict[int, int]) -> None:
    rng = np.random.default_rng(5)
    hashes = np.array([term_hash(f"t{n}") for n in range(2000)], dtype=np.uint64)
    texts = [rng.integers(0 if n == 0 else 1, 2000, 20).tolist() for n in range(300)]
    tokens = np.array([t for text in texts for t in text], dtype=np.int32)
    segment = postings.from_tokens(0, tokens, np.full(300, 20), hashes)
    rows, scores = scoring.Bm25Scorer([segment]).best(
        Queries.of([{int(hashes[t]): n for t, n in query.items()}]), 300
    )
    expected = dict(ranked(texts, query, 300))
    found = rows[0][rows[0] >= 0].tolist()
    assert set(found) == set(expected)
    assert scores[0][: len(found)] == pytest.approx([expected[row] for row in found], rel=1e-6)


def test_terms_of_one_hash_are_one_term() -> None:
    hashes = np.array([5, 7, 7], dtype=np.uint64)
    parts = [[[0]], [[1]] * 5 + [[2], [1, 2, 2]]]
    segments = [
        postings.from_tokens(
            first, np.concatenate(texts).astype(np.int32), np.array([len(t) for t in texts]), hashes
        )
        for first, texts in zip((0, 1), parts, strict=True)
    ]
    found = postings.merged(segments)
    assert content(found) == {5: [(0, 1)], 7: [*((row, 1) for row in range(1, 7)), (7, 3)]}


def test_a_flush_that_fails_leaves_whole_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("indexes.text.bm25.PENDING", 2)
    index = Bm25Index("none", tmp_path / "live")
    index.add(["a"], ["one cat"])
    with monkeypatch.context() as patch:
        patch.setattr(postings, "write", lambda *_: (_ for _ in ()).throw(OSError(28, "full")))
        with pytest.raises(OSError, match="full"):
            index.add(["b"], ["two cats"])
        with pytest.raises(OSError, match="full"):
            index.commit()
    index.add(["b"], ["two cat"])
    assert index.search(["cat two"], 5)[0].ids == ("b", "a")
    assert len(index) == 2


def test_a_failure_in_between_does_not_shift_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    index = Bm25Index("none")
    with pytest.raises(AttributeError):
        index.add(["a"], ["cat"], [None])  # type: ignore[list-item]  # a caller without a type checker
    with monkeypatch.context() as patch:
        patch.setattr(
            "indexes.text.analysis.Analysis.terms_of_each",
            lambda *_: (_ for _ in ()).throw(KeyboardInterrupt),
        )
        with pytest.raises(KeyboardInterrupt):
            index.add(["a"], ["mouse"])
    index.add(["b"], ["dog mouse bird"])
    assert [index.search([word], 5)[0].ids for word in ("cat", "dog", "mouse", "bird")] == [
        (), ("b",), ("b",), ("b",),
    ]  # fmt: skip


def test_a_file_that_is_gone_already_does_not_index_a_batch_twice(tmp_path: Path) -> None:
    index = Bm25Index("none", tmp_path / "live")
    index.add(["a"], ["cat"])
    index.commit()
    for path in (tmp_path / "live").iterdir():
        path.unlink()
    index.add(["b"], ["cat"])
    index.commit()
    assert index.search_rows(["cat"], 4)[0].tolist() == [[0, 1, -1, -1]]


def test_texts_without_separators_do_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("indexes.text.vocabulary.MOST", 100)
    vocabulary = TermVocabulary(Analysis("english"))
    for n in range(4):
        assert not vocabulary.full()
        vocabulary.numbers(["，".join(f"词{n}句{i}" for i in range(30))])
    assert vocabulary.full()


def test_the_memory_of_queries_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("indexes.text.queries.MOST", 8)
    terms, analysis = QueryTerms(Analysis("english")), Analysis("english")
    for n in range(40):
        text = f"shared own{n} 词{n}，句{n}" if n % 9 else " ".join(f"w{n}x{i}" for i in range(30))
        counts = {term_hash(t): count for t, count in analysis.query_terms(text).items()}
        queries = terms.of([text, text])
        assert queries.hashes.tolist() == [*counts] * 2
        assert queries.counts.tolist() == [*counts.values()] * 2
    assert len(terms._memory._arrays[2]) <= 60
