"""Inputs to the compiled parts: postings, texts and vectors; numpy or Python must give the same results."""

import dataclasses
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from indexes.arrays import normalised
from indexes.text import forward, postings
from indexes.text.analysis import Analysis
from indexes.text.features import MOST_TERMS, QueryWords
from indexes.text.field_scoring import FieldScorer
from indexes.text.forward_index import ForwardIndex
from indexes.text.parameters import AnalysisSettings, Bm25Parameters, Field
from indexes.text.queries import Queries
from indexes.text.scoring import Bm25Scorer
from indexes.text.vocabulary import TermVocabulary
from indexes.vectors.certified import ByteScan
from indexes.vectors.flat import exact_scores as scores_of
from tests.fuzz.engine import Run, Target

K = 5


def search_postings(work: Path) -> tuple[Sequence[bytes], Run]:
    """Rank the rows of a segment that passed its checks, compiled and with numpy."""
    folder = work / "text"
    folder.mkdir()
    path = folder / f"{0:032x}{postings.SUFFIX}"

    def run(data: bytes) -> None:
        path.write_bytes(data)
        segments = [_in_memory(segment) for segment in postings.read_folder(folder)]
        assert segments, "the file was not read"
        terms = [int(t) for segment in segments for t in segment.terms[:40]]
        queries = Queries.of([
            dict.fromkeys(terms[:3], 1), {t: n + 1 for n, t in enumerate(terms[3:9])}, {7: 1},
            dict.fromkeys(terms, 9),
        ])  # fmt: skip
        allowed = np.arange(sum(s.documents for s in segments)) % 3 > 0
        pairs: list[list[Bm25Scorer] | list[FieldScorer]] = [
            [Bm25Scorer(segments) for _ in range(2)],
            [FieldScorer({"a": Bm25Scorer(segments), "b": Bm25Scorer(segments)}) for _ in range(2)],
        ]
        fields = (Field("a", 2.5, 0.3), Field("b"))
        for (fast, slow), mask in itertools.product(pairs, (None, allowed)):
            slow._library = None
            for parameters in (Bm25Parameters(fields=fields), Bm25Parameters(0, 1, 0, fields)):
                found, expected = (scorer.best(queries, K, mask, parameters) for scorer in (fast, slow))
                assert np.array_equal(found[0], expected[0]), "other rows than by numpy"
                assert np.array_equal(found[1], expected[1]), "other scores than by numpy"

    return [_segment(n, folder) for n in (3, 40, 5000)], run


def describe_candidates(work: Path) -> tuple[Sequence[bytes], Run]:
    """Compute features of the rows of a forward index that passed its checks, compiled and in plain Python."""
    folder = work / "forward"
    folder.mkdir()
    path = folder / f"{0:032x}{forward.SUFFIX}"

    def run(data: bytes) -> None:
        path.write_bytes(data)
        segment = forward.read(path)
        arrays: dict[str, Any] = {name: np.array(getattr(segment, name)) for name in forward.PARTS}
        segment = dataclasses.replace(segment, first=0, **arrays)
        index = ForwardIndex("none", None, [segment])
        rows = np.arange(min(segment.documents, 20))
        terms = segment.hashes[:MOST_TERMS]
        for count in {0, min(1, len(terms)), min(5, len(terms)), len(terms)}:
            word = np.arange(2 * count, dtype=np.int32) % max(1, count)
            kind = (np.arange(count) % 8).astype(np.uint8)
            query = QueryWords(word, terms[:count].copy(), kind)
            found = index.describe(query, rows)
            assert np.isfinite(found).all(), "a feature is not finite"

    words = ["a", "b", "c.", "d", "e", "f", "g\nh.", "the", "Zebra", "42"]
    texts = [" ".join(words[n % 7 : n % 7 + 4] * (n % 5)) for n in range(40)]
    parts = ["".join(texts[:1]), *texts]
    return [
        _forward(parts, folder),
        _forward(["a. b. c."], folder),
        _forward([" ".join(words * 2000)], folder),
    ], run


def _forward(texts: Sequence[str], folder: Path) -> bytes:
    vocabulary = TermVocabulary(Analysis("none"))
    parts = forward.numbered(vocabulary, texts)
    made = forward.write(forward.from_tokens(0, *parts, vocabulary.hashes), folder)
    assert made.path
    data = made.path.read_bytes()
    made.path.unlink()
    return data


def _in_memory(segment: postings.PostingsSegment) -> postings.PostingsSegment:
    """Copy a mapped segment to the heap, where a sanitizer detects an access past an array's end."""
    arrays: dict[str, Any] = {name: np.array(getattr(segment, name)) for name in postings.PARTS}
    return dataclasses.replace(segment, **arrays)


def _segment(rows: int, folder: Path) -> bytes:
    rng = np.random.default_rng(rows)
    lengths = rng.integers(0, 6, rows)
    tokens = np.minimum(rng.zipf(1.5, int(lengths.sum())), 50) - 1
    hashes = np.sort(rng.integers(1, 1 << 63, 50)).astype(np.uint64)
    segment = postings.from_tokens(0, tokens.astype(np.int32), lengths, hashes)
    made = postings.write(segment, folder)
    assert made.path
    data = made.path.read_bytes()
    made.path.unlink()
    return data


def number_pieces(work: Path) -> tuple[Sequence[bytes], Run]:
    """Number the terms of texts (one per line) with the compiled table and with a dictionary."""
    analyses = [Analysis("english"), Analysis(AnalysisSettings(tokenizer="posts"))]

    def run(data: bytes) -> None:
        texts = data.decode(errors="surrogateescape").split("\n")
        for analysis in analyses:
            check(analysis, texts)

    def check(analysis: Analysis, texts: list[str]) -> None:
        fast, slow = TermVocabulary(analysis), TermVocabulary(analysis)
        slow._table = None
        found = []
        for vocabulary in (fast, slow):
            for _ in range(2):  # once with everything unknown, once with everything known
                numbers, lengths = vocabulary.numbers(texts)
                found.append((vocabulary.hashes[numbers].tolist() if len(numbers) else [], lengths.tolist()))
        assert found[0] == found[1] == found[2] == found[3], "compiled and Python differ"

    text = (
        "The cats' houses—and a no-break\u00a0space, e.g. O'Neill;\n"
        "4,250 1.5.\n@a_B #CdE1 https://x.y/z?1,2 été 漢字 naïve\u2028x\u200bz Zwölf-1.5 "
        + "word " * 40
        + "x" * 130
    )
    return [text.encode(), b"", b"\xff\n\xe2\x80\n\xc2", b"a\n\nb\n" * 30], run


def scan_vectors(work: Path) -> tuple[Sequence[bytes], Run]:
    """Scan vectors with any values; finite ones give the same results as comparing each."""

    def run(data: bytes) -> None:
        dim = data[0] % 40 + 1 if data else 1
        values = np.frombuffer(data[1 : 1 + (len(data) - 1) // (4 * dim) * 4 * dim], dtype="<f4").reshape(
            -1, dim
        )
        if not len(values) or not ByteScan.available(dim):
            return
        finite = bool(np.isfinite(values).all())
        vectors = normalised(values) if finite else np.array(values)
        queries = (
            vectors[:: max(1, len(vectors) // 7)].copy() if finite else np.ones((3, dim), dtype=np.float32)
        )
        mask = np.arange(len(vectors)) % 3 > 0
        for allowed in (None, mask):
            if allowed is not None and not allowed.any():
                continue
            k = min(K, len(vectors) if allowed is None else int(allowed.sum()))
            found = ByteScan().search(vectors, queries, k, allowed)
            if finite:
                _check(vectors, queries, k, allowed, *found)

    rng = np.random.default_rng(1)
    seeds = [
        bytes([d - 1]) + rng.standard_normal((n, d)).astype("<f4").tobytes()
        for n, d in ((3, 5), (70, 8), (300, 33), (200, 4))
    ]
    return [*seeds, bytes([7]) + np.ones((90, 8), dtype="<f4").tobytes()], run


def _check(
    vectors: np.ndarray[tuple[int, int], np.dtype[np.float32]],
    queries: np.ndarray[tuple[int, int], np.dtype[np.float32]],
    k: int,
    mask: np.ndarray[tuple[int], np.dtype[np.bool_]] | None,
    rows: np.ndarray[tuple[int, int], np.dtype[np.int64]],
    scores: np.ndarray[tuple[int, int], np.dtype[np.float32]],
) -> None:
    """Compare with the scores of all rows, ties in row order."""
    every = np.tile(np.arange(len(vectors)), (len(queries), 1))
    exact = scores_of(vectors, queries, every)
    if mask is not None:
        exact[:, ~mask] = -np.inf
    best = np.array([np.lexsort((every[0], -row))[:k] for row in exact])
    assert np.array_equal(rows, best), "other rows than comparing each gives"
    assert np.array_equal(scores, np.take_along_axis(exact, best, axis=1)), (
        "other scores than comparing each gives"
    )


TARGETS = [
    Target("postings", search_postings, compiled=True, cases=800),
    Target("forward", describe_candidates, compiled=True, cases=600),
    Target(
        "pieces",
        number_pieces,
        (
            "\u00a0".encode(),
            "\u2028".encode(),
            "\u206f".encode(),
            "\u0301".encode(),
            b"'",
            b"-",
            b".",
            b",",
            b"1",
            b"#",
            b"@",
            b"://",
        ),
        True,
        500,
    ),
    Target("scan", scan_vectors, compiled=True, cases=500),
]
