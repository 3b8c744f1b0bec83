"""The words that support a link, compared with a slow and obvious count over all documents."""

import itertools
import math
import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexes.interface import Document
from indexes.text.analysis import Analysis
from linker.engine.building import BuildOptions, build, create
from linker.engine.engine import Engine
from linker.engine.evidence import (
    AROUND,
    BY_LENGTH,
    LONGEST,
    MARKED,
    RAREST,
    evidence,
    passage_columns,
    rarest_words,
    sentences,
)
from linker.engine.folding import Folded, copies, fold
from linker.scoring.groups.copies import THRESHOLD, are_copies, leaders, normalised_words, shingles
from tests.helpers import sentence, write_json_lines


def engine_of(tmp_path: Path, texts: list[str], language: str = "english") -> Engine:
    source = tmp_path / "d.jsonl"
    write_json_lines(source, ({"id": f"d{i}", "text": t} for i, t in enumerate(texts)))
    build([source], tmp_path / "index", BuildOptions(language=language))
    return Engine.open(tmp_path / "index")


def test_weights_are_bm25s_by_a_slow_count(tmp_path: Path) -> None:
    rng = random.Random(3)
    texts = [sentence(rng, 20) for _ in range(40)]
    engine = engine_of(tmp_path, texts)
    analysis, k1 = Analysis(engine.collection.manifest.analysis), engine.collection.manifest.bm25.k1
    seed, text = sentence(rng, 30), texts[7] + " " + texts[7].split()[0]
    terms = [analysis.terms(analysis.prepare(t)) for t in texts]
    own = analysis.terms(analysis.prepare(text))
    weights = {}
    for term in set(own) & set(analysis.query_terms(seed)):
        holding = sum(term in t for t in terms)
        idf = math.log(1 + (len(texts) - holding + 0.5) / (holding + 0.5))
        weights[term] = idf * own.count(term) / (own.count(term) + k1)
    found = evidence(engine.collection, seed, text)
    shares = sorted((w / sum(weights.values()) for w in weights.values()), reverse=True)
    assert len(shares) > 3
    assert [share for _, share in found.words] == pytest.approx(shares[:MARKED])


def test_marked_pieces_are_the_shared_words_in_any_form(tmp_path: Path) -> None:
    engine = engine_of(tmp_path, ["Floods in Valencia", "a vote", "The town's flooded street"])
    text = "FLOODING, in the town's #streets: flood-water!"
    found = evidence(engine.collection, "A flooded street in the town", text)
    assert "".join(piece for piece, _ in found.pieces) == text
    assert [piece for piece, shared in found.pieces if shared] == ["FLOODING", "town's", "#streets", "flood"]
    letter = evidence(engine.collection, "U.S. streets", "the U.S. street")
    assert [piece for piece, shared in letter.pieces if shared] == ["street"]
    nothing = evidence(engine.collection, "A vote", text)
    assert (nothing.words, nothing.pieces) == ((), [(text, False)])
    assert evidence(engine.collection, "", "").pieces == []


def test_han_is_marked_by_pairs(tmp_path: Path) -> None:
    engine = engine_of(tmp_path, ["洪水淹没了街道", "议会选举"], "chinese")
    found = evidence(engine.collection, "城市的洪水", "昨天洪水淹没了")
    assert [piece for piece, shared in found.pieces if shared] == ["洪水"]


def test_the_passage_is_the_heaviest_sentence_by_a_slow_count(tmp_path: Path) -> None:
    rng = random.Random(7)
    texts = [sentence(rng, 20) for _ in range(40)]
    engine = engine_of(tmp_path, texts)
    analysis = Analysis(engine.collection.manifest.analysis)
    terms = [set(analysis.terms(analysis.prepare(t))) for t in texts]
    chosen = set()
    for _ in range(60):
        parts = [sentence(rng, rng.randint(1, 15)).capitalize() + "." for _ in range(rng.randint(1, 6))]
        lines = [rng.choice(" \n") for _ in parts[1:]]
        seed, text = sentence(rng, 12), "".join(itertools.chain(*zip(parts, [*lines, ""], strict=True)))
        wanted = set(analysis.query_terms(seed))
        words = [analysis.terms(analysis.prepare(part)) for part in parts]

        def idf(term: str) -> float:
            holding = sum(term in t for t in terms)
            here = sum(term in t for t in words)  # noqa: B023
            own = math.log(1 + (len(words) - here + 0.5) / (here + 0.5))  # noqa: B023
            return own + math.log(1 + (len(texts) - holding + 0.5) / (holding + 0.5))

        def weight(i: int) -> float:
            own = set(words[i]) & wanted  # noqa: B023
            if not own:
                return 0.0
            at = [j for j in (i - 1, i + 1) if 0 <= j < len(words) and lines[min(i, j)] == " "]  # noqa: B023
            near = {t for j in at for t in words[j]} & wanted - own  # noqa: B023
            mean = sum(map(len, words)) / len(words)  # noqa: B023
            long = 1 - BY_LENGTH + BY_LENGTH * len(words[i]) / mean  # noqa: B023
            return (sum(map(idf, own)) + AROUND * sum(map(idf, near))) / long

        best = max(range(len(parts)), key=weight)
        found = evidence(engine.collection, seed, text).passage
        assert (found is None) == (weight(best) == 0)
        if found:
            assert weight(parts.index(text[slice(*found)])) == pytest.approx(weight(best))
            chosen.add(parts.index(text[slice(*found)]))
    assert len(chosen) > 2


def test_a_passage_is_quoted_with_its_offset_and_shown_in_an_excerpt(tmp_path: Path) -> None:
    engine = engine_of(tmp_path, ["Floods in Valencia", "a vote", "The town's flooded street"])
    text = "A vote was held. " * 30 + "Floods hit Valencia! " + "Nothing else. " * 30
    found = evidence(engine.collection, "flooded Valencia", text, "Floods")
    assert found.passage == engine.passage("flooded Valencia", text)
    assert passage_columns(text, found.passage) == {
        "passage": "Floods hit Valencia!",
        "offset": text.index("Floods"),
    }
    assert found.title == [("Floods", True)]
    before, inside, after = ("".join(piece for piece, _ in part) for part in found.parts)
    assert (before + inside + after, inside) == (text, "Floods hit Valencia!")
    shown = found.excerpt(100)
    assert "".join(piece for piece, _ in shown.parts[1]) == "Floods hit Valencia!"
    assert len("".join(piece for piece, _ in shown.pieces)) < 110
    nothing = evidence(engine.collection, "nowhere", text)
    assert nothing.passage is None and passage_columns(text, None) == {"passage": None, "offset": None}
    assert nothing.parts == ([(text, False)], [], [])


@given(
    st.text(alphabet="ab .!?\n。\u3000'", max_size=300) | st.text(alphabet="ab ", min_size=800, max_size=1200)
)
def test_sentences_hold_all_but_the_space_around_them(text: str) -> None:
    spans = list(sentences(text))
    assert all(0 < b - a <= max(LONGEST, 0) or "." in text for a, b in spans)
    assert all(text[a:b] == text[a:b].strip() != "" for a, b in spans)
    edges = [0, *(edge for span in spans for edge in span), len(text)]
    assert edges == sorted(edges)
    assert not "".join(text[a:b] for a, b in zip(edges[::2], edges[1::2], strict=True)).strip()


def test_copies_by_the_rarest_words_are_those_by_the_whole_text(tmp_path: Path) -> None:
    rng = random.Random(5)
    texts = [sentence(rng, 30) for _ in range(60)]
    texts += [f"RT @a: {texts[i]} https://x.example/{i}" for i in (3, 3, 4)] + ["lonely words unheard of"]
    engine = engine_of(tmp_path, texts)
    for id_ in ("d3", "d4", "d5", "d62", "d63"):
        document = engine.document(id_)
        query = rarest_words(engine.collection, document.full_text)
        assert set(copies(engine, document, query=query)) == set(copies(engine, document))
        if id_ in ("d3", "d4", "d5"):  # texts without web addresses, whose words occur in other texts, too
            others = {word for i, text in enumerate(texts) if f"d{i}" != id_ for word in text.split()}
            assert len(query.split()) == RAREST
            assert set(query.split()) <= set(document.text.split()) & others
    assert set(copies(engine, engine.document("d3"))) == {"d60", "d61"}


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


@given(st.lists(WORDS, max_size=12))
def test_leaders_of_groups_are_those_of_sets(texts: list[str]) -> None:
    """Documents of a corpus are compared by the hashes of their shingles."""
    sets, expected = [shingles(normalised_words(t)) for t in texts], list[int]()
    for i, own in enumerate(sets):
        leads = (j for j in range(i) if expected[j] == j and are_copies(sets[j], own))
        expected.append(next(leads, i))
    pairs = np.array([*itertools.combinations(range(len(texts)), 2)], np.int64).reshape(-1, 2)
    assert leaders(len(texts), pairs, texts.__getitem__).tolist() == expected


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
