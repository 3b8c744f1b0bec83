"""The benchmarks' soak test for some seconds: two workers are killed while documents change."""

import dataclasses
from pathlib import Path

import pytest

from benchmarks.soak import Pace, soak
from benchmarks.support.soak_oracle import Answered, Oracle
from linker.engine.building import BuildOptions, build
from linker.engine.engine import Engine
from tests.helpers import WORDS, write_corpus

PACE = Pace(burst=0.2, change=0.5, kill=3.5, compact=5, memory=1)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    build([write_corpus(tmp_path / "corpus.jsonl", 300)], tmp_path / "index", BuildOptions())
    return tmp_path / "index"


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="there is no /proc")
def test_no_answer_is_wrong_and_no_request_is_lost(directory: Path) -> None:
    texts = [" ".join(WORDS[n : n + 3]) for n in range(8)]
    tally = soak(directory, 10, ["bm25"], texts, PACE)
    assert tally.faults == []
    assert tally.counts["wrong"] == tally.counts["failed"] == 0
    assert len(tally.kills) == 2
    assert tally.counts["answers"] > 20 and tally.counts["changes"] > 3 and tally.counts["compactions"] >= 1
    assert tally.memory and all(look["oldest"]["pss"] > 0 for look in tally.memory)


def test_the_oracle_knows_a_wrong_answer(directory: Path) -> None:
    texts = [WORDS[0]]
    oracle = Oracle(directory, texts, ["bm25"])
    with Engine.open(directory) as engine:
        first = engine.search(texts[0]).hits[0]
        right = Answered("bm25", 0, oracle.generation, first.ids, first.scores)
        assert oracle.generation_of(right) == oracle.generation
        for ids, scores in (
            (first.ids[::-1], first.scores),
            (first.ids[:-1], first.scores[:-1]),
            ((*first.ids[:-1], "d-none"), first.scores),
            (first.ids, first.scores * 1.01),
        ):
            assert oracle.generation_of(dataclasses.replace(right, ids=ids, scores=scores)) is None
        before = oracle.generation
        engine.delete([first.ids[0]])
        oracle.learn()
        assert oracle.generation_of(right) == before, "an answer may be a few commits old"
        for id_ in engine.search(texts[0]).hits[0].ids[:4]:
            engine.delete([id_])
            oracle.learn()
        late = dataclasses.replace(right, generation=oracle.generation)
        assert oracle.generation_of(late) is None
