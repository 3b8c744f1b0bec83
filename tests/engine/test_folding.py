"""Folding of near duplicates, compared with the slow, obvious definition."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexes.interface import Document
from linker.engine.building import create
from linker.engine.engine import Engine
from linker.engine.folding import Folded, copies, fold
from linker.scoring.groups.copies import THRESHOLD, normalised_words, shingles


def oracle(texts: list[str], threshold: float) -> list[Folded]:
    """Compare each text with each leader, set by set."""
    groups: list[list[int]] = []
    sets = [shingles(normalised_words(t)) for t in texts]
    for i, words in enumerate(sets):
        for group in groups:
            leader = sets[group[0]]
            equal = bool(words) and normalised_words(texts[i]) == normalised_words(texts[group[0]])
            if equal or (words | leader and len(words & leader) / len(words | leader) >= threshold):
                group.append(i)
                break
        else:
            groups.append([i])
    return [Folded(g[0], tuple(g[1:])) for g in groups]


WORDS = st.lists(
    st.sampled_from(["flood", "water", "rain", "plaza", "calle", "RT", "@ana", "…"]), max_size=8
).map(" ".join)


@given(st.lists(WORDS, max_size=12), st.sampled_from([0.3, 0.5, THRESHOLD, 1.0]))
def test_it_is_what_comparing_all_pairs_gives(texts: list[str], threshold: float) -> None:
    assert fold(texts, threshold) == oracle(texts, threshold)


def test_a_retweet_and_its_address_change_nothing() -> None:
    post = "Heavy rain floods Valencia's old town https://t.co/abc"
    assert fold([post, "RT @maria: " + post.upper(), "Fire in the old town"]) == [Folded(0, (1,)), Folded(2)]


def test_whom_a_copy_mentions_changes_nothing() -> None:
    post = "Heavy rain floods the old town"
    assert fold([f"{post} @ana @bo @cyd", f"@dan @eve {post} https://t.co/abc"]) == [Folded(0, (1,))]


def test_one_word_more_folds_and_another_story_does_not() -> None:
    post = "streets under a metre of water after the heaviest rain for thirty years in Valencia"
    assert fold([post, post + " today", "streets closed after a metre of snow"]) == [
        Folded(0, (1,)),
        Folded(2),
    ]


def test_no_chain_of_small_changes_joins_two_texts() -> None:
    words = [f"w{i}" for i in range(24)]
    texts = [" ".join(words[i : i + 12]) for i in range(0, 12, 2)]
    folds = fold(texts)
    assert len(folds) > 1
    assert folds == oracle(texts, THRESHOLD)


def test_texts_without_words_stay_apart() -> None:
    assert fold(["…", "!!", ""]) == [Folded(0), Folded(1), Folded(2)]


def test_chinese_is_compared_by_characters() -> None:
    assert fold(["瓦伦西亚老城区被大雨淹没了", "瓦伦西亚老城区被大雨淹没", "北京今天有风"]) == [
        Folded(0, (1,)),
        Folded(2),
    ]


@pytest.mark.parametrize("number", [3, 150])
def test_all_copies_are_found_however_many(tmp_path: Path, number: int) -> None:
    create(tmp_path / "index")
    engine = Engine(tmp_path / "index")
    text = "streets under a metre of water after the heaviest rain for thirty years"
    engine.add([Document("first", text), *(Document(f"c{i}", f"RT @u{i}: {text}") for i in range(number)),
                *(Document(f"other{i}", f"{i} streets of the town have no water") for i in range(200))])  # fmt: skip
    assert sorted(copies(engine, engine.document("first"))) == sorted(f"c{i}" for i in range(number))
