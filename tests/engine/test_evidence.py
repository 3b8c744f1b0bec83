"""The words that speak for a link, next to a slow and obvious count over all documents."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path

import pytest

from indexes.text.analysis import Analysis
from linker.engine.building import BuildOptions, build
from linker.engine.engine import Engine
from linker.engine.evidence import MARKED, evidence, rarest_words
from linker.engine.folding import copies
from tests.helpers import sentence


def engine_of(tmp_path: Path, texts: list[str], language: str = "english") -> Engine:
    source = tmp_path / "d.jsonl"
    source.write_text("".join(json.dumps({"id": f"d{i}", "text": t}) + "\n" for i, t in enumerate(texts)))
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
    assert (nothing.words, nothing.pieces) == ((), ((text, False),))
    assert evidence(engine.collection, "", "").pieces == ()


def test_han_is_marked_by_pairs(tmp_path: Path) -> None:
    engine = engine_of(tmp_path, ["洪水淹没了街道", "议会选举"], "chinese")
    found = evidence(engine.collection, "城市的洪水", "昨天洪水淹没了")
    assert [piece for piece, shared in found.pieces if shared] == ["洪水"]


def test_copies_by_the_rarest_words_are_those_by_the_whole_text(tmp_path: Path) -> None:
    rng = random.Random(5)
    texts = [sentence(rng, 30) for _ in range(60)]
    texts += [f"RT @a: {texts[i]} https://x.example/{i}" for i in (3, 3, 4)] + ["lonely words unheard of"]
    engine = engine_of(tmp_path, texts)
    for id_ in ("d3", "d4", "d5", "d62", "d63"):
        document = engine.document(id_)
        query = rarest_words(engine.collection, document.full_text)
        assert set(copies(engine, document, query=query)) == set(copies(engine, document))
    assert set(copies(engine, engine.document("d3"))) == {"d60", "d61"}
