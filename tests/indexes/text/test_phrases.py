"""Phrases: the quoted parts of a query; no document with the phrase is missed and no other is returned."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indexes.hybrid import Answer, by_filter
from indexes.interface import Document, Filter, Hits, RowFilter
from indexes.text import forward_index
from indexes.text.analysis import Analysis
from indexes.text.bm25 import Bm25Index
from indexes.text.forward_index import ForwardIndex
from indexes.text.phrases import PhraseSearch, quoted
from indexes.text.vocabulary import term_hash
from linker.engine import Engine
from tests.helpers import linker, make_engine

DOCUMENTS = [
    Document("policy", "policy on the climate change of the north", metadata={"lang": "en"}),
    Document("apart", "climate and policy: a change"),
    Document("over", "A change of policy, no climate", "Climates, changing!", {"lang": "de"}),
    Document("words", "who said what to whom: to be or not to be"),
]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ('"climate change" policy', ["climate change"]),
        ('a “b c” „d“ «e f» "g"', ["b c", "d", "e f", "g"]),
        ('a 6" pipe', []),
        ('he said "no', []),
        ('6" and "climate change"', []),  # the pairing of quotes is ambiguous
        ('6" and “climate change”', ["climate change"]),
        ("it's 'so'", []),
        ('""', [""]),
    ],
)
def test_quotes(text: str, parts: list[str]) -> None:
    assert quoted(text) == parts


@pytest.fixture(scope="module", params=[True, False], ids=["positions", "texts"])
def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Engine:
    folder = tmp_path_factory.mktemp("phrases") / "index"
    engine = make_engine(folder, DOCUMENTS[:2], positions=request.param)
    engine.add([*DOCUMENTS[2:], Document("removed", "climate change everywhere")])
    engine.delete(["removed"])
    return engine


def ids(answer: Answer) -> list[set[str]]:
    return [set(hits.ids) for hits in answer.hits]


def test_documents_must_have_the_words_one_after_the_other(engine: Engine) -> None:
    texts = [
        '"climate change" policy', "climate change", '"to be or not"', '"no climate" "policy"', '"zebra"',
    ]  # fmt: skip
    answer = engine.search(texts, mode="bm25", phrases=True)
    assert ids(answer) == [{"policy", "over"}, {"policy", "apart", "over"}, {"words"}, {"over"}, set()]
    plain = engine.search(texts, mode="bm25")
    for phrase, without in zip(answer.hits, plain.hits, strict=True):
        scores = dict(zip(without.ids, without.scores.tolist(), strict=True))
        assert {i: scores[i] for i in phrase.ids} == dict(
            zip(phrase.ids, phrase.scores.tolist(), strict=True)
        )
    assert ids(plain)[0] == {"policy", "apart", "over"}


def test_a_phrase_filters_vectors_and_goes_with_a_filter(engine: Engine) -> None:
    for mode in ("dense", "hybrid"):
        assert ids(engine.search('"climate change"', mode=mode, phrases=True)) == [{"policy", "over"}]
        assert ids(engine.search('"climate change"', mode=mode, phrases=True, where=["lang=de"])) == [
            {"over"}
        ]
    assert ids(engine.search('"climate change', mode="dense", phrases=True)) == [{d.id for d in DOCUMENTS}]
    assert ids(engine.search('"!?" climate', mode="bm25", phrases=True)) == [{"policy", "apart", "over"}]
    assert engine.search([], phrases=True).hits == []


def test_the_command_takes_phrases_only_if_asked(engine: Engine, tmp_path: Path) -> None:
    def found(*options: str) -> set[str]:
        text = ("--text", '"climate change"', "--mode", "bm25", "--json")
        return {
            hit["id"]
            for hit in json.loads(linker("search", engine.directory, *text, *options).stdout)["hits"]
        }

    assert found("--phrases") == {"policy", "over"}
    assert found() == {"policy", "apart", "over"}
    queries = tmp_path / "queries.tsv"
    queries.write_text('q1\tsaid "climate change"\nq2\tclimate\n')
    run = linker("search", engine.directory, "--queries", queries, "--mode", "bm25", "--phrases").stdout
    assert {tuple(line.split()[:3:2]) for line in run.splitlines()} == {
        ("q1", "policy"), ("q1", "over"), ("q2", "policy"), ("q2", "apart"), ("q2", "over"),
    }  # fmt: skip


TEXT = st.lists(st.sampled_from(["a", "b", "c", "the", "."]), max_size=12).map(" ".join)


@settings(deadline=None)
@given(
    st.lists(TEXT, min_size=1, max_size=10), TEXT, st.sampled_from(["none", "english"]), st.integers(1, 4),
    st.booleans(),
)  # fmt: skip
def test_phrases_equal_a_scan(texts: list[str], phrase: str, language: str, step: int, stored: bool) -> None:
    index, forward = Bm25Index(language), ForwardIndex(language)
    for start in range(0, len(texts), step):  # one segment each, which merge occasionally
        part = texts[start : start + step]
        index.add([f"d{start + n}" for n in range(len(part))], part)
        index.commit()
        forward.add(part)
        forward.commit()
    rows = index._rows
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(forward_index, "ROWS", 2)
        search = PhraseSearch(index, rows, forward if stored else None, lambda row: texts[row])
        allowed = search.filter(f'x "{phrase}"')
    analysis = Analysis(language)
    terms = [f" {' '.join(analysis.terms(analysis.prepare(text)))} " for text in texts]
    wanted = " ".join(analysis.terms(analysis.prepare(phrase)))
    if not wanted:
        assert allowed is None
        return
    assert isinstance(allowed, RowFilter)
    assert allowed.rows.tolist() == [f" {wanted} " in text for text in terms]
    hashes = [term_hash(t) for t in set(wanted.split())]
    assert index.holding(hashes).tolist() == [
        n for n, text in enumerate(terms) if set(wanted.split()) <= set(text.split())
    ]


def test_a_long_phrase_does_not_leave_its_row() -> None:
    texts = ["b c", "a b", "c a b c"]
    forward = ForwardIndex.of(texts, "none")

    def having(phrase: str) -> list[int]:
        hashes = np.array([term_hash(t) for t in phrase.split()], np.uint64)
        rows: list[int] = forward.having(hashes, np.arange(3)).tolist()
        return rows

    assert having("a b c") == [2]
    assert having("b c") == [0, 2]
    assert having("b c a") == []
    assert having("a b zebra") == []


def test_texts_of_one_filter_are_asked_together() -> None:
    one, other = Filter.parse(["a=b"]), RowFilter((), np.ones(1, dtype=bool))
    asked = []

    def find(texts: Sequence[str], where: Filter | None) -> Answer:
        asked.append((list(texts), where))
        hits = [Hits((text,), np.ones(1, dtype=np.float32), no_match=0.5) for text in texts]
        return Answer(hits, "bm25", "down" if where is other else "")

    answer = by_filter(find, ["p", "q", "r"], [one, other, Filter.parse(["a=b"])])
    assert asked == [(["p", "r"], one), (["q"], other)]
    assert [h.ids for h in answer.hits] == [("p",), ("q",), ("r",)]
    assert (answer.degraded, answer.no_match) == ("down", (0.5,) * 3)
    assert other != RowFilter((), other.rows)
