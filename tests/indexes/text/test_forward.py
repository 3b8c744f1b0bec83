"""The forward index: sentences, merging, its file; damage is reported by name, and nothing else is read from it."""

import dataclasses
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indexes.interface import DamagedError, Document
from indexes.store.records import BuildRecord, Manifest
from indexes.text import forward
from indexes.text.analysis import Analysis
from indexes.text.forward import ForwardSegment
from indexes.text.forward_index import ForwardIndex
from indexes.text.vocabulary import TermVocabulary, term_hash
from indexes.writer import Writer
from linker.engine.engine import Engine

TEXTS = st.lists(
    st.text(alphabet=st.sampled_from("ab Ç語。.!?\n'\u0301 ı12,@#_/:\u00a0"), max_size=40),
    min_size=1,
    max_size=8,
)


def segment_of(texts: list[str], language: str = "none", first: int = 0) -> ForwardSegment:
    vocabulary = TermVocabulary(Analysis(language))
    parts = forward.numbered(vocabulary, texts)
    return forward.from_tokens(first, *parts, vocabulary.hashes)


def content(segment: ForwardSegment) -> list[list[list[int]]]:
    """Return the hashes of each row's sentences."""
    rows = []
    for row in range(segment.documents):
        tokens = segment.hashes[segment.tokens[segment.offsets[row] : segment.offsets[row + 1]]].tolist()
        starts = segment.sentences[slice(*segment.sentence_offsets[row : row + 2])].tolist()
        rows.append([tokens[a:b] for a, b in itertools.pairwise([*starts, len(tokens)])])
    return rows


def oracle(texts: list[str], language: str = "none") -> list[list[list[int]]]:
    analysis = Analysis(language)
    rows = []
    for text in texts:
        cut = [analysis.terms(analysis.prepare(s)) for s in forward.sentences(text)]
        rows.append([[term_hash(t) for t in terms] for terms in cut if terms])
    return rows


def test_sentences_end_after_punctuation_and_a_space_or_at_a_line() -> None:
    text = 'He said "no." Then 3.5 % (u.s. too)!\n\nA line\n語。語'
    assert forward.sentences(text) == [
        'He said "no." ', "Then 3.5 % (u.s. ", "too)!\n\n", "A line\n", "語。", "語",
    ]  # fmt: skip
    assert forward.sentences("") == []


@settings(deadline=None)
@given(TEXTS, st.sampled_from(["none", "english", "turkish", "chinese"]))
def test_terms_are_in_order_and_sentences_cut_no_term(texts: list[str], language: str) -> None:
    segment = segment_of(texts, language)
    assert content(segment) == oracle(texts, language)
    whole = TermVocabulary(Analysis(language))
    tokens, lengths = whole.numbers(texts)
    assert whole.hashes[tokens].tolist() == segment.hashes[segment.tokens].tolist()
    assert lengths.tolist() == np.diff(segment.offsets).tolist()
    in_rows = [{h for sentence in row for h in sentence} for row in content(segment)]
    assert segment.frequencies.tolist() == [sum(int(h) in row for row in in_rows) for h in segment.hashes]


@settings(deadline=None)
@given(TEXTS, TEXTS)
def test_merged_segments_are_one_made_at_once(left: list[str], right: list[str]) -> None:
    merged = forward.merged([segment_of(left), segment_of(right, first=len(left))])
    expected = segment_of([*left, *right])
    for name in forward.PARTS:
        assert getattr(merged, name).tolist() == getattr(expected, name).tolist(), name


def damaged(tmp_path: Path, **changes: list[int]) -> Path:
    segment = segment_of(["a b. c a", "b. a"])
    arrays: dict[str, Any] = {name: np.array(values) for name, values in changes.items()}
    with pytest.raises(DamagedError):
        forward.write(dataclasses.replace(segment, **arrays), tmp_path)
    return next(tmp_path.glob("*.forward"))


@pytest.mark.parametrize(
    "changes",
    [
        {"tokens": [0, 1, 2, 0, 1, 3]},  # no such term
        {"offsets": [0, 5, 4]},
        {"offsets": [0, 7, 6], "sentence_offsets": [0, 4, 4], "sentences": [0, 1, 2, 3]},  # past the end
        {"offsets": [1, 4, 6]},
        {"sentence_offsets": [0, 4, 4]},
        {"sentences": [0, 4, 0, 1]},  # begins after its row
        {"sentences": [0, 2, 1, 1]},  # the second row's first sentence
        {"sentences": [0, 0, 0, 1]},
        {"hashes": [3, 2, 1]},
        {"frequencies": [1, 9, 1]},
    ],
)
def test_contradictions_are_found_on_opening(changes: dict[str, list[int]], tmp_path: Path) -> None:
    path = damaged(tmp_path, **changes)
    with pytest.raises(DamagedError, match=path.name):
        forward.read(path)


@pytest.mark.parametrize("size", [0, 8, 63, 64, 100])
def test_a_cut_file_is_damaged(size: int, tmp_path: Path) -> None:
    path = forward.write(segment_of(["a b", "c"]), tmp_path).path
    assert path is not None
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(DamagedError):
        forward.read(path)


def make(directory: Path, texts: list[str]) -> None:
    with Writer.create(directory, Manifest(positions=True, build=BuildRecord())) as writer:
        for number, text in enumerate(texts):
            writer.add([Document(f"d{number}", text)], None)
            writer.commit()


def rows_of(directory: Path) -> list[list[list[int]]]:
    index = Engine(directory).collection.forward
    return [row for segment in index._segments for row in content(segment)]


def test_a_missing_forward_file_is_named(tmp_path: Path) -> None:
    make(tmp_path / "index", ["a", "b"])
    path = next((tmp_path / "index" / "text").rglob("*.forward"))
    path.unlink()
    with pytest.raises(DamagedError, match=path.name):
        Engine(tmp_path / "index")


def test_without_positions_it_is_made_from_the_texts(tmp_path: Path) -> None:
    with Writer.create(tmp_path / "index", Manifest(build=BuildRecord())) as writer:
        writer.add([Document("a", "One. Two"), Document("b", "Three")], None)
        writer.commit()
    assert rows_of(tmp_path / "index") == oracle(["One. Two", "Three"], "english")
    assert not list((tmp_path / "index").rglob("*.forward"))


def test_a_row_that_does_not_exist_is_refused() -> None:
    index = ForwardIndex.of(["a b"])
    with pytest.raises(IndexError):
        index.describe(index.words("a"), np.array([1]))
